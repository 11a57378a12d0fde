//! Upload of recorded media to the object store (`store.objects_url`) while a broadcast is on air; a recording ends once all of
//! it is there.
//!
//! ```text
//! disk thread ── note ──▶ queue of the recording ──▶ objects ──▶ rows (`live_segments`)
//!                            └── full, or a start: its index is read
//! ```
//!
//! The disk thread never waits, and nothing here is on the way of a part to its viewers. While the object store or the database
//! cannot be used, the media stay on the disk, as many as `store.min_free` allows. A file that the disk cannot read is left out
//! after some tries: it is a gap of the recording. What survives the process are the folders of the recordings and the rows.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    fs, io,
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use parking_lot::Mutex;
use sluice_media::hls::{
    names::{self, MediaName},
    record::{self, Entry},
};
use sluice_store::{
    Error as StoreError, Store,
    live_segments::{self, NewLiveSegment},
    recordings::{self, RecordingStatus},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::{
    ledger::{self, Ledger},
    recorded_media::{RECORDING_INDEX, RecordedFolder, RecordedMedia, blocking, remove_local},
    unix_ms,
};
use crate::durable::step_error::{passes, with_patience};

/// Entries of each recording that wait for their upload; the index has the others.
const QUEUE: usize = 256;
/// Most files of a recording that are uploaded in one turn, and get their rows together.
const GROUP: usize = 16;
/// Files of a recording that are uploaded at a time.
const FILES_AT_ONCE: usize = 4;
/// Recordings that have their turns at a time.
const RECORDINGS_AT_ONCE: usize = 8;
/// Pause after a failure.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// Time for what came last before a stop; the rest is uploaded at the next start.
const LAST_ROUND: Duration = Duration::from_secs(5);
/// Most tries to read a file of a recording, with a pause between them.
const READ_TRIES: u32 = 5;
/// Multiple of `store.min_free` below which segments leave the disk once they are in the object store.
const LITTLE_ROOM: u64 = 2;

/// Recordings whose media are uploaded. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Uploads(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    recordings: Mutex<BTreeMap<String, Arc<RecordingUpload>>>,
    came: Arc<Notify>,
}

/// Upload of one recording; shared with its writer.
#[derive(Debug)]
pub(super) struct RecordingUpload {
    folder: Arc<RecordedFolder>,
    fence: i64,
    came: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Entry>,
    /// True when the index may have entries that neither wait nor are uploaded.
    is_behind: bool,
    /// Time at which the broadcast ended, all of which is on the disk.
    ended_ms: Option<i64>,
    uploaded: Uploaded,
    /// Tries to read files that failed: of the index (`None`) and of media, no more than the index names.
    failed_reads: HashMap<Option<MediaName>, u32>,
    /// Media that are left out since the disk cannot read them.
    left_out: HashSet<MediaName>,
    /// Media that are uploaded, and whose rows could not be written.
    unrecorded: Option<Arc<Group>>,
    failure: Option<&'static str>,
    retry_at: Option<Instant>,
}

/// Names of media that have rows.
#[derive(Debug, Default)]
struct Uploaded {
    inits: BTreeSet<u32>,
    segments: BTreeSet<u64>,
    /// Segments before this one have left the disk.
    trimmed_before: u64,
}

/// Media that are uploaded together.
#[derive(Debug, Default)]
struct Group {
    names: Vec<MediaName>,
    media: Vec<NewLiveSegment>,
}

/// Entry whose file could not be read.
#[derive(Debug)]
struct Unread {
    name: MediaName,
    entry: Entry,
    error: io::Error,
}

/// Outcome of the upload of a file.
enum Upload {
    Done(MediaName, NewLiveSegment),
    /// Nothing is to be done: the file is not there, or not whole yet.
    Skipped,
    Unread(Unread),
}

/// Outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// Nothing can be done at present.
    Idle,
    /// More can be done at once.
    More,
    /// The recording ended at this time, and all of it is in the object store.
    Complete(i64),
    /// Nothing more is needed of it.
    Over,
}

impl Uploads {
    /// Begins, or continues, the upload of a recording.
    pub fn add(&self, folder: RecordedFolder, fence: u64) -> Arc<RecordingUpload> {
        let mut recordings = self.0.recordings.lock();
        let upload = recordings
            .entry(folder.broadcast.clone())
            .or_insert_with(|| {
                Arc::new(RecordingUpload {
                    folder: Arc::new(folder),
                    fence: i64::try_from(fence).unwrap_or(i64::MAX),
                    came: self.0.came.clone(),
                    state: Mutex::new(State {
                        // An earlier process may have left some.
                        is_behind: true,
                        ..State::default()
                    }),
                })
            });
        upload.clone()
    }

