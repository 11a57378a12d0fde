//! `RecordingWriter`: recording of a broadcast while it is on air (hard links of segments, index, DVR playlist), and its
//! stop when the disk is full.
//!
//! Segments are on the disk already: each file gets a second name in the recording's folder with its first part, so
//! that it stays when the window forgets it, and grows as the window's does. A line of the index notes it. The thread
//! that writes the broadcast's folder does both, so that no actor waits. When that disk is full the recording stops;
//! the stream continues. With an object store it also notes what is to be uploaded.
//!
//! What survives the process is the folder: names, index, and bytes as far as they had been written.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::io::Errno;
use sluice_media::hls::{
    Header, InitSection, Segment, StreamInfo,
    names::{self, MediaName},
    record::{self, Entry, EventPlaylist, SegmentEntry},
};
use sluice_store::Store;
use tracing::{info, warn};
use uuid::Uuid;

use super::{
    ledger::{self, Ledger},
    recorded_media::{RECORDING_INDEX, RecordedFolder, RecordedMedia},
    recording_upload::{RecordingUpload, Uploads},
    segment_store::Body,
};

/// Name of the folder of all recordings in the data folder.
const FOLDER: &str = "recordings";

/// Returns the folder that holds the folders of all recordings.
pub(crate) fn recording_folder(store: &Store) -> PathBuf {
    store.data_dir().join(FOLDER)
}

/// Parts of the process that a recording writer needs.
#[derive(Clone)]
pub(super) struct WriterContext {
    /// `{data_dir}/recordings`
    pub folder: PathBuf,
    pub store: Store,
    pub ledger: Ledger,
    /// `None` without an object store.
    pub uploads: Option<Uploads>,
}

/// See the module documentation. The owner of the broadcast adds, its disk thread writes, viewers read.
pub struct RecordingWriter {
    site: WriterContext,
    input_id: Uuid,
    header: Header,
    folder: PathBuf,
    known: Mutex<Known>,
    /// Reason why nothing more is recorded.
    stopped: OnceLock<String>,
    /// Only the disk thread has it.
    index: Mutex<Option<File>>,
    /// `None` without an object store.
    upload: Option<Arc<RecordingUpload>>,
}

impl std::fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecordingWriter")
            .field("folder", &self.folder)
            .field("stopped", &self.stopped)
            .finish_non_exhaustive()
    }
}

struct Known {
    inits: BTreeMap<u32, Init>,
    /// Closed and published, in order.
    segments: Vec<SegmentEntry>,
    playlist: EventPlaylist,
}

#[derive(Clone, Debug)]
struct Init {
    info: Arc<StreamInfo>,
    len: u64,
}

/// Task of the disk thread for a recording writer, after the media that it refers to were written.
#[derive(Debug)]
pub(super) enum WriterJob {
    Init(u32),
    /// A segment has its first part, or all of them.
    Segment(SegmentEntry),
    /// The folder was rebuilt: record those of the segments that are not recorded yet.
    CatchUp(Vec<SegmentEntry>),
    /// The broadcast ended at this time (Unix milliseconds).
    End(i64),
}

impl RecordingWriter {
    pub(super) fn new(site: WriterContext, input_id: Uuid, header: &Header) -> Self {
        let folder = site.folder.join(&header.broadcast);
        let upload = site.uploads.as_ref().map(|uploads| {
            let recorded = RecordedFolder::new(&site.store, &folder, &header.broadcast);
            uploads.add(recorded, header.fence)
        });
        Self {
            folder,
            upload,
            known: Mutex::new(Known {
                inits: BTreeMap::new(),
                segments: Vec::new(),
                playlist: EventPlaylist::new(header.broadcast.clone(), header.target_duration_s),
            }),
            header: header.clone(),
            site,
            input_id,
            stopped: OnceLock::new(),
            index: Mutex::new(None),
        }
    }

