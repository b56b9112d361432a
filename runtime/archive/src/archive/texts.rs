//! Help texts of an archive.
//!
//! | offset | size | field                                                    |
//! |--------|------|----------------------------------------------------------|
//! | 0      | 4    | length                                                   |
//! | 4      | 4    | type: 4                                                  |
//! | 8      | 4    | kind: 1 (one line) or 2 (help), and 4 (metric) or 8 (instance domain) |
//! | 12     | 4    | ident: of the metric or instance domain                  |
//! | 16     |      | the text, with a NUL                                     |
//! |        | 4    | length                                                   |
//!
//! Input: such records, of which the positions are kept. Output: where a text is to
//! be found. Texts have no time. This module does not read files.

use std::collections::{HashMap, HashSet};

use pmderive_core::model::{PmStatus, TextKind, TextSubject};

use crate::archive::layout::text_key;
use crate::archive::meta_files::RecordPlace;
use crate::archive::record::{Damage, Fields, LENGTH_WORD};

/// What texts there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    /// Where the texts are, perhaps with a NUL among the bytes.
    places: HashMap<(TextSubject, TextKind), RecordPlace>,
    /// Kinds of which there is a text: whether of metrics, and which.
    kinds: HashSet<(bool, TextKind)>,
}

impl Texts {
    /// Takes a record, length words and type included, that stands at `at`. Of two texts with one subject the later one counts; a
    /// record of another kind is passed over.
    pub(super) fn add(&mut self, bytes: &[u8], at: RecordPlace) -> Result<(), Damage> {
        let Some((key, text)) = decode_text(bytes, at.offset)? else { return Ok(()) };
        let length = text.len();
        // The text ends where the last length word begins.
        let start = bytes.len() - LENGTH_WORD - length;
        let place = RecordPlace { file: at.file, offset: at.offset + start as u64, length };
        self.kinds.insert(group(key));
        self.places.insert(key, place);
        Ok(())
    }

    /// Takes the texts of another archive over, in place of those known.
    pub(super) fn merge(&mut self, other: &Texts) {
        self.places.extend(&other.places);
        self.kinds.extend(&other.kinds);
    }

    /// Where a text is. Without one, `PM_ERR_TEXT`, or `PM_ERR_NOTHOST` in an
    /// archive without any text of the kind, as libpcp has it.
    pub(super) fn place(&self, of: TextSubject, kind: TextKind) -> Result<RecordPlace, PmStatus> {
        self.places.get(&(of, kind)).copied().ok_or_else(|| {
            let known = self.kinds.contains(&group((of, kind)));
            if known { PmStatus::TEXT } else { PmStatus::NOTHOST }
        })
    }
}

/// What a record is about, and its text, perhaps with a NUL. `None` for a kind
/// without a meaning.
#[expect(clippy::type_complexity, reason = "each part is named by its type")]
pub(super) fn decode_text(
    bytes: &[u8],
    offset: u64,
) -> Result<Option<((TextSubject, TextKind), &[u8])>, Damage> {
    let body = &bytes[..bytes.len().saturating_sub(LENGTH_WORD)];
    let mut fields = Fields::new("text", body, offset);
    fields.take(2 * LENGTH_WORD, "header")?;
    let kind = fields.u32("kind")?;
    let ident = fields.u32("ident")?;
    Ok(text_key(kind, ident).map(|key| (key, fields.rest())))
}

fn group((of, kind): (TextSubject, TextKind)) -> (bool, TextKind) {
    (matches!(of, TextSubject::Metric(_)), kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmderive_core::model::{InDom, Pmid};

    #[test]
    fn the_last_text_counts_and_what_is_missing_has_two_statuses() {
        let record = |kind: u32, text: &[u8]| {
            let head = [0, 4, kind, 7].map(u32::to_be_bytes).concat();
            [&head, text, &[0; 4]].concat()
        };
        let at = |offset| RecordPlace { file: 3, offset, length: 20 };
        let mut texts = Texts::default();
        let metric = TextSubject::Metric(Pmid(7));
        assert_eq!(texts.place(metric, TextKind::OneLine), Err(PmStatus::NOTHOST));
        for (offset, kind) in [(100, 5), (200, 5), (300, 10), (400, 7)] {
            texts.add(&record(kind, b"abc\0"), at(offset)).expect("a record");
        }
        let place = |offset| Ok(RecordPlace { file: 3, offset, length: 4 });
        assert_eq!(texts.place(metric, TextKind::OneLine), place(216));
        assert_eq!(texts.place(TextSubject::Domain(InDom(7)), TextKind::Help), place(316));
        let other = TextSubject::Metric(Pmid(8));
        assert_eq!(texts.place(other, TextKind::OneLine), Err(PmStatus::TEXT));
        assert_eq!(texts.place(other, TextKind::Help), Err(PmStatus::NOTHOST));
        let damage = texts.add(&record(5, b"")[..16], at(500)).expect_err("no ident");
        assert_eq!(
            (damage.offset, &*damage.message),
            (512, "text.ident: 4 bytes wanted, but the record has 0 left")
        );
    }
}
