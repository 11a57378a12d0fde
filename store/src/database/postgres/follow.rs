//! Log of changes of PostgreSQL, read for followers: what this process and others have committed, in snapshots, so that a change
//! whose transaction was long is not missed.

use std::{future::pending, sync::Arc, time::Duration};

use sqlx::{
    PgPool,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    time::{Instant, interval, sleep},
};
use tracing::debug;
use uuid::Uuid;

use super::Server;
use crate::{
    Error,
    changes::{ChangeLog, Kind, Recorded, merged_texts},
    published::Published,
};

/// Interval of reads that nothing has asked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Pause between two reads, in which commits gather.
const GATHER: Duration = Duration::from_millis(5);
/// Interval of the sweep of the log and of the count of the database's bytes.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// Changes of one read that are noted one by one: those of all nodes since the last one.
const MOST_CHANGES: i64 = 8_192;
/// Milliseconds after which a change is deleted, by the database's clock.
const KEPT_MS: i64 = 3_600_000;
/// Time between two reads, by the same clock, after which changes may be gone that no read has seen.
const BEHIND_MS: i64 = KEPT_MS / 2;

/// A row of the log behind the snapshot up to which it was read, and the time of that snapshot.
type Row = (
    String,
    i64,
    Option<Uuid>,
    Option<String>,
    Option<Uuid>,
    Option<String>,
);

/// The changes that no snapshot before has shown.
const NEWER: &str = "SELECT s.now::text, s.at, c.account_id, c.kind, c.id, c.action
     FROM (SELECT pg_current_snapshot() AS now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at) s
         LEFT JOIN changes c
         ON c.xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(c.xid, $1::text::pg_snapshot)
     ORDER BY c.seq LIMIT $2";

