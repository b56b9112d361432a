//! The keys of the configuration, from the tables of its page (`config.md`). The reader accepts
//! no other key.

const PAGE: &str = include_str!("config.md");

/// Heading of the keys before all tables.
pub const TOP: &str = "Before all tables";

/// The keys of a table of the file, by its heading on the page.
pub fn keys_of(heading: &str) -> Vec<&'static str> {
    let mut sections = PAGE.split("\n## ");
    let section =
        sections.find(|one| one.lines().next().map(|line| line.trim_matches('`')) == Some(heading));
    let rows = section.into_iter().flat_map(str::lines);
    rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_of_the_page_has_its_keys() {
        let all = [TOP, "[limits]", "[web]", "[[group]]", "[fleet]", "[[sink]]"];
        assert_eq!(all.map(|heading| keys_of(heading).len()), [6, 4, 3, 11, 3, 12]);
        assert_eq!(keys_of("[limits]"), ["targets", "connects", "kinds", "instances"]);
        assert_eq!(PAGE.matches("\n## ").count(), all.len());
    }
}
