//! The installation as its operators see it (`GET /api/system`): stage, reasons and incidents, components, workers, queues, disk by
//! kind, database, object store, listeners, on air, newer program.
//!
//! - Everything is a look at published state or bounded: the walk over the data folder, the doctor and the question to another
//!   program block a thread of their own, are done once at a time, and callers wait for them for a short time only.
//! - Incidents ([`incidents`]) are shown here and not in `/readyz`, which says what is so now.

pub(crate) mod accounts;
mod disk_use;
pub(crate) mod log;
mod objects;
mod program;
pub(crate) mod settings;
mod single_flight;
pub(crate) mod state;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};
use sluice_actors::compute::PoolStatus;
use sluice_store::{Cluster, Engine, cluster::Node, jobs, now_ms, video, webhooks, workflows};
use tokio::time::timeout;
use utoipa::ToSchema;
use uuid::Uuid;

use self::{
    disk_use::measure,
    objects::{ObjectStoreRecord, objects},
    state::Startup,
};
use super::{
    answer::Timestamp,
    context::{ServiceContext, Stage},
    error::ApiError,
    readiness::{Reason, incidents, reasons},
};
use crate::doctor::Report;

pub use program::ProgramRecord;

/// Age from which the disk use is measured again.
const MEASURED_EVERY: Duration = Duration::from_secs(60);
/// Longest time for which an answer waits for a measurement; then it has the one before.
const MEASUREMENT_WAIT: Duration = Duration::from_secs(1);
/// Longest time for the counts of queues, which need the database.
const COUNTS_WAIT: Duration = Duration::from_secs(2);
/// Longest time for which a client waits for the doctor.
const DOCTOR_WAIT: Duration = Duration::from_secs(60);
/// File in the data folder in which `sluice backup` notes the last backup.
const LAST_BACKUP: &str = "last-backup.json";

/// The installation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = System)]
pub struct SystemRecord {
    version: &'static str,
    /// Profile and machine of the program, such as `release, x86_64`.
    build: String,
    started_at: Timestamp,
    /// `starting`, `ready` or `draining`.
    stage: &'static str,
    /// Reasons of `/readyz`, and those that have passed in the last seconds.
    reasons: Vec<Reason>,
    components: Vec<ComponentRecord>,
    workers: Vec<WorkerRecord>,
    queues: Vec<QueueRecord>,
    disk: DiskRecord,
    database: DatabaseRecord,
    /// Null without `store.objects_url`.
    objects: Option<ObjectStoreRecord>,
    listeners: Vec<ListenerRecord>,
    on_air: OnAir,
    nodes: Vec<NodeRecord>,
    /// A newer program that has taken this one's place on the disk: it is used after a restart. Null without one.
    newer_program: Option<ProgramRecord>,
}

/// A component of the supervision tree.
#[derive(Serialize, ToSchema)]
struct ComponentRecord {
    name: &'static str,
    /// `running` or `parked`.
    state: &'static str,
    /// Why it is parked.
    reason: Option<String>,
    /// Times that it was parked and started again since the start.
    restarts: u32,
}

/// A kind of workers with its queue.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct WorkerRecord {
    /// `image`, `video short` (frames, facts) or `video long` (conversions, ladders).
    kind: &'static str,
    /// Image workers that are up; of video, the tasks that run, each in a process of its own.
    running: usize,
    /// The most that the settings allow.
    most: usize,
    /// Tasks that run.
    busy: usize,
    /// Tasks that wait.
    waiting: usize,
    oldest_wait_ms: u64,
    /// Processes that the service killed for a deadline, or because no caller waited any more; of video, of both queues.
    killed: u64,
    /// Processes that ended without an explanation, such as a signal from outside; of video, of both queues.
    died: u64,
    /// Why no work is done, or why it keeps failing.
    reason: Option<String>,
}

