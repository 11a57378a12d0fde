//! Outputs of live inputs (RTMP, RTMPS, SRT to other platforms): handle, load, a task for each enabled output; metrics
//! `live_outputs`, `srt_output_panics`.
//!
//! Each output is supervised alone. Survives a restart: the rows and the state of each output ([`Restreams`]), like the
//! directory of inputs. May be lost: the connections, which are made again. An output reads its input's [`UnitWindow`], and
//! no input ever waits for it.
//!
//! ```text
//! LiveInput ── units ──▶ UnitWindow ◀── reads ── Work ─▶ Feed ─▶ Sink ══▶ target     one Work for each enabled output
//! ```

mod feed;
mod progress;
mod settings;
mod sink;
mod task;
pub(super) mod timeline;
pub(super) mod unit_window;
pub(crate) mod url;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use futures_util::future::{BoxFuture, ready};
use parking_lot::{Mutex, MutexGuard};
use sluice_store::{
    Store,
    outputs::{self, Output},
};
use tokio::sync::watch;
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};
use uuid::Uuid;

pub use progress::{OutputReport, OutputStatus};
pub use settings::RestreamSettings;
pub use url::{OutputUrl, OutputUrlError, masked};

use self::{
    progress::{Notice, OutputProgress},
    task::OutputWork,
};
use super::Directory;
use crate::{
    Error, component::Component, metric::Metric, outbound::Outbound, subsystem::Subsystem,
};

/// The handle of all outputs: cheap to clone, safe to hold in a request handler.
#[derive(Clone)]
pub struct Restreams {
    parts: Arc<OutputParts>,
}

struct OutputParts {
    settings: Arc<RestreamSettings>,
    store: Store,
    outbound: Outbound,
    context: OutputContext,
    entries: Mutex<HashMap<Uuid, Entry>>,
    /// Counts the changes.
    changes: watch::Sender<u64>,
}

#[derive(Clone)]
struct Entry {
    row: Arc<Output>,
    /// Replaced when the row's address or `enabled` changes: a task with the old one ends.
    progress: Arc<OutputProgress>,
}

impl Restreams {
    pub fn new(
        settings: RestreamSettings,
        store: Store,
        outbound: Outbound,
        context: OutputContext,
    ) -> Self {
        Self {
            parts: Arc::new(OutputParts {
                context,
                settings: Arc::new(settings),
                store,
                outbound,
                entries: Mutex::default(),
                changes: watch::Sender::default(),
            }),
        }
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Uuid, Entry>> {
        self.parts.entries.lock()
    }

    /// Takes up a committed row; it applies at once.
    pub fn changed(&self, row: Output) {
        let mut entries = self.entries();
        let same_work =
            |entry: &&Entry| entry.row.url == row.url && entry.row.enabled == row.enabled;
        let progress = match entries.get(&row.id).filter(same_work) {
            Some(entry) => Arc::clone(&entry.progress),
            None => Arc::new(OutputProgress::new(self.notice_of(&row))),
        };
        let entry = Entry {
            progress,
            row: Arc::new(row),
        };
        entries.insert(entry.row.id, entry);
        drop(entries);
        self.note_change();
    }

    fn notice_of(&self, row: &Output) -> Option<Notice> {
        let input = self.parts.context.directory.by_input(row.input_id)?;
        Some(Notice {
            changes: self.parts.store.changes().clone(),
            account_id: input.account_id,
            output_id: row.id,
        })
    }

    /// Ends the output of a row that is gone.
    pub fn removed(&self, output_id: Uuid) {
        self.entries().remove(&output_id);
        self.note_change();
    }

    /// Takes up all rows, in place of what is known.
    pub fn replace_all(&self, rows: Vec<Output>) {
        let there: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
        self.entries().retain(|id, _| there.contains(id));
        rows.into_iter().for_each(|row| self.changed(row));
        self.note_change();
    }

    /// Ends the outputs of an input that is gone.
    pub fn input_removed(&self, input_id: Uuid) {
        self.entries()
            .retain(|_, entry| entry.row.input_id != input_id);
        self.note_change();
    }

    fn note_change(&self) {
        self.parts.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns the state of an output.
    pub fn report(&self, output_id: Uuid) -> OutputReport {
        let entries = self.entries();
        let entry = entries.get(&output_id);
        entry.map_or_else(OutputReport::default, |entry| entry.progress.report())
    }

    /// Returns the outputs of an input that fail at the moment: their masked addresses, and the reasons.
    pub fn failures(&self, input_id: Uuid) -> Vec<(String, String)> {
        let entries = self.entries();
        let mut failures: Vec<_> = entries
            .values()
            .filter(|entry| entry.row.input_id == input_id)
            .filter_map(|entry| {
                let report = entry.progress.report();
                let is_idle = report.status == OutputStatus::Idle;
                let reason = report.last_error.filter(|_| !is_idle)?;
                Some((masked(&entry.row.url), reason))
            })
            .collect();
        failures.sort();
        failures
    }

    /// Counts the outputs by status, for metrics.
    pub fn counts(&self) -> [(OutputStatus, u64); 4] {
        let entries = self.entries();
        OutputStatus::ALL.map(|status| {
            let statuses = entries.values().map(|it| it.progress.report().status);
            (status, statuses.filter(|it| *it == status).count() as u64)
        })
    }
}

impl Subsystem for Restreams {
    fn name(&self) -> &'static str {
        "outputs"
    }

    /// Reads all rows.
    fn load(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async {
            let rows = outputs::all(&mut self.parts.store.read().await?).await?;
            self.replace_all(rows);
            Ok(())
        })
    }

