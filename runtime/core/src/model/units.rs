//! Dimension and scale of a value.

/// An extra physical dimension of PCP 7: one quantity with its own unit, such
/// as `voltage (mV)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtraUnit {
    /// 0 none, 1 temperature, 2 voltage, 3 current, 4 power. Negative: "per"
    /// that quantity.
    pub quantity: i8,
    /// Number of the unit within the quantity, from 1. 0 if there is no
    /// quantity.
    pub unit: u8,
}

/// Dimension and scale of a value in space, time, count and one extra quantity:
/// `pmUnits` of `pmLookupDesc(3)`.
///
/// ```
/// use pmderive_core::model::{Conversion, Units};
///
/// let [from, to] = ["Kbyte / sec", "Mbyte / min"].map(|text| Units::parse(text).unwrap().units);
/// assert_eq!(from.to_string(), "Kbyte / sec");
/// assert_eq!(Conversion::between(from, to)?.apply_f64(1024.0), 60.0);
/// # Ok::<(), pmderive_core::model::PmStatus>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Units {
    /// Exponent of space (bytes), -8 to 7.
    pub dim_space: i8,
    /// Exponent of time, -8 to 7.
    pub dim_time: i8,
    /// Exponent of count (events), -8 to 7.
    pub dim_count: i8,
    /// Power of 1024 bytes, 0 to 8.
    pub scale_space: u8,
    /// 0 nanoseconds, 1 microseconds, 2 milliseconds, 3 seconds, 4 minutes, 5 hours.
    pub scale_time: u8,
    /// Power of ten, -8 to 7.
    pub scale_count: i8,
    /// Extra quantity, if there is one.
    pub extra: ExtraUnit,
}

impl Units {
    /// No dimension, scale zero.
    pub const NONE: Units = Units {
        dim_space: 0,
        dim_time: 0,
        dim_count: 0,
        scale_space: 0,
        scale_time: 0,
        scale_count: 0,
        extra: ExtraUnit { quantity: 0, unit: 0 },
    };
}

/// Sign-extends the low `bits` bits of `word`.
const fn signed(word: u32, bits: u32) -> i8 {
    ((word << (32 - bits)) as i32 >> (32 - bits)) as i8
}

impl Units {
    /// Reads the word of the wire and of archives. From the top nibble down it
    /// has the dimensions of space, time and count, then their scales, then the
    /// extra quantity (5 bits, signed) with its unit (3 bits).
    pub const fn from_wire(word: u32) -> Units {
        Units {
            dim_space: signed(word >> 28, 4),
            dim_time: signed(word >> 24, 4),
            dim_count: signed(word >> 20, 4),
            scale_space: (word >> 16 & 0xf) as u8,
            scale_time: (word >> 12 & 0xf) as u8,
            scale_count: signed(word >> 8, 4),
            extra: ExtraUnit { quantity: signed(word >> 3, 5), unit: (word & 7) as u8 },
        }
    }

    /// The word for the wire and archives; see [`Units::from_wire`].
    pub const fn to_wire(self) -> u32 {
        (self.dim_space as u32 & 0xf) << 28
            | (self.dim_time as u32 & 0xf) << 24
            | (self.dim_count as u32 & 0xf) << 20
            | (self.scale_space as u32 & 0xf) << 16
            | (self.scale_time as u32 & 0xf) << 12
            | (self.scale_count as u32 & 0xf) << 8
            | (self.extra.quantity as u32 & 0x1f) << 3
            | (self.extra.unit as u32 & 7)
    }

    /// True if no axis has a dimension.
    pub const fn is_dimensionless(self) -> bool {
        self.dim_space == 0 && self.dim_time == 0 && self.dim_count == 0 && self.extra.quantity == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_words_survive() {
        for word in
            [0x0100_2000, 0x1001_0000, 0x0010_0000, 0x0f00_1000, 0x1f01_3000, 0x0010_0d00, 0xf9]
        {
            assert_eq!(Units::from_wire(word).to_wire(), word, "{word:08x}");
        }
        let per_microsecond = Units::from_wire(0x0f00_1000);
        assert_eq!((per_microsecond.dim_time, per_microsecond.scale_time), (-1, 1));
    }
}
