//! Recognises MPEG-TS, MPEG, WMV, FLV, AAC, AC-3, AIFF and AMR by their first packets. A few bytes prove little, so the
//! following packets in the head of the file are checked too.

use super::{Behind, behind_tag};

/// Recognises an MPEG transport stream (ISO/IEC 13818-1 §2.4.3.2): whole packets, each with a plausible header. Blu-ray
/// discs put a time stamp of four bytes before each packet.
pub(in crate::format) fn ts(head: &[u8]) -> bool {
    has_packets(head, 0, 188) || has_packets(head, 4, 192)
}

/// Looks at five packets, or at all of a shorter file that has three.
fn has_packets(head: &[u8], first: usize, stride: usize) -> bool {
    const LOOKED_AT: usize = 5;
    const FEWEST: usize = 3;
    let mut seen = 0;
    for packet in head.chunks_exact(stride).take(LOOKED_AT) {
        let header = &packet[first..first + 4];
        let (sync, control) = (header[0], header[3] >> 4 & 3);
        // No payload and no adaptation field: the value is reserved.
        if sync != 0x47 || control == 0 {
            return false;
        }
        seen += 1;
    }
    seen >= FEWEST
}

/// Recognises an MPEG program stream, or MPEG-1 or MPEG-2 video by itself.
pub(in crate::format) fn mpg(head: &[u8]) -> bool {
    let Some((code, rest)) = head.split_first_chunk::<4>() else {
        return false;
    };
    match code {
        [0, 0, 1, 0xba] => is_pack_header(rest),
        [0, 0, 1, 0xb3] => is_sequence_header(rest),
        _ => false,
    }
}

/// Checks the marker bits of a pack header (ISO/IEC 13818-1 §2.5.3.3, and 11172-1 §2.4.3.2 for MPEG-1).
fn is_pack_header(rest: &[u8]) -> bool {
    let is_second = |b: &[u8]| {
        b[0] & 0xc4 == 0x44 && b[2] & 4 != 0 && b[4] & 4 != 0 && b[5] & 1 != 0 && b[8] & 3 == 3
    };
    let is_first = |b: &[u8]| {
        b[0] & 0xf1 == 0x21 && b[2] & 1 != 0 && b[4] & 1 != 0 && b[5] & 0x80 != 0 && b[7] & 1 != 0
    };
    rest.get(..10).is_some_and(is_second) || rest.get(..8).is_some_and(is_first)
}

/// Checks for valid sizes, pixel aspect and frame rate, and a marker bit (ISO/IEC 13818-2 §6.3.3).
fn is_sequence_header(rest: &[u8]) -> bool {
    let Some(b) = rest.get(..8) else {
        return false;
    };
    let width = u16::from(b[0]) << 4 | u16::from(b[1] >> 4);
    let height = u16::from(b[1] & 15) << 8 | u16::from(b[2]);
    let (aspect, rate) = (b[3] >> 4, b[3] & 15);
    width > 0
        && height > 0
        && (1..=14).contains(&aspect)
        && (1..=8).contains(&rate)
        && b[6] & 0x20 != 0
}

pub(in crate::format) fn wmv(head: &[u8]) -> bool {
    is_asf(head) && !has_audio_only(head)
}

pub(in crate::format) fn wma(head: &[u8]) -> bool {
    is_asf(head) && has_audio_only(head)
}

/// Recognises the Header Object (ASF specification §3.1) with its two reserved bytes.
fn is_asf(head: &[u8]) -> bool {
    const HEADER: &[u8] = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c";
    head.starts_with(HEADER) && head.get(28..30) == Some(&[1, 2])
}

/// Returns whether a Stream Properties Object (§3.3) of audio and none of video is in sight.
fn has_audio_only(head: &[u8]) -> bool {
    const STREAM: &[u8] = b"\x91\x07\xdc\xb7\xb7\xa9\xcf\x11\x8e\xe6\x00\xc0\x0c\x20\x53\x65";
    const AUDIO: &[u8] = b"\x40\x9e\x69\xf8\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";
    /// The object's own GUID and its size come before the type.
    const TYPE_AT: usize = 24;
    let head = &head[..head.len().min(4096)];
    let mut kinds = head
        .windows(STREAM.len())
        .enumerate()
        .filter(|(_, window)| *window == STREAM)
        .filter_map(|(at, _)| head.get(at + TYPE_AT..at + TYPE_AT + AUDIO.len()))
        .peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind == AUDIO)
}

/// Recognises the header and the size of the tag before the first one, 0 (FLV specification 10.1, E.2).
pub(in crate::format) fn flv(head: &[u8]) -> bool {
    const OTHER_FLAGS: u8 = !0b101;
    matches!(head, [b'F', b'L', b'V', 1, flags, 0, 0, 0, 9, 0, 0, 0, 0, ..] if flags & OTHER_FLAGS == 0)
}

/// Recognises frames of ADTS (ISO/IEC 14496-3 §1.A.3), at the beginning or behind an ID3v2 tag.
pub(in crate::format) fn aac(head: &[u8]) -> bool {
    match behind_tag(head) {
        Behind::NoTag => is_repeated(head, adts_frame),
        Behind::OutOfSight => false,
        Behind::Audio(audio) => is_repeated(audio, adts_frame),
    }
}

