//! PostgreSQL behind the store: connections and what is asked of a server at the start, writers ([`writer`]), readers, the hold
//! on the database ([`hold`]), changes that others commit ([`follow`]).

mod examine;
mod follow;
mod group;
mod hold;
mod join_turn;
mod migrate;
#[cfg(test)]
mod plan_tests;
mod waiting;
mod writer;

use std::{io, str::FromStr as _, sync::Arc, time::Duration};

use sha2::{Digest as _, Sha256};
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use self::group::has_code;
use crate::{
    Error, StoreSettings,
    cluster::{LEASE, LogAge},
    folder::FolderLock,
    moving,
    serial::Serial,
    unit::TIME_LIMIT,
};

pub use examine::{ServerReport, examine_server};
pub(crate) use follow::CatchUp;
pub(crate) use hold::HoldMode;
pub(crate) use join_turn::{JoinTurn, live_node};

/// The oldest server that has everything that is used: `pg_current_xact_id`, `client_connection_check_interval`.
const OLDEST_SERVER: i64 = 140_000;
/// Statements that a connection keeps prepared: more than the program has.
const PREPARED: usize = 1_024;
/// Time after which the server ends a transaction whose client is silent, and looks whether a client that waits is there.
const IDLE_IN_TRANSACTION: &str = "5s";
const CLIENT_CHECK: &str = "1s";
const TCP_TIMEOUT: &str = "5s";
/// Interval in which a service that wants the database alone looks for nodes.
const LOOK_FOR_NODES_EVERY: Duration = Duration::from_millis(250);

/// Parameters of the URL that the driver knows, beside `options[…]`. It logs any other with its value, which may be a secret.
const PARAMETERS: [&str; 17] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

/// A server with the schema of this service.
#[derive(Clone)]
pub(crate) struct Server {
    options: PgConnectOptions,
    settings: Arc<StoreSettings>,
    log_age: LogAge,
}

impl Server {
    /// Returns the server of the settings, `None` on SQLite. `Error::Invalid` for a URL that cannot be read.
    pub(crate) fn of(settings: &StoreSettings) -> Result<Option<Self>, Error> {
        let is_on_postgres = settings.is_on_postgres();
        is_on_postgres.then(|| Self::new(settings)).transpose()
    }

    fn new(settings: &StoreSettings) -> Result<Self, Error> {
        check_parameters(&settings.database_url)?;
        let options = PgConnectOptions::from_str(&settings.database_url).map_err(|error| {
            Error::Invalid(format!(
                "store.database_url: expected postgres://USER:PASSWORD@HOST/DATABASE ({error})"
            ))
        })?;
        let milliseconds = |time: Duration| format!("{}ms", time.as_millis());
        let options = options
            .application_name("sluice")
            .statement_cache_capacity(PREPARED)
            .options([
                ("search_path", settings.database_schema.as_str()),
                ("statement_timeout", &milliseconds(TIME_LIMIT)),
                ("lock_timeout", &milliseconds(settings.busy_timeout)),
                ("idle_in_transaction_session_timeout", IDLE_IN_TRANSACTION),
                ("client_connection_check_interval", CLIENT_CHECK),
                ("tcp_user_timeout", TCP_TIMEOUT),
                // Texts of the program have no escapes.
                ("standard_conforming_strings", "on"),
            ])
            .disable_statement_logging();
        Ok(Self {
            options,
            settings: settings.clone().into(),
            log_age: LogAge::default(),
        })
    }

    /// The time since the log of changes was read, which the follower of it notes.
    pub(crate) fn log_age(&self) -> LogAge {
        self.log_age.clone()
    }

    /// Opens a connection. `Error::Failing` when the server cannot be reached within `store.busy_timeout`.
    pub(crate) async fn connect(&self) -> Result<PgConnection, Error> {
        in_time(self.settings.busy_timeout, self.options.connect()).await
    }

    /// Checks the server, takes the hold on its database, and migrates the schema.
    pub(crate) async fn prepare(
        &self,
        mode: HoldMode,
        lock: FolderLock,
    ) -> Result<hold::Hold, Error> {
        let mut connection = self.connect().await.map_err(unreachable)?;
        self.check(&mut connection).await?;
        let hold = hold::Hold::take(self.clone(), mode, lock).await?;
        if mode == HoldMode::Alone {
            self.check_no_node(&mut connection).await?;
        }
        moving::check_schema(&mut connection).await?;
        self.migrate(&mut connection).await?;
        connection.close().await?;
        Ok(hold)
    }

