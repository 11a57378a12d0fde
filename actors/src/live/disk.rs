//! Disk thread of a broadcast: segment files and window journal, bounded queue, failure (`the disk is slower than the
//! stream`), rebuild.
//!
//! A stalled or failed disk must cost viewers nothing, so no one ever waits for this thread: it takes jobs from a
//! bounded queue, writes them by plain writes (the page cache survives `kill -9`) and publishes how far it has come.
//! After a failure or a full queue it writes nothing more until a [`Rebuild`] has brought the folder up to date.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use sluice_media::hls::names;
use tokio::sync::watch;

use super::recording_writer::{RecordingWriter, WriterJob};

/// Jobs that may wait for the thread; a full queue counts as a failed disk.
const QUEUE: usize = 64;

/// Name of the journal in a broadcast's folder.
pub(super) const JOURNAL: &str = "window.journal";

/// Callback on progress; must not block.
type Nudge = Box<dyn Fn() + Send>;

/// The handle of a broadcast's folder; dropping it ends the thread once its queue is empty.
pub(super) struct Disk {
    jobs: SyncSender<(u64, Job)>,
    shared: Arc<Shared>,
}

struct Shared {
    /// The newest job that is done.
    persisted: watch::Sender<u64>,
    sent: AtomicU64,
    /// The newest job that found the queue full: only a later rebuild makes up for it.
    lost: AtomicU64,
    healthy: AtomicBool,
    error: Mutex<Option<String>>,
    nudge: Mutex<Option<Nudge>>,
}

/// A task of the thread.
pub(super) enum Job {
    /// Appends a part to its segment's file, then its line to the journal. The first part of a segment begins the file
    /// again: an earlier process may have left bytes in it that its journal never named.
    Part {
        msn: u64,
        is_first: bool,
        bytes: Bytes,
        line: Vec<u8>,
    },
    /// Writes an init section, then its line.
    Init {
        number: u32,
        bytes: Bytes,
        line: Vec<u8>,
    },
    /// Appends lines that belong to no file.
    Line(Vec<u8>),
    /// Brings the whole folder up to date.
    Rebuild(Rebuild),
    /// Deletes segments that can no longer be fetched.
    Remove(Vec<u64>),
    /// Records what was written. What fails in it ends the recording, never the broadcast.
    Recording(Arc<RecordingWriter>, WriterJob),
    /// Deletes the folder: the broadcast is over and forgotten.
    Discard,
}

/// A journal that replaces the old one, and the files it names that may not be on disk.
pub(super) struct Rebuild {
    pub inits: Vec<(u32, Bytes)>,
    pub segments: Vec<(u64, Vec<Bytes>)>,
    pub journal: Vec<u8>,
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk")
            .field("healthy", &self.is_healthy())
            .finish_non_exhaustive()
    }
}

impl Disk {
    /// Starts the thread. The folder is made by the first job.
    pub fn start(folder: PathBuf) -> io::Result<Self> {
        let (jobs, queue) = sync_channel(QUEUE);
        let shared = Arc::new(Shared {
            persisted: watch::Sender::default(),
            sent: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            healthy: AtomicBool::new(true),
            error: Mutex::new(None),
            nudge: Mutex::new(None),
        });
        let writer = Writer {
            folder,
            journal: None,
            segment: None,
        };
        let theirs = shared.clone();
        std::thread::Builder::new()
            .name("live-disk".into())
            .spawn(move || run(writer, &queue, &theirs))?;
        Ok(Self { jobs, shared })
    }

    /// Sets the callback on progress.
    pub fn set_nudge(&self, nudge: impl Fn() + Send + 'static) {
        *self.shared.nudge.lock() = Some(Box::new(nudge));
    }

