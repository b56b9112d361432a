//! Turns the manual's Markdown into text for a terminal: paragraphs and lists are
//! wrapped, code stays as it is, tables get columns, and headings are bold where the
//! terminal shows that.
//!
//! It handles the forms that the manual uses: headings, paragraphs, lists, fenced and indented
//! blocks, tables, references, `code`, **strong** words and comments. The pages are the project's
//! own, so the renderer trusts them.

/// Widest prose: longer lines are hard to read.
const WIDEST: usize = 100;

/// Renders a page for a terminal of `width` columns; with escape sequences for
/// bold if it is `styled`.
pub fn render(page: &str, width: usize, styled: bool) -> String {
    let mut out = Rendered { text: String::new(), width: width.clamp(20, WIDEST), styled };
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(fence) = line.strip_prefix("```") {
            let hides = fence.starts_with("rust") || fence.is_empty();
            for line in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                // Rust's documentation hides such lines as well.
                if !(hides && (line == "#" || line.starts_with("# "))) {
                    out.line("    ", line);
                }
            }
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(line));
            }
            out.table(&rows);
        } else if let Some(heading) = line.strip_prefix('#') {
            out.heading(heading.trim_start_matches('#').trim(), !heading.starts_with('#'));
        } else if line.is_empty() {
            out.blank();
        } else if line.starts_with("    ") {
            // Code without a fence.
            out.line("", line);
        } else if line.starts_with("<!--") || is_definition(line) {
            // For the book and the crate's documentation only.
        } else {
            let (first, rest, start) = item(line);
            let mut paragraph = start.to_owned();
            while let Some(line) = lines.next_if(|line| goes_on(line)) {
                paragraph.push(' ');
                paragraph.push_str(line.trim());
            }
            out.paragraph(&first, rest, &plain(&paragraph));
        }
    }
    out.text.truncate(out.text.trim_end().len());
    out.text.push('\n');
    out.text
}

/// True for `[name]: target`.
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.contains("]: ")
}

/// The sign of a list's item, the indentation of its further lines, and its text. Without an
/// item the first two are empty.
fn item(line: &str) -> (String, usize, &str) {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let sign = match text.as_bytes().get(digits) {
        Some(b'.') if digits > 0 => digits + 2,
        Some(b'-' | b'*') if digits == 0 && text.as_bytes().get(1) == Some(&b' ') => 2,
        _ => 0,
    };
    let (sign, text) = text.split_at(sign.min(text.len()));
    (format!("{}{sign}", " ".repeat(indent)), indent + sign.len(), text)
}

/// True for a line that belongs to the paragraph before it.
fn goes_on(line: &str) -> bool {
    let starts_anew = ["```", "|", "#", "<!--"].iter().any(|start| line.starts_with(start));
    !(line.is_empty() || starts_anew || is_definition(line) || !item(line).0.trim().is_empty())
}

/// The cells of a table's row.
fn cells(line: &str) -> Vec<String> {
    let inside = line.trim().trim_start_matches('|').trim_end_matches('|');
    // A bar within a cell is written with a backslash.
    let parted = inside.replace("\\|", "\u{1}");
    parted.split('|').map(|cell| plain(&cell.trim().replace('\u{1}', "|"))).collect()
}

/// Removes the parts that only a browser shows. A link becomes its text; a reference becomes the
/// command that shows its topic.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    let mut in_code = false;
    while let Some(first) = rest.chars().next() {
        if first == '`' {
            in_code = !in_code;
        }
        if first == '\\' && !in_code && rest[1..].starts_with(['[', ']', '*', '_']) {
            out.push_str(&rest[1..2]);
            rest = &rest[2..];
            continue;
        }
        if first == '['
            && !in_code
            && let Some((shown, after)) = rest[1..].split_once(']')
        {
            let end = |close| after[1..].find(close).map(|end| end + 2);
            let (target, length) = match after.bytes().next() {
                Some(b'(') => (None, end(')')),
                Some(b'[') => {
                    let length = end(']');
                    (length.map(|length| &after[1..length - 1]), length)
                }
                _ => (Some(shown), Some(0)),
            };
            if let Some(length) = length {
                out.push_str(&match target {
                    None => shown.to_owned(),
                    Some(target) if target == shown => format!("`help {target}`"),
                    Some(target) => format!("{shown} (`help {target}`)"),
                });
                rest = &after[length..];
                continue;
            }
        }
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out.replace("**", "")
}

struct Rendered {
    text: String,
    width: usize,
    styled: bool,
}

impl Rendered {
    fn line(&mut self, indent: &str, line: &str) {
        let start = self.text.len();
        self.text.push_str(indent);
        self.text.push_str(line);
        let end = self.text[start..].trim_end().len();
        self.text.truncate(start + end);
        self.text.push('\n');
    }