/// Recognises frames of AC-3 or E-AC-3 (ETSI TS 102 366).
pub(in crate::format) fn ac3(head: &[u8]) -> bool {
    is_repeated(head, ac3_frame)
}

/// Returns whether a frame is at the beginning and another one, or the end of the file, right behind it.
fn is_repeated(bytes: &[u8], frame: fn(&[u8]) -> Option<usize>) -> bool {
    let Some(length) = frame(bytes) else {
        return false;
    };
    match bytes.get(length..) {
        Some([]) => true,
        Some(rest) => frame(rest).is_some(),
        None => false,
    }
}

/// The length of a frame by its header.
fn adts_frame(bytes: &[u8]) -> Option<usize> {
    const HEADER: usize = 7;
    let b = bytes.get(..HEADER)?;
    let is_synchronised = b[0] == 0xff && b[1] & 0xf6 == 0xf0;
    let rate = b[2] >> 2 & 15;
    let length = usize::from(b[3] & 3) << 11 | usize::from(b[4]) << 3 | usize::from(b[5] >> 5);
    (is_synchronised && rate <= 12 && length > HEADER).then_some(length)
}

/// The length of a frame by its header.
fn ac3_frame(bytes: &[u8]) -> Option<usize> {
    /// Kilobits per second, by half of `frmsizecod` (table 4.13).
    const RATES: [usize; 19] = [
        32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
    ];
    let b = bytes.get(..6)?;
    if b[..2] != [0x0b, 0x77] {
        return None;
    }
    match b[5] >> 3 {
        0..=10 => {
            let code = usize::from(b[4] & 0x3f);
            let rate = *RATES.get(code / 2)?;
            let words = match b[4] >> 6 {
                0 => rate * 2,
                1 => rate * 320 / 147 + (code & 1),
                2 => rate * 3,
                _ => return None,
            };
            Some(2 * words)
        }
        11..=16 => {
            let words = usize::from(b[2] & 7) << 8 | usize::from(b[3]);
            Some(2 * (words + 1))
        }
        _ => None,
    }
}

pub(in crate::format) fn aiff(head: &[u8]) -> bool {
    head.starts_with(b"FORM") && matches!(head.get(8..12), Some(b"AIFF" | b"AIFC"))
}

/// Recognises narrow and wide band AMR (RFC 4867 §5.1).
pub(in crate::format) fn amr(head: &[u8]) -> bool {
    head.starts_with(b"#!AMR\n") || head.starts_with(b"#!AMR-WB\n")
}

#[cfg(test)]
mod tests {
    use crate::format::{Format, TABLE};

    fn repeated(piece: &[u8], count: usize) -> Vec<u8> {
        piece.repeat(count)
    }

    fn packet(stride: usize) -> Vec<u8> {
        let mut packet = vec![0xff; stride];
        let at = stride - 188;
        packet[..at].fill(0);
        packet[at..at + 4].copy_from_slice(b"\x47\x40\x11\x10");
        packet
    }

    fn adts(length: usize) -> Vec<u8> {
        let mut frame = vec![0; length];
        frame[..4].copy_from_slice(b"\xff\xf1\x50\x80");
        frame[3] |= (length >> 11) as u8;
        frame[4] = (length >> 3) as u8;
        frame[5] = (length << 5) as u8 | 0x1f;
        frame
    }

    fn asf(streams: &[&[u8]]) -> Vec<u8> {
        let mut file = b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c".to_vec();
        file.extend_from_slice(b"\x10\x02\0\0\0\0\0\0\x02\0\0\0\x01\x02");
        for kind in streams {
            file.extend_from_slice(
                b"\x91\x07\xdc\xb7\xb7\xa9\xcf\x11\x8e\xe6\x00\xc0\x0c\x20\x53\x65",
            );
            file.extend_from_slice(&[0x72, 0, 0, 0, 0, 0, 0, 0]);
            file.extend_from_slice(kind);
        }
        file
    }

