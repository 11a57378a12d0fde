//! The SQLite database: one writer, readers, units of work, migrations, sweeps, order, pages and patterns of lists.

pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod like;
pub(crate) mod maintenance;
pub(crate) mod migrate;
pub(crate) mod order;
pub(crate) mod page;
pub(crate) mod rows;
pub(crate) mod store;
pub(crate) mod turns;
pub(crate) mod unit;
pub(crate) mod writer;
