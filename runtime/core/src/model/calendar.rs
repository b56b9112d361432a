//! Days of the Gregorian calendar, counted from 1970-01-01.

/// Days from March 1 of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Days in 400 years. The calendar repeats after them.
const DAYS_OF_ERA: i64 = 146_097;

/// Year, month and day of a day number.
pub fn date(days: i64) -> (i64, i64, i64) {
    // Counts in years that begin with March, so that the leap day is the last day of its year. Also
    // counts in eras of 400 years, which are all equally long.
    let since_era_zero = days.saturating_add(DAYS_TO_1970);
    let (era, day) =
        (since_era_zero.div_euclid(DAYS_OF_ERA), since_era_zero.rem_euclid(DAYS_OF_ERA));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months since March; five of them have 153 days.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let is_next_year = month >= 10;
    let month = if is_next_year { month - 9 } else { month + 3 };
    (era * 400 + year + i64::from(is_next_year), month, day)
}

/// Day number of a date. Month and day may be any numbers: month 13 is January
/// of the next year. `None` if the result does not fit into 64 bits.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    let month = month.checked_sub(3)?;
    let year = year.checked_add(month.div_euclid(12))?;
    let month = month.rem_euclid(12);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5;
    let day_of_era = 365 * year + year / 4 - year / 100 + day_of_year;
    let first = era.checked_mul(DAYS_OF_ERA)?.checked_add(day_of_era)?;
    first.checked_sub(DAYS_TO_1970)?.checked_add(day)?.checked_sub(1)
}

/// True for years with a February 29.
pub const fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Day of the week of a day number; 0 is Sunday.
pub const fn weekday(days: i64) -> i64 {
    // The first day of 1970 was a Thursday.
    (days.rem_euclid(7) + 4) % 7
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_days_belong_together() {
        for count in (-1_000_000..1_000_000).step_by(97) {
            let (year, month, day) = date(count);
            assert_eq!(days(year, month, day), Some(count));
            assert_eq!(days(year - 2, month + 24, day), Some(count));
            assert_eq!(days(year + 1, month - 12, day), Some(count));
        }
        assert_eq!(days(2024, 2, 30), days(2024, 3, 1));
        assert_eq!(days(i64::MAX, 1, 1), None);
        assert_eq!((weekday(0), weekday(-1), weekday(19_782)), (4, 3, 4));
        assert!(is_leap_year(2024) && is_leap_year(2000) && !is_leap_year(1900));
    }
}
