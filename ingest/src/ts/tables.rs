//! Reads PAT and PMT of MPEG-TS (ISO/IEC 13818-1 §2.4.4): which video and audio stream is followed, names of codecs
//! that are not carried.

use sluice_media::codec::VideoCodec;

use super::{Corruption, packet::Pid};

const PAT_ID: u8 = 0;
const PMT_ID: u8 = 2;
const HEADER_BYTES: usize = 8;
/// Most streams that are left out and named; further ones are only left out.
const MAX_NAMED: usize = 8;

mod descriptor {
    pub(super) const REGISTRATION: u8 = 0x05;
    pub(super) const AC_3: u8 = 0x6a;
    pub(super) const E_AC_3: u8 = 0x7a;
    pub(super) const DTS: u8 = 0x7b;
    pub(super) const EXTENSION: u8 = 0x7f;
    /// Tag of Opus and its channels, after `EXTENSION`.
    pub(super) const OPUS_CHANNELS: u8 = 0x80;
}

/// An entry of the program association table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) number: u16,
    pub(super) map: Pid,
}

/// Format of audio in its PES packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AudioFormat {
    Adts,
    /// MPEG-1 and MPEG-2 audio; only layer 3 is carried.
    Mpeg,
    /// Opus, with the channel configuration code of its descriptor.
    Opus {
        channels: u8,
    },
}

/// Stream of a program, by its use.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stream {
    Video(VideoCodec),
    Audio(AudioFormat),
    /// Media that is not carried.
    Foreign(Corruption),
    /// Subtitles, cue messages, data.
    Other,
}

/// The streams of a program that are followed, and those that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ProgramMap {
    pub(super) video: Option<(Pid, VideoCodec)>,
    pub(super) audio: Option<(Pid, AudioFormat)>,
    pub(super) left_out: Vec<(Pid, Corruption)>,
}

/// Returns the program to follow by a section of the program association table: the one that is followed already while
/// it exists, else the first. `None` where the section does not decide: it applies only later, or continues another.
pub(super) fn choose_program(section: &[u8], followed: Option<Program>) -> Option<Program> {
    let (header, body) = section.split_first_chunk::<HEADER_BYTES>()?;
    let is_current = header[5] & 1 == 1;
    let is_first = header[6] == 0;
    if header[0] != PAT_ID || !is_current || !is_first {
        return None;
    }
    let programs = || {
        body.chunks_exact(4)
            .map(|entry| Program {
                number: u16::from_be_bytes([entry[0], entry[1]]),
                map: Pid::new(u16::from_be_bytes([entry[2], entry[3]])),
            })
            // Number 0 is the network's table.
            .filter(|program| program.number != 0)
    };
    let same = |program: &Program| followed.is_some_and(|f| f.number == program.number);
    programs().find(same).or_else(|| programs().next())
}

/// Reads a section of the program map table; `None` where it is another program's or applies only later. A stream that
/// was followed before is kept while it exists.
pub(super) fn read_map(
    section: &[u8],
    program: u16,
    before: &ProgramMap,
) -> Result<Option<ProgramMap>, Corruption> {
    let truncated = Corruption::Truncated {
        what: "program map table",
    };
    let Some((header, body)) = section.split_first_chunk::<HEADER_BYTES>() else {
        return Err(truncated);
    };
    let is_current = header[5] & 1 == 1;
    let number = u16::from_be_bytes([header[3], header[4]]);
    if header[0] != PMT_ID || !is_current || number != program {
        return Ok(None);
    }
    let streams = body
        .get(4..)
        .and_then(|behind| behind.get(length_12(&body[2..4])..))
        .and_then(read_streams)
        .ok_or(truncated)?;
    Ok(Some(choose_streams(&streams, before)))
}

fn read_streams(mut body: &[u8]) -> Option<Vec<(Pid, Stream)>> {
    let mut streams = Vec::new();
    while !body.is_empty() {
        let (entry, behind) = body.split_first_chunk::<5>()?;
        let (descriptors, behind) = behind.split_at_checked(length_12(&entry[3..5]))?;
        let pid = Pid::new(u16::from_be_bytes([entry[1], entry[2]]));
        streams.push((pid, Stream::of(entry[0], descriptors)));
        body = behind;
    }
    Some(streams)
}