/// Deletes what was written so many milliseconds ago. The numbers of changes are about in the order of their times, which no index
/// has: the first change that is kept ends the search.
pub(super) const DELETE_OLD: &str = "DELETE FROM changes WHERE at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
     AND seq < coalesce((SELECT seq FROM changes WHERE at >= (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1
         ORDER BY seq LIMIT 1), 9223372036854775807)";

/// Asks the follower to read up to now.
pub(crate) type CatchUp = mpsc::Sender<oneshot::Sender<()>>;
/// Such requests that may wait.
const REQUESTS: usize = 64;

/// Follower of the log.
pub(crate) struct Follow {
    server: Server,
    pool: PgPool,
    log: ChangeLog,
    /// Woken by commits of this process.
    committed: Arc<Notify>,
    requests: mpsc::Receiver<oneshot::Sender<()>>,
    /// Names this process in notifications, of whose commits it is woken anyway.
    voice: Uuid,
    /// The snapshot up to which the log was read.
    read_up_to: String,
    /// Time of that snapshot by the database's clock.
    read_at: i64,
}

impl Follow {
    /// Follows from now on.
    pub(super) async fn start(
        server: Server,
        log: ChangeLog,
        committed: Arc<Notify>,
        voice: Uuid,
    ) -> Result<(Self, CatchUp), Error> {
        let pool = PgPoolOptions::new()
            .max_connections(2)
            .acquire_timeout(server.settings.busy_timeout)
            .connect_lazy_with(server.options.clone());
        let (read_up_to, read_at) = sqlx::query_as(
            "SELECT pg_current_snapshot()::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint",
        )
        .fetch_one(&pool)
        .await?;
        log.set_recorded(true);
        let (catch_up, requests) = mpsc::channel(REQUESTS);
        let follow = Self {
            server,
            pool,
            log,
            committed,
            requests,
            voice,
            read_up_to,
            read_at,
        };
        Ok((follow, catch_up))
    }

    /// Reads on for ever.
    pub(super) async fn run(mut self, published: &Published) {
        let voice = self.voice.to_string();
        let mut listener = self.listen().await;
        let mut due_to_tidy = interval(TIDY_EVERY);
        let mut last_read = Instant::now();
        loop {
            let foreign = async {
                let Some(listener) = &mut listener else {
                    return pending().await;
                };
                loop {
                    match listener.recv().await {
                        Ok(heard) if heard.payload() == voice => {}
                        heard => return heard.is_ok(),
                    }
                }
            };
            let mut asked = Vec::new();
            tokio::select! {
                Some(request) = self.requests.recv() => asked.push(request),
                () = self.committed.notified() => {}
                is_heard = foreign => if !is_heard {
                    listener = None;
                },
                () = sleep(LOOK_EVERY) => {}
                _ = due_to_tidy.tick() => {
                    if let Err(error) = self.tidy(published).await {
                        debug!(%error, "the log of changes was not swept");
                    }
                    if listener.is_none() {
                        listener = self.listen().await;
                    }
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
                    sleep(GATHER).await;
                }
                Err(error) => {
                    debug!(%error, "the log of changes cannot be read");
                    sleep(LOOK_EVERY).await;
                }
            }
        }
    }

    async fn listen(&self) -> Option<PgListener> {
        let mut listener = PgListener::connect_with(&self.pool).await.ok()?;
        listener.listen(&self.server.channel()).await.ok()?;
        Some(listener)
    }

    async fn read(&mut self, published: &Published) -> Result<(), Error> {
        let rows: Vec<Row> = sqlx::query_as(NEWER)
            .bind(&self.read_up_to)
            .bind(MOST_CHANGES + 1)
            .fetch_all(&self.pool)
            .await?;
        let Some((now, read_at, ..)) = rows.first() else {
            return Ok(());
        };
        let (now, read_at) = (now.clone(), *read_at);
        let is_cut = i64::try_from(rows.len()).is_ok_and(|count| count > MOST_CHANGES);
        let is_of_event = |row: &Row| row.3.as_deref() == Some(Kind::Event.as_str());
        let has_event = is_cut || rows.iter().any(is_of_event);
        let recorded = if is_cut {
            self.lost_kinds().await?
        } else {
            let rows = rows
                .into_iter()
                .map(|(_, _, account, kind, id, action)| (account, kind, id, action));
            merged_texts(rows)
        };
        if has_event {
            let newest = sqlx::query_scalar("SELECT max(seq) FROM events")
                .fetch_one(&self.pool)
                .await?;
            published.event(newest);
        }
        if read_at - self.read_at > BEHIND_MS {
            self.log.lose_everything();
        }
        (self.read_up_to, self.read_at) = (now, read_at);
        recorded.publish(&self.log);
        Ok(())
    }

    /// The kinds of which too much has changed to name it.
    async fn lost_kinds(&self) -> Result<Recorded, Error> {
        let kinds: Vec<(Uuid, String)> = sqlx::query_as(
            "SELECT DISTINCT account_id, kind FROM changes
             WHERE xid >= pg_snapshot_xmin($1::text::pg_snapshot) AND NOT pg_visible_in_snapshot(xid, $1::text::pg_snapshot)
                 AND account_id IS NOT NULL",
        )
        .bind(&self.read_up_to)
        .fetch_all(&self.pool)
        .await?;
        Ok(Recorded::lost(kinds.into_iter().filter_map(
            |(account_id, kind)| Some((account_id, Kind::parse(&kind)?)),
        )))
    }

    /// Deletes what was written an hour ago, and counts the bytes of the database.
    async fn tidy(&self, published: &Published) -> Result<(), Error> {
        let bytes: i64 = sqlx::query_scalar(
            "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = current_schema() AND c.relkind = 'r'",
        )
        .fetch_one(&self.pool)
        .await?;
        let counted = &published.counters.database_bytes;
        counted.store(bytes.unsigned_abs(), std::sync::atomic::Ordering::Relaxed);
        sqlx::query(DELETE_OLD)
            .bind(KEPT_MS)
            .execute(&self.pool)
            .await?;
        Ok(())
    }
}
