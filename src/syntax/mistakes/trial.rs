//! Tries the edits that are offered for a refused text.
//!
//! A certain edit must leave fewer mistakes. An offered edit must fix the mistake
//! that it is offered for. Other modules find the mistakes.

use crate::diag::{Diagnostic, Diagnostics, Fix};
use crate::dialect::Language;
use crate::syntax::files::config_names::is_assignment;
use crate::syntax::origin::Origin;
use crate::syntax::read_at;

use super::repair::MAX_REPORTS;

/// Longest text whose edits are tried, in bytes. In longer ones, no edit is
/// certain.
const MAX_TRIED: usize = 2_000;

/// Largest number of bytes to read again for one text. Edits beyond that are guesses.
/// The first two are always tried.
const MAX_READ: usize = 4_000;

/// Removes the offered edits that leave the same mistake. Edits that leave as many
/// mistakes as before become guesses.
pub(in crate::syntax) fn doubt(
    text: &str,
    origin: &Origin,
    language: Language,
    found: &mut Diagnostics,
) {
    // A line that was meant as a definition of its own would lose its meaning.
    let joints = || origin.joints().filter_map(|joint| text.get(joint as usize..));
    let is_short =
        text.len() <= MAX_TRIED && !joints().any(|line| is_assignment(line.trim_start()));
    let mut room = MAX_READ.max(2 * text.len());
    let before = found.errors();
    for one in found.since_mut(0) {
        let Some(fix) = one.fix.as_mut() else { continue };
        let Some(edited) = edited(text, origin, fix).filter(|_| is_short) else {
            fix.is_certain &= is_short;
            continue;
        };
        // A backslash at the end joins a line with the next one, which this trial
        // cannot see.
        if edited.ends_with('\\') {
            fix.is_certain &= text.trim_end().ends_with('\\');
            continue;
        }
        if room < edited.len() {
            fix.is_certain = false;
            continue;
        }
        room -= edited.len();
        let (_, left) = read_at(&origin.at_beginning(), &edited, language, None);
        // Where reports are limited, their number tells nothing.
        let has_fewer = left.errors() < before;
        fix.is_certain &= has_fewer || before >= MAX_REPORTS;
        let place = origin.logical(one.span.start);
        let is_same = |other: &Diagnostic| {
            (other.code, other.span.start, &other.message) == (one.code, place, &one.message)
        };
        // After an edit, an equal mistake may move to the same place.
        if !has_fewer && left.iter().any(is_same) {
            one.fix = None;
        }
    }
}

/// The text with an edit, if it is one of this text.
fn edited(text: &str, origin: &Origin, fix: &Fix) -> Option<String> {
    let (start, end) = (origin.logical(fix.span.start), origin.logical(fix.span.end));
    let before = text.get(..start as usize)?;
    let after = text.get(end.max(start) as usize..)?;
    Some([before, &fix.text, after].concat())
}

#[cfg(test)]
mod tests {
    use crate::syntax::tests::mended;

    /// A certain edit would take the next definition for a part of this one.
    #[test]
    fn no_edit_is_certain_that_swallows_a_definition() {
        for text in [
            "x = hinv.ncpu + \\\ny = mem.physmem\n",
            "x = hinv.ncpu ? 1 : \\\ny = mem.physmem\n",
            "x = not hinv.ncpu \\\ny = mem.physmem\n",
            "x = hinv.ncpu > 2 && \\\nx(oneline) = busy\n",
            "x = filesys.mountdir ~ /^\\/home\\//\ny = mem.physmem\n",
        ] {
            let mended = mended(text).unwrap_or_else(|| text.to_owned());
            assert_eq!(mended.lines().last(), text.lines().last(), "{mended}");
            let goes_on = |text: &str| text.lines().next().map(|line| line.ends_with('\\'));
            assert_eq!(goes_on(&mended), goes_on(text), "{mended}");
        }
    }

    /// More than one thing can be meant.
    #[test]
    fn no_edit_is_certain_of_a_part_of_a_list() {
        for text in [
            "x = max(kernel.all.load; 0,5)\n",
            "x = hinv.ncpu == 1,2,3\n",
            "x = rate(disk.dev.read #vda) > 5\n",
            "x = kernel.all.load #5 minute > 3\n",
            "x = bool(hinv.ncpu)\n",
            "x = rescale(hinv.ncpu, \"count/sec/1000\")\n",
        ] {
            assert_eq!(mended(text), None, "{text}");
        }
    }
}
