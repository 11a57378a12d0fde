//! Log of changes of PostgreSQL, read for followers: what this process and others have committed, in snapshots, so that a change
//! whose transaction was long is not missed.

use std::{future::pending, sync::Arc, time::Duration};

use sqlx::{
    Connection as _, PgConnection,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, interval, sleep, timeout},
};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::{Server, in_time};
use crate::{
    Error,
    changes::{ChangeLog, Kind, Recorded, merged_texts},
    published::Published,
    unit::TIME_LIMIT,
};

/// Interval of reads that nothing has asked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause between two reads, in which commits gather.
const GATHER: Duration = Duration::from_millis(5);
/// Interval of the sweep of the log and of the count of the database's bytes.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// Longest time for a statement of the sweep, and for a read on a new connection: a little more than the server gives a statement.
const TIDIED_WITHIN: Duration = Duration::from_secs(TIME_LIMIT.as_secs() + 2);
/// Interval in which the connection of notifications is tested or replaced, and the longest time for it. Without notifications
/// changes of others are read each [`LOOK_EVERY`].
const LISTEN_AGAIN: Duration = Duration::from_secs(10);
const LISTENS_WITHIN: Duration = Duration::from_secs(2);
/// Changes of one read that are noted one by one: those of all nodes since the last one.
const MOST_CHANGES: i64 = 8_192;
/// Milliseconds after which a change is deleted, by the database's clock.
const KEPT_MS: i64 = 3_600_000;
/// Time between two reads, by the same clock, after which changes may be gone that no read has seen.
const BEHIND_MS: i64 = KEPT_MS / 2;

/// A row of the log behind the snapshot up to which it was read, the time of that snapshot, and the start of its server.
type Row = (
    String,
    i64,
    i64,
    Option<Uuid>,
    Option<String>,
    Option<Uuid>,
    Option<String>,
);

