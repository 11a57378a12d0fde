//! Monthly meters: deliveries and media operations; and usage by day.

pub mod deliveries;
pub mod history;
pub(crate) mod month;
pub mod operations;