/// Work that waits in the database.
#[derive(Serialize, ToSchema)]
struct QueueRecord {
    /// `conversions`, `video streams`, `workflow runs`, `webhook deliveries` or `database changes`.
    name: &'static str,
    running: i64,
    waiting: i64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DiskRecord {
    /// Bytes of the disk under the data folder; null when it cannot be measured.
    total: Option<u64>,
    free: Option<u64>,
    /// `store.min_free` in bytes: below it uploads and jobs wait.
    min_free: Option<u64>,
    data_dir: String,
    /// Content of the data folder by kind, the largest first.
    kinds: Vec<DiskKind>,
    /// False when the folder has more files than are looked at.
    complete: bool,
    measured_at: Option<Timestamp>,
}

#[derive(Serialize, ToSchema)]
struct DiskKind {
    /// For instance `stored files` or `image cache`.
    kind: &'static str,
    /// Bytes that the file system has allocated.
    bytes: u64,
    files: u64,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DatabaseRecord {
    /// `sqlite` or `postgresql`.
    engine: &'static str,
    /// With the write-ahead log of SQLite.
    bytes: u64,
    /// Number of the last migration.
    schema: i64,
    /// True when the program on the disk brings the database to a newer schema at its start.
    newer_schema_waits: bool,
    /// The last `sluice backup` that was finished; null when none is known, and on PostgreSQL, where it does not work.
    last_backup_at: Option<Timestamp>,
    /// Folder of the last backup.
    last_backup_folder: Option<String>,
    /// Longest wait of a change in the last commit; while changes fail, the time since they began to.
    writer_wait_ms: u64,
    /// Why changes fail now.
    failure: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct ListenerRecord {
    /// `http`, `https`, `rtmp`, `rtmps`, `srt` or `webrtc`.
    protocol: &'static str,
    /// `tcp` or `udp`.
    transport: &'static str,
    /// Null: turned off.
    #[schema(value_type = Option<String>)]
    address: Option<SocketAddr>,
    /// True while connections are taken.
    open: bool,
}

/// Broadcasts of all accounts.
#[derive(Serialize, ToSchema)]
struct OnAir {
    /// Inputs that are live or reconnecting.
    inputs: usize,
    viewers: u64,
}

/// A process that serves this installation.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct NodeRecord {
    id: Uuid,
    /// Name of the machine, or `cluster.name`.
    name: String,
    version: String,
    started_at: Timestamp,
    /// True for the one that answered this request.
    you: bool,
    /// `starting`, `up` or `draining`.
    state: &'static str,
    /// Parts of the service that it takes: `api`, `live`, `worker`.
    roles: Vec<&'static str>,
    /// Address at which other nodes reach it; null without a cluster.
    address: Option<String>,
    /// The last migration that its program knows.
    schema: i64,
    /// Time at which its work is given to others unless it renews its lease before; null without a cluster.
    lease_until: Option<Timestamp>,
    /// Milliseconds by which the database's clock is ahead of the machine's.
    clock_offset_ms: i64,
}

/// Note of `sluice backup` about the last backup.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LastBackup {
    pub(crate) at_ms: i64,
    pub(crate) folder: String,
}

impl LastBackup {
    /// Returns the file of the note.
    pub(crate) fn path(data_dir: &Path) -> PathBuf {
        data_dir.join(LAST_BACKUP)
    }

    fn read(data_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(data_dir)).ok()?).ok()
    }
}

/// Returns the state of the installation.
pub(crate) async fn system(context: &ServiceContext) -> SystemRecord {
    let state = &context.system;
    let (disk, queues, newer_program) =
        tokio::join!(disk(context), queues(context), newer_program(context));
    let status = context.compute.status();
    let mut all_reasons = reasons(context);
    all_reasons.extend(incidents(&status));
    SystemRecord {
        version: env!("CARGO_PKG_VERSION"),
        build: build(),
        started_at: Timestamp(state.started_at_ms),
        stage: match context.stage() {
            Stage::Starting => "starting",
            Stage::Ready => "ready",
            Stage::Draining => "draining",
        },
        reasons: all_reasons,
        components: components(context),
        workers: workers(&status),
        queues,
        disk,
        database: database(context, newer_program.as_ref()),
        objects: objects(&context.store),
        listeners: listeners(context),
        on_air: on_air(context),
        nodes: nodes(context.store.cluster()),
        newer_program,
    }
}

/// Runs the checks of `sluice doctor`; callers at the same time get the same report.
pub(crate) async fn doctor(context: &ServiceContext) -> Result<Report, ApiError> {
    let Startup {
        origins, examine, ..
    } = &context.system.startup;
    let (file, examine) = (origins.file().map(PathBuf::from), *examine);
    let report = context
        .system
        .doctor
        .get(Duration::ZERO, DOCTOR_WAIT, move || {
            examine(file.as_deref())
        })
        .await;
    report.ok_or(ApiError::Unavailable {
        what: "the report of the doctor, which takes longer than a minute,",
        retry_after_s: 10,
    })
}

fn build() -> String {
    let profile = match cfg!(debug_assertions) {
        true => "debug",
        false => "release",
    };
    format!("{profile}, {}", std::env::consts::ARCH)
}

/// Returns the live nodes, this one first.
fn nodes(cluster: &Cluster) -> Vec<NodeRecord> {
    let (id, is_solo) = (cluster.node_id(), cluster.is_solo());
    let nodes = cluster.nodes();
    let mut records: Vec<_> = nodes
        .iter()
        .map(|node| NodeRecord::new(node, id, is_solo))
        .collect();
    records.sort_by(|one, other| (!one.you, &one.name).cmp(&(!other.you, &other.name)));
    records
}