    /// Loads the recording of an earlier process of a broadcast that continues; `None` when it recorded nothing.
    /// Segments from `first_lost` on are not listed: a power loss may have corrupted them.
    pub(super) fn load(
        site: WriterContext,
        input_id: Uuid,
        header: &Header,
        first_lost: Option<u64>,
    ) -> Option<Self> {
        let folder = site.folder.join(&header.broadcast);
        let index = fs::read(folder.join(RECORDING_INDEX)).ok()?;
        let recording_writer = Self::new(site, input_id, header);
        let mut segments = BTreeMap::new();
        let mut known = recording_writer.known.lock();
        for entry in record::decode(&index) {
            match entry {
                Entry::Init { number, info } => {
                    let path = recording_writer.folder.join(names::init_name(number));
                    let len = fs::metadata(path).map_or(0, |file| file.len());
                    let info = Arc::new(info);
                    known.inits.insert(number, Init { info, len });
                }
                Entry::Segment(segment) => drop(segments.insert(segment.msn, segment)),
                Entry::Stopped { reason } => drop(recording_writer.stopped.set(reason)),
                Entry::Begun { .. } | Entry::Ended => {}
            }
        }
        let kept = segments
            .range(..first_lost.unwrap_or(u64::MAX))
            .map(|(_, segment)| *segment);
        let closed = kept.filter(SegmentEntry::is_closed);
        closed.for_each(|segment| known.list(segment));
        drop(known);
        Some(recording_writer)
    }

    /// Returns the reason why nothing more is recorded; `None`: it continues.
    pub fn stopped(&self) -> Option<&str> {
        self.stopped.get().map(String::as_str)
    }

    /// Returns the playlist of the broadcast since its beginning; `None` before its first whole segment.
    pub fn playlist(&self, ended: bool) -> Option<Bytes> {
        let ended = ended || self.stopped().is_some();
        let mut known = self.known.lock();
        (!known.playlist.is_empty()).then(|| known.playlist.render(ended))
    }

    /// Returns the bytes of a segment or an init section that was listed.
    pub fn body(&self, name: MediaName) -> Option<Body> {
        let known = self.known.lock();
        let (file, len) = match name {
            MediaName::Init(number) => (names::init_name(number), known.inits.get(&number)?.len),
            MediaName::Segment(msn) => {
                let found = known
                    .segments
                    .binary_search_by_key(&msn, |it| it.msn)
                    .ok()?;
                (names::segment_name(msn), known.segments[found].len)
            }
            MediaName::Part(..) => return None,
        };
        Some(match &self.upload {
            Some(upload) => Body::Recorded(upload.media(name, len)),
            None => Body::File {
                path: self.folder.join(file),
                offset: 0,
                len,
            },
        })
    }

    /// Returns the media of a segment that may be in the object store; `None`: its file is in the folder.
    pub(crate) fn media(&self, segment: &SegmentEntry) -> Option<RecordedMedia> {
        let upload = self.upload.as_ref()?;
        Some(upload.media(MediaName::Segment(segment.msn), segment.len))
    }

    /// Returns why recorded segments stay on the disk at present.
    pub(super) fn upload_failure(&self) -> Option<&'static str> {
        self.upload.as_ref()?.failure()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the closed segments, in order.
    pub(crate) fn segments(&self) -> Vec<SegmentEntry> {
        self.known.lock().segments.clone()
    }

    pub(crate) fn info(&self, init: u32) -> Option<Arc<StreamInfo>> {
        self.known.lock().inits.get(&init).map(|it| it.info.clone())
    }

    /// Notes an init section of the packager.
    pub(super) fn note_init(&self, init: &InitSection) {
        let noted = Init {
            info: init.info.clone(),
            len: init.data.len() as u64,
        };
        self.known.lock().inits.insert(init.number, noted);
    }

    /// Lists a closed segment; a repeated call does nothing.
    pub(super) fn list(&self, segment: &Segment) {
        let mut known = self.known.lock();
        let is_next = known
            .segments
            .last()
            .is_none_or(|last| last.msn < segment.msn);
        if segment.closed && is_next && self.stopped().is_none() {
            known.list(segment.into());
        }
    }

    /// Notes in the store that this broadcast is recorded; may be repeated.
    pub(super) fn announce(&self) {
        self.site.ledger.note(ledger::Entry::RecordingBegun {
            input_id: self.input_id,
            broadcast: self.header.broadcast.clone(),
            at_ms: self.header.started_ms,
        });
    }

    /// Carries out a job; `ring` is the folder of the broadcast's window. Blocks.
    pub(super) fn carry_out(&self, job: WriterJob, ring: &Path) {
        if let WriterJob::End(at_ms) = job {
            return self.end(at_ms);
        }
        if self.stopped().is_some() {
            return;
        }
        if let Err(error) = self.record(job, ring) {
            self.stop(match Errno::from_io_error(&error) {
                Some(Errno::NOSPC | Errno::DQUOT) => "the disk is full".to_owned(),
                _ => error.to_string(),
            });
        }
    }