    /// Returns the broadcasts whose media are not all uploaded.
    pub fn pending(&self) -> Vec<String> {
        self.0.recordings.lock().keys().cloned().collect()
    }

    /// Uploads until `stop`.
    pub async fn run(self, store: Store, ledger: Ledger, stop: CancellationToken) {
        while !stop.is_cancelled() {
            let has_more = tokio::select! {
                has_more = self.round(&store, &ledger) => has_more,
                () = stop.cancelled() => break,
            };
            if has_more {
                continue;
            }
            tokio::select! {
                () = self.0.came.notified() => {}
                () = sleep(RETRY_EVERY) => {}
                () = stop.cancelled() => {}
            }
        }
        // A turn that the stop cut short has taken entries that neither wait nor are recorded: a recording would seem complete
        // without them.
        for recording in self.0.recordings.lock().values() {
            recording.state.lock().is_behind = true;
        }
        let _ = timeout(LAST_ROUND, self.round(&store, &ledger)).await;
    }

    /// Gives every recording a turn; returns whether more can be done at once.
    async fn round(&self, store: &Store, ledger: &Ledger) -> bool {
        let recordings: Vec<Arc<RecordingUpload>> =
            self.0.recordings.lock().values().cloned().collect();
        let mut turns = stream::iter(recordings)
            .map(|recording| async move {
                let turn = recording.turn(store).await;
                (recording, turn)
            })
            .buffer_unordered(RECORDINGS_AT_ONCE);
        let mut has_more = false;
        while let Some((recording, turn)) = turns.next().await {
            let broadcast = &recording.folder.broadcast;
            match turn {
                Turn::Idle => continue,
                Turn::More => {
                    has_more = true;
                    continue;
                }
                Turn::Complete(at_ms) => {
                    info!(broadcast, "the recording is in the object store");
                    ledger.note(ledger::Entry::RecordingEnded {
                        broadcast: broadcast.clone(),
                        at_ms,
                    });
                }
                Turn::Over => {}
            }
            self.0.recordings.lock().remove(broadcast);
        }
        has_more
    }
}

impl RecordingUpload {
    /// Lets an entry of the index wait for its upload; open segments are left out. Never blocks.
    pub fn note(&self, entry: &Entry) {
        if matches!(entry, Entry::Segment(segment) if !segment.is_closed()) {
            return;
        }
        let mut state = self.state.lock();
        if state.waiting.contains(entry) {
            return;
        }
        match state.waiting.len() < QUEUE {
            true => state.waiting.push_back(entry.clone()),
            false => state.is_behind = true,
        }
        drop(state);
        self.came.notify_one();
    }

    /// Notes that the broadcast ended at this time, and that nothing more comes.
    pub fn end(&self, at_ms: i64) {
        let mut state = self.state.lock();
        state.ended_ms.get_or_insert(at_ms);
        // Open segments count now, too.
        state.is_behind = true;
        drop(state);
        self.came.notify_one();
    }