impl NodeRecord {
    fn new(node: &Node, this: Uuid, is_solo: bool) -> Self {
        Self {
            id: node.id,
            name: node.name.clone(),
            version: node.version.clone(),
            started_at: Timestamp(node.started_at),
            you: node.id == this,
            state: node.state.as_str(),
            roles: node.roles.iter().map(|role| role.as_str()).collect(),
            address: (!is_solo).then(|| node.address.clone()),
            schema: node.schema,
            lease_until: (!is_solo).then_some(Timestamp(node.lease_until)),
            clock_offset_ms: node.clock_offset_ms,
        }
    }
}

fn components(context: &ServiceContext) -> Vec<ComponentRecord> {
    let states = context.components.states().into_iter();
    let record = states.map(|component| ComponentRecord {
        name: component.name,
        state: match component.running {
            true => "running",
            false => "parked",
        },
        reason: component.reason,
        restarts: component.parked_times,
    });
    record.collect()
}

fn workers(status: &PoolStatus) -> Vec<WorkerRecord> {
    let video = &status.video;
    let queue = |kind, queue: sluice_actors::compute::QueueStatus, most| WorkerRecord {
        kind,
        running: queue.running,
        most,
        busy: queue.running,
        waiting: queue.waiting,
        oldest_wait_ms: milliseconds(queue.oldest_wait),
        killed: video.killed,
        died: video.died,
        reason: video.refused.clone(),
    };
    vec![
        WorkerRecord {
            kind: "image",
            running: status.workers,
            most: status.most,
            busy: status.busy,
            waiting: status.waiting,
            oldest_wait_ms: milliseconds(status.oldest_wait),
            killed: status.killed,
            died: status.died,
            reason: status.refused.clone(),
        },
        queue("video short", video.short, video.most_short),
        queue("video long", video.long, video.most_long),
    ]
}

/// Counts work in the database; nothing but the writer's queue when that does not answer.
async fn queues(context: &ServiceContext) -> Vec<QueueRecord> {
    let changes = context.store.statistics().waiting;
    let mut queues = match timeout(COUNTS_WAIT, counted(context)).await {
        Ok(Ok(queues)) => queues,
        _ => Vec::new(),
    };
    queues.push(QueueRecord {
        name: "database changes",
        running: 0,
        waiting: i64::try_from(changes).unwrap_or(i64::MAX),
    });
    queues
}

async fn counted(context: &ServiceContext) -> Result<Vec<QueueRecord>, sluice_store::Error> {
    let mut db = context.store.read().await?;
    let jobs = jobs::count_by_state(&mut db).await?;
    let jobs = |state| {
        let counted = jobs.iter().find(|(counted, _)| *counted == state);
        counted.map_or(0, |(_, count)| *count)
    };
    let streams = video::count_by_status(&mut db).await?;
    let runs = workflows::count_by_status(&mut db).await?;
    let deliveries = webhooks::counts(&mut db).await?;
    let queue = |name, running, waiting| QueueRecord {
        name,
        running,
        waiting,
    };
    Ok(vec![
        queue(
            "conversions",
            jobs(jobs::JobState::Processing),
            jobs(jobs::JobState::Pending),
        ),
        queue("video streams", streams.processing, streams.pending),
        queue("workflow runs", runs.processing, runs.waiting + runs.queued),
        queue(
            "webhook deliveries",
            deliveries.delivering,
            deliveries.pending + deliveries.retrying,
        ),
    ])
}

async fn disk(context: &ServiceContext) -> DiskRecord {
    let data_dir = context.store.data_dir().to_owned();
    let shown = data_dir.display().to_string();
    let flight = &context.system.disk_use;
    let measured = flight
        .get(MEASURED_EVERY, MEASUREMENT_WAIT, move || measure(&data_dir))
        .await
        .or_else(|| flight.latest());
    let space = context.store.disk_space().ok();
    let mut kinds: Vec<DiskKind> = measured
        .iter()
        .flat_map(|measured| &measured.kinds)
        .map(|(&kind, sum)| DiskKind {
            kind,
            bytes: sum.bytes,
            files: sum.files,
        })
        .collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.bytes));
    DiskRecord {
        total: space.map(|space| space.total_bytes),
        free: space.map(|space| space.free_bytes),
        min_free: space.map(|space| space.min_free_bytes),
        data_dir: shown,
        kinds,
        complete: measured.as_ref().is_some_and(|it| it.is_complete),
        measured_at: measured.map(|it| Timestamp(it.measured_at)),
    }
}

