//! Rows and blobs of the Sluice media service: one SQLite database behind one writer and a few readers, and a folder
//! of content-addressed files.
//!
//! - SQL stays inside this crate. Callers use the verbs of the resource modules ([`live_inputs`], [`users`] …).
//! - Every change is a verb over a [`Tx`], so that several changes join one unit of work ([`Store::write`]). Verbs
//!   that only read take any [`Connection`]: a `Tx` or a [`Reader`].
//! - Changes survive the death of the process and of the machine once [`Store::write`] has returned.
//! - Times are `i64` milliseconds since 1970 UTC and are passed by the caller; secrets are stored as hashes.

pub mod accounts;
pub mod api_keys;
pub mod archive;
pub mod backup;
pub mod blob;
pub mod blobs;
pub mod broadcasts;
pub mod credentials;
pub mod deliveries;
pub mod delivery_keys;
pub mod events;
pub mod files;
pub mod folders;
pub mod idempotency;
pub mod installation;
pub mod jobs;
pub mod lineage;
pub mod live_connections;
pub mod live_inputs;
pub mod operations;
pub mod outputs;
pub mod playback_keys;
pub mod presets;
pub mod recordings;
pub mod sessions;
pub mod shares;
pub mod storage;
mod turns;
pub mod tus;
pub mod uploads;
pub mod users;
pub mod video;
pub mod webhooks;
pub mod work;
pub mod workflows;

mod bootstrap;
mod connection;
mod copy;
mod error;
mod folder;
mod maintenance;
mod migrate;
mod month;
mod page;
mod rows;
mod settings;
mod store;
mod unit;
mod writer;

use std::time::Duration;

pub use bootstrap::{Bootstrap, FirstCredentials, bootstrap, first_credentials_shown};
pub use connection::{Connection, Reader, Tx};
pub use credentials::Secret;
pub use error::Error;
pub use month::Month;
pub use page::{Cursor, Listed, Page};
pub use settings::StoreSettings;
pub use store::{DiskSpace, Statistics, Store, Work, WriteFailure};

/// The machine's clock: milliseconds since 1970 UTC, as the rows hold it.
pub fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A time span beside [`now_ms`], for ever when it is longer than rows can hold.
pub fn duration_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