    fn record(&self, job: WriterJob, ring: &Path) -> io::Result<()> {
        if self.site.store.disk_space().is_ok_and(|disk| disk.is_low()) {
            return Err(Errno::NOSPC.into());
        }
        match job {
            WriterJob::Init(number) => self.record_init(number, ring),
            WriterJob::Segment(segment) => self.record_segment(segment, ring),
            WriterJob::CatchUp(segments) => {
                let numbers: Vec<u32> = self.known.lock().inits.keys().copied().collect();
                for number in numbers {
                    self.record_init(number, ring)?;
                }
                segments
                    .into_iter()
                    .try_for_each(|segment| self.record_segment(segment, ring))
            }
            WriterJob::End(_) => Ok(()),
        }
    }

    fn record_init(&self, number: u32, ring: &Path) -> io::Result<()> {
        self.keep(ring, &names::init_name(number))?;
        match self.info(number) {
            Some(info) => {
                let info = info.as_ref().clone();
                self.add(&Entry::Init { number, info })
            }
            None => Ok(()),
        }
    }

    fn record_segment(&self, segment: SegmentEntry, ring: &Path) -> io::Result<()> {
        match self.keep(ring, &names::segment_name(segment.msn))? {
            true => self.add(&Entry::Segment(segment)),
            false => Ok(()),
        }
    }

    /// Writes an entry whose media are in the folder.
    fn add(&self, entry: &Entry) -> io::Result<()> {
        self.write(entry)?;
        if let Some(upload) = &self.upload {
            upload.note(entry);
        }
        Ok(())
    }

    /// Gives a file of the window a name in the recording; `false` when it is not there, as while the disk fails: then it
    /// is caught up with later.
    fn keep(&self, ring: &Path, name: &str) -> io::Result<bool> {
        self.open()?;
        let (from, to) = (ring.join(name), self.folder.join(name));
        match fs::hard_link(&from, &to) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Written again after the disk had failed, it is another file.
                if fs::metadata(&from)?.ino() != fs::metadata(&to)?.ino() {
                    let fresh = to.with_extension("new");
                    let _ = fs::remove_file(&fresh);
                    fs::hard_link(&from, &fresh)?;
                    fs::rename(&fresh, &to)?;
                }
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    /// Makes folder and index when the first entry is recorded.
    fn open(&self) -> io::Result<()> {
        let mut index = self.index.lock();
        if index.is_some() {
            return Ok(());
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        let path = self.folder.join(RECORDING_INDEX);
        let was = fs::read(&path).unwrap_or_default();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        if was.last().is_some_and(|last| *last != b'\n') {
            // A power loss tore the last line off: what follows is none of it.
            file.write_all(b"\n")?;
        }
        if was.is_empty() {
            let begun = Entry::Begun {
                input: self.input_id.to_string(),
                header: self.header.clone(),
            };
            file.write_all(&line(&begun))?;
        }
        *index = Some(file);
        Ok(())
    }

    fn write(&self, entry: &Entry) -> io::Result<()> {
        let mut index = self.index.lock();
        match index.as_mut() {
            Some(index) => index.write_all(&line(entry)),
            None => Ok(()),
        }
    }

    fn stop(&self, reason: String) {
        warn!(input = %self.input_id, broadcast = self.header.broadcast, reason, "the recording stops; the stream continues");
        let _ = self.write(&Entry::Stopped {
            reason: reason.clone(),
        });
        self.site.ledger.note(ledger::Entry::RecordingStopped {
            broadcast: self.header.broadcast.clone(),
            reason: reason.clone(),
        });
        let _ = self.stopped.set(reason);
    }

    /// Ends the recording, all of which has been written: it is due to be stored, once all of it is in the object store if there
    /// is one.
    pub(super) fn end(&self, at_ms: i64) {
        let _ = self.write(&Entry::Ended);
        info!(input = %self.input_id, broadcast = self.header.broadcast, "the recording is over");
        match &self.upload {
            Some(upload) => upload.end(at_ms),
            None => self.site.ledger.note(ledger::Entry::RecordingEnded {
                broadcast: self.header.broadcast.clone(),
                at_ms,
            }),
        }
    }
}

impl Known {
    fn list(&mut self, segment: SegmentEntry) {
        self.playlist.push(&segment);
        self.segments.push(segment);
    }
}

fn line(entry: &Entry) -> Vec<u8> {
    let mut line = Vec::with_capacity(192);
    record::encode(entry, &mut line);
    line
}