    /// Connects to move rows: the session itself has the hold on the database, and its statements have no time limit.
    /// `Error::InUse` while a service or a node runs.
    pub(crate) async fn connect_alone(&self) -> Result<PgConnection, Error> {
        let mut connection = self.connect().await.map_err(unreachable)?;
        self.check(&mut connection).await?;
        hold::take_in(self, HoldMode::Alone, &mut connection).await?;
        self.check_no_node(&mut connection).await?;
        migrate::lift_time_limits(&mut connection).await?;
        Ok(connection)
    }

    /// Makes the schema, unless it exists, and migrates it. The session's statements have no time limit afterwards.
    pub(crate) async fn migrate(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let turn = self.key("migrate", Uuid::nil());
        migrate::prepare(connection, &self.settings.database_schema, turn).await
    }

    /// Checks that the schema has the version of this program, for a move of rows. `Error::Conflict` when it is older,
    /// `Error::Newer` also when a service of this version may use it.
    pub(crate) async fn check_version(&self, connection: &mut PgConnection) -> Result<(), Error> {
        migrate::check_equal(connection).await
    }

    /// Returns the address without its secrets, for people.
    pub(crate) fn place(&self) -> String {
        let (host, port) = (self.options.get_host(), self.options.get_port());
        let user = self.options.get_username();
        let (database, schema) = (self.options.get_database(), &self.settings.database_schema);
        format!(
            "the schema {schema} of the database {} of PostgreSQL at {host}:{port}",
            database.unwrap_or(user)
        )
    }

    /// `Error::InUse` when a node lives that has lost its hold for a moment. One that was killed is dead with the end of its lease.
    async fn check_no_node(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let since = Instant::now();
        loop {
            let Some(node) = examine::live_nodes(connection).await?.into_iter().next() else {
                return Ok(());
            };
            if since.elapsed() > LEASE {
                return Err(Error::InUse {
                    holder: format!("node {} of a cluster", node.name),
                });
            }
            sleep(LOOK_FOR_NODES_EVERY).await;
        }
    }

