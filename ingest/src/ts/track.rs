//! Video and audio track of an MPEG-TS program: packets to PES packets, PES packets to units, gaps.

use sluice_media::{codec::VideoCodec, unit::Unit};

use super::{
    Corruption, Findings, Packet, Pid,
    audio::AudioTrack,
    clock::{PtsUnwrapper, distance_90k},
    continuity::{Continuity, Step},
    pes::{Assembler, Pes},
    tables::{AudioFormat, ProgramMap},
    video::{FrameTime, VideoTrack},
};

/// The tracks that are followed, on one clock.
#[derive(Debug)]
pub(super) struct Tracks {
    limit_bytes: usize,
    clock: PtsUnwrapper,
    video: Option<Track<VideoTrack>>,
    audio: Option<Track<AudioTrack>>,
    /// Streams that are not carried, to be named when they send.
    left_out: Vec<(Pid, Corruption)>,
}

/// PID that carries PES packets.
#[derive(Debug)]
struct Track<S> {
    pid: Pid,
    what: &'static str,
    continuity: Continuity,
    assembler: Assembler,
    stream: S,
}

/// Consumer of the PES packets of a track.
trait Stream {
    fn pes(
        &mut self,
        pes: &Pes<'_>,
        clock: &mut PtsUnwrapper,
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    );

    /// Called when a PES packet was lost or unusable.
    fn lost(&mut self);
}

impl Tracks {
    pub(super) fn new(limit_bytes: usize) -> Self {
        Self {
            limit_bytes,
            clock: PtsUnwrapper::default(),
            video: None,
            audio: None,
            left_out: Vec::new(),
        }
    }

    /// Follows the program's streams from now on. A track that is unchanged continues; one that ends or changes
    /// returns what it holds.
    pub(super) fn follow(
        &mut self,
        map: &ProgramMap,
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    ) {
        let video = self.video.as_ref().map(|t| (t.pid, t.stream.codec()));
        if video != map.video {
            self.finish_video(findings, units);
            self.video = map.video.map(|(pid, codec)| self.video_track(pid, codec));
        }
        let audio = self.audio.as_ref().map(|t| (t.pid, t.stream.format()));
        if audio != map.audio {
            self.finish_audio(findings, units);
            self.audio = map.audio.map(|(pid, format)| self.audio_track(pid, format));
        }
        self.left_out.clone_from(&map.left_out);
    }

    pub(super) fn push(
        &mut self,
        packet: &Packet<'_>,
        payload: &[u8],
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    ) {
        let Self { video, audio, .. } = self;
        if let Some(track) = video.as_mut().filter(|track| track.pid == packet.pid) {
            return track.push(packet, payload, &mut self.clock, findings, units);
        }
        if let Some(track) = audio.as_mut().filter(|track| track.pid == packet.pid) {
            return track.push(packet, payload, &mut self.clock, findings, units);
        }
        let named = self.left_out.iter().find(|(pid, _)| *pid == packet.pid);
        if let Some((_, corruption)) = named.filter(|_| packet.starts_unit) {
            findings.damaged(corruption.clone());
        }
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self, findings: &mut Findings, units: &mut Vec<Unit>) {
        self.finish_video(findings, units);
        self.finish_audio(findings, units);
    }

    /// Handles packets that were discarded on this side.
    pub(super) fn skipped(&mut self, findings: &mut Findings) {
        if let Some(track) = &mut self.video {
            track.continuity.forget();
            track.abandon(false, findings);
        }
        if let Some(track) = &mut self.audio {
            track.continuity.forget();
            track.abandon(false, findings);
        }
    }

    fn finish_video(&mut self, findings: &mut Findings, units: &mut Vec<Unit>) {
        if let Some(track) = &mut self.video {
            track.finish(&mut self.clock, findings, units);
        }
    }

    fn finish_audio(&mut self, findings: &mut Findings, units: &mut Vec<Unit>) {
        if let Some(track) = &mut self.audio {
            track.finish(&mut self.clock, findings, units);
        }
    }

