//! Effects of bad links on a good stream: packets lost, repeated, out of order, bytes removed and changed.

use std::{collections::HashSet, fs, sync::OnceLock};

use sluice_ingest::ts::{Demuxer, Limits};

use crate::{Demuxed, demux, ffmpeg};

const VIDEO_PID: u16 = 0x100;

/// A second of H.264 without reordering and AAC.
pub fn good() -> &'static [u8] {
    static GOOD: OnceLock<Vec<u8>> = OnceLock::new();
    GOOD.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let options = "-t 1 -c:v libx264 -preset ultrafast -bf 0 -g 15 -b:v 1M -c:a aac";
        fs::read(ffmpeg::stream(folder.path(), options)).unwrap()
    })
}

fn pid(packet: &[u8]) -> u16 {
    u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff
}

/// Returns the positions of the video's packets that neither start a frame nor are followed by one; without the first
/// frame, whose loss costs its whole group.
fn inner_packets(stream: &[u8]) -> Vec<usize> {
    let video: Vec<usize> = (0..stream.len() / 188)
        .filter(|at| pid(&stream[at * 188..]) == VIDEO_PID)
        .collect();
    let starts = |at: usize| stream[at * 188 + 1] & 0x40 != 0;
    let inner = video
        .windows(2)
        .filter(|pair| !starts(pair[0]) && !starts(pair[1]));
    inner.map(|pair| pair[0]).skip(100).collect()
}

fn without(stream: &[u8], packets: &[usize]) -> Vec<u8> {
    let kept = stream
        .chunks(188)
        .enumerate()
        .filter(|(at, _)| !packets.contains(at));
    kept.flat_map(|(_, packet)| packet.to_vec()).collect()
}

/// Returns how many frames of the good stream are missing, after checking that the others are unchanged.
fn missing_video_frames(demuxed: &Demuxed) -> usize {
    let good = demux(good(), 1316);
    let known: HashSet<_> = good
        .video_frames
        .iter()
        .map(|p| (p.dts_90k, &p.data))
        .collect();
    let unchanged = demuxed
        .video_frames
        .iter()
        .all(|p| known.contains(&(p.dts_90k, &p.data)));
    assert!(unchanged, "no frame is passed on in part");
    assert_eq!(
        good.frames.len(),
        demuxed.frames.len(),
        "audio is untouched"
    );
    good.video_frames.len() - demuxed.video_frames.len()
}

#[test]
fn a_lost_packet_costs_its_frame() {
    let inner = inner_packets(good());
    assert!(inner.len() > 100, "{} packets", inner.len());
    for at in inner.iter().step_by(29) {
        let demuxed = demux(&without(good(), &[*at]), 1316);
        assert_eq!(missing_video_frames(&demuxed), 1, "packet {at}");
        assert_eq!(demuxed.counters.continuity_errors, 1);
        assert_eq!(demuxed.counters.damaged, 1);
        let words = "video frame lost packets on its way";
        assert_eq!(demuxed.last_damage.as_deref(), Some(words));
    }
}

#[test]
fn a_lost_start_costs_two_frames_at_most() {
    let starts: Vec<usize> = (0..good().len() / 188)
        .filter(|at| pid(&good()[at * 188..]) == VIDEO_PID && good()[at * 188 + 1] & 0x40 != 0)
        .collect();
    let demuxed = demux(&without(good(), &starts[7..8]), 1316);
    assert!(missing_video_frames(&demuxed) <= 2);
}

#[test]
fn packets_out_of_order_cost_their_frames_alone() {
    let inner = inner_packets(good());
    for at in inner.iter().step_by(41) {
        let mut stream = good().to_vec();
        let (first, second) = stream[at * 188..].split_at_mut(188);
        first.swap_with_slice(&mut second[..188]);
        let missing = missing_video_frames(&demux(&stream, 1316));
        assert!(missing <= 1, "packet {at}: {missing}");
    }
}

#[test]
fn repeated_packets_cost_nothing() {
    let twice: Vec<u8> = good()
        .chunks(188)
        .flat_map(|packet| [packet, packet].concat())
        .collect();
    let demuxed = demux(&twice, 1316);
    assert_eq!(missing_video_frames(&demuxed), 0);
    assert_eq!(
        (demuxed.counters.continuity_errors, demuxed.counters.damaged),
        (0, 0)
    );
}

#[test]
fn bytes_that_are_cut_out_cost_what_they_touch() {
    let at = inner_packets(good())[50] * 188 + 70;
    let cut = [&good()[..at], &good()[at + 100..]].concat();
    for piece in [1, 188, 1316, 1 << 20] {
        let demuxed = demux(&cut, piece);
        assert_eq!(demuxed.counters.resyncs, 1, "in pieces of {piece}");
        assert!(
            demuxed.video_frames.len() >= 28,
            "{}",
            demuxed.video_frames.len()
        );
    }
}

#[test]
fn a_stream_may_begin_anywhere() {
    let demuxed = demux(&good()[good().len() / 4 + 77..], 1316);
    assert!(
        demuxed
            .video_frames
            .first()
            .is_some_and(|video_frame| video_frame.key)
    );
    assert!(!demuxed.frames.is_empty());
}

#[test]
fn packets_thrown_away_on_this_side_leave_no_half_frame() {
    let inner = inner_packets(good());
    // Sixteen packets of the video's, a loss that its counter does not show.
    let gap = &inner[40..56];
    let mut demuxer = Demuxer::new(Limits::default());
    let mut units = Vec::new();
    demuxer.push(&good()[..gap[0] * 188], &mut units);
    demuxer.skipped();
    demuxer.push(&good()[(gap[15] + 1) * 188..], &mut units);
    demuxer.flush(&mut units);
    let mut demuxed = Demuxed::default();
    demuxed.take(&mut units);
    let whole = demux(good(), 1316);
    let known: HashSet<_> = whole.video_frames.iter().map(|p| &p.data).collect();
    assert!(
        demuxed
            .video_frames
            .iter()
            .all(|video_frame| known.contains(&video_frame.data))
    );
    assert!(demuxed.video_frames.len() < whole.video_frames.len());
    assert!(demuxer.counters().damaged >= 1);
}