    #[test]
    fn recognises_streams_by_more_than_one_mark() {
        const VIDEO: &[u8] = b"\xc0\xef\x19\xbc\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";
        const AUDIO: &[u8] = b"\x40\x9e\x69\xf8\x4d\x5b\xcf\x11\xa8\xfd\x00\x80\x5f\x5c\x44\x2b";
        let broken = {
            let mut file = repeated(&packet(188), 21);
            file[188] = 0x46;
            file
        };
        let reserved = {
            let mut file = repeated(&packet(188), 21);
            file[3] = 0;
            file
        };
        let tagged = |audio: &[u8]| [b"ID3\x04\0\0\0\0\0\x02xy", audio].concat();
        let ac3 = {
            let mut frame = vec![0; 768];
            // 48 kHz, 192 kbit/s.
            frame[..6].copy_from_slice(b"\x0b\x77\0\0\x14\x40");
            frame
        };
        let cases: Vec<(&str, Vec<u8>, Option<Format>)> = vec![
            (
                "a transport stream",
                repeated(&packet(188), 21),
                Some(Format::Ts),
            ),
            ("three packets", repeated(&packet(188), 3), Some(Format::Ts)),
            ("two packets", repeated(&packet(188), 2), None),
            (
                "with time stamps",
                repeated(&packet(192), 21),
                Some(Format::Ts),
            ),
            ("one sync byte lost", broken, None),
            ("a reserved value", reserved, None),
            ("text of G", repeated(b"G", 4096), None),
            (
                "MPEG-2 pack",
                b"\0\0\x01\xba\x44\0\x04\0\x04\x01\0\0\x03\xf8".to_vec(),
                Some(Format::Mpg),
            ),
            (
                "MPEG-1 pack",
                b"\0\0\x01\xba\x21\0\x01\0\x01\x80\0\x01".to_vec(),
                Some(Format::Mpg),
            ),
            (
                "no marker bits",
                b"\0\0\x01\xba\x44\0\0\0\0\0\0\0\0\0".to_vec(),
                None,
            ),
            ("a pack cut short", b"\0\0\x01\xba\x44".to_vec(), None),
            (
                "MPEG video",
                b"\0\0\x01\xb3\x16\0\xf0\x15\xff\xff\xe0\x28".to_vec(),
                Some(Format::Mpg),
            ),
            (
                "video of no width",
                b"\0\0\x01\xb3\0\0\xf0\x15\xff\xff\xe0\x28".to_vec(),
                None,
            ),
            ("H.264 video", b"\0\0\0\x01\x67\x42\0\x1e".to_vec(), None),
            ("ASF with video", asf(&[AUDIO, VIDEO]), Some(Format::Wmv)),
            ("ASF with audio", asf(&[AUDIO]), Some(Format::Wma)),
            ("ASF, nothing in sight", asf(&[]), Some(Format::Wmv)),
            ("ASF, cut", asf(&[])[..20].to_vec(), None),
            (
                "FLV",
                b"FLV\x01\x05\0\0\0\x09\0\0\0\0\x09".to_vec(),
                Some(Format::Flv),
            ),
            (
                "FLV of another version",
                b"FLV\x02\x05\0\0\0\x09\0\0\0\0\x09".to_vec(),
                None,
            ),
            (
                "FLV with unknown flags",
                b"FLV\x01\x0d\0\0\0\x09\0\0\0\0\x09".to_vec(),
                None,
            ),
            ("AAC", repeated(&adts(20), 3), Some(Format::Aac)),
            ("one frame of AAC", adts(300), Some(Format::Aac)),
            (
                "AAC behind a tag",
                tagged(&repeated(&adts(20), 2)),
                Some(Format::Aac),
            ),
            (
                "AAC, then something else",
                [adts(20), vec![0; 20]].concat(),
                None,
            ),
            (
                "a frame longer than the file",
                adts(300)[..200].to_vec(),
                None,
            ),
            ("a frame without content", adts(7), None),
            ("AC-3", repeated(&ac3, 2), Some(Format::Ac3)),
            (
                "AC-3, then something else",
                [ac3, vec![0; 20]].concat(),
                None,
            ),
            (
                "AIFF",
                b"FORM\0\0\0\x20AIFFCOMM".to_vec(),
                Some(Format::Aiff),
            ),
            ("another form", b"FORM\0\0\0\x20ILBMBMHD".to_vec(), None),
            ("AMR", b"#!AMR\n\x3c".to_vec(), Some(Format::Amr)),
            ("wide AMR", b"#!AMR-WB\n\x3c".to_vec(), Some(Format::Amr)),
            ("a script", b"#!/bin/sh\n".to_vec(), None),
            (
                "a playlist",
                b"#EXTM3U\n#EXT-X-VERSION:3\n/etc/passwd".to_vec(),
                None,
            ),
            (
                "a list of files",
                b"ffconcat version 1.0\nfile /etc/passwd".to_vec(),
                None,
            ),
            (
                "a session description",
                b"v=0\r\no=- 0 0 IN IP4 127.0.0.1".to_vec(),
                None,
            ),
        ];
        for (what, head, format) in cases {
            assert_eq!(Format::sniff(&head), format, "{what}");
        }
    }

    proptest::proptest! {
        #[test]
        fn hostile_heads_are_of_one_format_at_most(
            start in 0usize..9,
            bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..900),
        ) {
            const STARTS: [&[u8]; 9] = [
                b"\x47\x40\x11\x10",
                b"\0\0\x01\xba",
                b"\0\0\x01\xb3",
                b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9\x00\xaa\x00\x62\xce\x6c",
                b"FLV\x01",
                b"\xff\xf1",
                b"\x0b\x77",
                b"ID3\x04\0\0\0\0\0\0\xff\xf1",
                b"FORM",
            ];
            let head = [STARTS[start], bytes.as_slice()].concat();
            let matching = TABLE.iter().filter(|row| (row.matches)(&head)).count();
            proptest::prop_assert!(matching <= 1, "{matching} formats");
        }
    }
}
