//! Statistics over the lanes of a column, in double precision.
//!
//! One NaN among the values makes each of them NaN: an unknown value must not
//! look like a number.

/// Numbers up to this one, and down to its reciprocal, have squares that can be added up.
const SQUARES: f64 = 1e140;
/// 2^600: what is beyond [`SQUARES`] is within it when divided by this.
const LIFT: f64 = 4.149515568880993e+180;

/// Standard deviation of the population: the root of the mean square of the
/// distances from the mean. It is zero for one value. It is NaN without values,
/// and if a value is infinite.
pub fn std_dev(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let Some((first, _)) = values.split_first() else { return f64::NAN };
    // A power of two that keeps squares within the range of numbers, and changes no digit.
    let largest = values.iter().map(|value| (value / 2.0 - first / 2.0).abs()).fold(0.0, f64::max);
    let factor = match largest {
        _ if largest > SQUARES || values.iter().any(|value| value.abs() > SQUARES) => 1.0 / LIFT,
        _ if largest > 0.0 && largest < 1.0 / SQUARES => LIFT,
        _ => 1.0,
    };
    // Distances from one of the values are small and mostly exact, unlike the values.
    // Equal values have no distance, and the mean of large values loses no digits.
    let distances = || values.iter().map(|value| value * factor - first * factor);
    let mean = distances().sum::<f64>() / count;
    let squares = distances().map(|distance| (distance - mean) * (distance - mean));
    (squares.sum::<f64>() / count).sqrt() / factor
}

/// The value below which a share `q` (0 to 1) of the values lies: at rank
/// `q * (n - 1)` of the ascending values, between two ranks in proportion. NaN
/// for no values. Changes the order of the values.
pub fn quantile(values: &mut [f64], q: f64) -> f64 {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let rank = q.clamp(0.0, 1.0) * (values.len() - 1) as f64;
    // The rank is whole, not negative, and below the number of values.
    let below = rank.floor() as usize;
    let share = rank - rank.floor();
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    if share == 0.0 {
        return low;
    }
    let high = above.iter().copied().fold(f64::INFINITY, f64::min);
    let distance = high - low;
    if high == low {
        low
    } else if distance.is_finite() {
        low + distance * share
    } else {
        // Also where one is infinite, which is then the result.
        low * (1.0 - share) + high * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_of_the_population() {
        assert_eq!(std_dev(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
        assert_eq!(std_dev(&[-3.5]), 0.0);
        assert!(std_dev(&[]).is_nan());
        assert!(std_dev(&[1.0, f64::NAN]).is_nan());
        assert!(std_dev(&[1.0, f64::INFINITY]).is_nan());
        // The mean is far from zero: the deviation is not lost.
        assert_eq!(std_dev(&[1e15 - 1.0, 1e15 + 1.0]), 1.0);
        assert_eq!(std_dev(&[1.7e18, 1.7e18 + 256.0]), 128.0);
        assert_eq!(std_dev(&[0.1; 3]), 0.0);
        // Squares are beyond the range of numbers, or below it.
        assert_eq!(std_dev(&[1e300, 3e300]), 1e300);
        assert_eq!(std_dev(&[-1.5e308, 1.5e308]), 1.5e308);
        let least = f64::MIN_POSITIVE;
        assert_eq!(std_dev(&[least, 3.0 * least]), least);
        assert_eq!(std_dev(&[1.7e308; 3]), 0.0);
        assert!(std_dev(&[f64::NAN, 1e300, 1e-300]).is_nan());
    }

    #[test]
    fn quantiles_lie_between_the_closest_ranks() {
        let of = |values: &[f64], q| quantile(&mut values.to_vec(), q);
        let four = [40.0, 10.0, 30.0, 20.0];
        assert_eq!(of(&four, 0.0), 10.0);
        assert_eq!(of(&four, 1.0), 40.0);
        assert_eq!(of(&four, 0.5), 25.0);
        assert_eq!(of(&four, 0.25), 17.5);
        assert_eq!(of(&[7.0], 0.9), 7.0);
        assert_eq!(of(&[5.0, 5.0, 5.0], 0.4), 5.0);
        // Beyond the ends the ends.
        assert_eq!((of(&four, -1.0), of(&four, 7.0)), (10.0, 40.0));
    }

    #[test]
    fn quantiles_of_what_is_not_finite() {
        let of = |values: &[f64], q| quantile(&mut values.to_vec(), q);
        let inf = f64::INFINITY;
        assert!(of(&[], 0.5).is_nan());
        assert!(of(&[1.0, f64::NAN, 3.0], 0.0).is_nan());
        assert_eq!(of(&[1.0, inf], 0.0), 1.0);
        assert_eq!(of(&[1.0, inf], 0.5), inf);
        assert_eq!(of(&[-inf, 1.0], 0.5), -inf);
        assert_eq!(of(&[inf, inf], 0.5), inf);
        assert_eq!(of(&[-1.5e308, 1.5e308], 0.5), 0.0);
    }
}
