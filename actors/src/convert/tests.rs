//! Batches over a real store and faked workers: interrupted work continues, and nothing is doubled.

mod clips;
mod events;

use std::{
    collections::HashSet,
    fs::File,
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::FileExt as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use bytes::Bytes;
use kameo::actor::ActorRef;
use parking_lot::Mutex;
use sluice_media::{
    av::Report,
    format::Format,
    operation::{self, Params},
    task::{Done, Failure, FailureCode, Member, OutputFacts, Task},
};
use sluice_store::{
    Store, files,
    jobs::{
        self, Allowance, Input, Item, ItemState, Job, JobState, JobType, NewItem, NewJob, Submitted,
    },
    lineage::{self, Derived},
    now_ms, operations,
    work::Lane as Turn,
};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Conversions, ConvertSettings};
use crate::{
    component::ComponentStatuses,
    compute::{Assignment, Error, Finished, Follow, Output},
    fixtures::{PATIENCE, Performer, Running, account, open_store, until},
    subsystem::Subsystem as _,
    tree::{self, Root},
};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
const ZIP: &[u8] = b"PK\x03\x04";
const MP4: &[u8] = b"\0\0\0\x10ftypisom\0\0\0\0";
/// Workers that do what the text in their input says.
struct Fake {
    /// The texts of the tasks that ran to their end.
    done: Mutex<Vec<String>>,
    /// Tasks with the text `wait` take a permit.
    permits: Semaphore,
    running: AtomicUsize,
    /// So many tasks are refused as busy first.
    busy: AtomicUsize,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            done: Mutex::default(),
            permits: Semaphore::new(0),
            running: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
        }
    }
}

fn text_of(file: &File) -> String {
    let mut bytes = vec![0; 4096];
    let length = file.read_at(&mut bytes, 0).unwrap();
    let text = &bytes[..length];
    let marks = [PNG, ZIP, MP4];
    let text = marks.iter().find_map(|mark| text.strip_prefix(*mark));
    let text = text.expect("a file of these tests");
    String::from_utf8(text.to_vec()).unwrap()
}

fn facts(format: Option<Format>) -> OutputFacts {
    OutputFacts {
        bytes: 0,
        format,
        width: Some(4),
        height: Some(3),
        pages: 1,
        duration_ms: None,
        applied_quality: None,
        path: None,
    }
}

impl Fake {
    /// Waits in the second place, begins, and comes to the half; each takes a permit.
    async fn do_half(&self, follow: &Follow) {
        for report in [Report::Waiting { place: 2 }, Report::Working { share: 0.5 }] {
            follow.report_from_async(report).await;
            self.permits.acquire().await.unwrap().forget();
        }
    }
}

fn finished(done: Done) -> Finished {
    Finished {
        done,
        bytes: Vec::new(),
    }
}

impl Performer for Fake {
    async fn perform(&self, assignment: Assignment) -> Result<Finished, Error> {
        if self.busy.load(SeqCst) > 0 {
            self.busy.fetch_sub(1, SeqCst);
            return Err(Error::Busy);
        }
        let _running = Running::begin(&self.running);
        let text = text_of(&assignment.inputs[0]);
        let Output::Files(outputs) = assignment.output else {
            panic!("batches write files");
        };
        let mut done = Done::default();
        match assignment.task {
            Task::ListArchive => {
                let members = text.split(' ').enumerate();
                let member = |(index, text): (usize, &str)| Member {
                    index: index as u32,
                    filename: format!("{text}.png"),
                    size: 9,
                };
                done.members = Some(members.map(member).collect());
                return Ok(finished(done));
            }
            Task::ExtractMember { index } => {
                let member = text.split(' ').nth(index as usize).unwrap();
                (&outputs[0])
                    .write_all(&[PNG, member.as_bytes()].concat())
                    .unwrap();
                return Ok(finished(done));
            }
            _ => {}
        }
        match text.as_str() {
            "wait" => self.permits.acquire().await.unwrap().forget(),
            "half" => self.do_half(&assignment.follow).await,
            "die" => panic!("a test asked for this panic"),
            "broken" => {
                let failure = Failure::new(FailureCode::Undecodable, "it does not decode");
                return Err(failure.into());
            }
            _ => {}
        }
        (&outputs[0]).rewind().unwrap();
        (&outputs[0])
            .write_all(format!("made of {text}").as_bytes())
            .unwrap();
        for mut beside in &outputs[1..] {
            beside
                .write_all(format!("beside {text}").as_bytes())
                .unwrap();
        }
        done.outputs = vec![facts(Some(Format::Webp)); outputs.len()];
        self.done.lock().push(text);
        Ok(finished(done))
    }
}

