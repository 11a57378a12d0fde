//! A group of units in one transaction: begin with its locks, a savepoint for each unit, commit, and what became of a commit whose
//! answer was lost.

use std::{sync::Arc, time::Duration};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, raw_sql};
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

use super::{Server, in_time, waiting::Group};
use crate::{Error, Tx, serial::Serial, unit::Queued};

/// Time after a commit in which a session is used without a check.
const FRESH: Duration = Duration::from_secs(1);
/// Pause before the outcome of a lost commit is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for a locked row in a group that is serial with nothing, whose units are of strangers and wait for each other.
/// Longer than the server takes to notice a deadlock (`deadlock_timeout`, 1 s), so that of two units one is undone and not both.
const LOCK_WITHIN: Duration = Duration::from_secs(2);

/// A connection with the start of its server, by which a server that was started again is known.
pub(super) struct Session {
    connection: PgConnection,
    started_at: String,
    /// End of the last commit.
    used_at: Instant,
}

/// Units of a group that were committed.
#[derive(Default)]
pub(super) struct Done {
    pub(super) units: u64,
    pub(super) newest_event: Option<i64>,
}

impl Session {
    pub(super) async fn open(server: &Server) -> Result<Self, Error> {
        let mut connection = server.connect().await?;
        let started_at = sqlx::query_scalar("SELECT pg_postmaster_start_time()::text")
            .fetch_one(&mut connection)
            .await?;
        Ok(Self {
            connection,
            started_at,
            used_at: Instant::now(),
        })
    }

    pub(super) async fn close(self) {
        let _ = self.connection.close().await;
    }

    /// Checks that the server answers a session that was not used for [`FRESH`]. The line may have died since, and a transaction
    /// that waits for a lock is silent, too.
    pub(super) async fn check(&mut self, server: &Server) -> Result<(), Error> {
        if self.used_at.elapsed() < FRESH {
            return Ok(());
        }
        in_time(server.settings.busy_timeout / 2, self.connection.ping()).await
    }

    /// Opens a transaction that holds the locks of its units. Returns its id. After an error the session is of no use. The caller
    /// limits the time: the server may be silent.
    pub(super) async fn begin(&mut self, server: &Server, serial: Serial) -> Result<String, Error> {
        let mut locks = String::new();
        if let Serial::Account(_) = serial
            && let Some(all) = server.lock_key(Serial::All)
        {
            locks.push_str(&format!("pg_advisory_xact_lock_shared({all}), "));
        }
        if let Some(own) = server.lock_key(serial) {
            locks.push_str(&format!("pg_advisory_xact_lock({own}), "));
        }
        let mut limit = String::new();
        if serial == Serial::Nothing {
            let longest = LOCK_WITHIN.min(server.settings.busy_timeout);
            limit = format!("SET LOCAL lock_timeout = {}; ", longest.as_millis());
        }
        // One round trip. The id comes last, in its own column.
        let script = format!("BEGIN; {limit}SELECT {locks}pg_current_xact_id()::text AS id");
        let rows = raw_sql(AssertSqlSafe(script))
            .fetch_all(&mut self.connection)
            .await?;
        let row = rows
            .last()
            .ok_or_else(|| Error::Internal("no id of a transaction".into()))?;
        Ok(sqlx::Row::try_get(row, "id")?)
    }

    /// Runs every unit, each undone alone when it fails. An error means that nothing of the group will be committed.
    pub(super) async fn run(&mut self, server: &Server, group: &mut Group) -> Result<Done, Error> {
        let mut done = Done::default();
        let is_alone = group.units.len() == 1;
        for (at, queued) in group.units.iter_mut().enumerate() {
            match at {
                _ if is_alone => {}
                0 => self.script(server, "SAVEPOINT unit").await?,
                _ => self.script(server, "RELEASE unit; SAVEPOINT unit").await?,
            }
            let mut tx = Tx::postgres(&mut self.connection, group.serial);
            if queued.unit.run(&mut tx).await {
                done.units += 1;
                done.newest_event = done.newest_event.max(tx.newest_event());
                continue;
            }
            if let Some(failure) = failure_of_server(queued) {
                return Err(failure);
            }
            match is_alone {
                true => self.script(server, "ROLLBACK; BEGIN").await?,
                false => self.script(server, "ROLLBACK TO unit").await?,
            }
        }
        Ok(done)
    }