fn choose_streams(streams: &[(Pid, Stream)], before: &ProgramMap) -> ProgramMap {
    let video = chosen(streams, before.video, |stream| match stream {
        Stream::Video(codec) => Some(*codec),
        _ => None,
    });
    let audio = chosen(streams, before.audio, |stream| match stream {
        Stream::Audio(format) => Some(*format),
        _ => None,
    });
    let left_out = |(pid, stream): &(Pid, Stream)| {
        let corruption = match stream {
            Stream::Video(_) if video.is_none_or(|(chosen, _)| chosen != *pid) => {
                Corruption::OtherTrack { what: "video" }
            }
            Stream::Audio(_) if audio.is_none_or(|(chosen, _)| chosen != *pid) => {
                Corruption::OtherTrack { what: "audio" }
            }
            Stream::Foreign(corruption) => corruption.clone(),
            _ => return None,
        };
        Some((*pid, corruption))
    };
    ProgramMap {
        video,
        audio,
        left_out: streams
            .iter()
            .filter_map(left_out)
            .take(MAX_NAMED)
            .collect(),
    }
}

/// The stream of a kind that was followed before, or else the first of the kind.
fn chosen<F: Copy>(
    streams: &[(Pid, Stream)],
    before: Option<(Pid, F)>,
    format: impl Fn(&Stream) -> Option<F>,
) -> Option<(Pid, F)> {
    let of_kind = || {
        streams
            .iter()
            .filter_map(|(pid, stream)| Some((*pid, format(stream)?)))
    };
    of_kind()
        .find(|(pid, _)| before.is_some_and(|(followed, _)| followed == *pid))
        .or_else(|| of_kind().next())
}

impl Stream {
    /// Classifies a stream by its type (table 2-34, and the numbers that ATSC, Blu-ray and SMPTE use) and its
    /// descriptors.
    fn of(stream_type: u8, descriptors: &[u8]) -> Self {
        match stream_type {
            0x1b => Self::Video(VideoCodec::Avc),
            0x24 => Self::Video(VideoCodec::Hevc),
            0x03 | 0x04 => Self::Audio(AudioFormat::Mpeg),
            0x0f => Self::Audio(AudioFormat::Adts),
            0x06 => Self::private(descriptors),
            0x01 => foreign_video("MPEG-1"),
            0x02 => foreign_video("MPEG-2"),
            0x10 => foreign_video("MPEG-4 Part 2"),
            0x21 => foreign_video("JPEG 2000"),
            0x33 => foreign_video("VVC"),
            0x42 => foreign_video("AVS"),
            0xd1 => foreign_video("Dirac"),
            0xea => foreign_video("VC-1"),
            0x11 => foreign_audio("AAC in LATM"),
            0x81 => foreign_audio("AC-3"),
            0x82 | 0x85 => foreign_audio("DTS"),
            0x83 => foreign_audio("TrueHD"),
            0x84 | 0x87 => foreign_audio("E-AC-3"),
            _ => Self::Other,
        }
    }

    /// Classifies "private data" by its descriptors.
    fn private(descriptors: &[u8]) -> Self {
        let mut opus_channels = None;
        let mut registration = None;
        for (tag, body) in tagged(descriptors) {
            match tag {
                descriptor::REGISTRATION => registration = body.first_chunk::<4>(),
                descriptor::AC_3 => return foreign_audio("AC-3"),
                descriptor::E_AC_3 => return foreign_audio("E-AC-3"),
                descriptor::DTS => return foreign_audio("DTS"),
                descriptor::EXTENSION => {
                    if let [descriptor::OPUS_CHANNELS, channels, ..] = body {
                        opus_channels = Some(*channels);
                    }
                }
                _ => {}
            }
        }
        match registration {
            Some(b"Opus") => Self::Audio(AudioFormat::Opus {
                channels: opus_channels.unwrap_or(2),
            }),
            Some(b"HEVC") => Self::Video(VideoCodec::Hevc),
            Some(b"AV01") => foreign_video("AV1 in MPEG-TS"),
            Some(b"VP09") => foreign_video("VP9"),
            Some(b"AC-3") => foreign_audio("AC-3"),
            Some(b"EAC3") => foreign_audio("E-AC-3"),
            Some(b"BSSD") => foreign_audio("PCM"),
            _ => Self::Other,
        }
    }
}

fn foreign_video(name: &'static str) -> Stream {
    Stream::Foreign(Corruption::VideoCodec {
        name: name.into(),
        choose: "H.264 or HEVC",
    })
}

fn foreign_audio(name: &'static str) -> Stream {
    Stream::Foreign(Corruption::AudioCodec { name: name.into() })
}

