//! Hold on the database: one service writes to a schema at a time, or the nodes of one cluster. It is a session's advisory lock,
//! which PostgreSQL releases when the process or its connection ends; a service alone has it exclusively, nodes share it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use sqlx::PgConnection;
use tokio::time::sleep;
use tracing::{info, warn};
use uuid::Uuid;

use super::{Server, in_time};
use crate::{
    Error,
    folder::FolderLock,
    now_ms,
    published::{Published, reason_of},
};

/// Interval in which the hold is looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time in which a session ends that is to end.
const SESSION_ENDS: Duration = Duration::from_millis(200);
/// Time for which a lock of a process that has just ended may still be held: the server looks for lost clients each second.
const WAIT: Duration = Duration::from_secs(3);

/// Kind of the hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HoldMode {
    /// Hold of a service that has the database alone.
    Alone,
    /// Shared hold of a node.
    Shared,
}

/// The hold with the lock of the data folder.
pub(crate) struct Hold {
    server: Server,
    mode: HoldMode,
    connection: Option<PgConnection>,
    /// The session that took it last: the server may keep one whose connection was lost without a word.
    session: Session,
    is_held: Arc<AtomicBool>,
    /// Released last.
    _lock: FolderLock,
}

impl Hold {
    /// `Error::InUse` or `Error::InUseAlone` when another service has the database.
    pub(super) async fn take(
        server: Server,
        mode: HoldMode,
        lock: FolderLock,
    ) -> Result<Self, Error> {
        let mut connection = server.connect().await?;
        take_in(&server, mode, &mut connection).await?;
        Ok(Self {
            server,
            mode,
            session: Session::of(&mut connection).await?,
            connection: Some(connection),
            is_held: Arc::new(AtomicBool::new(true)),
            _lock: lock,
        })
    }

    /// False once another service has taken the database while this one had lost it.
    pub(super) fn is_held(&self) -> Arc<AtomicBool> {
        self.is_held.clone()
    }

    /// Returns whether other nodes may have the database, too.
    pub(super) fn is_shared(&self) -> bool {
        self.mode == HoldMode::Shared
    }

    /// Takes the hold again whenever its connection was lost, and publishes that the server is away, also while nothing is
    /// written.
    pub(super) async fn keep(&mut self, published: &Published) {
        loop {
            sleep(LOOK_EVERY).await;
            let since_ms = now_ms();
            let Err(error) = self.look().await else {
                continue;
            };
            if self.connection.take().is_some() {
                warn!(%error, "the hold on the database is lost, and taken again");
            }
            // Only this connection may be lost.
            if let Err(error) = self.look().await {
                published.fail(&reason_of(&error), since_ms);
            }
        }
    }

    async fn look(&mut self) -> Result<(), Error> {
        let answer_within = self.server.settings.busy_timeout;
        if let Some(connection) = &mut self.connection {
            let alive = sqlx::query("SELECT 1").execute(connection);
            return in_time(answer_within, alive).await.map(drop);
        }
        let connection = self.server.connect().await?;
        in_time(answer_within + SESSION_ENDS, self.take_again(connection)).await
    }

    /// Takes the hold in a new session, and ends the one before if that has it still. A session that is not kept is closed.
    async fn take_again(&mut self, mut connection: PgConnection) -> Result<(), Error> {
        let session = Session::of(&mut connection).await?;
        let mut is_taken = try_take(&self.server, self.mode, &mut connection).await?;
        if !is_taken && self.session.end(&mut connection).await? {
            sleep(SESSION_ENDS).await;
            is_taken = try_take(&self.server, self.mode, &mut connection).await?;
        }
        let was_held = self.is_held.swap(is_taken, Relaxed);
        if is_taken {
            info!("the hold on the database is taken again");
            self.session = session;
            self.connection = Some(connection);
        } else if was_held {
            let holder = holder(&self.server, &mut connection).await?;
            warn!(holder, "another service has taken the database");
        }
        Ok(())
    }
}

/// A session of the server: its process and when that began.
struct Session {
    process: i32,
    began_at: String,
}

impl Session {
    async fn of(connection: &mut PgConnection) -> Result<Self, Error> {
        let (process, began_at) = sqlx::query_as(
            "SELECT pid, backend_start::text FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        )
        .fetch_one(connection)
        .await?;
        Ok(Self { process, began_at })
    }

    /// Ends the session by another connection of the same user; false when it is over.
    async fn end(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        let ended: Option<bool> = sqlx::query_scalar(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start::text = $2",
        )
        .bind(self.process)
        .bind(&self.began_at)
        .fetch_optional(connection)
        .await?;
        Ok(ended.unwrap_or(false))
    }
}

/// Takes the hold in a session, for as long as it is open. `Error::InUse` or `Error::InUseAlone` when another service has the
/// database.
pub(super) async fn take_in(
    server: &Server,
    mode: HoldMode,
    connection: &mut PgConnection,
) -> Result<(), Error> {
    let mut waited = Duration::ZERO;
    while !try_take(server, mode, connection).await? {
        if waited >= WAIT {
            let holder = holder(server, connection).await?;
            return Err(match mode {
                HoldMode::Alone => Error::InUse { holder },
                HoldMode::Shared => Error::InUseAlone { holder },
            });
        }
        sleep(LOOK_EVERY / 4).await;
        waited += LOOK_EVERY / 4;
    }
    Ok(())
}

async fn try_take(
    server: &Server,
    mode: HoldMode,
    connection: &mut PgConnection,
) -> Result<bool, Error> {
    let lock = match mode {
        HoldMode::Alone => "SELECT pg_try_advisory_lock($1)",
        HoldMode::Shared => "SELECT pg_try_advisory_lock_shared($1)",
    };
    Ok(sqlx::query_scalar(lock)
        .bind(server.key("hold", Uuid::nil()))
        .fetch_one(connection)
        .await?)
}

async fn holder(server: &Server, connection: &mut PgConnection) -> Result<String, Error> {
    let holder = find_holder(server, connection).await?;
    Ok(holder.unwrap_or_else(|| "another service".into()))
}

/// Returns the client that has the lock, for people; `None` when none has it. Each database of the server has its own locks.
pub(super) async fn find_holder(
    server: &Server,
    connection: &mut PgConnection,
) -> Result<Option<String>, Error> {
    let key = server.key("hold", Uuid::nil()).cast_unsigned();
    let (high, low) = ((key >> 32) as u32, key as u32);
    let holder = sqlx::query_scalar(
        "SELECT format('process %s of %s', a.pid, coalesce(host(a.client_addr), 'this machine'))
         FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
         WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid
             AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
         LIMIT 1",
    )
    .bind(i64::from(high))
    .bind(i64::from(low))
    .fetch_optional(connection)
    .await?;
    Ok(holder)
}
