//! Writers on PostgreSQL: takes queued units in groups ([`Waiting`]), each group a transaction on a connection of its own, as many
//! at a time as `store.writers`.
//!
//! - A caller is answered after the commit, as on SQLite.
//! - A group that cannot begin is tried again until its units are late, and while changes fail late ones that wait behind others
//!   are rejected, too. Once a unit has run, nothing is tried again: what a caller gave is used up.
//! - A commit without an answer is looked up on a new connection ([`group::outcome`]) before anybody is answered.

use std::{
    collections::HashMap,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tracing::warn;
use uuid::Uuid;

use super::{
    Server,
    follow::{CatchUp, Follow},
    group::{Done, Session, commit_script, outcome},
    hold::Hold,
    silent,
    waiting::{Group, Waiting},
};
use crate::{
    Error,
    changes::ChangeLog,
    now_ms,
    published::{Published, View, reason_of},
    serial::Serial,
    unit::Queued,
    writer::probe,
};

/// Units of a transaction at most: its locks are held until the last of them has run.
const MOST_IN_GROUP: usize = 32;
/// Pause before a group that could not begin is tried again, and interval in which late units are looked for.
const TRY_AGAIN: Duration = Duration::from_millis(250);
/// Time by which a wait for an answer is longer than that of the server for a lock (`store.busy_timeout`), so that its reason comes.
const LOCKS_FIRST: Duration = Duration::from_secs(1);
/// Shortest wait that is published as a `WriteFailure`.
const FAILING_AFTER: Duration = Duration::from_secs(1);
/// Interval of probes while changes fail and none is queued.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// The task that hands groups to connections.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    hold: Option<Hold>,
    /// Sessions that are open and unused.
    idle: Vec<Session>,
    waiting: Waiting,
    /// Number of commits, and when it was first seen.
    last_commit: (u64, Instant),
}

/// State that groups share while they run.
struct Shared {
    server: Server,
    published: Published,
    /// Wakes the follower of changes.
    committed: Arc<Notify>,
    /// False once another service has taken the database.
    is_held: Arc<AtomicBool>,
    /// The statements that commit, and notify other processes.
    commit: Arc<str>,
}

impl Server {
    /// Makes the writer, without a hold for a command beside a service, and what follows the changes of others.
    pub(crate) async fn writer(
        &self,
        changes: ChangeLog,
        hold: Option<Hold>,
    ) -> Result<(Writer, Follow, CatchUp, View), Error> {
        let (published, view) = Published::new();
        let committed = Arc::new(Notify::new());
        let is_held = hold
            .as_ref()
            .map_or_else(|| Arc::new(AtomicBool::new(true)), Hold::is_held);
        // Nodes follow each other, and a service the commands beside it.
        let is_beside_others = hold.as_ref().is_none_or(Hold::is_shared);
        let voice = Uuid::new_v4();
        let shared = Arc::new(Shared {
            server: self.clone(),
            published,
            committed: committed.clone(),
            is_held,
            commit: commit_script(self, is_beside_others.then_some(voice)),
        });
        let (follow, catch_up) = Follow::start(self.clone(), changes, committed, voice).await?;
        let writer = Writer {
            shared,
            hold,
            idle: Vec::new(),
            waiting: Waiting::default(),
            last_commit: (0, Instant::now()),
        };
        Ok((writer, follow, catch_up, view))
    }
}

