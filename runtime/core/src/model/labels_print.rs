//! Labels printed for inspection.

use std::fmt::{self, Write};

use super::{LabelFlags, LabelLevel, LabelSet};

/// Prints as `pmPrintLabelSets(3)` does: the level and the other flags.
impl fmt::Display for LabelFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let others = LabelFlags::COMPOUND.0 | LabelFlags::OPTIONAL.0;
        f.write_str(match self.0 & !others {
            1 => "context",
            2 => "domain",
            4 => "indom",
            8 => "cluster",
            16 => "pmid",
            32 => "instances",
            _ => "?",
        })?;
        for (flag, text) in
            [(LabelFlags::COMPOUND, ",compound"), (LabelFlags::OPTIONAL, ",optional")]
        {
            if self.has(flag) {
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}

impl LabelLevel {
    /// Prints the sets of this level in full, one line for each set and each
    /// label (`pmPrintLabelSets(3)`).
    pub fn print(self, sets: &[LabelSet]) -> String {
        let mut text = String::new();
        for set in sets {
            // Writing to a string does not fail.
            let _ = self.write(&mut text, set);
        }
        text
    }

    fn write(self, out: &mut String, set: &LabelSet) -> fmt::Result {
        match self {
            LabelLevel::Context => write!(out, "    Context")?,
            LabelLevel::Domain(domain) => write!(out, "    Domain {domain}")?,
            LabelLevel::InDom(indom) => write!(out, "    InDom {indom}")?,
            LabelLevel::Cluster(pmid) => {
                write!(out, "    Cluster {}.{}", pmid.domain(), pmid.cluster())?;
            }
            LabelLevel::Item(pmid) => write!(out, "    PMID {pmid}")?,
            LabelLevel::Instances(indom) => write!(out, "    InDom {indom}[{}]", set.instance())?,
        }
        let json = set.json();
        let shown = if json.is_empty() { "(null)" } else { json };
        writeln!(out, " labels ({} bytes): {shown}", json.len())?;
        for (position, place) in set.places().iter().enumerate() {
            writeln!(
                out,
                "        [{position}] name({},{}) : value({},{}) [{}]",
                place.name, place.name_len, place.value, place.value_len, place.flags
            )?;
        }
        Ok(())
    }
}
