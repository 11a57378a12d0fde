//! Usage of accounts: monthly meters of deliveries and media operations, usage by day; counts that nodes have together.

pub mod counters;
pub mod deliveries;
pub mod history;
pub(crate) mod month;
pub mod operations;