    /// Returns why media stay on the disk at present.
    pub fn failure(&self) -> Option<&'static str> {
        self.state.lock().failure
    }

    pub fn media(&self, name: MediaName, len: u64) -> RecordedMedia {
        self.folder.media(name, len)
    }

    async fn turn(&self, store: &Store) -> Turn {
        let retry_at = self.state.lock().retry_at;
        if retry_at.is_some_and(|at| Instant::now() < at) {
            return Turn::Idle;
        }
        let outcome = self.advance(store).await;
        let broadcast = &self.folder.broadcast;
        let mut state = self.state.lock();
        match outcome {
            Ok(turn) => {
                state.retry_at = None;
                if state.failure.take().is_some() {
                    info!(broadcast, "recorded media are uploaded again");
                }
                turn
            }
            Err(StoreError::Conflict(reason)) => {
                warn!(broadcast, reason, "recorded media are not uploaded");
                Turn::Over
            }
            Err(error) => {
                let failure = reason_of(&error);
                if state.failure.replace(failure) != Some(failure) {
                    warn!(broadcast, %error, "recorded media are uploaded later");
                }
                state.retry_at = Some(Instant::now() + RETRY_EVERY);
                Turn::Idle
            }
        }
    }

    async fn advance(&self, store: &Store) -> Result<Turn, StoreError> {
        let unrecorded = self.state.lock().unrecorded.take();
        if let Some(group) = unrecorded {
            self.record(store, group).await?;
            return Ok(Turn::More);
        }
        let mut entries = self.next_entries();
        let is_behind = self.state.lock().is_behind;
        if entries.is_empty() && is_behind {
            if !self.scan(store).await? {
                return Ok(Turn::Over);
            }
            entries = self.next_entries();
        }
        if entries.is_empty() {
            let state = self.state.lock();
            let is_done = state.waiting.is_empty() && !state.is_behind;
            return Ok(match state.ended_ms.filter(|_| is_done) {
                Some(at_ms) => Turn::Complete(at_ms),
                None => Turn::Idle,
            });
        }
        let (group, unread) = match self.upload_all(store, &entries).await {
            Ok(uploaded) => uploaded,
            Err(error) => {
                self.put_back(entries);
                return Err(error);
            }
        };
        let read = self.note_unread(unread);
        if !group.media.is_empty() {
            self.record(store, Arc::new(group)).await?;
            self.trim(store).await;
        }
        read.map(|()| Turn::More)
    }

    /// Counts tries that failed, and lets the entries wait for the next one, if there is one; the error is that of such an entry.
    fn note_unread(&self, unread: Vec<Unread>) -> Result<(), StoreError> {
        let mut waiting = Vec::new();
        let mut first = None;
        for Unread { name, entry, error } in unread {
            if !self.is_given_up(Some(name), &error) {
                waiting.push(entry);
                first.get_or_insert(unreadable(&error));
            }
        }
        self.put_back(waiting);
        first.map_or(Ok(()), Err)
    }

    /// Counts a try to read a file, the index without a name, that failed; returns whether it was the last one.
    fn is_given_up(&self, name: Option<MediaName>, error: &io::Error) -> bool {
        let mut state = self.state.lock();
        let tries = state.failed_reads.entry(name).or_default();
        *tries += 1;
        let is_last = *tries >= READ_TRIES;
        if is_last {
            state.left_out.extend(name);
            let file = name.map_or(RECORDING_INDEX.to_owned(), |name| name.to_string());
            let broadcast = &self.folder.broadcast;
            error!(broadcast, file, %error, "a recorded file cannot be read and is left out: the recording has a gap");
        }
        is_last
    }

    /// Takes the next entries that are not uploaded.
    fn next_entries(&self) -> Vec<Entry> {
        let mut state = self.state.lock();
        let mut entries = Vec::new();
        while entries.len() < GROUP
            && let Some(entry) = state.waiting.pop_front()
        {
            if name_of(&entry).is_some_and(|name| state.is_wanted(name)) {
                entries.push(entry);
            }
        }
        entries
    }

    fn put_back(&self, entries: Vec<Entry>) {
        let mut state = self.state.lock();
        for entry in entries.into_iter().rev() {
            state.waiting.push_front(entry);
        }
    }

    /// Reads which entries of the index are not uploaded, and lets them wait, as many as fit. `false` when the recording is past
    /// this already.
    async fn scan(&self, store: &Store) -> Result<bool, StoreError> {
        let is_ended = {
            let mut state = self.state.lock();
            state.is_behind = false;
            state.ended_ms.is_some()
        };
        let scanned = self.missing(store, is_ended).await;
        let mut state = self.state.lock();
        match scanned {
            Ok(Some(scanned)) => {
                let trimmed_before = state.uploaded.trimmed_before;
                state.uploaded = Uploaded {
                    trimmed_before,
                    ..scanned.uploaded
                };
                let noted = std::mem::replace(&mut state.waiting, scanned.missing);
                for entry in noted {
                    if !state.waiting.contains(&entry) {
                        state.waiting.push_back(entry);
                    }
                }
                state.is_behind |= scanned.has_more;
                Ok(true)
            }
            Ok(None) => Ok(false),
            Err(error) => {
                state.is_behind = true;
                Err(error)
            }
        }
    }

    /// `None` when the recording has become work, or is stored. One that failed while this node was away is continued.
    async fn missing(&self, store: &Store, is_ended: bool) -> Result<Option<Scanned>, StoreError> {
        let broadcast = &self.folder.broadcast;
        let mut reader = store.read().await?;
        let recording = recordings::by_broadcast(&mut reader, broadcast).await?;
        let is_over = |it: &recordings::Recording| {
            it.status != RecordingStatus::Recording && !it.waits_for_node()
        };
        if recording.as_ref().is_some_and(is_over) {
            return Ok(None);
        }
        let rows = live_segments::list(&mut reader, broadcast).await?;
        drop(reader);
        let mut uploaded = Uploaded::default();
        for row in &rows {
            if let Some(name) = names::parse(&row.name) {
                uploaded.add(name);
            }
        }
        let index = self.index().await?;
        let left_out = self.state.lock().left_out.clone();
        let folder = self.folder.clone();
        let scanning = blocking(move || {
            let scanned = scan(&folder, &index, uploaded, &left_out, is_ended);
            Ok(Some(scanned))
        });
        scanning.await
    }

    /// Reads the index; a missing one has no entries, nor has one that the disk cannot read in [`READ_TRIES`].
    async fn index(&self) -> Result<Vec<u8>, StoreError> {
        let path = self.folder.path.join(RECORDING_INDEX);
        match blocking(move || Ok(fs::read(path))).await? {
            Ok(index) => Ok(index),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) if !passes(&error) && self.is_given_up(None, &error) => Ok(Vec::new()),
            Err(error) => Err(unreadable(&error)),
        }
    }

    async fn upload_all(
        &self,
        store: &Store,
        entries: &[Entry],
    ) -> Result<(Group, Vec<Unread>), StoreError> {
        let is_ended = self.state.lock().ended_ms.is_some();
        let uploads: Vec<Upload> = stream::iter(entries.to_vec())
            .map(|entry| self.upload(store, entry, is_ended))
            .buffered(FILES_AT_ONCE)
            .try_collect()
            .await?;
        let (mut group, mut unread) = (Group::default(), Vec::new());
        for upload in uploads {
            match upload {
                Upload::Done(name, new) => {
                    group.names.push(name);
                    group.media.push(new);
                }
                Upload::Skipped => {}
                Upload::Unread(it) => unread.push(it),
            }
        }
        Ok((group, unread))
    }

    async fn upload(
        &self,
        store: &Store,
        entry: Entry,
        is_ended: bool,
    ) -> Result<Upload, StoreError> {
        let Some(name) = name_of(&entry) else {
            return Ok(Upload::Skipped);
        };
        let path = self.folder.file(name);
        let measured = (path.clone(), entry.clone());
        let measuring = blocking(move || Ok(len_of(&measured.0, &measured.1, is_ended)));
        let len = match measuring.await? {
            Ok(Some(len)) => len,
            Ok(None) => return Ok(Upload::Skipped),
            Err(error) => return unread(name, entry, error),
        };
        let file = match store.blobs().upload_file(&path, len).await {
            Err(StoreError::File {
                path: at, source, ..
            }) if at == path => return unread(name, entry, source),
            uploaded => uploaded?,
        };
        let entry = serde_json::to_string(&entry)
            .map_err(|error| StoreError::Internal(format!("entry of an index: {error}")))?;
        let new = NewLiveSegment {
            name: name.to_string(),
            entry,
            file,
        };
        Ok(Upload::Done(name, new))
    }

    /// Writes the rows of media that are uploaded.
    async fn record(&self, store: &Store, group: Arc<Group>) -> Result<(), StoreError> {
        let recorded = with_patience(|| {
            let (group, broadcast) = (group.clone(), self.folder.broadcast.clone());
            let fence = self.fence;
            store.write_beside(move |tx| {
                Box::pin(async move {
                    live_segments::record(tx, &broadcast, fence, &group.media, unix_ms()).await
                })
            })
        });
        let recorded = recorded.await;
        let mut state = self.state.lock();
        match &recorded {
            Ok(()) => {
                for name in &group.names {
                    state.uploaded.add(*name);
                }
            }
            // They have waited too long.
            Err(StoreError::Objects(_)) => state.is_behind = true,
            Err(_) => state.unrecorded = Some(group),
        }
        recorded
    }

    /// Removes segments from the disk that are in the object store, when the disk has little room.
    async fn trim(&self, store: &Store) {
        let looking = store.clone();
        let has_little_room = blocking(move || {
            Ok(looking.disk_space().is_ok_and(|disk| {
                disk.free_bytes < disk.min_free_bytes.saturating_mul(LITTLE_ROOM)
            }))
        });
        if !has_little_room.await.is_ok_and(|it| it) {
            return;
        }
        let uploaded: Vec<u64> = {
            let state = self.state.lock();
            let from = state.uploaded.trimmed_before;
            state.uploaded.segments.range(from..).copied().collect()
        };
        let Some(last) = uploaded.last().copied() else {
            return;
        };
        let folder = self.folder.clone();
        let removing = blocking(move || {
            uploaded
                .iter()
                .try_for_each(|msn| remove_local(&folder.file(MediaName::Segment(*msn))))
        });
        match removing.await {
            Ok(()) => self.state.lock().uploaded.trimmed_before = last + 1,
            Err(error) => {
                let broadcast = &self.folder.broadcast;
                warn!(broadcast, %error, "uploaded segments stay on the disk");
            }
        }
    }
}

