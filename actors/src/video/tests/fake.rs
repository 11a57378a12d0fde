//! Workers that make a ladder round by round: in each, every rendition gets a segment when the test lets it.

use std::{
    fs::File,
    io::Write as _,
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::SeqCst},
};

use parking_lot::Mutex;
use sluice_media::{
    av::{AudioTrack, AvTask, Ladder, MediaFacts, Report, VideoTrack},
    format::Format,
    hls::StreamInfo,
    task::{Done, Failure, FailureCode, OutputFacts, Task},
};
use tokio::sync::Semaphore;

use crate::{
    compute::{Assignment, Error, Finished, Follow, Output},
    fixtures::{Performer, Running},
};

/// The bytes of a poster, a storyboard and its map.
pub(super) const IMAGE: &[u8] = b"image";
pub(super) const INIT_BYTES: u64 = 10;
pub(super) const SEGMENT_BYTES: u64 = 100;
pub(super) const SEGMENT_S: u32 = 6;
const DURATION_90K: u32 = SEGMENT_S * 90_000;

/// See the module documentation.
pub(super) struct Fake {
    /// Facts that every probe finds.
    facts: Mutex<MediaFacts>,
    /// Each round takes a permit.
    pub(super) rounds: Semaphore,
    /// Segments that a source has.
    pub(super) segments: AtomicU32,
    pub(super) running: AtomicUsize,
    /// Rounds at which ladders end so, each once.
    failing: Mutex<Vec<(u32, FailureCode)>>,
    /// Frames cannot be taken.
    pub(super) is_blind: AtomicBool,
    /// Audio is announced, and there is none.
    pub(super) is_silent: AtomicBool,
    /// Anyone who waits for a ladder panics.
    pub(super) is_deadly: AtomicBool,
    /// Ladders that began, by the number of the segment at which they did.
    pub(super) began: Mutex<Vec<u32>>,
    pub(super) probes: AtomicUsize,
    pub(super) video_frames: AtomicUsize,
}

impl Fake {
    /// A clip with video and audio, of so many segments.
    pub(super) fn of(segments: u32) -> Self {
        let video_frame = VideoTrack {
            codec: "h264".into(),
            width: 320,
            height: 180,
            pixel_aspect: (1, 1),
            frame_rate: (25, 1),
            ..VideoTrack::default()
        };
        let audio = AudioTrack {
            codec: "aac".into(),
            channels: 2,
            sample_rate: 48_000,
            ..AudioTrack::default()
        };
        let facts = MediaFacts {
            format: Some(Format::Mp4),
            duration_ms: Some(u64::from(segments * SEGMENT_S) * 1_000),
            video: vec![video_frame],
            audio: vec![audio],
            ..MediaFacts::default()
        };
        Self {
            facts: Mutex::new(facts),
            rounds: Semaphore::new(0),
            segments: AtomicU32::new(segments),
            running: AtomicUsize::new(0),
            failing: Mutex::default(),
            is_blind: false.into(),
            is_silent: false.into(),
            is_deadly: false.into(),
            began: Mutex::default(),
            probes: AtomicUsize::new(0),
            video_frames: AtomicUsize::new(0),
        }
    }

    /// Audio alone from now on.
    pub(super) fn without_video_frames(&self) {
        self.facts.lock().video.clear();
    }

    /// The next ladder that comes to this round ends there.
    pub(super) fn fail(&self, round: u32, code: FailureCode) {
        self.failing.lock().push((round, code));
    }

    pub(super) fn play(&self, rounds: usize) {
        self.rounds.add_permits(rounds);
    }

    fn draw(&self, outputs: &[File]) -> Result<Finished, Error> {
        self.video_frames.fetch_add(1, SeqCst);
        if self.is_blind.load(SeqCst) {
            return Err(Failure::new(FailureCode::Undecodable, "no frame").into());
        }
        for mut output in outputs {
            output.write_all(IMAGE).unwrap();
        }
        Ok(done(MediaFacts::default(), Vec::new()))
    }

