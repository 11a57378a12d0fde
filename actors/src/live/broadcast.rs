//! Broadcast of a live input: packager, window and disk (`live.persist_wait`), segments in memory, journal; no actor or task
//! of its own.
//!
//! ```text
//! units ─▶ Packager ─▶ outputs ─▶ disk job ─┬─ persisted, or overdue ─▶ segment_store ─▶ a new View to publish
//!                          └─▶ window ──────┘
//! ```
//!
//! A part is published once it is written (so that a listed part survives `kill -9`), or when the disk fails or does
//! not answer within `live.persist_wait`: then the window continues from memory, and the folder is rebuilt once that is
//! possible.

use std::{collections::VecDeque, path::Path, sync::Arc};

use bytes::Bytes;
use sluice_media::{
    hls::{
        Header, Output, Packager, PackagerSettings, Window, WindowLimits,
        journal::{self, Record},
        record::SegmentEntry,
    },
    unit::Unit,
};

use super::{
    LiveSettings, View,
    disk::{Disk, Job, Rebuild},
    recording_writer::{RecordingWriter, WriterJob},
    segment_store::SegmentStore,
};

/// Journal lines after which it is rewritten with the window alone.
const COMPACT_AFTER: u32 = 8192;
/// Whole segments that are served from memory beside the open one; older ones are in the page cache, behind their files.
const SEGMENTS_IN_MEMORY: u64 = 2;
/// Target durations for which a segment can be fetched after it left the list, beside the length of the list.
const FETCHED_FOR_TARGETS: i64 = 3;
/// Pause between two attempts to bring a failed disk up to date.
const REBUILD_EVERY_MS: i64 = 2_000;

/// See the module documentation.
#[derive(Debug)]
pub(super) struct Broadcast {
    settings: LiveSettings,
    window: Window,
    packager: Packager,
    segment_store: Arc<SegmentStore>,
    outputs: Vec<Output>,
    pending: VecDeque<PendingParts>,
    /// Segments that left the list, with the time (Unix milliseconds) until which they may be fetched.
    retired: VecDeque<(i64, u64)>,
    /// Closed segments whose files the folder still has, for a recording that has to catch up.
    recent: VecDeque<SegmentEntry>,
    journal_lines: u32,
    rebuilt_ms: i64,
    last_media_ms: Option<i64>,
}

/// Parts that wait for the disk before viewers may see them.
#[derive(Debug)]
struct PendingParts {
    job: u64,
    since_ms: i64,
    outputs: Vec<Output>,
    window: Window,
}

impl Broadcast {
    /// Begins a broadcast in a new folder below `folder`, recorded to `recording_writer` if there is one.
    pub fn begin(
        settings: &LiveSettings,
        header: Header,
        folder: &Path,
        recording_writer: Option<RecordingWriter>,
    ) -> std::io::Result<Self> {
        let (folder, now_ms) = (folder.join(&header.broadcast), header.started_ms);
        let disk = Disk::start(folder.clone())?;
        let segment_store = SegmentStore::new(folder, disk);
        if let Some(recording_writer) = recording_writer {
            segment_store.set_recording_writer(recording_writer);
        }
        let mut broadcast =
            Self::over(settings, Window::new(header), Arc::new(segment_store), None);
        broadcast.rebuild(now_ms);
        Ok(broadcast)
    }

    /// Continues a published broadcast after a crash of the actor or of the process.
    pub fn resume(settings: &LiveSettings, view: &View, now_ms: i64) -> Self {
        let (mut window, segment_store) = (view.window.clone(), view.segment_store.clone());
        if let Some(msn) = window.close_open() {
            segment_store.close_segment(msn);
        }
        let from = Some(window.continuation());
        let last = window.segments().next_back();
        let last_media_ms =
            last.map(|segment| segment.program_date_time_ms + i64::from(segment.duration_90k) / 90);
        let mut broadcast = Self::over(settings, window, segment_store, from);
        broadcast.last_media_ms = last_media_ms;
        if let Some(recording_writer) = broadcast.segment_store.recording_writer() {
            let segments = broadcast.window.segments();
            broadcast.recent = segments.map(SegmentEntry::from).collect();
            broadcast
                .window
                .segments()
                .for_each(|it| recording_writer.list(it));
        }
        broadcast.rebuild(now_ms);
        broadcast
    }

    /// Returns the view of a broadcast that has not changed.
    pub fn view(&self) -> View {
        View::new(self.window.clone(), self.segment_store.clone())
    }

    fn over(
        settings: &LiveSettings,
        window: Window,
        segment_store: Arc<SegmentStore>,
        from: Option<sluice_media::hls::Continuation>,
    ) -> Self {
        let packager_settings = PackagerSettings {
            part_target: settings.part_target,
            segment_min: settings.segment_min,
            target_duration_s: window.header().target_duration_s,
            track_wait: settings.track_wait,
        };
        Self {
            settings: settings.clone(),
            packager: Packager::new(packager_settings, from),
            window,
            segment_store,
            outputs: Vec::new(),
            pending: VecDeque::new(),
            retired: VecDeque::new(),
            recent: VecDeque::new(),
            journal_lines: 0,
            rebuilt_ms: 0,
            last_media_ms: None,
        }
    }

