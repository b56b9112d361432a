//! A generator of numbers that are the same in every run.

/// Numbers that depend on the first one only.
pub struct Choices(pub u64);

impl Choices {
    /// A number below `limit`, which must not be zero.
    pub fn below(&mut self, limit: usize) -> usize {
        // The constants of Knuth's MMIX; the upper bits are good.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }

    /// An element of a list.
    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}