/// A process with a data folder: it can be killed and started again.
struct Site {
    folder: tempfile::TempDir,
    store: Store,
    workers: Arc<Fake>,
    conversions: Conversions,
    root: ActorRef<Root>,
    account: Uuid,
}

impl Site {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, workers) = (open_store(&folder).await, Arc::new(Fake::default()));
        let account = account(&store).await;
        let (conversions, root) = start(&store, &workers);
        Self {
            folder,
            store,
            workers,
            conversions,
            root,
            account,
        }
    }

    /// Ends everything without a word, and starts again on the same folder.
    async fn kill_and_start(&mut self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        self.until("nothing runs", |site| {
            site.workers.running.load(SeqCst) == 0
        })
        .await;
        self.store.close().await;
        self.store = open_store(&self.folder).await;
        (self.conversions, self.root) = start(&self.store, &self.workers);
    }

    async fn submit(&self, adjust: impl FnOnce(&mut NewJob), contents: &[&[u8]]) -> Job {
        let params = Params::from_form([("format", "webp")]);
        let operation = operation::parse("convert", &params).unwrap();
        let (mut uploads, mut items) = (Vec::new(), Vec::new());
        for (number, content) in contents.iter().enumerate() {
            let mut spool = self.store.blobs().spool().await.unwrap();
            spool.write(Bytes::copy_from_slice(content)).await.unwrap();
            let upload = spool.seal().await.unwrap();
            items.push(NewItem {
                operation: serde_json::to_value(&operation).unwrap(),
                operations: 1,
                source_file_id: None,
                inputs: vec![Input {
                    blob: upload.blob().hash,
                    filename: format!("{number}.png"),
                    size: content.len() as i64,
                    member: None,
                }],
            });
            uploads.push(upload);
        }
        let mut new = NewJob {
            account_id: self.account,
            job_type: JobType::Convert,
            tool: "convert".into(),
            lane: Turn::Batch,
            saves: false,
            folder_id: None,
            archives: false,
            allowance: Allowance::default(),
            items,
            idempotency: None,
        };
        adjust(&mut new);
        match self.conversions.submit(new, uploads).await.unwrap() {
            Submitted::New(job) => job,
            other => panic!("{other:?}"),
        }
    }

    async fn end_of(&self, job: &Job) -> Job {
        let job = self
            .conversions
            .wait(job.id, Instant::now() + PATIENCE)
            .await
            .unwrap();
        assert!(job.state.has_ended(), "{job:?}");
        job
    }

    async fn items(&self, job: &Job) -> Vec<Item> {
        jobs::items(&mut self.store.read().await.unwrap(), job.id)
            .await
            .unwrap()
    }

    async fn used(&self) -> u64 {
        let mut reader = self.store.read().await.unwrap();
        operations::used(&mut reader, self.account, now_ms())
            .await
            .unwrap()
            .operations
    }

    async fn bytes_of(&self, item: &Item) -> String {
        let mut file = self
            .store
            .blobs()
            .open(&item.result_blob.unwrap())
            .await
            .unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        text
    }

    fn done(&self) -> Vec<String> {
        let mut done = self.workers.done.lock().clone();
        done.sort();
        done
    }

    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        until(what, async || holds(self)).await;
    }
}

