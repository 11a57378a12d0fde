//! The file that every publisher sends: made once by ffmpeg, read once, kept ready for the wire.
//!
//! Tags are cut into RTMP chunks here, so that a publisher only writes a 12-byte header and copies a body: a hundred
//! of them must leave the processor to the server they load.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use bytes::{BufMut, Bytes, BytesMut};

use super::{Failure, rtmp::CHUNK_SIZE};

/// Length of the file; the publishers repeat it.
const CLIP_SECONDS: u32 = 20;
const FRAMES_PER_SECOND: u32 = 30;
const AUDIO_BITRATE_BPS: u64 = 128_000;

/// FLV tag types, which are RTMP's message types too.
pub(crate) const AUDIO: u8 = 8;
pub(crate) const VIDEO: u8 = 9;
const SCRIPT: u8 = 18;

/// A message of the publish.
#[derive(Clone, Debug)]
pub(crate) struct Tag {
    pub(crate) kind: u8,
    /// Decode time since the start of the clip.
    pub(crate) time_ms: u32,
    /// Length of the message without chunk headers.
    pub(crate) length: usize,
    /// The message with the headers of its second and later chunks already between its pieces.
    pub(crate) chunked: Bytes,
}

/// A clip ready to be published again and again.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    /// The metadata and codec configurations, sent once.
    pub(crate) opening: Vec<Tag>,
    /// Frames and audio frames in order, the first of them a key frame.
    pub(crate) tags: Vec<Tag>,
    pub(crate) duration_ms: u32,
}

impl Clip {
    /// The clip of this total bitrate from `folder`, made there when it is missing.
    pub(crate) fn obtain(folder: &Path, bitrate_bps: u64) -> Result<Arc<Self>, Failure> {
        let path = flv(folder, bitrate_bps)?;
        Ok(Arc::new(Self::read(
            &std::fs::read(&path)?,
            CLIP_SECONDS * 1000,
        )?))
    }

    /// Reads the first `duration_ms` of FLV (Adobe Flash Video File Format 10.1, annex E).
    pub(crate) fn read(flv: &[u8], duration_ms: u32) -> Result<Self, Failure> {
        let mut clip = Self {
            opening: Vec::new(),
            tags: Vec::new(),
            duration_ms,
        };
        let mut rest = flv
            .strip_prefix(b"FLV\x01")
            .and_then(|rest| rest.get(9..))
            .ok_or("the clip is not FLV: delete it, then it is made again")?;
        while let Some((head, after)) = rest.split_at_checked(11) {
            let length = u32::from_be_bytes([0, head[1], head[2], head[3]]) as usize;
            let time_ms = u32::from_be_bytes([head[7], head[4], head[5], head[6]]);
            let Some(body) = after.get(..length) else {
                break;
            };
            clip.take(head[0], time_ms, body);
            rest = after.get(length + 4..).unwrap_or_default();
        }
        if clip.tags.is_empty() {
            return Err("the clip holds no media: delete it, then it is made again".into());
        }
        Ok(clip)
    }

    fn take(&mut self, kind: u8, time_ms: u32, body: &[u8]) {
        let configuration = matches!((kind, body), (AUDIO | VIDEO, [_, 0, ..]));
        // The end-of-sequence tag that ffmpeg closes with would end the stream at each turn.
        let end_of_sequence = matches!((kind, body), (VIDEO, [_, 2, ..]));
        if kind == SCRIPT {
            // AMF0 string "@setDataFrame": what makes a server keep the metadata (RTMP 1.0, NetStream send).
            let message = [b"\x02\x00\x0d@setDataFrame".as_slice(), body].concat();
            self.opening.push(Tag::new(kind, 0, &message));
        } else if configuration {
            self.opening.push(Tag::new(kind, 0, body));
        } else if !end_of_sequence && time_ms < self.duration_ms {
            self.tags.push(Tag::new(kind, time_ms, body));
        }
    }
}

