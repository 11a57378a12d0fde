//! Rows and blobs of the media service: a database, SQLite with one writer or PostgreSQL with several, and a folder of
//! content-addressed files.
//!
//! - SQL stays inside this crate. Callers use the verbs of the resource modules ([`live_inputs`], [`users`] …).
//! - Every change is a verb over a [`Tx`], so that several changes join one unit of work ([`Store::write`]). Verbs
//!   that only read take any [`Connection`]: a `Tx` or a [`Reader`].
//! - Changes survive the death of the process and of the machine once [`Store::write`] has returned.
//! - Times are `i64` milliseconds since 1970 UTC and are passed by the caller; secrets are stored as hashes.

/// Declares an enum that is a text in the rows and in the API, each variant with its text: the list of the variants,
/// the text of one, and the variant of a text.
macro_rules! text_enum {
    (
        $(#[$attribute:meta])*
        pub enum $name:ident {
            $($(#[$note:meta])* $variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$note])* $variant,)+
        }

        impl $name {
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|one| one.as_str() == text)
            }
        }

        impl crate::statement::Bind for $name {
            const KIND: crate::statement::Kind = crate::statement::Kind::Text;

            fn value(self) -> crate::statement::Value {
                crate::statement::Value::Text(self.as_str().into())
            }
        }

        impl<DB: sqlx::Database> sqlx::Type<DB> for $name
        where
            String: sqlx::Type<DB>,
        {
            fn type_info() -> DB::TypeInfo {
                String::type_info()
            }

            fn compatible(ty: &DB::TypeInfo) -> bool {
                String::compatible(ty)
            }
        }

        impl<'r, DB: sqlx::Database> sqlx::Decode<'r, DB> for $name
        where
            &'r str: sqlx::Decode<'r, DB>,
        {
            fn decode(value: DB::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                let text = <&str as sqlx::Decode<DB>>::decode(value)?;
                Self::parse(text).ok_or_else(|| format!("{text:?} is unknown").into())
            }
        }
    };
}

pub mod backup;
pub mod blob;
pub mod changes;
pub mod cluster;
pub mod events;
pub mod jobs;
pub mod moving;
pub mod video;
pub mod webhooks;
pub mod work;
pub mod workflows;

mod database;
mod delivery;
mod error;
mod file;
mod identity;
mod live;
mod metering;
mod objects;
mod settings;

use std::time::Duration;

pub use delivery::{delivery_keys, presets};
pub use file::{
    archive, blobs, bulk, file_facts, file_filter, file_list, files, folder_list, folder_totals,
    folders, lineage, selections, shares, storage, tus, unfinished_uploads, uploads,
};
pub use identity::{
    accounts, api_keys, audit, credentials, derived, idempotency, installation, invitations,
    sessions, users, welcome_codes,
};
pub use live::{
    broadcasts, input_list, live_connections, live_inputs, live_segments, outputs, playback_keys,
    publisher_connections, recordings,
};
pub use metering::{counters, deliveries, history as usage_history, operations};

pub use bootstrap::{Bootstrap, FirstCredentials, bootstrap, first_credentials_shown};
pub use cluster::{Cluster, ClusterSettings, now_ms};
pub use connection::{Connection, Reader, Tx};
pub use credentials::Secret;
pub use error::Error;
pub use migrate::schema_version;
pub use month::Month;
pub use objects::{ObjectOwner, ObjectsReport, examine_objects};
pub use order::{Direction, Position, SortKey, Sorted};
pub use page::{Cursor, Listed, Page};
pub use postgres::{ServerReport, examine_server};
pub use settings::StoreSettings;
pub use store::{DiskSpace, Engine, Statistics, Store, Work, WriteFailure};

use database::{
    connection, copy, dialect, like, migrate, order, page, postgres, published, rows, serial,
    statement, store, turns, unit, writer,
};
use file::{folder, name_key, stray_objects};
use identity::bootstrap;
use metering::month;

/// A time span beside [`now_ms`], for ever when it is longer than rows can hold.
pub fn duration_ms(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