    /// Makes a video track; one that moved to another PID keeps its configuration.
    fn video_track(&mut self, pid: Pid, codec: VideoCodec) -> Track<VideoTrack> {
        let before = self.video.take().map(|track| track.stream);
        let stream = before
            .filter(|stream| stream.codec() == codec)
            .unwrap_or_else(|| VideoTrack::new(codec));
        Track::new(pid, "video frame", self.limit_bytes, stream)
    }

    fn audio_track(&mut self, pid: Pid, format: AudioFormat) -> Track<AudioTrack> {
        let before = self.audio.take().map(|track| track.stream);
        let mut stream = before
            .filter(|stream| stream.format() == format)
            .unwrap_or_else(|| AudioTrack::new(format));
        stream.lost();
        Track::new(pid, "audio frame", self.limit_bytes, stream)
    }
}

impl<S: Stream> Track<S> {
    fn new(pid: Pid, what: &'static str, limit_bytes: usize, stream: S) -> Self {
        Self {
            pid,
            what,
            continuity: Continuity::default(),
            assembler: Assembler::new(what, limit_bytes),
            stream,
        }
    }

    fn push(
        &mut self,
        packet: &Packet<'_>,
        payload: &[u8],
        clock: &mut PtsUnwrapper,
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    ) {
        match self.continuity.step(packet, payload) {
            Step::Next => {}
            Step::Duplicate => return,
            Step::Gap => {
                findings.counters.continuity_errors += 1;
                // Where the gap ends inside a unit, that unit's start was lost too.
                self.abandon(!packet.starts_unit, findings);
            }
        }
        if packet.scrambled {
            self.abandon(false, findings);
            if packet.starts_unit {
                findings.damaged(Corruption::Scrambled);
            }
            return;
        }
        let Self {
            assembler, stream, ..
        } = self;
        let mut take = |pes: Result<Pes<'_>, Corruption>| match pes {
            Ok(pes) => stream.pes(&pes, clock, findings, units),
            Err(corruption) => {
                stream.lost();
                findings.damaged(corruption);
            }
        };
        if packet.starts_unit {
            assembler.start(packet.random_access, &mut take);
        }
        assembler.push(payload, &mut take);
    }

    fn finish(&mut self, clock: &mut PtsUnwrapper, findings: &mut Findings, units: &mut Vec<Unit>) {
        let Self {
            assembler, stream, ..
        } = self;
        assembler.finish(&mut |pes| match pes {
            Ok(pes) => stream.pes(&pes, clock, findings, units),
            Err(corruption) => findings.damaged(corruption),
        });
    }

    /// Discards what is in progress. `lost_start` where nothing may be, because its start was lost too.
    fn abandon(&mut self, lost_start: bool, findings: &mut Findings) {
        let was_collecting = self.assembler.abandon();
        self.stream.lost();
        if was_collecting || lost_start {
            findings.damaged(Corruption::Lost { what: self.what });
        }
    }
}

impl Stream for VideoTrack {
    fn pes(
        &mut self,
        pes: &Pes<'_>,
        clock: &mut PtsUnwrapper,
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    ) {
        let Some(pts) = pes.pts else {
            return findings.damaged(Corruption::Invalid {
                what: "video frame",
                reason: "it has no timestamp",
            });
        };
        let dts = pes.dts.unwrap_or(pts);
        let time = FrameTime {
            dts_90k: clock.unwrap_90k(dts),
            cts_90k: distance_90k(dts, pts),
            random_access: pes.random_access,
        };
        if let Err(corruption) = self.push(time, pes.payload, units) {
            findings.damaged(corruption);
        }
    }

    fn lost(&mut self) {}
}

impl Stream for AudioTrack {
    fn pes(
        &mut self,
        pes: &Pes<'_>,
        clock: &mut PtsUnwrapper,
        findings: &mut Findings,
        units: &mut Vec<Unit>,
    ) {
        let pts_90k = pes.pts.map(|pts| clock.unwrap_90k(pts));
        self.push(pts_90k, pes.payload, units, &mut |corruption| {
            findings.damaged(corruption);
        });
    }

    fn lost(&mut self) {
        self.abandon();
    }
}
