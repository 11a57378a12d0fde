//! Messages between the service and a worker that re-encodes a live stream ([`AvTask::Live`](super::AvTask::Live)), and their
//! bounds (`MAX_MEDIA`, `MAX_RECORD`).
//!
//! One decoder of each kind feeds any number of encoders, which are started and stopped by need. Pure; neither side trusts the
//! other: see [`framing`](crate::framing).
//!
//! ```text
//! StartVideo, StartAudio, VideoConfig, AudioConfig, Video, Audio … ──▶   ◀── Video, Audio, Progress, Undecodable
//! ```

use bytes::{Bytes, BytesMut};

pub use crate::framing::Malformed;
use crate::{
    codec::{AudioCodec, VideoCodec},
    framing::{Fields, Frame, next_frame},
};

/// Most bytes of one coded frame.
pub const MAX_MEDIA: usize = 8 << 20;
/// Most bytes of a decoder configuration record.
pub const MAX_RECORD: usize = 64 << 10;
/// Most bytes of a message after its length.
const MAX_FRAME: usize = MAX_MEDIA + 64;
/// Most bytes of a reason.
const MAX_TEXT: usize = 256;

const KEY: u8 = 1;
const OLD: u8 = 2;

/// Names an encoder; given by the service.
pub type EncoderId = u8;

/// Work of a video encoder: H.264 constrained baseline, 8 bit 4:2:0 without B-frames, as late as its frame and no later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveVideo {
    /// The box into which larger frames are scaled down; a frame that is taller than wide fits into the turned one.
    pub max_width: u16,
    pub max_height: u16,
    /// Most frames per second; others are left out.
    pub max_rate: u16,
    /// Most bits per second; small frames take less.
    pub max_bitrate: u32,
}

/// Track of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveTrack {
    Video,
    Audio,
}

/// Messages of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToLive {
    /// Starts an encoder; its first frame is a key frame.
    StartVideo {
        encoder: EncoderId,
        work: LiveVideo,
    },
    /// Starts the audio's encoder: Opus, stereo, packets of 20 ms.
    StartAudio {
        bitrate: u32,
    },
    StopVideo(EncoderId),
    StopAudio,
    /// The next frame of the encoder is a key frame.
    WantKeyFrame(EncoderId),
    /// The decoder configuration of the frames that follow; also where the times jump.
    VideoConfig {
        codec: VideoCodec,
        record: Bytes,
    },
    AudioConfig {
        codec: AudioCodec,
        /// Empty for MP3.
        record: Bytes,
    },
    /// A coded frame as [`VideoUnit`](crate::unit::VideoUnit) has it.
    Video {
        key: bool,
        /// True for a frame that is decoded for those after it and not encoded.
        is_old: bool,
        dts_90k: i64,
        cts_90k: i32,
        data: Bytes,
    },
    Audio {
        pts_90k: i64,
        data: Bytes,
    },
}

/// Counts of a worker since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveProgress {
    /// Coded frames that have left the queue before the decoder, dropped ones too: as many as were sent, when none waits.
    pub video_taken: u64,
    pub audio_taken: u64,
    /// Video frames that were decoded.
    pub decoded: u64,
    /// Coded or decoded video frames that were left out, because the machine is too slow or the stream is damaged.
    pub dropped: u64,
}

/// Messages of the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromLive {
    Video {
        encoder: EncoderId,
        key: bool,
        /// Time of the source's frame.
        pts_90k: i64,
        /// NAL units behind lengths of 4 bytes; the parameter sets come first in a key frame.
        data: Bytes,
    },
    Audio {
        /// Time of the source's samples, less the encoder's look-ahead.
        pts_90k: i64,
        data: Bytes,
    },
    /// Sent a few times a second while it changes.
    Progress(LiveProgress),
    /// The track cannot be decoded with its configuration.
    Undecodable { track: LiveTrack, reason: String },
}

fn video_code(codec: VideoCodec) -> u8 {
    match codec {
        VideoCodec::Avc => 0,
        VideoCodec::Hevc => 1,
        VideoCodec::Av1 => 2,
    }
}

fn video_codec(code: u8) -> Result<VideoCodec, Malformed> {
    match code {
        0 => Ok(VideoCodec::Avc),
        1 => Ok(VideoCodec::Hevc),
        2 => Ok(VideoCodec::Av1),
        _ => Err(Malformed("codec")),
    }
}

fn audio_code(codec: AudioCodec) -> u8 {
    match codec {
        AudioCodec::Aac => 0,
        AudioCodec::Opus => 1,
        AudioCodec::Mp3 => 2,
    }
}

fn audio_codec(code: u8) -> Result<AudioCodec, Malformed> {
    match code {
        0 => Ok(AudioCodec::Aac),
        1 => Ok(AudioCodec::Opus),
        2 => Ok(AudioCodec::Mp3),
        _ => Err(Malformed("codec")),
    }
}

