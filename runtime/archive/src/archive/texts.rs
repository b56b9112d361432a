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
//! Input: such records, whose places are kept. Output: the place of a text. Texts have
//! no time.

use std::collections::{HashMap, HashSet};

use pmderive_core::model::{PmStatus, TextKind, TextSubject};

use crate::archive::framing::{Damage, Fields, LENGTH_WORD};
use crate::archive::meta_files::RecordPlace;

/// The places of all texts.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    /// The bytes at a place may include a NUL.
    places: HashMap<(TextSubject, TextKind), RecordPlace>,
    /// The groups that have a text; see [`group`].
    kinds: HashSet<(bool, TextKind)>,
}

impl Texts {
    /// Adds a text of `length` bytes whose record is at `at`. A later text replaces an
    /// earlier one of the same subject.
    pub(super) fn add(&mut self, key: (TextSubject, TextKind), length: usize, at: RecordPlace) {
        // The text ends where the last length word begins.
        let start = at.length - LENGTH_WORD - length;
        let place = RecordPlace { file: at.file, offset: at.offset + start as u64, length };
        self.kinds.insert(group(key));
        self.places.insert(key, place);
    }

    /// Adds the texts of another archive, which replace known ones.
    pub(super) fn merge(&mut self, other: &Texts) {
        self.places.extend(&other.places);
        self.kinds.extend(&other.kinds);
    }

    /// The place of a text. If there is none, the status is `PM_ERR_TEXT`; in an
    /// archive without any text of its group it is `PM_ERR_NOTHOST`, as from libpcp.
    pub(super) fn place(&self, of: TextSubject, kind: TextKind) -> Result<RecordPlace, PmStatus> {
        self.places.get(&(of, kind)).copied().ok_or_else(|| {
            let known = self.kinds.contains(&group((of, kind)));
            if known { PmStatus::TEXT } else { PmStatus::NOTHOST }
        })
    }
}

/// The subject and kind of a text record, and the text, possibly with a NUL. `None` for
/// an unknown kind.
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
    Ok(TextSubject::from_wire(kind, ident).map(|key| (key, fields.rest())))
}

fn group((of, kind): (TextSubject, TextKind)) -> (bool, TextKind) {
    (matches!(of, TextSubject::Metric(_)), kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::positions::MetadataFileId;
    use pmderive_core::model::{InDom, Pmid};

    #[test]
    fn the_last_text_counts_and_what_is_missing_has_two_statuses() {
        let record = |kind: u32, text: &[u8]| {
            let head = [0, 4, kind, 7].map(u32::to_be_bytes).concat();
            [&head, text, &[0; 4]].concat()
        };
        let at = |offset| RecordPlace { file: MetadataFileId(3), offset, length: 24 };
        let mut texts = Texts::default();
        let metric = TextSubject::Metric(Pmid(7));
        assert_eq!(texts.place(metric, TextKind::OneLine), Err(PmStatus::NOTHOST));
        for (offset, kind) in [(100, 5), (200, 5), (300, 10), (400, 7)] {
            let record = record(kind, b"abc\0");
            if let Some((key, text)) = decode_text(&record, offset).expect("a record") {
                texts.add(key, text.len(), at(offset));
            }
        }
        let place = |offset| Ok(RecordPlace { file: MetadataFileId(3), offset, length: 4 });
        assert_eq!(texts.place(metric, TextKind::OneLine), place(216));
        assert_eq!(texts.place(TextSubject::Domain(InDom(7)), TextKind::Help), place(316));
        let other = TextSubject::Metric(Pmid(8));
        assert_eq!(texts.place(other, TextKind::OneLine), Err(PmStatus::TEXT));
        assert_eq!(texts.place(other, TextKind::Help), Err(PmStatus::NOTHOST));
        let damage = decode_text(&record(5, b"")[..16], 500).expect_err("no ident");
        assert_eq!(
            (damage.offset, &*damage.message),
            (512, "text.ident: 4 bytes wanted, but the record has 0 left")
        );
    }
}