/// The point at which the log is now.
const NOW: &str =
    "SELECT pg_current_snapshot()::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
     (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint";

/// The changes that no snapshot before has shown.
const NEWER: &str = "SELECT s.now::text, s.at, s.server, c.account_id, c.kind, c.id, c.action
     FROM (SELECT pg_current_snapshot() AS now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at,
             (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint AS server) s
         LEFT JOIN changes c
         ON c.xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
     ORDER BY c.seq LIMIT $2";

/// Deletes what was written so many milliseconds ago. The numbers of changes are about in the order of their times, which no index
/// has: the first change that is kept ends the search.
pub(super) const DELETE_OLD: &str = "DELETE FROM changes WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
     AND seq < coalesce((SELECT seq FROM changes WHERE at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
             AND at <= (extract(epoch FROM clock_timestamp()) * 1000)::bigint + $1 ORDER BY seq LIMIT 1), 9223372036854775807)";

/// Asks the follower to read up to now.
pub(crate) type CatchUp = mpsc::Sender<oneshot::Sender<()>>;
/// Such requests that may wait.
const REQUESTS: usize = 64;

/// Follower of the log.
pub(crate) struct Follow {
    server: Server,
    /// Connection of the reads; `None` after one that failed, since a server that was silent may answer it later, or never.
    connection: Option<PgConnection>,
    log: ChangeLog,
    /// Woken by commits of this process.
    committed: Arc<Notify>,
    requests: mpsc::Receiver<oneshot::Sender<()>>,
    /// Names this process in notifications, of whose commits it is woken anyway.
    voice: Uuid,
    position: Position,
    is_failing: bool,
}

/// Point up to which the log was read.
struct Position {
    snapshot: String,
    /// Time of the snapshot by the database's clock, in milliseconds.
    at: i64,
    /// Time at which the server started, in microseconds. On another server, such as a replica that took over and had not got every
    /// commit, transactions have the numbers of others, and rows may be gone that were read.
    server: i64,
}

/// Result of a read.
struct News {
    position: Position,
    recorded: Recorded,
    newest_event: Option<i64>,
}

impl Follow {
    /// Follows from now on.
    pub(super) async fn start(
        server: Server,
        log: ChangeLog,
        committed: Arc<Notify>,
        voice: Uuid,
    ) -> Result<(Self, CatchUp), Error> {
        let began_at = Instant::now();
        let mut connection = server.connect().await?;
        let now = sqlx::query_as(NOW).fetch_one(&mut connection);
        let (snapshot, at, started_at): (String, i64, i64) =
            in_time(server.settings.busy_timeout, now).await?;
        server.log_age.note_read(began_at);
        log.set_recorded(true);
        let (catch_up, requests) = mpsc::channel(REQUESTS);
        let follow = Self {
            server,
            connection: Some(connection),
            log,
            committed,
            requests,
            voice,
            position: Position {
                snapshot,
                at,
                server: started_at,
            },
            is_failing: false,
        };
        Ok((follow, catch_up))
    }

    /// Reads on for ever, and sweeps the log.
    pub(super) async fn run(self, published: &Published) {
        let server = self.server.clone();
        tokio::join!(self.read_on(published), sweep(&server, published));
    }

    async fn read_on(mut self, published: &Published) {
        let voice = self.voice.to_string();
        let mut listener: Option<PgListener> = None;
        let mut due_to_listen = interval(LISTEN_AGAIN);
        let mut last_read = Instant::now();
        loop {
            let foreign = async {
                let Some(listener) = &mut listener else {
                    return pending().await;
                };
                next_of_others(listener, &voice).await
            };
            let mut asked = Vec::new();
            tokio::select! {
                Some(request) = self.requests.recv() => asked.push(request),
                () = self.committed.notified() => {}
                is_heard = foreign => if !is_heard {
                    listener = None;
                },
                () = sleep(LOOK_EVERY) => {}
                _ = due_to_listen.tick() => {
                    listener = listen(&self.server, listener).await;
                    continue;
                }
            }
            // Without followers only the position moves on.
            while let Ok(request) = self.requests.try_recv() {
                asked.push(request);
            }
            if asked.is_empty() && !self.log.is_followed() && last_read.elapsed() < LOOK_EVERY {
                continue;
            }
            last_read = Instant::now();
            match self.read(published).await {
                Ok(()) => {
                    for request in asked {
                        let _ = request.send(());
                    }
                    self.note_success();
                    sleep(GATHER).await;
                }
                Err(error) => {
                    listener = None;
                    self.note_failure(&error);
                    sleep(LOOK_EVERY).await;
                }
            }
        }
    }

    /// Reads what is new, on a new connection when the one that was kept fails.
    async fn read(&mut self, published: &Published) -> Result<(), Error> {
        let was_kept = self.connection.is_some();
        match self.try_read(published).await {
            Err(_) if was_kept => self.try_read(published).await,
            outcome => outcome,
        }
    }

    async fn try_read(&mut self, published: &Published) -> Result<(), Error> {
        let began_at = Instant::now();
        let patience = self.server.settings.busy_timeout;
        // After a long time without the server there is much to read: a new line has the server's own limit for it.
        let (mut connection, within) = match self.connection.take() {
            Some(open) => (open, patience),
            None => (self.server.connect().await?, TIDIED_WITHIN.max(patience)),
        };
        let news = news(&mut connection, &self.position);
        let news = in_time(within, news).await?;
        self.connection = Some(connection);
        self.server.log_age.note_read(began_at);
        if let Some(news) = news {
            self.publish(news, published);
        }
        Ok(())
    }

    fn publish(&mut self, news: News, published: &Published) {
        published.event(news.newest_event);
        let is_other_server = news.position.server != self.position.server;
        if is_other_server {
            warn!(
                "another server answers, or it started again: directories and caches are read again"
            );
        }
        if is_other_server || news.position.at - self.position.at > BEHIND_MS {
            self.log.lose_everything();
        }
        self.position = news.position;
        news.recorded.publish(&self.log);
    }

    fn note_success(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            info!("the log of changes is read again");
        }
    }

    fn note_failure(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            warn!(%error, "the log of changes cannot be read: changes of others are missed");
        }
    }
}

/// Reads what is behind a position. The statement returns a row even when nothing is new; `None` is for a server that returns none.
async fn news(connection: &mut PgConnection, read: &Position) -> Result<Option<News>, Error> {
    let rows: Vec<Row> = sqlx::query_as(NEWER)
        .bind(&read.snapshot)
        .bind(MOST_CHANGES + 1)
        .fetch_all(&mut *connection)
        .await?;
    let Some((snapshot, at, server, ..)) = rows.first() else {
        return Ok(None);
    };
    let position = Position {
        snapshot: snapshot.clone(),
        at: *at,
        server: *server,
    };
    let is_cut = i64::try_from(rows.len()).is_ok_and(|count| count > MOST_CHANGES);
    let is_of_event = |row: &Row| row.4.as_deref() == Some(Kind::Event.as_str());
    let may_have_event = is_cut || position.server != read.server || rows.iter().any(is_of_event);
    let recorded = if is_cut {
        lost_kinds(connection, read).await?
    } else {
        let rows = rows
            .into_iter()
            .map(|(_, _, _, account, kind, id, action)| (account, kind, id, action));
        merged_texts(rows)
    };
    let newest_event = match may_have_event {
        true => {
            sqlx::query_scalar("SELECT max(seq) FROM events")
                .fetch_one(connection)
                .await?
        }
        false => None,
    };
    Ok(Some(News {
        position,
        recorded,
        newest_event,
    }))
}