    /// The component that keeps a task for each enabled output.
    fn components(&self) -> Vec<Component> {
        let restreams = self.clone();
        vec![Component::of_task(self.name(), move || {
            follow_rows(restreams.clone())
        })]
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        let counts = self.counts();
        let metrics = vec![
            Metric::by_label(
                "live_outputs",
                "Outputs of live inputs by what they do now",
                "status",
                counts.map(|(status, count)| (status.as_str(), count)),
            ),
            Metric::gauge(
                "srt_output_panics",
                "Connections to SRT targets that ended because the SRT library panicked at what the target sent",
                sluice_ingest::srt::caller::panics(),
            ),
        ];
        Box::pin(ready(Ok(metrics)))
    }
}

/// Parts of the process that outputs need beside their handle.
#[derive(Clone, Default)]
pub struct OutputContext {
    pub directory: Arc<Directory>,
    pub sessions: TaskTracker,
    /// Ends every output; their inputs' broadcasts wait for the next process.
    pub stop: CancellationToken,
}

/// A task that ends when this is dropped.
struct Running {
    progress: Arc<OutputProgress>,
    _over: DropGuard,
}

/// Starts and ends tasks by the rows.
async fn follow_rows(restreams: Restreams) {
    let context = &restreams.parts.context;
    let mut rows = restreams.parts.changes.subscribe();
    let mut inputs = context.directory.follow();
    let mut running: HashMap<Uuid, Running> = HashMap::new();
    loop {
        rows.mark_unchanged();
        inputs.mark_unchanged();
        let wanted: HashMap<Uuid, Entry> = restreams
            .entries()
            .iter()
            .filter(|(_, entry)| entry.row.enabled)
            .map(|(id, entry)| (*id, entry.clone()))
            .collect();
        running.retain(|id, task| {
            let wanted = wanted.get(id);
            wanted.is_some_and(|entry| {
                let is_known = context.directory.by_input(entry.row.input_id).is_some();
                is_known && Arc::ptr_eq(&entry.progress, &task.progress)
            })
        });
        for (id, entry) in wanted {
            if !running.contains_key(&id)
                && let Some(task) = start(&restreams, entry)
            {
                running.insert(id, task);
            }
        }
        tokio::select! {
            changed = rows.changed() => if changed.is_err() {
                return;
            },
            changed = inputs.changed() => if changed.is_err() {
                return;
            },
            () = context.stop.cancelled() => return,
        }
    }
}

/// Starts the task of an output; `None` while its input is not known.
fn start(restreams: &Restreams, entry: Entry) -> Option<Running> {
    let context = &restreams.parts.context;
    let playback = context.directory.by_input(entry.row.input_id)?;
    let over = CancellationToken::new();
    let work = OutputWork {
        output_id: entry.row.id,
        url: entry.row.url.clone(),
        tap: playback.tap(),
        progress: Arc::clone(&entry.progress),
        outbound: restreams.parts.outbound.clone(),
        settings: Arc::clone(&restreams.parts.settings),
        over: over.clone(),
        stop: context.stop.clone(),
    };
    context.sessions.spawn(work.run());
    Some(Running {
        progress: entry.progress,
        _over: over.drop_guard(),
    })
}
