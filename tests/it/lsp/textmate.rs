//! The grammar that editors colour definitions by: the scope of each word. It has rules for
//! single lines only, and this test interprets no others.

use fancy_regex::Regex;
use serde_json::Value;

const GRAMMAR: &str =
    include_str!("../../../src/lsp/editors/vscode/syntaxes/pmderive.tmLanguage.json");

struct Rule {
    pattern: Regex,
    name: Option<String>,
    captures: Vec<(usize, String)>,
}

fn rules() -> Vec<Rule> {
    let grammar: Value = serde_json::from_str(GRAMMAR).expect("it is JSON");
    let rule = |rule: &Value| {
        let captures = rule["captures"].as_object().into_iter().flatten();
        Rule {
            pattern: Regex::new(rule["match"].as_str().expect("a pattern")).expect("it is right"),
            name: rule["name"].as_str().map(str::to_owned),
            captures: captures
                .map(|(number, of)| {
                    let name = of["name"].as_str().expect("a scope").to_owned();
                    (number.parse().expect("a number"), name)
                })
                .collect(),
        }
    };
    grammar["patterns"].as_array().expect("a list").iter().map(rule).collect()
}

/// Each piece of a line that has a scope.
fn scopes(rules: &[Rule], line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < line.len() {
        let matches = rules.iter().filter_map(|rule| {
            let captures = rule.pattern.captures_from_pos(line, at).expect("it is simple")?;
            let whole = captures.get(0).expect("the whole");
            (whole.end() > whole.start()).then_some((whole.start(), rule, captures))
        });
        // The first match; of equal ones that of the first rule.
        let Some((_, rule, captures)) = matches.min_by_key(|(start, ..)| *start) else { break };
        let whole = captures.get(0).expect("the whole");
        if let Some(name) = &rule.name {
            found.push((whole.as_str().trim().to_owned(), name.clone()));
        }
        for (number, name) in &rule.captures {
            if let Some(piece) = captures.get(*number) {
                found.push((piece.as_str().trim().to_owned(), name.clone()));
            }
        }
        at = whole.end();
    }
    found
}

#[test]
fn words_have_the_scopes_that_themes_know() {
    let rules = rules();
    let mut drawn = String::new();
    for line in [
        "# a comment = x",
        "iops.avgsz = delta(disk.dev.total_bytes) / delta(disk.dev.total)",
        "iops.avgsz(oneline) = Mean size",
        "a.b = sum(c.d) by (rack, dc) >= 1.5 && !defined(rate.x)",
        "a = matchinst(/^sd\\/[a-c]/, b[\"x\\]y\"]) ? rescale(b, \"Mbyte / sec\") : \\",
        "  mkconst(12, type=u64, semantics = counter, units=\"count\")",
        "by = type + 3.",
        "x = anon(PM_TYPE_U64) / (y / z)",
    ] {
        drawn.push_str(&format!("{line}\n"));
        for (text, scope) in scopes(&rules, line) {
            drawn.push_str(&format!("    {text}  {}\n", scope.trim_end_matches(".pmderive")));
        }
    }
    insta::assert_snapshot!(drawn);
}
