//! The database, SQLite or PostgreSQL: writers, readers, units of work, statements, migrations, sweeps, order, pages and patterns of
//! lists.

pub(crate) mod connection;
pub(crate) mod copy;
pub(crate) mod dialect;
pub(crate) mod like;
pub(crate) mod maintenance;
pub(crate) mod migrate;
pub(crate) mod order;
pub(crate) mod page;
pub(crate) mod postgres;
pub(crate) mod published;
pub(crate) mod rows;
pub(crate) mod serial;
pub(crate) mod statement;
pub(crate) mod store;
pub(crate) mod turns;
pub(crate) mod unit;
pub(crate) mod writer;