    async fn climb(
        &self,
        ladder: &Ladder,
        outputs: &[File],
        follow: &Follow,
    ) -> Result<Finished, Error> {
        let (outputs, storyboard) = outputs.split_at(ladder.renditions());
        let first = ladder.resume.map_or(0, |resume| resume.number);
        self.began.lock().push(first);
        assert!(!self.is_deadly.load(SeqCst), "a test asked for this panic");
        let last = self.segments.load(SeqCst);
        // Audio begins again, and catches up in the first round.
        let mut heard = 0;
        for round in first..last {
            self.rounds.acquire().await.unwrap().forget();
            self.end_here(round)?;
            for (rendition, output) in outputs.iter().enumerate() {
                let is_video_frame = rendition < ladder.video.len();
                if !is_video_frame && self.is_silent.load(SeqCst) {
                    continue;
                }
                let from = if is_video_frame { round } else { heard };
                for number in from..=round {
                    write(rendition, number, is_video_frame, output, follow).await;
                }
            }
            heard = round + 1;
            let share = (round + 1) as f32 / last as f32;
            follow.report_from_async(Report::Working { share }).await;
        }
        let drawn = storyboard.iter().filter(|_| !self.is_blind.load(SeqCst));
        let drawn = drawn.map(|file| file.write_all_at(IMAGE, 0).unwrap());
        let results = outputs.len() + drawn.count();
        let facts = vec![OutputFacts::of(None, 0); results];
        Ok(done(MediaFacts::default(), facts))
    }

    fn end_here(&self, round: u32) -> Result<(), Failure> {
        let mut failing = self.failing.lock();
        let at = failing.iter().position(|(at, _)| *at == round);
        match at.map(|at| failing.remove(at)) {
            Some((_, code)) => Err(Failure::new(code, "a test asked for this failure")),
            None => Ok(()),
        }
    }
}

fn done(media: MediaFacts, outputs: Vec<OutputFacts>) -> Finished {
    Finished {
        done: Done {
            media: Some(media),
            outputs,
            ..Done::default()
        },
        bytes: Vec::new(),
    }
}

/// The bytes of a segment, which say what it is.
pub(super) fn content(rendition: usize, number: u32) -> Vec<u8> {
    let mut bytes = format!("rendition {rendition}, segment {number}").into_bytes();
    bytes.resize(SEGMENT_BYTES as usize, b'.');
    bytes
}

/// Writes a segment where the file ends, with the init section before the first one.
async fn write(rendition: usize, number: u32, is_video_frame: bool, file: &File, follow: &Follow) {
    let rendition_number = u8::try_from(rendition).unwrap();
    if number == 0 {
        assert_eq!(
            file.metadata().unwrap().len(),
            0,
            "an init section is first"
        );
        file.write_all_at(&[b'i'; INIT_BYTES as usize], 0).unwrap();
        let init = Report::Init {
            rendition: rendition_number,
            length: INIT_BYTES,
            info: StreamInfo {
                codecs: "avc1.64001f".into(),
                resolution: None,
                frame_rate: Some(25.0),
                has_video: is_video_frame,
                has_audio: !is_video_frame,
            },
            copied: false,
        };
        follow.report_from_async(init).await;
    }
    let offset = file.metadata().unwrap().len();
    file.write_all_at(&content(rendition, number), offset)
        .unwrap();
    let segment = Report::Segment {
        rendition: rendition_number,
        number,
        offset,
        length: SEGMENT_BYTES,
        start_90k: i64::from(number) * i64::from(DURATION_90K),
        duration_90k: DURATION_90K,
        key_length: if is_video_frame { 40 } else { 0 },
    };
    follow.report_from_async(segment).await;
}

impl Performer for Fake {
    async fn perform(&self, assignment: Assignment) -> Result<Finished, Error> {
        let _running = Running::begin(&self.running);
        let Output::Files(outputs) = assignment.output else {
            panic!("streams write files");
        };
        let Task::Av(task) = assignment.task else {
            panic!("streams are made by work on clips");
        };
        match *task {
            AvTask::Probe => {
                self.probes.fetch_add(1, SeqCst);
                let facts = self.facts.lock().clone();
                Ok(done(facts, Vec::new()))
            }
            AvTask::Still(_) | AvTask::Sheet(_) => self.draw(&outputs),
            AvTask::Ladder(ladder) => self.climb(&ladder, &outputs, &assignment.follow).await,
            other => panic!("{other:?} is no work on a stream"),
        }
    }
}