    /// Ends with exactly one empty line.
    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
            self.text.push('\n');
        }
    }

    fn heading(&mut self, heading: &str, is_title: bool) {
        self.blank();
        let heading = plain(heading).replace('`', "");
        match self.styled {
            true => self.line("", &format!("\x1b[1m{heading}\x1b[0m")),
            false => {
                self.line("", &heading);
                let rule = if is_title { "=" } else { "-" };
                self.line("", &rule.repeat(heading.chars().count()));
            }
        }
        self.blank();
    }

    /// Wraps a plain text behind `first`; further lines are indented by `rest` columns.
    fn paragraph(&mut self, first: &str, rest: usize, text: &str) {
        let mut line = first.to_owned();
        let mut length = first.chars().count();
        let mut is_empty = true;
        for word in text.split_whitespace() {
            let wide = word.chars().count();
            if !is_empty && length + 1 + wide > self.width {
                self.line("", &line);
                line = " ".repeat(rest);
                length = rest;
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
                length += 1;
            }
            line.push_str(word);
            length += wide;
            is_empty = false;
        }
        self.line("", &line);
    }

    /// Prints a table in columns if it fits, else row by row.
    fn table(&mut self, rows: &[Vec<String>]) {
        let (head, body) = match rows {
            [head, _, body @ ..] => (head, body),
            _ => return,
        };
        let shown = || std::iter::once(head).chain(body);
        let of_column = |at: usize| shown().filter_map(move |row| row.get(at));
        let widths: Vec<usize> = (0..head.len())
            .map(|at| of_column(at).map(|cell| cell.chars().count()).max().unwrap_or_default())
            .collect();
        let last = widths.len().saturating_sub(1);
        let before: usize = widths[..last].iter().map(|width| width + 2).sum();
        // The last column may be wrapped, if there is room for it.
        if before + widths[last].min(30) <= self.width {
            for row in shown().filter(|row| row.iter().any(|cell| !cell.is_empty())) {
                let start = self.text.len();
                let mut first = String::new();
                for (cell, width) in row.iter().zip(&widths[..last]) {
                    first.push_str(&format!("{cell:width$}  "));
                }
                let text = row.get(last).map_or("", String::as_str);
                self.paragraph(&first, before, text);
                if self.styled && std::ptr::eq(row, head) {
                    let shown = self.text.split_off(start);
                    self.line("", &format!("\x1b[1m{}\x1b[0m", shown.trim_end()));
                }
            }
            return;
        }
        for row in body {
            self.blank();
            for (at, cell) in row.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
                match head.get(at).filter(|name| at > 0 && !name.is_empty()) {
                    Some(name) => self.paragraph("    ", 6, &format!("{name}: {cell}")),
                    None => self.paragraph("", 4, cell),
                }
            }
        }
        self.blank();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Code;

    const PAGE: &str = "# A `page`\n\nOne two three four, see [units] and\n[the tables][tables] or \
        [this](x.md): `a b`.\n\n- an item that is long enough to be wrapped\n  and goes on\n- \
        **b**\n\n```rust\n# hidden\nlet x = 1;\n```\n\n| a | b |\n|---|---|\n| `x \\| y` | z\\[0] |\n\n\
        [units]: units.md\n[tables]: tables.md\n";

    #[test]
    fn a_page() {
        let plain = "A page\n======\n\nOne two three four, see `help\nunits` and the tables (`help\n\
            tables`) or this: `a b`.\n\n- an item that is long enough\n  to be wrapped and goes on\n- \
            b\n\n    let x = 1;\n\na        b\n`x | y`  z[0]\n";
        assert_eq!(render(PAGE, 30, false), plain);
        let styled = render(PAGE, 30, true);
        assert!(styled.starts_with("\x1b[1mA page\x1b[0m\n\n"), "{styled}");
    }

    #[test]
    fn a_table_that_is_too_wide() {
        let wide = "w ".repeat(20);
        let page = format!("| a | b | c |\n|---|---|---|\n| x | {wide} | z |\n");
        let shown = render(&page, 40, false);
        assert!(shown.starts_with("x\n    b: w w w"), "{shown}");
        assert!(shown.ends_with("\n    c: z\n"), "{shown}");
    }

    #[test]
    fn code_stays_as_it_is() {
        for code in Code::ALL {
            let page = crate::diag::page(*code);
            let shown = render(page, 80, false);
            for line in page.lines().filter(|line| line.starts_with("    ")) {
                assert!(shown.contains(&format!("\n{line}\n")), "{line}");
            }
        }
    }

    /// Prose of no page is wider than the terminal, in any width.
    #[test]
    fn pages_fit() {
        for topic in crate::manual::TOPICS {
            for width in [60, 80, 300] {
                let shown = render(topic.text, width, false);
                let too_long = shown.lines().find(|line| {
                    let is_code = line.starts_with("    ");
                    // A word without a blank cannot be wrapped.
                    let words = line.split_whitespace().map(|word| word.chars().count());
                    let longest = words.max().unwrap_or_default();
                    !is_code && longest < 40 && line.chars().count() > width.min(WIDEST)
                });
                assert_eq!(too_long, None, "{} at {width}", topic.name);
            }
        }
    }
}
