//! The parts that layouts of different programs share. Programs for sources
//! that differ in few metrics have the same sections, which usually have the
//! same shapes and plans.

use super::plan::{Call, OutputPlan, Place, Plan};
use super::sections::Sections;
use super::shape::Shape;
use crate::weak_table::Interner;

/// Sections, shapes and plans in use by any number of programs. The pool itself
/// keeps none of them alive.
#[derive(Debug, Default)]
pub struct Pool {
    pub(in crate::eval) sections: Interner<Sections>,
    pub(in crate::eval) shapes: Interner<Shape>,
    pub(in crate::eval) plans: Interner<Plan>,
    /// Parts of plans. Plans that differ otherwise share equal parts.
    pub(super) places: Interner<Box<[Place]>>,
    pub(super) columns: Interner<Box<[Option<Place>]>>,
    pub(super) calls: Interner<Call>,
    pub(super) outputs: Interner<Box<[OutputPlan]>>,
}