    /// Commits by [`commit_script`]. An error of the server means that nothing was committed; `Error::Unknown`, that no answer
    /// came.
    pub(super) async fn commit(&mut self, server: &Server, script: Arc<str>) -> Result<(), Error> {
        let committed = raw_sql(AssertSqlSafe(script)).execute(&mut self.connection);
        match timeout(server.settings.busy_timeout * 2, committed).await {
            Ok(Ok(_)) => {
                self.used_at = Instant::now();
                Ok(())
            }
            Ok(Err(error @ sqlx::Error::Database(_))) if !ends_connection(&error) => {
                Err(error.into())
            }
            Ok(Err(_)) | Err(_) => Err(Error::Unknown),
        }
    }

    /// A unit that took too long because the server is silent fails its group here.
    async fn script(&mut self, server: &Server, text: &'static str) -> Result<(), Error> {
        let done = raw_sql(text).execute(&mut self.connection);
        in_time(server.settings.busy_timeout, done).await.map(drop)
    }

    pub(super) fn started_at(&self) -> &str {
        &self.started_at
    }
}

/// Returns the statements that commit. With a `voice` other processes are notified by it, if the transaction has changed what they
/// follow.
pub(super) fn commit_script(server: &Server, voice: Option<Uuid>) -> Arc<str> {
    // COMMIT of a transaction that a statement has broken undoes it and reports no error; a SELECT does.
    match voice {
        Some(voice) => format!(
            "SELECT pg_notify('{}', '{voice}') FROM changes WHERE xid = pg_current_xact_id_if_assigned() LIMIT 1; COMMIT",
            server.channel()
        )
        .into(),
        None => "SELECT 1; COMMIT".into(),
    }
}

/// The server may say that it shuts down, and the commit may have been made.
fn ends_connection(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| code.starts_with("57P") || code.starts_with("08"))
}

/// A disk that is full or a connection that is lost fails the whole group.
fn failure_of_server(queued: &Queued) -> Option<Error> {
    match queued.unit.failure()? {
        Error::Full => Some(Error::Full),
        Error::Failing(cause) => Some(Error::Busy(cause.to_string())),
        _ => None,
    }
}

/// Asks what became of a transaction whose commit was not answered: true when it was made. `Error::Unknown` when that cannot
/// be found out by the deadline, or a server that was started again may have given its id to another.
pub(super) async fn outcome(
    server: &Server,
    transaction: &str,
    started_at: &str,
    deadline: Instant,
) -> Result<bool, Error> {
    loop {
        // A line that falls silent in the middle of it gives no answer.
        let asked = ask(server, transaction, started_at);
        if let Ok(Ok(known)) = timeout(server.settings.busy_timeout * 2, asked).await
            && let Some(outcome) = known
        {
            return outcome;
        }
        if Instant::now() >= deadline {
            return Err(Error::Unknown);
        }
        sleep(ASK_AGAIN).await;
    }
}

/// Returns `None` while the transaction is still open.
async fn ask(
    server: &Server,
    transaction: &str,
    started_at: &str,
) -> Result<Option<Result<bool, Error>>, Error> {
    let mut session = Session::open(server).await?;
    let asked: Result<Option<String>, sqlx::Error> =
        sqlx::query_scalar("SELECT pg_xact_status($1::text::xid8)")
            .bind(transaction)
            .fetch_one(&mut session.connection)
            .await;
    let is_same_run = session.started_at == started_at;
    session.close().await;
    Ok(match asked {
        Ok(Some(status)) if status == "committed" && is_same_run => Some(Ok(true)),
        Ok(Some(status)) if status == "committed" => Some(Err(Error::Unknown)),
        Ok(Some(status)) if status == "aborted" => Some(Ok(false)),
        Ok(Some(_)) => None,
        // Too old to be known.
        Ok(None) => Some(Err(Error::Unknown)),
        // "in the future": the server has lost it in a crash.
        Err(error) if has_code(&error, "22023") => Some(Ok(false)),
        Err(error) => return Err(error.into()),
    })
}

pub(super) fn has_code(error: &sqlx::Error, code: &str) -> bool {
    let known = error.as_database_error().and_then(|error| error.code());
    known.is_some_and(|known| known == code)
}