impl Tag {
    fn new(kind: u8, time_ms: u32, body: &[u8]) -> Self {
        let mut chunked = BytesMut::with_capacity(body.len() + body.len() / CHUNK_SIZE + 1);
        for (index, piece) in body.chunks(CHUNK_SIZE).enumerate() {
            if index > 0 {
                chunked.put_u8(0xC0 | chunk_stream(kind));
            }
            chunked.put_slice(piece);
        }
        Self {
            kind,
            time_ms,
            length: body.len(),
            chunked: chunked.freeze(),
        }
    }

    pub(crate) fn chunk_stream(&self) -> u8 {
        chunk_stream(self.kind)
    }
}

/// The chunk stream a message type travels on.
fn chunk_stream(kind: u8) -> u8 {
    match kind {
        VIDEO => 6,
        AUDIO => 4,
        _ => 5,
    }
}

/// The clip as MPEG-TS, for programs that send files.
pub(crate) fn transport_stream(folder: &Path, bitrate_bps: u64) -> Result<PathBuf, Failure> {
    let flv = flv(folder, bitrate_bps)?;
    let path = flv.with_extension("ts");
    if !path.exists() {
        let mut command = Command::new("ffmpeg");
        command
            .args(["-nostdin", "-v", "error", "-y", "-i"])
            .arg(&flv)
            .args(["-c", "copy", "-f", "mpegts"]);
        make(&mut command, &path)?;
    }
    Ok(path)
}

fn flv(folder: &Path, bitrate_bps: u64) -> Result<PathBuf, Failure> {
    let path = folder.join(format!("clip-{}k.flv", bitrate_bps / 1000));
    if !path.exists() {
        println!("making {} (once, under a minute)", path.display());
        encode(&path, bitrate_bps)?;
    }
    Ok(path)
}

/// Runs a program whose last argument is the file that it makes.
fn make(command: &mut Command, path: &Path) -> Result<(), Failure> {
    let unfinished = PathBuf::from(format!("{}.part", path.display()));
    let status = command
        .arg(&unfinished)
        .stdin(Stdio::null())
        .status()
        .map_err(|cause| format!("ffmpeg does not start: {cause}"))?;
    if !status.success() {
        return Err(format!("ffmpeg could not make {}: {status}", path.display()).into());
    }
    Ok(std::fs::rename(unfinished, path)?)
}

/// A moving test frame with noise, so that the rate is real and not filler, with two B-frames and a key frame each 2 s.
fn encode(path: &Path, bitrate_bps: u64) -> Result<(), Failure> {
    let size = if bitrate_bps >= 3_000_000 {
        "1920x1080"
    } else {
        "1280x720"
    };
    let video_bps = bitrate_bps.saturating_sub(AUDIO_BITRATE_BPS).to_string();
    let video_frame = format!("testsrc2=size={size}:rate={FRAMES_PER_SECOND},noise=alls=12:allf=t");
    let mut command = Command::new("ffmpeg");
    command
        .args([
            "-nostdin",
            "-v",
            "error",
            "-y",
            "-f",
            "lavfi",
            "-i",
            &video_frame,
        ])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"])
        .args(["-t", &CLIP_SECONDS.to_string(), "-pix_fmt", "yuv420p"])
        .args([
            "-c:v",
            "libx264",
            "-preset",
            "veryfast",
            "-profile:v",
            "high",
            "-bf",
            "2",
        ])
        .args(["-g", "60", "-keyint_min", "60", "-sc_threshold", "0"])
        .args([
            "-b:v", &video_bps, "-minrate", &video_bps, "-maxrate", &video_bps, "-bufsize",
            &video_bps,
        ])
        .args(["-x264-params", "nal-hrd=cbr"])
        .args([
            "-c:a",
            "aac",
            "-b:a",
            &AUDIO_BITRATE_BPS.to_string(),
            "-ac",
            "2",
        ])
        .args(["-f", "flv"]);
    make(&mut command, path)
}