/// Iterates over tags and bodies, up to one that exceeds the bytes.
fn tagged(mut descriptors: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&[tag, length], behind) = descriptors.split_first_chunk()?;
        let (body, behind) = behind.split_at_checked(usize::from(length))?;
        descriptors = behind;
        Some((tag, body))
    })
}

fn length_12(bytes: &[u8]) -> usize {
    usize::from(u16::from_be_bytes([bytes[0] & 0x0f, bytes[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pat(current: u8, section_number: u8, programs: &[(u16, u16)]) -> Vec<u8> {
        let mut section = vec![PAT_ID, 0xb0, 0, 0, 1, 0xc0 | current, section_number, 0];
        for (number, pid) in programs {
            section.extend(number.to_be_bytes());
            section.extend((0xe000 | pid).to_be_bytes());
        }
        section
    }

    fn pmt(program: u16, streams: &[(u8, u16, &[u8])]) -> Vec<u8> {
        let mut section = vec![PMT_ID, 0xb0, 0];
        section.extend(program.to_be_bytes());
        section.extend([0xc1, 0, 0, 0xe1, 0, 0xf0, 2, 0x99, 0]);
        for (stream_type, pid, descriptors) in streams {
            section.push(*stream_type);
            section.extend((0xe000 | pid).to_be_bytes());
            section.extend([0xf0, descriptors.len() as u8]);
            section.extend_from_slice(descriptors);
        }
        section
    }

    #[test]
    fn the_first_program_is_followed_while_it_is_there() {
        let program = |number, pid| Program {
            number,
            map: Pid::new(pid),
        };
        for (section, followed, expected) in [
            (
                pat(1, 0, &[(0, 16), (7, 100), (8, 200)]),
                None,
                Some(program(7, 100)),
            ),
            (
                pat(1, 0, &[(7, 100), (8, 200)]),
                Some(program(8, 1)),
                Some(program(8, 200)),
            ),
            (
                pat(1, 0, &[(7, 100)]),
                Some(program(8, 200)),
                Some(program(7, 100)),
            ),
            (pat(1, 0, &[(0, 16)]), None, None),
            (pat(0, 0, &[(7, 100)]), None, None),
            (pat(1, 1, &[(7, 100)]), None, None),
            (vec![PAT_ID, 0xb0], None, None),
        ] {
            assert_eq!(
                choose_program(&section, followed),
                expected,
                "{section:02x?}"
            );
        }
    }

    #[test]
    fn streams_are_chosen_and_named() {
        let opus = b"\x05\x04Opus\x7f\x02\x80\x01";
        let section = pmt(
            7,
            &[
                (0x86, 0x90, b""),
                (0x81, 0x91, b""),
                (0x1b, 0x100, b"\x05\x04abcd"),
                (0x06, 0x101, opus),
                (0x0f, 0x102, b""),
                (0x24, 0x103, b""),
            ],
        );
        let map = read_map(&section, 7, &ProgramMap::default())
            .unwrap()
            .unwrap();
        assert_eq!(map.video, Some((Pid::new(0x100), VideoCodec::Avc)));
        let audio = AudioFormat::Opus { channels: 1 };
        assert_eq!(map.audio, Some((Pid::new(0x101), audio)));
        let named: Vec<String> = map.left_out.iter().map(|(_, d)| d.to_string()).collect();
        assert_eq!(
            named,
            [
                "audio codec AC-3 is not carried: choose AAC",
                "only the first audio track is carried",
                "only the first video track is carried"
            ]
        );

        let reordered = pmt(7, &[(0x0f, 0x102, b""), (0x06, 0x101, opus)]);
        let later = read_map(&reordered, 7, &map).unwrap().unwrap();
        assert_eq!((later.video, later.audio), (None, map.audio));
        assert_eq!(read_map(&section, 8, &map), Ok(None));
    }

    #[test]
    fn lengths_that_leave_the_section_are_refused() {
        let good = pmt(7, &[(0x1b, 0x100, b"\x05\x04abcd")]);
        for cut in 0..good.len() {
            let read = read_map(&good[..cut], 7, &ProgramMap::default());
            let nothing_but_the_header = cut == good.len() - 11;
            assert_eq!(read.is_err(), !nothing_but_the_header, "{cut}");
        }
        let descriptor_too_long = Stream::of(6, b"\x05\x09Opus");
        assert_eq!(descriptor_too_long, Stream::Other);
    }
}