    /// Checks that the schema is that of this program, for a command beside a service.
    pub(crate) async fn check_version_beside(&self) -> Result<(), Error> {
        let mut connection = self.connect().await.map_err(unreachable)?;
        migrate::check_current(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    /// Makes the pool of readers. One whose server is silent is replaced before it is used: the pool's own test of it would take
    /// the whole time that a caller waits.
    pub(crate) fn readers(&self) -> PgPool {
        let busy_timeout = self.settings.busy_timeout;
        let options = self
            .options
            .clone()
            .options([("default_transaction_read_only", "on")]);
        PgPoolOptions::new()
            .max_connections(self.settings.readers)
            .acquire_timeout(busy_timeout)
            .test_before_acquire(false)
            .before_acquire(move |connection, _| {
                Box::pin(async move {
                    match timeout(busy_timeout / 2, connection.ping()).await {
                        Ok(answer) => answer.map(|()| true),
                        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
                    }
                })
            })
            .idle_timeout(Some(Duration::from_secs(600)))
            .max_lifetime(None)
            .connect_lazy_with(options)
    }

    /// `Error::Unsupported` for a server on which nothing acknowledged would be safe.
    async fn check(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let (version, number, synchronous, encoding, read_only): (
            String,
            i64,
            String,
            String,
            String,
        ) = sqlx::query_as(
            "SELECT current_setting('server_version'), current_setting('server_version_num')::bigint,
                 current_setting('synchronous_commit'), current_setting('server_encoding'),
                 current_setting('transaction_read_only')",
        )
        .fetch_one(&mut *connection)
        .await?;
        if number < OLDEST_SERVER {
            return Err(Error::Unsupported(format!(
                "store.database_url: the server is PostgreSQL {version}; 14 or newer is needed"
            )));
        }
        if synchronous == "off" {
            return Err(Error::Unsupported(
                "store.database_url: the server has synchronous_commit = off, and would lose what was acknowledged: set it to on".into(),
            ));
        }
        if read_only == "on" {
            return Err(Error::Unsupported(
                "store.database_url: the server takes no changes, as a replica does: give the address of the primary, or set default_transaction_read_only to off".into(),
            ));
        }
        if encoding != "UTF8" {
            return Err(Error::Unsupported(format!(
                "store.database_url: the database is in {encoding}; make it with ENCODING 'UTF8'"
            )));
        }
        self.check_locks(connection).await
    }

    /// Two connections must not hold one lock: a pooler in transaction mode and some databases that speak PostgreSQL's protocol
    /// let them.
    async fn check_locks(&self, first: &mut PgConnection) -> Result<(), Error> {
        let key = i64::from_be_bytes(*Uuid::new_v4().as_bytes().first_chunk().expect("8 of 16"));
        let take = "SELECT pg_try_advisory_lock($1)";
        let taken: bool = sqlx::query_scalar(take)
            .bind(key)
            .fetch_one(&mut *first)
            .await?;
        let mut second = self.connect().await?;
        let taken_twice: bool = sqlx::query_scalar(take)
            .bind(key)
            .fetch_one(&mut second)
            .await?;
        second.close().await?;
        let released: bool = sqlx::query_scalar("SELECT pg_advisory_unlock($1)")
            .bind(key)
            .fetch_one(first)
            .await?;
        if taken && !taken_twice && released {
            return Ok(());
        }
        Err(Error::Unsupported(
            "store.database_url: advisory locks of the server do not exclude each other: give the address of PostgreSQL itself, or of a pooler in session mode".into(),
        ))
    }

    /// Returns the key of the lock of units that are serial with each other; `None` when they are with none.
    fn lock_key(&self, serial: Serial) -> Option<i64> {
        match serial {
            Serial::Nothing => None,
            Serial::All => Some(self.key("all", Uuid::nil())),
            Serial::Account(id) => Some(self.key("account", id)),
        }
    }

    /// Locks are the database's, which several schemas may share.
    fn key(&self, what: &str, id: Uuid) -> i64 {
        let digest = Sha256::new()
            .chain_update(self.settings.database_schema.as_bytes())
            .chain_update([0])
            .chain_update(what.as_bytes())
            .chain_update([0])
            .chain_update(id.as_bytes())
            .finalize();
        i64::from_be_bytes(*digest.first_chunk().expect("8 of 32 bytes"))
    }

    /// The channel on which nodes, and commands beside a service, say that they have committed.
    fn channel(&self) -> String {
        format!("sluice_{}", self.settings.database_schema)
    }
}

fn check_parameters(database_url: &str) -> Result<(), Error> {
    let query = database_url.split_once('?').map_or("", |(_, query)| query);
    for parameter in query.split('&').filter(|it| !it.is_empty()) {
        let name = parameter.split('=').next().unwrap_or_default();
        if PARAMETERS.contains(&name) || name.starts_with("options[") {
            continue;
        }
        // Of a password with a question mark the rest would be named.
        let is_plain = name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let what = match is_plain {
            true => format!("the parameter {name}"),
            false => "what follows the question mark".to_owned(),
        };
        return Err(Error::Invalid(format!(
            "store.database_url: {what} is not known: take it out; a ? in the password is written %3F"
        )));
    }
    Ok(())
}

/// At the start an unreachable server is the operator's to mend, whatever the reason.
fn unreachable(error: Error) -> Error {
    match error {
        Error::Busy(reason) => Error::Unsupported(format!(
            "store.database_url: {reason}: start PostgreSQL, or correct the address"
        )),
        // Settings of the session that an older server lacks.
        Error::Database(cause) if has_code(&cause, "42704") => Error::Unsupported(format!(
            "store.database_url: the server is older than PostgreSQL 14, or not PostgreSQL itself ({cause}): give the address of a newer one"
        )),
        Error::Failing(cause) | Error::Database(cause) => Error::Unsupported(format!(
            "store.database_url: the server cannot be used ({cause}): start PostgreSQL, or correct the address, the user and the password"
        )),
        other => other,
    }
}

/// Ends the wait for a server that is silent. The connection must not be used again.
pub(crate) async fn in_time<T, E: Into<Error>>(
    within: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, Error> {
    match timeout(within, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(silent()),
    }
}

fn silent() -> Error {
    Error::Busy("the server does not answer".into())
}
