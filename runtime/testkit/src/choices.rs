//! A generator of numbers that are the same in every run.

/// Numbers that depend on the first one only.
pub struct Choices(pub u64);

impl Choices {
    /// Below `limit`, of which there is always one.
    pub fn below(&mut self, limit: usize) -> usize {
        // As in Knuth's MMIX; the upper bits are good.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % limit.max(1) as u64) as usize
    }

    /// One of a list.
    pub fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }
}
