//! Makes a clip of one part of a live stream, from which `frame=live` and its poster are drawn.

use bytes::Bytes;

/// Bytes of a box's header, which [`fragment`](super::fragment) always writes in the short form.
const HEADER: usize = 8;
/// Place of the decode time in a `tfdt` of version 1: behind version and flags.
const DECODE_TIME: std::ops::Range<usize> = 4..12;

/// An init section and one of its parts as a file of its own, which begins at time 0: a part of a broadcast that has
/// run for days must not look like a clip of days.
pub fn still_clip(init: &[u8], part: &[u8]) -> Bytes {
    let mut clip = Vec::with_capacity(init.len() + part.len());
    clip.extend_from_slice(init);
    clip.extend_from_slice(part);
    for moof in boxes(&mut clip[init.len()..], b"moof") {
        for traf in boxes(moof, b"traf") {
            for tfdt in boxes(traf, b"tfdt") {
                if let Some(decode_time) = tfdt.get_mut(DECODE_TIME) {
                    decode_time.fill(0);
                }
            }
        }
    }
    clip.into()
}

/// The bodies of the boxes of that kind at the top of `rest`; what is no whole box ends the search.
fn boxes<'a>(mut rest: &'a mut [u8], kind: &[u8; 4]) -> Vec<&'a mut [u8]> {
    let mut found = Vec::new();
    while let Some((size, name)) = header(rest) {
        if size < HEADER || size > rest.len() {
            break;
        }
        let (whole, after) = rest.split_at_mut(size);
        if name == *kind {
            found.push(&mut whole[HEADER..]);
        }
        rest = after;
    }
    found
}

fn header(bytes: &[u8]) -> Option<(usize, [u8; 4])> {
    let size = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let name = bytes.get(4..HEADER)?.try_into().ok()?;
    Some((usize::try_from(size).ok()?, name))
}

#[cfg(test)]
mod tests {
    use mp4_atom::{DecodeMaybe as _, Moof};

    use super::super::fragment::{self, AudioSample, VideoSample};
    use super::*;

    #[test]
    fn the_clip_begins_at_time_0_and_holds_the_same_samples() {
        let video = [VideoSample {
            at_90k: 90_000 * 86_400,
            duration_90k: 3_000,
            cts_90k: 6_000,
            key: true,
            data: Bytes::from_static(b"\0\0\0\x01frame"),
        }];
        let audio = [AudioSample {
            start: 48_000 * 86_400,
            duration: 1_024,
            data: Bytes::from_static(b"audio"),
        }];
        let part = fragment::encode(7, &video, &audio);
        let clip = still_clip(b"init", &part);
        assert_eq!((&clip[..4], clip.len()), (&b"init"[..], 4 + part.len()));
        let moof = Moof::decode_maybe(&mut &clip[4..]).unwrap().unwrap();
        assert_eq!(moof.traf.len(), 2);
        for traf in &moof.traf {
            assert_eq!(traf.tfdt.as_ref().unwrap().base_media_decode_time, 0);
        }
        let changed = clip[4..].iter().zip(part.iter()).filter(|(a, b)| a != b);
        assert!(changed.count() <= 16, "nothing but two times differs");
        assert!(clip.ends_with(b"audio"));
    }

    #[test]
    fn what_is_no_part_stays_as_it_is() {
        for odd in [
            &b""[..],
            b"\0\0\0",
            b"\0\0\0\x04moof",
            b"\xff\xff\xff\xffmoof\0",
            b"\0\0\0\x08moof",
        ] {
            assert_eq!(still_clip(b"", odd), odd);
        }
    }
}