    /// Queues a job and returns its number; when the queue is full the disk counts as failed.
    pub fn submit(&self, job: Job) -> u64 {
        let number = self.shared.sent.fetch_add(1, Ordering::AcqRel) + 1;
        if let Err(unsent) = self.jobs.try_send((number, job)) {
            let (TrySendError::Full((_, job)) | TrySendError::Disconnected((_, job))) = unsent;
            if let Job::Recording(recording_writer, WriterJob::End(at_ms)) = job {
                // Nothing may keep a recording from becoming work.
                recording_writer.end(at_ms);
            }
            self.shared.lost.store(number, Ordering::Release);
            self.shared
                .fail("the disk is slower than the stream".into());
        }
        number
    }

    /// Returns the number of the newest job that is done.
    pub fn persisted(&self) -> u64 {
        *self.shared.persisted.borrow()
    }

    /// Returns once a job and all before it are done.
    pub async fn wait_for(&self, number: u64) {
        let mut persisted = self.shared.persisted.subscribe();
        let done = persisted.wait_for(|newest| *newest >= number).await;
        done.expect("the sender is shared with this handle");
    }

    /// Returns `false` from a failure until a rebuild has succeeded.
    pub fn is_healthy(&self) -> bool {
        self.shared.healthy.load(Ordering::Acquire)
    }

    /// Returns the system's message of the last failure.
    pub fn error(&self) -> Option<String> {
        self.shared.error.lock().clone()
    }

    /// Counts the disk as failed although no write has returned an error.
    pub fn give_up_waiting(&self) {
        self.shared
            .fail("the disk does not finish a write in time".into());
    }
}

impl Shared {
    fn fail(&self, error: String) {
        *self.error.lock() = Some(error);
        self.healthy.store(false, Ordering::Release);
    }

    fn recovered(&self, rebuild: u64) {
        if self.lost.load(Ordering::Acquire) > rebuild {
            return;
        }
        *self.error.lock() = None;
        self.healthy.store(true, Ordering::Release);
    }
}

fn run(mut writer: Writer, queue: &Receiver<(u64, Job)>, shared: &Shared) {
    while let Ok((number, job)) = queue.recv() {
        let rebuilds = matches!(job, Job::Rebuild(_));
        // Jobs that free space or record are done on a failed disk too, and their errors do not make the disk fail.
        let is_aside = matches!(job, Job::Remove(_) | Job::Discard | Job::Recording(..));
        if rebuilds || is_aside || shared.healthy.load(Ordering::Acquire) {
            match writer.carry_out(job) {
                Ok(()) if rebuilds => shared.recovered(number),
                Ok(()) => {}
                Err(_) if is_aside => {}
                Err(error) => shared.fail(error.to_string()),
            }
        }
        shared.persisted.send_replace(number);
        if let Some(nudge) = shared.nudge.lock().as_ref() {
            nudge();
        }
    }
}

/// The open files; only the thread has them.
struct Writer {
    folder: PathBuf,
    journal: Option<File>,
    segment: Option<(u64, File)>,
}

impl Writer {
    fn carry_out(&mut self, job: Job) -> io::Result<()> {
        match job {
            Job::Part {
                msn,
                is_first,
                bytes,
                line,
            } => {
                // Bytes first: a line in the journal promises that they are there.
                self.segment(msn, is_first)?.write_all(&bytes)?;
                self.journal()?.write_all(&line)
            }
            Job::Init {
                number,
                bytes,
                line,
            } => {
                fs::write(self.folder.join(names::init_name(number)), &bytes)?;
                self.journal()?.write_all(&line)
            }
            Job::Line(line) if line.is_empty() => Ok(()),
            Job::Line(line) => self.journal()?.write_all(&line),
            Job::Recording(recording_writer, job) => {
                recording_writer.carry_out(job, &self.folder);
                Ok(())
            }
            Job::Rebuild(rebuild) => self.rebuild(&rebuild),
            Job::Remove(msns) => {
                for msn in msns {
                    remove_if_there(&self.folder.join(names::segment_name(msn)))?;
                }
                Ok(())
            }
            Job::Discard => {
                self.journal = None;
                self.segment = None;
                fs::remove_dir_all(&self.folder)
            }
        }
    }

