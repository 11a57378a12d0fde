//! Random and mutated bytes: demuxing always returns and keeps to its bounds.

use std::{env, fs, path::Path};

use proptest::prelude::*;
use sluice_ingest::ts::Limits;

use crate::{Demuxed, demux, demux_within, ffmpeg, lines, mux::Mux};

/// Checks that no stream yields units without bytes in the stream.
fn check(demuxed: &Demuxed, stream: &[u8]) -> Result<(), TestCaseError> {
    prop_assert!(demuxed.bytes() <= stream.len() * 2);
    prop_assert!(demuxed.counters.packets <= stream.len() as u64 / 188);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn mutated_streams(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
        cut in any::<prop::sample::Index>(),
        piece in 1_usize..4_000,
    ) {
        let mut stream = lines::good().to_vec();
        for (at, value) in flips {
            let at = at.index(stream.len());
            stream[at] = value;
        }
        stream.remove(cut.index(stream.len()));
        check(&demux(&stream, piece), &stream)?;
    }

    #[test]
    fn mutated_headers(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..24, any::<u8>()), 1..200),
        piece in 1_usize..4_000,
    ) {
        let mut stream = lines::good().to_vec();
        let packets = stream.len() / 188;
        for (packet, at, value) in flips {
            stream[packet.index(packets) * 188 + at] = value;
        }
        check(&demux(&stream, piece), &stream)?;
    }

    #[test]
    fn random_streams_of_followed_packets(
        packets in prop::collection::vec(
            (0_u16..5, any::<bool>(), prop::collection::vec(any::<u8>(), 1..184)),
            0..60,
        ),
        limit in 1_usize..2_000,
    ) {
        let kinds = [(0x1b, 0x100), (0x0f, 0x101)];
        let mut mux = Mux::new(&kinds);
        for (stream, starts_unit, payload) in packets {
            let pid = [0, 0x1000, 0x100, 0x101, 0x102][usize::from(stream)];
            mux.packet(pid, starts_unit, &payload);
        }
        let limits = Limits { pes_bytes: limit };
        check(&demux_within(limits, &mux.bytes, 1316), &mux.bytes)?;
    }

    #[test]
    fn random_payloads(
        stream_type in prop::sample::select(vec![0x1b_u8, 0x24, 0x0f, 0x03, 0x06]),
        payloads in prop::collection::vec(
            prop::collection::vec(prop::sample::select(vec![0_u8, 0, 0, 1, 0x65, 0x67, 0x26, 0x42, 0xff, 0xfb, 0xf1, 0x90]), 0..600),
            0..12,
        ),
    ) {
        let mut mux = Mux::new(&[(stream_type, 0x100)]);
        for (number, payload) in payloads.iter().enumerate() {
            mux.pes(0x100, Some(number as u64 * 3_000), 0, payload);
        }
        check(&demux(&mux.bytes, 1316), &mux.bytes)?;
    }

    #[test]
    fn random_bytes(stream in prop::collection::vec(any::<u8>(), 0..2_000), piece in 1_usize..400) {
        check(&demux(&stream, piece), &stream)?;
    }
}

/// The fuzz target's seeds, whole and in pieces; `SLUICE_WRITE_CORPUS=1` makes them again.
#[test]
fn seeds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/mpeg_ts");
    if env::var_os("SLUICE_WRITE_CORPUS").is_some() {
        write_seeds(&folder);
    }
    let mut seen = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let stream = fs::read(&path).unwrap();
        let whole = demux(&stream, stream.len());
        assert!(
            !whole.video_frames.is_empty() && !whole.frames.is_empty(),
            "{path:?}"
        );
        for piece in [1, 187, 1009] {
            assert_eq!(
                demux(&stream, piece).bytes(),
                whole.bytes(),
                "{path:?} by {piece}"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, 3);
}

fn write_seeds(folder: &Path) {
    const SEED_BYTES: usize = 24 * 1024 / 188 * 188;
    fs::create_dir_all(folder).unwrap();
    for (name, options) in [
        (
            "h264-aac",
            "-c:v libx264 -preset ultrafast -bf 2 -g 5 -crf 45 -c:a aac",
        ),
        (
            "hevc-mp3",
            "-c:v libx265 -preset ultrafast -crf 45 -x265-params keyint=5:log-level=none -c:a libmp3lame",
        ),
        (
            "h264-opus",
            "-c:v libx264 -preset ultrafast -bf 0 -g 5 -crf 45 -c:a libopus",
        ),
    ] {
        let made = tempfile::tempdir().unwrap();
        let options = format!("-t 0.5 -s 128x72 {options}");
        let mut stream = fs::read(ffmpeg::stream(made.path(), &options)).unwrap();
        stream.truncate(SEED_BYTES);
        fs::write(folder.join(name), stream).unwrap();
    }
}