impl State {
    /// Returns whether media are to be uploaded that are in the folder.
    fn is_wanted(&self, name: MediaName) -> bool {
        !self.uploaded.has(name) && !self.left_out.contains(&name)
    }
}

impl Uploaded {
    fn has(&self, name: MediaName) -> bool {
        match name {
            MediaName::Init(number) => self.inits.contains(&number),
            MediaName::Segment(msn) => self.segments.contains(&msn),
            MediaName::Part(..) => false,
        }
    }

    fn add(&mut self, name: MediaName) {
        match name {
            MediaName::Init(number) => {
                self.inits.insert(number);
            }
            MediaName::Segment(msn) => {
                self.segments.insert(msn);
            }
            MediaName::Part(..) => {}
        }
    }
}

/// Result of a look at an index.
struct Scanned {
    uploaded: Uploaded,
    /// Entries whose files can be uploaded, [`QUEUE`] at most.
    missing: VecDeque<Entry>,
    has_more: bool,
}

/// Finds the entries of an index whose files can be uploaded; those that cannot be read are among them, to be tried. Blocks.
fn scan(
    folder: &RecordedFolder,
    index: &[u8],
    uploaded: Uploaded,
    left_out: &HashSet<MediaName>,
    is_ended: bool,
) -> Scanned {
    let (mut inits, mut segments) = (BTreeMap::new(), BTreeMap::new());
    for entry in record::decode(index) {
        match name_of(&entry) {
            Some(MediaName::Init(number)) => drop(inits.insert(number, entry)),
            Some(MediaName::Segment(msn)) => drop(segments.insert(msn, entry)),
            _ => {}
        }
    }
    let mut scanned = Scanned {
        uploaded,
        missing: VecDeque::new(),
        has_more: false,
    };
    for entry in inits.into_values().chain(segments.into_values()) {
        let is_missing =
            |name: &MediaName| !scanned.uploaded.has(*name) && !left_out.contains(name);
        let Some(name) = name_of(&entry).filter(is_missing) else {
            continue;
        };
        if let Ok(None) = len_of(&folder.file(name), &entry, is_ended) {
            continue;
        }
        if scanned.missing.len() == QUEUE {
            scanned.has_more = true;
            break;
        }
        scanned.missing.push_back(entry);
    }
    scanned
}

