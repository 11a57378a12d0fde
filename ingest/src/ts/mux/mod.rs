//! MPEG-TS muxer of SRT outputs (ISO/IEC 13818-1): H.264, HEVC, AAC, MP3 and Opus; PIDs; formats that cannot be sent.
//!
//! Pure: takes configurations and units, returns whole transport packets, in the order in which they are to be sent.
//! One unit is one PES packet, and nothing is held back, so that the multiplexer adds no delay of its own. Every key
//! frame is preceded by what a receiver needs to begin: tables, clock, parameter sets.
//!
//! The times of the units are carried over, later by the lead of the clock over decoding, and wrapped at 33 bits.

mod audio;
mod pace;
mod packets;
mod pes;
mod tables;
mod video;

use std::fmt;

use bytes::BytesMut;
use sluice_media::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};

use self::{
    audio::Frames,
    pace::{LEAD_90K, Pace, Tick},
    packets::{Adaptation, PidWriter},
    pes::{StreamId, Times},
    tables::{Entry, Tables},
    video::VideoWriter,
};

/// The first PID of a track; a track that becomes another codec's takes the next one, so that no decoder is misled.
const FIRST_TRACK_PID: u16 = 0x100;
/// Exclusive end of the tracks' PIDs, which start over before it.
const END_OF_TRACK_PIDS: u16 = 0x200;
/// Capacity that is kept between two units; a larger one was a rare frame's.
const KEPT_CAPACITY: usize = 1024 * 1024;

/// Reason why a track cannot be carried, in words for the person who set the output up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    what: &'static str,
    choose: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, choose } = self;
        write!(f, "{what} cannot be sent in MPEG-TS: choose {choose}")
    }
}

impl std::error::Error for Unsupported {}

/// Makes one transport stream, of one program with at most one video and one audio track.
#[derive(Debug)]
pub struct Muxer {
    tables: Tables,
    pace: Pace,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    next_pid: u16,
    /// Buffer of the current PES packet.
    pes: Vec<u8>,
}

#[derive(Debug)]
struct VideoTrack {
    packets: PidWriter,
    video_frames: VideoWriter,
    /// A key frame was written since the configuration.
    has_begun: bool,
}

#[derive(Debug)]
struct AudioTrack {
    packets: PidWriter,
    frames: Frames,
}

impl Default for Muxer {
    fn default() -> Self {
        Self::new()
    }
}

impl Muxer {
    /// Begins a stream without tracks.
    pub fn new() -> Self {
        Self {
            tables: Tables::default(),
            pace: Pace::default(),
            video: None,
            audio: None,
            next_pid: FIRST_TRACK_PID,
            pes: Vec::new(),
        }
    }

    /// Sets the tracks of the stream from now on; a track that is left out ends. Where one of them cannot be carried,
    /// nothing changes. A configuration that comes later as a unit does the same for its track alone.
    pub fn configure(
        &mut self,
        video: Option<&VideoConfig>,
        audio: Option<&AudioConfig>,
    ) -> Result<(), Unsupported> {
        let video_frames = video.map(VideoWriter::new).transpose()?;
        let frames = audio.map(Frames::new).transpose()?;
        match video_frames {
            Some(video_frames) => self.follow_video(video_frames),
            None => self.video = None,
        }
        match frames {
            Some(frames) => self.follow_audio(frames),
            None => self.audio = None,
        }
        self.announce();
        Ok(())
    }

    /// Appends a unit's packets; those of a track without configuration are left out, and so are frames before the
    /// first key frame, and units that break their format. Fails only for a configuration, which then changes nothing.
    pub fn push(&mut self, unit: &Unit, out: &mut BytesMut) -> Result<(), Unsupported> {
        match unit {
            Unit::VideoConfig(config) => {
                self.follow_video(VideoWriter::new(config)?);
                self.announce();
            }
            Unit::AudioConfig(config) => {
                self.follow_audio(Frames::new(config)?);
                self.announce();
            }
            Unit::Video(video_frame) => self.video_frame(video_frame, out),
            Unit::Audio(frame) => self.audio_frame(frame, out),
        }
        Ok(())
    }