    pub fn header(&self) -> &Header {
        self.window.header()
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    pub fn disk(&self) -> &Disk {
        self.segment_store.disk()
    }

    /// Returns the number of units left out before a key frame or configuration had come.
    pub fn dropped_units(&self) -> u64 {
        self.packager.dropped()
    }

    /// Returns the time of arrival of the newest media, in Unix milliseconds.
    pub fn last_media_ms(&self) -> Option<i64> {
        self.last_media_ms
    }

    /// Returns the target duration that suits the next broadcast of this input.
    pub fn next_target_duration_s(&self) -> Option<u32> {
        self.packager.next_target_duration_s()
    }

    pub fn begin_session(&mut self, now_ms: i64) {
        self.packager.begin_session(&mut self.outputs);
        self.note(&Record::SessionBegin { at_ms: now_ms });
    }

    pub fn push(&mut self, unit: Unit, now_ms: i64) {
        if matches!(unit, Unit::Video(_) | Unit::Audio(_)) {
            self.last_media_ms = Some(now_ms);
        }
        self.packager.push(unit, now_ms, &mut self.outputs);
    }

    pub fn end_session(&mut self) {
        self.packager.end_session(&mut self.outputs);
    }

    /// Notes that the publisher is gone and the window open.
    pub fn note_session_end(&mut self, now_ms: i64) {
        self.note(&Record::SessionEnd { at_ms: now_ms });
    }

    /// Closes the playlist; media that had arrived are published with it.
    pub fn end(&mut self, ended_ms: i64, now_ms: i64) {
        self.settle(now_ms);
        self.window.end(ended_ms);
        let job = self.note(&Record::Ended { at_ms: ended_ms });
        self.pending.push_back(PendingParts {
            job,
            since_ms: now_ms,
            outputs: Vec::new(),
            window: self.window.clone(),
        });
        if let Some(recording_writer) = self.segment_store.recording_writer() {
            self.disk().submit(Job::Recording(
                recording_writer.clone(),
                WriterJob::End(ended_ms),
            ));
        }
    }

    /// Checks what is due: track wait, failed disk, expired segments.
    pub fn tick(&mut self, now_ms: i64) {
        self.packager.tick(now_ms, &mut self.outputs);
        self.forget_expired(now_ms);
        if !self.disk().is_healthy()
            && now_ms - self.rebuilt_ms >= REBUILD_EVERY_MS
            && self.pending.is_empty()
        {
            self.rebuild(now_ms);
        } else if self.journal_lines >= COMPACT_AFTER && self.pending.is_empty() {
            self.compact();
        }
    }

    /// Takes the packager's outputs into the window, to the disk, and into the queue of parts to be published.
    pub fn settle(&mut self, now_ms: i64) {
        if self.outputs.is_empty() {
            return;
        }
        let outputs = std::mem::take(&mut self.outputs);
        let mut job = 0;
        for output in &outputs {
            self.window.apply(output);
            job = self.disk().submit(job_of(output, now_ms));
            self.journal_lines += 1;
            self.record(output);
            if let Output::SegmentEnd { .. } = output {
                self.retire(now_ms);
            }
        }
        self.pending.push_back(PendingParts {
            job,
            since_ms: now_ms,
            outputs,
            window: self.window.clone(),
        });
    }

    /// Returns the view for viewers, if it is newer than the last one.
    pub fn advance(&mut self, now_ms: i64) -> Option<View> {
        let overdue_ms = now_ms - self.settings.persist_wait.as_millis() as i64;
        if self.disk().is_healthy()
            && self
                .pending
                .front()
                .is_some_and(|it| it.since_ms < overdue_ms && it.job > self.disk().persisted())
        {
            self.disk().give_up_waiting();
        }
        // Read once: parts that the disk writes meanwhile come with the next call.
        let (persisted, healthy) = (self.disk().persisted(), self.disk().is_healthy());
        let mut newest = None;
        while self
            .pending
            .front()
            .is_some_and(|pending| !healthy || pending.job <= persisted)
        {
            let pending = self.pending.pop_front().expect("looked at above");
            for output in pending.outputs {
                if let (Output::SegmentEnd { msn }, Some(recording_writer)) =
                    (&output, self.segment_store.recording_writer())
                    && let Some(segment) = pending.window.segment(*msn)
                {
                    recording_writer.list(segment);
                }
                self.put(output);
            }
            newest = Some(pending.window);
        }
        // Bytes leave memory only when everything is on a healthy disk, from which viewers are served then.
        if let Some(window) = newest
            .as_ref()
            .filter(|_| healthy && self.pending.is_empty())
        {
            self.segment_store
                .drop_memory_before(window.next().0.saturating_sub(SEGMENTS_IN_MEMORY));
        }
        newest.map(|window| View::new(window, self.segment_store.clone()))
    }

    /// Brings the folder up to date as far as it can be; returns the job after which it is.
    pub fn flush(&mut self, now_ms: i64) -> u64 {
        if self.disk().is_healthy() {
            return self.disk().submit(Job::Line(Vec::new()));
        }
        let _ = self.advance(now_ms);
        self.rebuild(now_ms)
    }

    /// Deletes the folder; no one may fetch anything of it any more.
    pub fn discard(&self) {
        self.disk().submit(Job::Discard);
    }

    fn put(&self, output: Output) {
        match output {
            Output::Init(init) => self.segment_store.put_init(init.number, init.data),
            Output::Part(part) => self.segment_store.put_part(part.msn, part.data),
            Output::SegmentEnd { msn } => self.segment_store.close_segment(msn),
        }
    }

    /// Notes in the store that the broadcast is recorded, if it is.
    pub fn announce_recording(&self) {
        if let Some(recording_writer) = self.segment_store.recording_writer() {
            recording_writer.announce();
        }
    }

    /// Returns the writer of its recording.
    pub fn recording_writer(&self) -> Option<&RecordingWriter> {
        self.segment_store.recording_writer().map(Arc::as_ref)
    }

    /// Has the disk thread record the output that it was just given to write.
    fn record(&mut self, output: &Output) {
        let Some(recording_writer) = self.segment_store.recording_writer() else {
            return;
        };
        let entry = |msn: u64| self.window.segment(msn).map(SegmentEntry::from);
        let job = match output {
            Output::Init(init) => {
                recording_writer.note_init(init);
                Some(WriterJob::Init(init.number))
            }
            Output::Part(part) if part.index == 0 => entry(part.msn).map(WriterJob::Segment),
            Output::Part(_) => None,
            Output::SegmentEnd { msn } => {
                let closed = entry(*msn);
                self.recent.extend(closed);
                closed.map(WriterJob::Segment)
            }
        };
        if let Some(job) = job {
            let recording_writer = recording_writer.clone();
            self.disk().submit(Job::Recording(recording_writer, job));
        }
    }

    /// Records the segments that are not recorded yet, after the folder was rebuilt.
    fn catch_up_recording(&self) {
        let Some(recording_writer) = self
            .segment_store
            .recording_writer()
            .filter(|_| !self.window.is_ended())
        else {
            return;
        };
        let open = self.window.segments().filter(|segment| !segment.closed);
        let segments = self.recent.iter().copied();
        let segments = segments.chain(open.map(SegmentEntry::from)).collect();
        self.disk().submit(Job::Recording(
            recording_writer.clone(),
            WriterJob::CatchUp(segments),
        ));
    }

    fn note(&mut self, record: &Record) -> u64 {
        self.journal_lines += 1;
        self.disk().submit(Job::Line(line(record)))
    }

    fn retire(&mut self, now_ms: i64) {
        let list_for = self.header().list_for(self.settings.window);
        let limits = WindowLimits {
            list_for,
            min_segments: self.settings.window_min_segments,
        };
        for segment in self.window.retire(limits) {
            let target_ms = i64::from(self.header().target_duration_s) * 1000;
            let until_ms = now_ms + FETCHED_FOR_TARGETS * target_ms + list_for.as_millis() as i64;
            self.retired.push_back((until_ms, segment.msn));
        }
    }

    fn forget_expired(&mut self, now_ms: i64) {
        let mut gone = Vec::new();
        while self
            .retired
            .front()
            .is_some_and(|(until_ms, _)| *until_ms <= now_ms)
        {
            let (_, msn) = self.retired.pop_front().expect("looked at above");
            self.segment_store.remove(msn);
            gone.push(msn);
        }
        if let Some(last) = gone.last() {
            self.recent.retain(|segment| segment.msn > *last);
        }
        if !gone.is_empty() {
            self.disk().submit(Job::Remove(gone));
        }
    }

    /// Writes every file that memory still holds, and a fresh journal.
    fn rebuild(&mut self, now_ms: i64) -> u64 {
        self.rebuilt_ms = now_ms;
        let job = self.submit_rebuild(self.segment_store.inits(), self.segment_store.in_memory());
        self.catch_up_recording();
        job
    }

    fn compact(&mut self) {
        self.submit_rebuild(Vec::new(), Vec::new());
    }

    fn submit_rebuild(
        &mut self,
        inits: Vec<(u32, Bytes)>,
        segments: Vec<(u64, Vec<Bytes>)>,
    ) -> u64 {
        self.journal_lines = 0;
        let journal = journal::compact(&self.window);
        self.disk().submit(Job::Rebuild(Rebuild {
            inits,
            segments,
            journal,
        }))
    }
}

fn job_of(output: &Output, now_ms: i64) -> Job {
    let line = line(&Record::of(output, now_ms));
    match output {
        Output::Init(init) => Job::Init {
            number: init.number,
            bytes: init.data.clone(),
            line,
        },
        Output::Part(part) => Job::Part {
            msn: part.msn,
            is_first: part.index == 0,
            bytes: part.data.clone(),
            line,
        },
        Output::SegmentEnd { .. } => Job::Line(line),
    }
}

fn line(record: &Record) -> Vec<u8> {
    let mut line = Vec::with_capacity(160);
    journal::encode(record, &mut line);
    line
}