fn start(store: &Store, workers: &Arc<Fake>) -> (Conversions, ActorRef<Root>) {
    let conversions = Conversions::over(
        ConvertSettings::default(),
        store.clone(),
        workers.clone(),
        |name| name.replace('!', ""),
    );
    let root = Root::start(tree::Args {
        components: conversions.components(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    });
    (conversions, root)
}

fn png(text: &str) -> Vec<u8> {
    [PNG, text.as_bytes()].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_converts_what_it_can_and_gives_back_the_rest() {
    let site = Site::open().await;
    site.workers.busy.store(2, SeqCst);
    let job = site
        .submit(
            |_| {},
            &[&png("one"), &png("broken"), b"no image at all", &png("two")],
        )
        .await;
    let job = site.end_of(&job).await;
    assert_eq!(
        (
            job.state,
            job.total_files,
            job.completed_files,
            job.failed_files
        ),
        (JobState::Completed, 4, 2, 2)
    );
    let items = site.items(&job).await;
    let ends: Vec<_> = items
        .iter()
        .map(|item| item.error_code.as_deref())
        .collect();
    assert_eq!(
        ends,
        [None, Some("undecodable"), Some("unsupported_type"), None]
    );
    assert_eq!(items[0].result_name.as_deref(), Some("0.webp"));
    assert_eq!(items[0].mime_type.as_deref(), Some("image/webp"));
    assert_eq!((items[0].width, items[0].height), (Some(4), Some(3)));
    assert_eq!(site.bytes_of(&items[3]).await, "made of two");
    assert_eq!(site.used().await, 2);
    let counts = site.conversions.counts();
    assert_eq!((counts.converted, counts.failed["undecodable"]), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_batch_continues_at_its_first_unfinished_file() {
    let mut site = Site::open().await;
    let job = site
        .submit(
            |_| {},
            &[&png("one"), &png("wait"), &png("two"), &png("wait")],
        )
        .await;
    site.until("the free files are done", |site| {
        site.done() == ["one", "two"]
    })
    .await;
    site.kill_and_start().await;
    site.workers.permits.add_permits(2);
    let job = site.end_of(&job).await;
    assert_eq!((job.state, job.completed_files), (JobState::Completed, 4));
    assert_eq!(site.used().await, 4, "charged once");
    let twice = site.done().iter().filter(|text| *text != "wait").count();
    assert!(
        twice <= 3,
        "at most the file in mid-record is done again: {:?}",
        site.done()
    );
    let mut reader = site.store.read().await.unwrap();
    for item in site.items(&job).await {
        let derived = Derived {
            kind: lineage::DerivedKind::Conversion,
            id: item.id.to_string(),
        };
        assert_eq!(lineage::of(&mut reader, &derived).await.unwrap().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_stop_frees_the_lease_for_the_next_process() {
    let site = Site::open().await;
    let job = site.submit(|_| {}, &[&png("wait")]).await;
    site.until("it runs", |site| site.workers.running.load(SeqCst) == 1)
        .await;
    site.root.stop_gracefully().await.unwrap();
    site.root.wait_for_shutdown().await;
    site.until("it is ended", |site| site.workers.running.load(SeqCst) == 0)
        .await;
    let (conversions, _root) = start(&site.store, &site.workers);
    site.workers.permits.add_permits(1);
    let job = conversions
        .wait(job.id, Instant::now() + PATIENCE)
        .await
        .unwrap();
    assert_eq!(job.state, JobState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_ends_what_runs_at_once() {
    let site = Site::open().await;
    let job = site
        .submit(|_| {}, &[&png("wait"), &png("wait"), &png("wait")])
        .await;
    site.until("two run", |site| site.workers.running.load(SeqCst) == 2)
        .await;
    let waiting = site.conversions.wait(job.id, Instant::now() + PATIENCE);
    let cancelled = site.conversions.cancel(site.account, job.id);
    let (waited, cancelled) = tokio::join!(waiting, cancelled);
    assert_eq!(cancelled.unwrap().state, JobState::Cancelled);
    assert_eq!(waited.unwrap().state, JobState::Cancelled);
    site.until("nothing runs", |site| {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
    assert_eq!(site.used().await, 0);
    let again = site.conversions.cancel(site.account, job.id).await;
    assert!(matches!(
        again,
        Err(crate::Error::Store(sluice_store::Error::Conflict(_)))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn someone_who_waits_gets_past_any_number_of_batches() {
    let site = Site::open().await;
    for _ in 0..ConvertSettings::default().max_active {
        site.submit(|_| {}, &[&png("wait")]).await;
    }
    site.until("batches run", |site| {
        site.workers.running.load(SeqCst) > ConvertSettings::default().max_active / 2
    })
    .await;
    let waited_for = |new: &mut NewJob| new.lane = Turn::Interactive;
    let job = site.submit(waited_for, &[&png("one")]).await;
    assert_eq!(site.end_of(&job).await.state, JobState::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_kills_its_batch_is_given_up_and_harms_no_other() {
    let site = Site::open().await;
    let poison = site.submit(|_| {}, &[&png("die"), &png("one")]).await;
    let other = site.submit(|_| {}, &[&png("two")]).await;
    assert_eq!(site.end_of(&other).await.state, JobState::Completed);
    let poison = site.end_of(&poison).await;
    assert_eq!(poison.state, JobState::Failed);
    assert_eq!(poison.error_code.as_deref(), Some("crashed"));
    assert!(
        site.items(&poison)
            .await
            .iter()
            .all(|item| item.state != ItemState::Pending)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn each_conversion_has_an_actor_of_its_own_and_a_panic_ends_only_that_one() {
    let site = Site::open().await;
    let first = site.submit(|_| {}, &[&png("wait")]).await;
    let second = site.submit(|_| {}, &[&png("wait")]).await;
    site.until("both are at work", |site| {
        site.workers.running.load(SeqCst) == 2
    })
    .await;
    let owners = site.conversions.registry.owners().await;
    let rows: HashSet<_> = owners.values().copied().collect();
    assert_eq!(owners.len(), 2, "one actor for each conversion");
    assert_eq!(rows, HashSet::from([first.id, second.id]));

    let faulty = site.submit(|_| {}, &[&png("die")]).await;
    let faulty = site.end_of(&faulty).await;
    assert_eq!(faulty.error_code.as_deref(), Some("crashed"));
    until("the faulty one has no actor any more", async || {
        site.conversions.registry.owners().await == owners
    })
    .await;
    assert_eq!(site.workers.running.load(SeqCst), 2);

    site.workers.permits.add_permits(2);
    for job in [first, second] {
        assert_eq!(site.end_of(&job).await.state, JobState::Completed);
    }
    assert_eq!(site.done(), ["wait", "wait"], "each was done once");
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_come_apart_and_are_packed() {
    let site = Site::open().await;
    let job = site
        .submit(
            |new| new.archives = true,
            &[&[ZIP, b"one broken two!"].concat(), &png("three")],
        )
        .await;
    assert_eq!(site.used().await, 2);
    let job = site.end_of(&job).await;
    assert_eq!(
        (job.state, job.total_files, job.failed_files),
        (JobState::Completed, 4, 1)
    );
    assert_eq!(site.used().await, 3);
    let blob = job.archive_blob.expect("an archive");
    let file = site.store.blobs().open(&blob).await.unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let names: Vec<String> = archive.file_names().map(str::to_owned).collect();
    assert_eq!(names, ["one.webp", "two.webp", "1.webp"]);
    let mut text = String::new();
    archive
        .by_name("two.webp")
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, "made of two!");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_beyond_the_plan_fails_as_one_file() {
    let cases = [
        (
            Allowance {
                files: 2,
                ..Allowance::default()
            },
            "too_large",
        ),
        (
            Allowance {
                file_bytes: 8,
                ..Allowance::default()
            },
            "too_large",
        ),
        (
            Allowance {
                operations: 2,
                ..Allowance::default()
            },
            "operations_used_up",
        ),
    ];
    let site = Site::open().await;
    for (allowance, code) in cases {
        let zip = [ZIP, b"one two three"].concat();
        let job = site.submit(|new| new.allowance = allowance, &[&zip]).await;
        let job = site.end_of(&job).await;
        assert_eq!(
            (job.state, job.error_code.as_deref()),
            (JobState::Failed, Some(code))
        );
    }
    assert_eq!(site.used().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_of_one_job_share_the_files_of_the_plan() {
    let site = Site::open().await;
    let zip = [ZIP, b"one two three"].concat();
    let room = |new: &mut NewJob| new.allowance.files = 5;
    let job = site.submit(room, &[&zip, &zip]).await;
    let job = site.end_of(&job).await;
    assert_eq!(
        (job.total_files, job.completed_files, job.failed_files),
        (4, 3, 1),
        "the second would make six"
    );
    assert_eq!(site.used().await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_is_gone_fails_its_file_only() {
    let site = Site::open().await;
    let job = site
        .submit(|_| {}, &[&png("wait"), &png("wait"), &png("one")])
        .await;
    site.until("two run", |site| site.workers.running.load(SeqCst) == 2)
        .await;
    let mut reader = site.store.read().await.unwrap();
    let last = site.items(&job).await.pop().unwrap();
    let input = jobs::inputs(&mut reader, last.id).await.unwrap().remove(0);
    let name = input.blob.to_string();
    let folder = site.folder.path().join("blobs").join(&name[..2]);
    std::fs::remove_file(folder.join(&name[2..])).unwrap();
    site.workers.permits.add_permits(2);
    let job = site.end_of(&job).await;
    assert_eq!((job.completed_files, job.failed_files), (2, 1));
    let failed = site.items(&job).await.pop().unwrap();
    assert_eq!(failed.error_code.as_deref(), Some("internal"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_keeps_failing_for_no_passing_reason_is_given_up() {
    let site = Site::open().await;
    let job = site.submit(|_| {}, &[&png("wait")]).await;
    site.until("it runs", |site| site.workers.running.load(SeqCst) == 1)
        .await;
    let blobs = site.folder.path().join("blobs");
    std::fs::rename(&blobs, site.folder.path().join("elsewhere")).unwrap();
    std::fs::write(&blobs, "no folder").unwrap();
    site.workers.permits.add_permits(1);
    let job = site.end_of(&job).await;
    assert_eq!(
        (job.state, job.error_code.as_deref()),
        (JobState::Failed, Some("crashed"))
    );
    assert_eq!(site.used().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_results_are_files_with_a_lineage_or_fail_for_want_of_room() {
    let site = Site::open().await;
    let room = |new: &mut NewJob| {
        new.saves = true;
        // "made of one" fits once.
        new.allowance.storage_bytes = 15;
    };
    let job = site.submit(room, &[&png("one"), &png("two")]).await;
    let job = site.end_of(&job).await;
    assert_eq!((job.completed_files, job.failed_files), (1, 1));
    let items = site.items(&job).await;
    let stored = items
        .iter()
        .find_map(|item| item.stored_file_id)
        .expect("one is stored");
    let refused = items.iter().find_map(|item| item.error_code.as_deref());
    assert_eq!(refused, Some("storage_used_up"));
    let mut reader = site.store.read().await.unwrap();
    let file = files::get(&mut reader, site.account, stored).await.unwrap();
    assert_eq!(
        (file.role, file.mime_type.as_str()),
        (files::Role::Converted, "image/webp")
    );
    let made = lineage::of(&mut reader, &Derived::file(stored))
        .await
        .unwrap();
    assert_eq!(made[0].operation["tool"], "convert");
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_see_each_step_and_waiters_leave_at_their_deadline() {
    let site = Site::open().await;
    let job = site.submit(|_| {}, &[&png("wait"), &png("wait")]).await;
    let early = site.conversions.wait(job.id, Instant::now()).await.unwrap();
    assert!(!early.state.has_ended());
    let mut follower = site.conversions.follow(job.id).unwrap();
    let mut seen = Vec::new();
    let (mut done, mut allowed) = (0, 0);
    while done < 2 {
        let progress = follower.next().await.unwrap();
        seen.push(progress.percent());
        done = progress.completed_files;
        if done == allowed {
            allowed += 1;
            site.workers.permits.add_permits(1);
        }
    }
    assert!(seen.contains(&50) && seen.ends_with(&[100]), "{seen:?}");
    let unknown = site
        .conversions
        .wait(Uuid::now_v7(), Instant::now() + PATIENCE)
        .await;
    assert!(unknown.is_err());
}