/// The kinds of which too much has changed to name it.
async fn lost_kinds(connection: &mut PgConnection, read: &Position) -> Result<Recorded, Error> {
    let kinds: Vec<(Uuid, String)> = sqlx::query_as(
        "SELECT DISTINCT account_id, kind FROM changes
         WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
             AND account_id IS NOT NULL",
    )
    .bind(&read.snapshot)
    .fetch_all(connection)
    .await?;
    Ok(Recorded::lost(kinds.into_iter().filter_map(
        |(account_id, kind)| Some((account_id, Kind::parse(&kind)?)),
    )))
}

/// Waits for the notification of another process; false when the connection is lost.
async fn next_of_others(listener: &mut PgListener, voice: &str) -> bool {
    loop {
        match listener.try_recv().await {
            Ok(Some(heard)) if heard.payload() == voice => {}
            heard => return matches!(heard, Ok(Some(_))),
        }
    }
}

/// Returns the listener when its server answers, which nothing else would show, or else a new one; `None` when there is none in
/// time.
async fn listen(server: &Server, listener: Option<PgListener>) -> Option<PgListener> {
    let channel = server.channel();
    let listening = async {
        if let Some(mut kept) = listener
            && kept.unlisten_all().await.is_ok()
            && kept.listen(&channel).await.is_ok()
        {
            return Ok(kept);
        }
        // Each has a pool of its own: the driver waits without end to take back the connection of one that is dropped.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .acquire_timeout(LISTENS_WITHIN)
            .idle_timeout(None)
            .max_lifetime(None)
            .connect_lazy_with(server.options.clone());
        let mut listener = PgListener::connect_with(&pool).await?;
        listener.eager_reconnect(false);
        listener.listen(&channel).await?;
        Ok::<_, sqlx::Error>(listener)
    };
    timeout(LISTENS_WITHIN, listening).await.ok()?.ok()
}

/// Sweeps the log and counts the bytes of the database for ever.
async fn sweep(server: &Server, published: &Published) {
    let mut due = interval(TIDY_EVERY);
    loop {
        due.tick().await;
        if let Err(error) = tidy(server, published).await {
            debug!(%error, "the log of changes was not swept");
        }
    }
}

/// Deletes what was written an hour ago, and counts the bytes of the database, on a connection of its own: reads do not wait for
/// it.
async fn tidy(server: &Server, published: &Published) -> Result<(), Error> {
    let mut connection = server.connect().await?;
    let bytes = sqlx::query_scalar(
        "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'",
    )
    .fetch_one(&mut connection);
    let bytes: i64 = in_time(TIDIED_WITHIN, bytes).await?;
    let counted = &published.counters.database_bytes;
    counted.store(bytes.unsigned_abs(), std::sync::atomic::Ordering::Relaxed);
    let deletion = sqlx::query(DELETE_OLD)
        .bind(KEPT_MS)
        .execute(&mut connection);
    in_time(TIDIED_WITHIN, deletion).await?;
    in_time(TIDIED_WITHIN, connection.close()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Store, StoreSettings};

    /// With `SLUICE_TEST_POSTGRES`.
    #[tokio::test]
    async fn on_another_server_everything_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        if !settings.is_on_postgres() {
            return;
        }
        let store = Store::open(&settings).await.unwrap();
        let server = Server::of(&settings).unwrap().expect("it is PostgreSQL");
        let log = ChangeLog::default();
        let mut follower = log.follow(Uuid::now_v7());
        let (published, _view) = Published::new();
        let (committed, voice) = (Arc::new(Notify::new()), Uuid::new_v4());
        let (mut follow, _catch_up) = Follow::start(server.clone(), log, committed, voice)
            .await
            .unwrap();
        follow.read(&published).await.unwrap();
        assert!(follower.take().is_empty());

        follow.position.server += 1;
        follow.read(&published).await.unwrap();
        assert_eq!(follower.take().lost, Kind::ALL);

        follow.read(&published).await.unwrap();
        assert!(follower.take().is_empty());
        assert!(server.log_age().get().is_some());
        store.close().await;
    }
}