    fn segment(&mut self, msn: u64, is_first: bool) -> io::Result<&mut File> {
        if self.segment.as_ref().is_none_or(|(open, _)| *open != msn) {
            let path = self.folder.join(names::segment_name(msn));
            let file = if is_first {
                File::create(path)?
            } else {
                OpenOptions::new().create(true).append(true).open(path)?
            };
            self.segment = Some((msn, file));
        }
        let (_, file) = self.segment.as_mut().expect("opened above");
        Ok(file)
    }

    fn journal(&mut self) -> io::Result<&mut File> {
        self.journal
            .as_mut()
            .ok_or_else(|| io::Error::other("the window journal is not open"))
    }

    fn rewrite_segment(&self, msn: u64, parts: &[Bytes]) -> io::Result<()> {
        let path = self.folder.join(names::segment_name(msn));
        if is_whole(&path, parts.iter().map(|part| part.len() as u64).sum()) {
            return Ok(());
        }
        let fresh = path.with_extension("new");
        let mut file = File::create(&fresh)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        fs::rename(&fresh, &path)
    }

    /// Writes the files, each by rename, then the journal: at no moment does a journal name bytes that are not there.
    fn rebuild(&mut self, rebuild: &Rebuild) -> io::Result<()> {
        self.segment = None;
        fs::create_dir_all(&self.folder)?;
        for (number, bytes) in &rebuild.inits {
            fs::write(self.folder.join(names::init_name(*number)), bytes)?;
        }
        for (msn, parts) in &rebuild.segments {
            self.rewrite_segment(*msn, parts)?;
        }
        let fresh = self.folder.join("window.journal.new");
        let mut file = File::create(&fresh)?;
        file.write_all(&rebuild.journal)?;
        fs::rename(&fresh, self.folder.join(JOURNAL))?;
        self.journal = Some(file);
        Ok(())
    }
}

/// Returns whether a file of this length exists already.
fn is_whole(path: &Path, len: u64) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == len)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn part(msn: u64, bytes: &'static [u8]) -> Job {
        Job::Part {
            msn,
            is_first: false,
            bytes: Bytes::from_static(bytes),
            line: b"part\n".to_vec(),
        }
    }

    fn rebuild() -> Job {
        Job::Rebuild(Rebuild {
            inits: vec![(0, Bytes::from_static(b"init"))],
            segments: vec![(1, vec![Bytes::from_static(b"a"), Bytes::from_static(b"b")])],
            journal: b"header\n".to_vec(),
        })
    }

    fn wait_for(disk: &Disk, number: u64) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while disk.persisted() < number {
            assert!(
                Instant::now() < deadline,
                "job {number} was not done in time"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn parts_are_appended_before_their_lines_and_removed_when_asked() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("b1");
        let disk = Disk::start(folder.clone()).unwrap();
        disk.submit(rebuild());
        disk.submit(part(2, b"one"));
        wait_for(&disk, disk.submit(part(2, b"two")));
        assert_eq!(fs::read(folder.join("2.m4s")).unwrap(), b"onetwo");
        assert_eq!(
            fs::read(folder.join(JOURNAL)).unwrap(),
            b"header\npart\npart\n"
        );
        wait_for(&disk, disk.submit(Job::Remove(vec![1, 9])));
        assert!(!folder.join("1.m4s").exists());
        wait_for(&disk, disk.submit(Job::Discard));
        assert!(!folder.exists());
    }

    #[test]
    fn a_failed_disk_writes_nothing_until_it_is_rebuilt() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("b1");
        fs::write(&folder, b"a file is where the folder should be").unwrap();
        let disk = Disk::start(folder.clone()).unwrap();
        wait_for(&disk, disk.submit(rebuild()));
        assert!(!disk.is_healthy() && disk.error().is_some());

        fs::remove_file(&folder).unwrap();
        wait_for(&disk, disk.submit(part(2, b"lost")));
        assert!(
            !folder.exists(),
            "nothing is appended to a folder that is behind"
        );

        wait_for(&disk, disk.submit(rebuild()));
        assert!(disk.is_healthy() && disk.error().is_none());
        assert_eq!(fs::read(folder.join("1.m4s")).unwrap(), b"ab");
    }
}
