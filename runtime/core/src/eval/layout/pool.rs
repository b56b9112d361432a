//! What layouts of different programs have in common. Programs for sources that
//! differ in a few metrics fall into the same sections, which mostly have the
//! same shapes and plans.

use super::plan::{Call, OutputPlan, Place, Plan};
use super::sections::Sections;
use super::shape::Shape;
use crate::weak_table::Known;

/// Sections, shapes and plans in use, of any number of programs. It holds none
/// of them.
#[derive(Debug, Default)]
pub struct Pool {
    pub(in crate::eval) sections: Known<Sections>,
    pub(in crate::eval) shapes: Known<Shape>,
    pub(in crate::eval) plans: Known<Plan>,
    /// Parts of plans that differ in others.
    pub(super) places: Known<Box<[Place]>>,
    pub(super) columns: Known<Box<[Option<Place>]>>,
    pub(super) calls: Known<Call>,
    pub(super) outputs: Known<Box<[OutputPlan]>>,
}