/// Returns the outcome for a file that the disk cannot read; an error when it is the machine that cannot at present.
fn unread(name: MediaName, entry: Entry, error: io::Error) -> Result<Upload, StoreError> {
    match passes(&error) {
        true => Err(unreadable(&error)),
        false => Ok(Upload::Unread(Unread { name, entry, error })),
    }
}

fn unreadable(error: &io::Error) -> StoreError {
    StoreError::Internal(format!("a recorded file cannot be read: {error}"))
}

/// Returns how many bytes of the file of an entry are uploaded: all of a closed segment, and what there is of any when nothing
/// more comes. `None` without a file, and for one that is not whole yet. Blocks.
fn len_of(path: &Path, entry: &Entry, is_ended: bool) -> io::Result<Option<u64>> {
    let found = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?.len(),
    };
    let len = match entry {
        Entry::Segment(segment) if segment.is_closed() && found >= segment.len => Some(segment.len),
        Entry::Segment(_) => is_ended.then_some(found),
        _ => Some(found),
    };
    Ok(len.filter(|len| *len > 0))
}

/// Returns the name of the file of an entry, if it has one.
fn name_of(entry: &Entry) -> Option<MediaName> {
    match entry {
        Entry::Init { number, .. } => Some(MediaName::Init(*number)),
        Entry::Segment(segment) => Some(MediaName::Segment(segment.msn)),
        Entry::Begun { .. } | Entry::Stopped { .. } | Entry::Ended => None,
    }
}

fn reason_of(error: &StoreError) -> &'static str {
    match error {
        StoreError::Objects(_) => {
            "the object store cannot be used: recorded segments wait on the disk"
        }
        StoreError::Full => "the object store is full: recorded segments wait on the disk",
        StoreError::Busy(_) | StoreError::Failing(_) | StoreError::Unknown => {
            "the database cannot be used: recorded segments wait on the disk"
        }
        _ => "recorded segments cannot be uploaded: they wait on the disk",
    }
}

#[cfg(test)]
mod tests;