impl Writer {
    /// Runs until the queue is closed and every unit is answered.
    pub(crate) async fn run(mut self, mut queue: mpsc::Receiver<Queued>, follow: Follow) {
        let mut hold = self.hold.take();
        let shared = self.shared.clone();
        let keeping = async {
            match &mut hold {
                Some(hold) => hold.keep(&shared.published).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.serve(&mut queue) => {}
            () = keeping => {}
            () = follow.run(&shared.published) => {}
        }
        for session in self.idle.drain(..) {
            session.close().await;
        }
        // Only now: another process must not open the database before the last commit.
        drop(hold);
    }

    async fn serve(&mut self, queue: &mut mpsc::Receiver<Queued>) {
        let settings = self.shared.server.settings.clone();
        let (writers, most) = (
            settings.writers as usize,
            settings.commit_group.min(MOST_IN_GROUP),
        );
        let mut running = JoinSet::new();
        let mut serials = HashMap::new();
        let mut is_open = true;
        while is_open || self.waiting.len() > 0 || !running.is_empty() {
            self.reject_late();
            while running.len() < writers
                && let Some(group) = self.waiting.next(most)
            {
                let session = self.idle.pop();
                let serial = group.serial;
                let task = running.spawn(run_group(self.shared.clone(), session, group));
                serials.insert(task.id(), serial);
            }
            self.count_waiting();
            let has_room = is_open && self.waiting.len() < (settings.writer_queue / 2).max(1);
            let is_idle = running.is_empty() && self.waiting.len() == 0;
            tokio::select! {
                received = queue.recv(), if has_room => match received {
                    Some(queued) => self.waiting.push(queued),
                    None => is_open = false,
                },
                Some(finished) = running.join_next_with_id() => {
                    let task = match finished {
                        Ok((task, session)) => {
                            self.idle.extend(session);
                            task
                        }
                        // A group catches the panics of its units.
                        Err(error) => {
                            warn!(%error, "a group of changes ended without an answer");
                            error.id()
                        }
                    };
                    if let Some(serial) = serials.remove(&task) {
                        self.waiting.finish(serial);
                    }
                },
                // Nothing else need happen while the server is silent.
                () = sleep(TRY_AGAIN), if self.waiting.len() > 0 => {}
                // Without probes an outage that is over would be reported until the next change.
                () = sleep(PROBE_EVERY), if is_idle => {
                    if self.shared.published.is_failing() {
                        self.waiting.push(probe(Serial::Nothing));
                    }
                }
            }
        }
    }

    /// Rejects units that are late while changes fail. A server that is only busy commits others meanwhile, and late units have
    /// their turn.
    fn reject_late(&mut self) {
        let now = Instant::now();
        let published = &self.shared.published;
        let commits = published.counters.commits.load(Relaxed);
        if commits != self.last_commit.0 {
            self.last_commit = (commits, now);
        }
        if now - self.last_commit.1 >= FAILING_AFTER
            && let Some(reason) = published.reason()
        {
            let late = self.waiting.take_late(now);
            published.reject(late, &Error::Busy(reason));
        }
    }

    fn count_waiting(&self) {
        let waiting = &self.shared.published.counters.waiting;
        waiting.store(self.waiting.len() as u64, Relaxed);
    }
}

/// Runs a group and answers its units. Returns the session when it can be used again.
async fn run_group(
    shared: Arc<Shared>,
    session: Option<Session>,
    mut group: Group,
) -> Option<Session> {
    let (session, transaction) = begin(&shared, session, &mut group).await?;
    finish(&shared, session, &transaction, group).await
}

/// Opens a transaction, again and again until every unit of the group is late and rejected, also during a try that takes long:
/// none of them has run.
async fn begin(
    shared: &Shared,
    mut session: Option<Session>,
    group: &mut Group,
) -> Option<(Session, String)> {
    let patience = shared.server.settings.busy_timeout;
    let within = patience + LOCKS_FIRST;
    let since = (Instant::now(), now_ms());
    loop {
        let was_kept = session.is_some();
        let mut trying = pin!(timeout(
            within,
            try_begin(shared, session.take(), group.serial)
        ));
        let tried = loop {
            tokio::select! {
                tried = &mut trying => break tried.unwrap_or_else(|_| Err(silent())),
                () = sleep(TRY_AGAIN) => reject_during_try(shared, group, since),
            }
            if group.units.is_empty() {
                return None;
            }
        };
        let error = match tried {
            Ok(begun) => return Some(begun),
            // One that was kept may have been closed meanwhile, or be silent. A longer time is that of the server, for a lock.
            Err(_) if was_kept && since.0.elapsed() < patience => continue,
            Err(error) => error,
        };
        let reason = reason_of(&error);
        if since.0.elapsed() >= FAILING_AFTER {
            shared.published.fail(&reason, since.1);
        }
        let now = Instant::now();
        reject(shared, group, &error, since.1, |queued| {
            queued.expires <= now
        });
        if group.units.is_empty() {
            return None;
        }
        sleep(TRY_AGAIN).await;
    }
}

/// Rejects units that became late during the tries. Only while changes fail, or after `store.busy_timeout`: a server that is busy
/// may take that long, also for units that were late before.
fn reject_during_try(shared: &Shared, group: &mut Group, since: (Instant, i64)) {
    let now = Instant::now();
    let is_long = now - since.0 >= shared.server.settings.busy_timeout + LOCKS_FIRST;
    let is_failing = shared.published.is_failing();
    reject(shared, group, &silent(), since.1, |queued| {
        queued.expires <= now && (is_long || is_failing && queued.expires > since.0)
    });
}

/// Rejects the units of a group that are late, and publishes why when there is one.
fn reject(
    shared: &Shared,
    group: &mut Group,
    error: &Error,
    since_ms: i64,
    is_late: impl Fn(&Queued) -> bool,
) {
    let (late, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut group.units)
        .into_iter()
        .partition(is_late);
    group.units = waiting;
    if !late.is_empty() {
        shared.published.fail(&reason_of(error), since_ms);
        shared.published.reject(late, error);
    }
}

async fn try_begin(
    shared: &Shared,
    session: Option<Session>,
    serial: Serial,
) -> Result<(Session, String), Error> {
    if !shared.is_held.load(Relaxed) {
        return Err(Error::Busy("another service has taken the database".into()));
    }
    let mut session = match session {
        Some(mut session) => {
            session.check(&shared.server).await?;
            session
        }
        None => Session::open(&shared.server).await?,
    };
    let transaction = session.begin(&shared.server, serial).await?;
    Ok((session, transaction))
}

/// Runs the units, commits and answers. Returns the session when it can be used again.
async fn finish(
    shared: &Shared,
    mut session: Session,
    transaction: &str,
    mut group: Group,
) -> Option<Session> {
    let since_ms = now_ms();
    let (error, ran) = match session.run(&shared.server, &mut group).await {
        Ok(done) => match commit(shared, &mut session, since_ms).await {
            Ok(()) => {
                answer(shared, group, done);
                return Some(session);
            }
            Err(error) => (error, Some(done)),
        },
        Err(error) => (error, None),
    };
    // Closing rolls back what is open, and drops whatever state the failure left behind.
    let started_at = session.started_at().to_owned();
    session.close().await;
    let error = match (error, ran) {
        (Error::Unknown, Some(done)) => {
            let deadline = Instant::now() + shared.server.settings.busy_timeout;
            match outcome(&shared.server, transaction, &started_at, deadline).await {
                Ok(true) => {
                    answer(shared, group, done);
                    return None;
                }
                Ok(false) => Error::Busy("the connection was lost before the commit".into()),
                Err(unknown) => unknown,
            }
        }
        (error, _) => error,
    };
    shared.published.fail(&reason_of(&error), since_ms);
    shared.published.reject(group.units, &error);
    None
}

/// Commits. An answer that takes longer than `store.busy_timeout` is published as a failure while it is waited for, so that units
/// behind the group need not wait, too.
async fn commit(shared: &Shared, session: &mut Session, since_ms: i64) -> Result<(), Error> {
    let mut committed = pin!(session.commit(&shared.server, shared.commit.clone()));
    let patience = shared.server.settings.busy_timeout;
    match timeout(patience, &mut committed).await {
        Ok(committed) => committed,
        Err(_) => {
            shared.published.fail(&reason_of(&silent()), since_ms);
            committed.await
        }
    }
}

fn answer(shared: &Shared, group: Group, done: Done) {
    shared.published.recover();
    shared.published.event(done.newest_event);
    shared.published.commit(&group.units, done.units);
    shared.committed.notify_one();
    for queued in group.units {
        queued.unit.answer(None);
    }
}
