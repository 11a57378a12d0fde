//! Monthly meters: deliveries and media operations.

pub mod deliveries;
pub(crate) mod month;
pub mod operations;