    fn follow_video(&mut self, video_frames: VideoWriter) {
        let before = self.video.take();
        let packets = match before {
            Some(track) if track.video_frames.codec() == video_frames.codec() => track.packets,
            _ => self.new_pid(),
        };
        self.video = Some(VideoTrack {
            packets,
            video_frames,
            has_begun: false,
        });
    }

    fn follow_audio(&mut self, frames: Frames) {
        let before = self.audio.take();
        let packets = match before {
            Some(track) if track.frames.codec() == frames.codec() => track.packets,
            _ => self.new_pid(),
        };
        self.audio = Some(AudioTrack { packets, frames });
    }

    fn new_pid(&mut self) -> PidWriter {
        let pid = self.next_pid;
        self.next_pid = match pid + 1 {
            END_OF_TRACK_PIDS => FIRST_TRACK_PID,
            next => next,
        };
        PidWriter::new(pid)
    }

    /// Updates the tables to the tracks. The first track carries the clock.
    fn announce(&mut self) {
        let video = self
            .video
            .iter()
            .map(|track| Entry::video(track.packets.pid(), track.video_frames.codec()));
        let audio = self
            .audio
            .iter()
            .map(|track| Entry::audio(track.packets.pid(), &track.frames));
        let entries = video.chain(audio).collect();
        if self.tables.set(entries) {
            self.pace.tables_changed();
        }
    }

    fn video_frame(&mut self, video_frame: &VideoUnit, out: &mut BytesMut) {
        let Some(track) = &mut self.video else {
            return;
        };
        if !video_frame.key && !track.has_begun {
            return;
        }
        let times = Times {
            pts_90k: video_frame.dts_90k + i64::from(video_frame.cts_90k) + LEAD_90K,
            dts_90k: video_frame.dts_90k + LEAD_90K,
        };
        self.pes.clear();
        pes::begin(StreamId::Video, times, &mut self.pes);
        if track
            .video_frames
            .write(video_frame, &mut self.pes)
            .is_none()
        {
            return;
        }
        if pes::end(StreamId::Video, &mut self.pes).is_none() {
            return;
        }
        track.has_begun |= video_frame.key;

        if self.pace.tables_due(video_frame.dts_90k, video_frame.key) {
            self.tables.write(out);
        }
        let tick = self.pace.video_frame(video_frame.dts_90k);
        let adaptation = Adaptation {
            random_access: video_frame.key,
            ..Adaptation::from(tick)
        };
        track.packets.unit(adaptation, &self.pes, out);
        self.pes.shrink_to(KEPT_CAPACITY);
    }

    fn audio_frame(&mut self, frame: &AudioUnit, out: &mut BytesMut) {
        let Some(track) = &mut self.audio else {
            return;
        };
        let pts_90k = frame.pts_90k + LEAD_90K;
        let times = Times {
            pts_90k,
            dts_90k: pts_90k,
        };
        let stream_id = track.frames.stream_id();
        self.pes.clear();
        pes::begin(stream_id, times, &mut self.pes);
        if track.frames.write(&frame.data, &mut self.pes).is_none() {
            return;
        }
        if pes::end(stream_id, &mut self.pes).is_none() {
            return;
        }

        if self.pace.tables_due(frame.pts_90k, false) {
            self.tables.write(out);
        }
        let adaptation = match &mut self.video {
            None => Adaptation {
                random_access: true,
                ..Adaptation::from(self.pace.frame_alone(frame.pts_90k))
            },
            Some(video) => {
                if let Some(tick) = self.pace.frame_beside_video_frames(frame.pts_90k) {
                    video.packets.clock(Adaptation::from(tick), out);
                }
                Adaptation::default()
            }
        };
        track.packets.unit(adaptation, &self.pes, out);
    }
}

impl From<Tick> for Adaptation {
    fn from(tick: Tick) -> Self {
        Self {
            clock_90k: Some(tick.clock_90k),
            discontinuity: tick.discontinuity,
            random_access: false,
        }
    }
}

#[cfg(test)]
mod tests;