fn database(context: &ServiceContext, newer: Option<&ProgramRecord>) -> DatabaseRecord {
    let store = &context.store;
    let schema = sluice_store::schema_version();
    let engine = store.engine();
    // A note of a folder whose rows were on SQLite before is of another database.
    let backup = LastBackup::read(store.data_dir()).filter(|_| engine == Engine::Sqlite);
    DatabaseRecord {
        engine: match engine {
            Engine::Sqlite => "sqlite",
            Engine::Postgres => "postgresql",
        },
        bytes: store.database_bytes(),
        schema,
        newer_schema_waits: newer.is_some_and(|program| program.schema > schema),
        last_backup_at: backup.as_ref().map(|backup| Timestamp(backup.at_ms)),
        last_backup_folder: backup.map(|backup| backup.folder),
        writer_wait_ms: store.statistics().wait_ms,
        failure: store.write_failure().map(|failure| failure.reason),
    }
}

fn listeners(context: &ServiceContext) -> Vec<ListenerRecord> {
    let states = context.components.states();
    let runs = |name: &str| states.iter().any(|it| it.name == name && it.running);
    let listeners = context.system.listeners.get().into_iter().flatten();
    listeners
        .map(|listener| ListenerRecord {
            protocol: listener.protocol,
            transport: listener.transport,
            address: listener.address,
            open: listener.address.is_some() && listener.component.is_none_or(runs),
        })
        .collect()
}

fn on_air(context: &ServiceContext) -> OnAir {
    let on_air = context.live.on_air();
    let now_ms = now_ms();
    OnAir {
        inputs: on_air.len(),
        viewers: on_air.iter().map(|playback| playback.viewers(now_ms)).sum(),
    }
}

async fn newer_program(context: &ServiceContext) -> Option<ProgramRecord> {
    let program = context.system.program.clone();
    let flight = &context.system.replacement;
    let found = flight.get(MEASUREMENT_WAIT, MEASUREMENT_WAIT, move || {
        program.replacement()
    });
    found.await.or_else(|| flight.latest())?
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use sluice_actors::compute::{QueueStatus, VideoStatus};
    use sluice_store::cluster::{NodeState, Role};

    use super::*;

    #[test]
    fn workers_are_shown_with_their_queues() {
        let status = PoolStatus {
            workers: 2,
            most: 3,
            busy: 1,
            killed: 4,
            video: VideoStatus {
                long: QueueStatus {
                    running: 1,
                    waiting: 7,
                    oldest_wait: Duration::from_millis(1_500),
                },
                most_long: 2,
                ..VideoStatus::default()
            },
            ..PoolStatus::default()
        };
        let found = workers(&status);
        let kinds: Vec<_> = found.iter().map(|it| it.kind).collect();
        assert_eq!(kinds, ["image", "video short", "video long"]);
        let image = &found[0];
        assert_eq!((image.running, image.most, image.busy), (2, 3, 1));
        let long = &found[2];
        assert_eq!(
            (long.waiting, long.most, long.oldest_wait_ms),
            (7, 2, 1_500)
        );
    }

    #[test]
    fn a_node_is_shown_as_the_others_know_it() {
        let (id, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let node = Node {
            id,
            name: "node-1".into(),
            address: "http://10.0.0.1:8081".into(),
            roles: vec![Role::Api, Role::Worker],
            version: "0.1.0".into(),
            schema: 40,
            state: NodeState::Draining,
            started_at: 1,
            renewed_at: 2,
            lease_until: 3,
            clock_offset_ms: -4,
        };
        let shown = NodeRecord::new(&node, other, false);
        assert!(!shown.you && NodeRecord::new(&node, id, false).you);
        assert_eq!(
            (shown.state, &shown.roles[..]),
            ("draining", &["api", "worker"][..])
        );
        assert_eq!(shown.address.as_deref(), Some("http://10.0.0.1:8081"));
        assert_eq!(shown.lease_until, Some(Timestamp(3)));
        let alone = NodeRecord::new(&node, id, true);
        assert_eq!((alone.address, alone.lease_until), (None, None));
    }

    #[test]
    fn the_note_of_the_last_backup_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(LastBackup::read(folder.path()), None);
        fs::write(LastBackup::path(folder.path()), "{").unwrap();
        assert_eq!(LastBackup::read(folder.path()), None);
        let note = LastBackup {
            at_ms: 7,
            folder: "/backup".into(),
        };
        let json = serde_json::to_vec(&note).unwrap();
        fs::write(LastBackup::path(folder.path()), json).unwrap();
        assert_eq!(LastBackup::read(folder.path()), Some(note));
    }
}
