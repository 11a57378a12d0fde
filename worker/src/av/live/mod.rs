//! Re-encoding of a live stream while the service wants it: one decoder for each track, encoders that are started by need.
//!
//! ```text
//! socket ─► Session ┬► VideoDecoder ─ frames ─► VideoEncoder … ─┬► Outlet ─► socket
//!                   └► AudioChain (decoder and Opus) ───────────┘
//! ```
//!
//! Decoders and encoders are pipelines of their own, so that a decoder is replaced, for another configuration or after an error,
//! without its encoders. Every queue is bounded: before a decoder, frames are dropped up to the next key frame; behind it,
//! single frames.

mod audio;
mod intake;
mod outlet;
mod size;
mod times;
mod video;
mod video_decoder;
mod video_encoder;

use std::{
    io::{ErrorKind, Read as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::BytesMut;
use sluice_media::{
    av::live::{FromLive, LiveProgress, LiveTrack, ToLive},
    task::{Done, Failure},
};

use self::{audio::Audio, outlet::Outlet, video::Video};
use super::internal;

/// Bytes read at a time.
const READ_BYTES: usize = 256 << 10;
/// Longest time between two looks at the pipelines, and shortest between two reports.
const TICK: Duration = Duration::from_millis(100);

/// Serves the socket until the service closes it.
pub fn perform(inputs: Vec<OwnedFd>) -> Result<Done, Failure> {
    let [socket] = <[OwnedFd; 1]>::try_from(inputs)
        .map_err(|inputs| internal(format!("{} inputs for a live stream", inputs.len())))?;
    let unusable = |error| internal(format!("the socket cannot be used: {error}"));
    let mut socket = UnixStream::from(socket);
    socket.set_nonblocking(false).map_err(unusable)?;
    socket.set_read_timeout(Some(TICK)).map_err(unusable)?;
    let outlet = Arc::new(Outlet::new(socket.try_clone().map_err(unusable)?));
    let mut session = Session::new(outlet);
    let (mut chunk, mut input) = (vec![0; READ_BYTES], BytesMut::new());
    loop {
        match socket.read(&mut chunk) {
            Ok(0) => return Ok(Done::default()),
            Ok(length) => input.extend_from_slice(&chunk[..length]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                ErrorKind::ConnectionReset => return Ok(Done::default()),
                _ => return Err(unusable(error)),
            },
        }
        while let Some(message) =
            ToLive::decode(&mut input).map_err(|error| internal(error.to_string()))?
        {
            session.take(message);
        }
        session.look_after();
    }
}

struct Session {
    outlet: Arc<Outlet>,
    video: Video,
    audio: Audio,
    reported: LiveProgress,
    looked_at: Instant,
}

impl Session {
    fn new(outlet: Arc<Outlet>) -> Self {
        Self {
            video: Video::new(outlet.clone()),
            audio: Audio::new(outlet.clone()),
            outlet,
            reported: LiveProgress::default(),
            looked_at: Instant::now(),
        }
    }

    fn take(&mut self, message: ToLive) {
        let taken = match message {
            ToLive::StartVideo { encoder, work } => {
                self.video.start(encoder, work);
                Ok(())
            }
            ToLive::StartAudio { bitrate } => {
                self.audio.start(bitrate);
                Ok(())
            }
            ToLive::StopVideo(encoder) => {
                self.video.stop(encoder);
                Ok(())
            }
            ToLive::StopAudio => {
                self.audio.stop();
                Ok(())
            }
            ToLive::WantKeyFrame(encoder) => {
                self.video.want_key_frame(encoder);
                Ok(())
            }
            ToLive::VideoConfig { codec, record } => self
                .video
                .configure(codec, record)
                .map_err(|failure| (LiveTrack::Video, failure)),
            ToLive::AudioConfig { codec, record } => self
                .audio
                .configure(codec, record)
                .map_err(|failure| (LiveTrack::Audio, failure)),
            ToLive::Video {
                key,
                is_old,
                dts_90k,
                cts_90k,
                data,
            } => self
                .video
                .push(key, is_old, dts_90k, cts_90k, data)
                .map_err(|failure| (LiveTrack::Video, failure)),
            ToLive::Audio { pts_90k, data } => self
                .audio
                .push(pts_90k, data)
                .map_err(|failure| (LiveTrack::Audio, failure)),
        };
        if let Err((track, failure)) = taken {
            self.outlet.send(&FromLive::Undecodable {
                track,
                reason: failure.message,
            });
        }
    }

    /// Ends pipelines that have failed, and reports progress.
    fn look_after(&mut self) {
        if self.looked_at.elapsed() < TICK {
            return;
        }
        self.looked_at = Instant::now();
        self.video.look_after();
        self.audio.look_after();
        let progress = LiveProgress {
            audio_taken: self.audio.taken(),
            ..self.video.progress()
        };
        if progress != self.reported {
            self.reported = progress;
            self.outlet.send(&FromLive::Progress(progress));
        }
    }
}