fn short(fields: &mut Fields) -> Result<u16, Malformed> {
    Ok(u16::from_be_bytes(fields.array()?))
}

fn bounded(fields: &mut Fields, most: usize) -> Result<Bytes, Malformed> {
    match fields.0.len() <= most {
        true => Ok(fields.rest()),
        false => Err(Malformed("too many bytes")),
    }
}

impl ToLive {
    /// Appends the message. Media above [`MAX_MEDIA`] must not be passed.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::StartVideo { encoder, work } => {
                frame.bytes(&[1, *encoder]);
                for number in [work.max_width, work.max_height, work.max_rate] {
                    frame.bytes(&number.to_be_bytes());
                }
                frame.number(work.max_bitrate);
            }
            Self::StartAudio { bitrate } => {
                frame.byte(2);
                frame.number(*bitrate);
            }
            Self::StopVideo(encoder) => frame.bytes(&[3, *encoder]),
            Self::StopAudio => frame.byte(4),
            Self::WantKeyFrame(encoder) => frame.bytes(&[5, *encoder]),
            Self::VideoConfig { codec, record } => {
                frame.bytes(&[6, video_code(*codec)]);
                frame.bytes(record);
            }
            Self::AudioConfig { codec, record } => {
                frame.bytes(&[7, audio_code(*codec)]);
                frame.bytes(record);
            }
            Self::Video {
                key,
                is_old,
                dts_90k,
                cts_90k,
                data,
            } => {
                let flags = (u8::from(*key) * KEY) | (u8::from(*is_old) * OLD);
                frame.bytes(&[8, flags]);
                frame.bytes(&dts_90k.to_be_bytes());
                frame.bytes(&cts_90k.to_be_bytes());
                frame.bytes(data);
            }
            Self::Audio { pts_90k, data } => {
                frame.byte(9);
                frame.bytes(&pts_90k.to_be_bytes());
                frame.bytes(data);
            }
        }
        frame.end();
    }

    /// Takes the next whole message off `input`; `None` until there is one.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => Self::StartVideo {
                encoder: fields.byte()?,
                work: LiveVideo {
                    max_width: short(&mut fields)?,
                    max_height: short(&mut fields)?,
                    max_rate: short(&mut fields)?,
                    max_bitrate: fields.number()?,
                },
            },
            2 => Self::StartAudio {
                bitrate: fields.number()?,
            },
            3 => Self::StopVideo(fields.byte()?),
            4 => Self::StopAudio,
            5 => Self::WantKeyFrame(fields.byte()?),
            6 => Self::VideoConfig {
                codec: video_codec(fields.byte()?)?,
                record: bounded(&mut fields, MAX_RECORD)?,
            },
            7 => Self::AudioConfig {
                codec: audio_codec(fields.byte()?)?,
                record: bounded(&mut fields, MAX_RECORD)?,
            },
            8 => {
                let flags = fields.byte()?;
                Self::Video {
                    key: flags & KEY != 0,
                    is_old: flags & OLD != 0,
                    dts_90k: fields.signed()?,
                    cts_90k: i32::from_be_bytes(fields.array()?),
                    data: bounded(&mut fields, MAX_MEDIA)?,
                }
            }
            9 => Self::Audio {
                pts_90k: fields.signed()?,
                data: bounded(&mut fields, MAX_MEDIA)?,
            },
            _ => return Err(Malformed("kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

impl FromLive {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut frame = Frame::begin(out);
        match self {
            Self::Video {
                encoder,
                key,
                pts_90k,
                data,
            } => {
                frame.bytes(&[1, *encoder, u8::from(*key)]);
                frame.bytes(&pts_90k.to_be_bytes());
                frame.bytes(data);
            }
            Self::Audio { pts_90k, data } => {
                frame.byte(2);
                frame.bytes(&pts_90k.to_be_bytes());
                frame.bytes(data);
            }
            Self::Progress(progress) => {
                frame.byte(3);
                for count in [
                    progress.video_taken,
                    progress.audio_taken,
                    progress.decoded,
                    progress.dropped,
                ] {
                    frame.bytes(&count.to_be_bytes());
                }
            }
            Self::Undecodable { track, reason } => {
                frame.bytes(&[4, u8::from(*track == LiveTrack::Audio)]);
                frame.text(&reason[..reason.floor_char_boundary(MAX_TEXT)]);
            }
        }
        frame.end();
    }

    /// Takes the next whole message off `input`; `None` until there is one.
    pub fn decode(input: &mut BytesMut) -> Result<Option<Self>, Malformed> {
        let Some(mut fields) = next_frame(input, MAX_FRAME)? else {
            return Ok(None);
        };
        let message = match fields.byte()? {
            1 => Self::Video {
                encoder: fields.byte()?,
                key: fields.flag()?,
                pts_90k: fields.signed()?,
                data: bounded(&mut fields, MAX_MEDIA)?,
            },
            2 => Self::Audio {
                pts_90k: fields.signed()?,
                data: bounded(&mut fields, MAX_MEDIA)?,
            },
            3 => Self::Progress(LiveProgress {
                video_taken: fields.count()?,
                audio_taken: fields.count()?,
                decoded: fields.count()?,
                dropped: fields.count()?,
            }),
            4 => Self::Undecodable {
                track: match fields.byte()? {
                    0 => LiveTrack::Video,
                    1 => LiveTrack::Audio,
                    _ => return Err(Malformed("track")),
                },
                reason: fields.text(MAX_TEXT)?.replace(char::is_control, " "),
            },
            _ => return Err(Malformed("kind")),
        };
        fields.end()?;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages_of_the_service() -> Vec<ToLive> {
        let data = Bytes::from_static(b"\0\0\0\x02\x65\x88");
        vec![
            ToLive::StartVideo {
                encoder: 3,
                work: LiveVideo {
                    max_width: 1_920,
                    max_height: 1_080,
                    max_rate: 60,
                    max_bitrate: 6_000_000,
                },
            },
            ToLive::StartAudio { bitrate: 96_000 },
            ToLive::StopVideo(3),
            ToLive::StopAudio,
            ToLive::WantKeyFrame(0),
            ToLive::VideoConfig {
                codec: VideoCodec::Hevc,
                record: data.clone(),
            },
            ToLive::AudioConfig {
                codec: AudioCodec::Mp3,
                record: Bytes::new(),
            },
            ToLive::Video {
                key: true,
                is_old: false,
                dts_90k: -1,
                cts_90k: -3_000,
                data: data.clone(),
            },
            ToLive::Video {
                key: false,
                is_old: true,
                dts_90k: i64::MAX,
                cts_90k: i32::MAX,
                data: data.clone(),
            },
            ToLive::Audio { pts_90k: 5, data },
        ]
    }

    fn messages_of_the_worker() -> Vec<FromLive> {
        let data = Bytes::from_static(b"\0\0\0\x02\x65\x88");
        vec![
            FromLive::Video {
                encoder: 1,
                key: true,
                pts_90k: -9,
                data: data.clone(),
            },
            FromLive::Audio { pts_90k: 585, data },
            FromLive::Progress(LiveProgress {
                video_taken: 3,
                audio_taken: 4,
                decoded: 2,
                dropped: 1,
            }),
            FromLive::Undecodable {
                track: LiveTrack::Audio,
                reason: "no decoder".to_owned(),
            },
        ]
    }

    #[test]
    fn messages_come_back_as_they_went_piece_by_piece() {
        let (to, from) = (messages_of_the_service(), messages_of_the_worker());
        let (mut out, mut back) = (Vec::new(), Vec::new());
        to.iter().for_each(|message| message.encode(&mut out));
        from.iter().for_each(|message| message.encode(&mut back));
        let (mut input, mut seen) = (BytesMut::new(), Vec::new());
        for byte in out {
            input.extend_from_slice(&[byte]);
            seen.extend(ToLive::decode(&mut input).unwrap());
        }
        assert_eq!(seen, to);
        let (mut input, mut seen) = (BytesMut::new(), Vec::new());
        for byte in back {
            input.extend_from_slice(&[byte]);
            seen.extend(FromLive::decode(&mut input).unwrap());
        }
        assert_eq!(seen, from);
    }

    #[test]
    fn frames_out_of_bounds_end_the_connection() {
        let long = (MAX_FRAME as u32 + 1).to_be_bytes();
        for bytes in [
            &long[..],
            &[0, 0, 0, 0],
            &[0, 0, 0, 1, 77],
            &[0, 0, 0, 2, 4, 9],
        ] {
            let mut input = BytesMut::from(bytes);
            assert!(FromLive::decode(&mut input).is_err(), "{bytes:?}");
            let mut input = BytesMut::from(bytes);
            assert!(ToLive::decode(&mut input).is_err(), "{bytes:?}");
        }
        let reason = "a\nforged line\u{1b}".to_owned();
        let mut out = Vec::new();
        FromLive::Undecodable {
            track: LiveTrack::Video,
            reason,
        }
        .encode(&mut out);
        match FromLive::decode(&mut BytesMut::from(&out[..])) {
            Ok(Some(FromLive::Undecodable { reason, .. })) => {
                assert_eq!(reason, "a forged line ");
            }
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_messages_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut input = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = FromLive::decode(&mut input) {}
            let mut input = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = ToLive::decode(&mut input) {}
        }
    }
}
