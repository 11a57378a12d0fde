//! Usage of accounts: monthly meters of deliveries and media operations, usage by day.

pub mod deliveries;
pub mod history;
pub(crate) mod month;
pub mod operations;
