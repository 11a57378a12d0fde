//! Graphs: decoded and coded branches, exact places, ends.

use std::{fs::File, ops::ControlFlow, os::fd::OwnedFd, path::Path};

use gst::prelude::*;
use gstreamer as gst;
use sluice_media::{
    av::{MediaFacts, Range, Report},
    task::{Failure, FailureCode},
};
use sluice_worker::av::{
    drive,
    graph::{BranchKind, Graph, Want},
    probe::probe,
    sink,
    source::Input,
};

use crate::clips::{self, AUDIO, H264, LIMITS, VIDEO};

const BOTH: Want = Want {
    video: true,
    audio: true,
};
const VIDEO_ONLY: Want = Want {
    video: true,
    audio: false,
};

fn open(path: &Path) -> (Input, MediaFacts) {
    let input = clips::input(path);
    let facts = probe(&input, &LIMITS).unwrap_or_else(|failure| panic!("{path:?}: {failure:?}"));
    (input, facts)
}

fn range(start_s: f64, duration_s: f64) -> Range {
    Range {
        start_s,
        duration_s: Some(duration_s),
        accurate: true,
    }
}

fn add_video_frame_sink(graph: &Graph) -> gstreamer_app::AppSink {
    let sink = sink::to_us(&gst::Caps::builder("video/x-raw").build());
    graph.add_chain(&[sink.upcast_ref()]).expect("a sink");
    graph
        .link(BranchKind::Video, sink.upcast_ref())
        .expect("a link");
    sink
}

/// The presentation times of the frames that come out, in milliseconds of the clip.
fn times(graph: &Graph) -> Result<Vec<u64>, Failure> {
    let sink = add_video_frame_sink(graph);
    let mut times = Vec::new();
    drive::pull_frames(graph, &sink, &mut |sample| {
        let pts = sample.buffer().and_then(|buffer| buffer.pts());
        times.push(pts.expect("a time").mseconds());
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(times)
}

#[test]
fn ranges_are_exact() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let (input, facts) = open(&clips::usual());
    for (range, expected) in [
        (None, (0..20).map(|frame| frame * 100).collect::<Vec<u64>>()),
        (Some(range(0.5, 0.3)), vec![500, 600, 700]),
        (Some(range(1.7, 5.0)), vec![1_700, 1_800, 1_900]),
        (Some(range(0.0, 0.2)), vec![0, 100]),
        // Behind the end.
        (Some(range(9.0, 1.0)), vec![]),
    ] {
        let graph = Graph::decode(&input, &facts, VIDEO_ONLY, range).expect("a graph");
        assert_eq!(graph.branches().len(), 1);
        assert_eq!(times(&graph).expect("frames"), expected, "{range:?}");
    }
}

/// Frames by their own numbers: 25 a second, a key frame each half second; a place that is no key frame.
#[test]
fn every_container_is_sought_exactly() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let source = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=4";
    let audio = "-f lavfi -i sine=frequency=440:duration=4 -shortest";
    for (name, codec) in [
        ("sought.mp4", H264),
        ("sought.mkv", H264),
        ("sought.ts", H264),
        ("sought.avi", "-c:v mpeg4"),
        ("sought.mpg", "-c:v mpeg2video -g 12"),
        ("sought.wmv", "-c:v wmv2 -g 12"),
        ("sought.flv", "-c:v flv1 -g 12"),
    ] {
        let (input, facts) = open(&clips::clip(name, &format!("{source} {audio} {codec}")));
        let whole = Graph::decode(&input, &facts, VIDEO_ONLY, None).expect("a graph");
        let all = times(&whole).expect("frames");
        drop(whole);
        let part = Graph::decode(&input, &facts, VIDEO_ONLY, Some(range(1.28, 0.4)));
        let part = part.expect("a graph");
        let (start, end) = (1_280.0, 1_680.0);
        let origin = part.origin_s() * 1e3;
        let expected: Vec<u64> = all
            .into_iter()
            .filter(|time| (start..end).contains(&(*time as f64 - origin)))
            .collect();
        let found = times(&part).expect("frames");
        // The frame that is seen at the start may come before, cut to begin there.
        let found = &found[found.len().saturating_sub(expected.len())..];
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_graph_goes_from_place_to_place() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let (input, facts) = open(&clips::usual());
    let graph = Graph::decode(&input, &facts, VIDEO_ONLY, None).expect("a graph");
    let sink = add_video_frame_sink(&graph);
    for place_ms in [1_500, 300, 1_900, 0] {
        graph.seek(place_ms as f64 / 1e3, None).expect("a place");
        let mut first = None;
        drive::pull_frames(&graph, &sink, &mut |sample| {
            first = sample.buffer().and_then(|buffer| buffer.pts());
            Ok(ControlFlow::Break(()))
        })
        .expect("a frame");
        assert_eq!(first.expect("a time").mseconds(), place_ms);
    }
}

/// Lets branches through these descriptions of chains into one multiplexer and a file; what was reported on the way.
fn write(graph: &Graph, chains: [&str; 2], mux: &str, file: &OwnedFd) -> Vec<f32> {
    let made = |factory| sink::make(factory).expect("an element");
    let (mux, sink) = (made(mux), sink::to_file(file).expect("a sink"));
    graph.add_chain(&[&mux, &sink]).expect("a chain");
    for (kind, chain) in [BranchKind::Video, BranchKind::Audio]
        .into_iter()
        .zip(chains)
    {
        if graph.branch(kind).is_some() {
            let bin = gst::parse::bin_from_description(chain, true).expect("a chain");
            graph.pipeline.add(&bin).expect("a chain");
            bin.link(&mux).expect("a link");
            graph.link(kind, bin.upcast_ref()).expect("a link");
        }
    }
    let mut shares = Vec::new();
    drive::run(graph, 2.0, &mut |report| match report {
        Report::Working { share } => shares.push(share),
        other => panic!("{other:?}"),
    })
    .expect("an end");
    shares
}

fn written(name: &str, build: impl FnOnce(&OwnedFd)) -> MediaFacts {
    let path = clips::bytes(name, b"");
    let file = File::options().read(true).write(true).open(&path);
    build(&file.expect("a file").into());
    open(&path).1
}

#[test]
fn both_branches_end_in_one_file() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let (input, facts) = open(&clips::usual());
    let encode = [
        "videoconvert ! x264enc speed-preset=ultrafast ! h264parse ! queue",
        "audioconvert ! audioresample ! avenc_aac ! aacparse ! queue",
    ];
    for (range, expected_ms) in [(None, 2_000), (Some(range(0.5, 1.0)), 1_000)] {
        let result = written("encoded.mp4", |file| {
            let graph = Graph::decode(&input, &facts, BOTH, range).expect("a graph");
            let shares = write(&graph, encode, "mp4mux", file);
            assert!(shares.is_sorted(), "{shares:?}");
        });
        assert_eq!((result.video.len(), result.audio.len()), (1, 1));
        let duration = result.duration_ms.expect("a duration");
        assert!(duration.abs_diff(expected_ms) <= 120, "{duration} ms");
    }
}

#[test]
fn coded_tracks_are_copied() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let late = clips::clip(
        "late.ts",
        // The audio's blocks lie far behind the frames that they belong to.
        &format!("{VIDEO} {AUDIO} {H264} -c:a aac -shortest -muxdelay 0"),
    );
    let copy = ["h264parse ! queue", "aacparse ! queue"];
    for path in [clips::usual(), late] {
        let (input, facts) = open(&path);
        let result = written("copied.mkv", |file| {
            let graph = Graph::parse(&input, &facts, BOTH, None).expect("a graph");
            write(&graph, copy, "matroskamux", file);
        });
        assert_eq!(result.video[0].codec, "h264");
        assert_eq!(result.audio[0].codec, "aac");
        let duration = result.duration_ms.expect("a duration");
        assert!(duration.abs_diff(2_000) <= 120, "{path:?}: {duration} ms");
    }
}

#[test]
fn a_copied_range_begins_with_a_key_frame() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let (input, facts) = open(&clips::usual());
    let from = Range {
        start_s: 1.5,
        duration_s: None,
        accurate: false,
    };
    let graph = Graph::parse(&input, &facts, VIDEO_ONLY, Some(from)).expect("a graph");
    let sink = sink::to_us(&gst::Caps::new_any());
    graph.add_chain(&[sink.upcast_ref()]).expect("a sink");
    graph
        .link(BranchKind::Video, sink.upcast_ref())
        .expect("a link");
    let mut flags = Vec::new();
    drive::pull_frames(&graph, &sink, &mut |sample| {
        flags.push(sample.buffer().expect("a buffer").flags());
        Ok(ControlFlow::Continue(()))
    })
    .expect("an end");
    assert_eq!(flags.len(), 10);
    assert!(!flags[0].contains(gst::BufferFlags::DELTA_UNIT));
}

#[test]
fn what_is_not_there_is_not_waited_for() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let silent = clips::clip("silent.mp4", &format!("{VIDEO} {H264}"));
    let (input, facts) = open(&silent);
    let graph = Graph::decode(&input, &facts, BOTH, None).expect("a graph");
    assert_eq!(graph.branches().len(), 1);
    drop(graph);
    let audio = Want {
        video: false,
        audio: true,
    };
    let failure = Graph::decode(&input, &facts, audio, None).expect_err("no audio");
    assert_eq!(failure.code, FailureCode::Impossible);
    // The facts may promise what the file does not keep.
    let (_, usual) = open(&clips::usual());
    let failure = Graph::decode(&input, &usual, BOTH, None).expect_err("no audio");
    assert_eq!(failure.code, FailureCode::UnsupportedType);
}

#[test]
fn many_tracks_are_one_of_each_kind() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let maps = "-map 0 -map 1 ".repeat(12);
    let many = clips::clip(
        "many.mkv",
        &format!("{VIDEO} {AUDIO} {maps} {H264} -c:a aac -shortest"),
    );
    let (input, facts) = open(&many);
    let graph = Graph::decode(&input, &facts, BOTH, None).expect("a graph");
    assert_eq!(graph.branches().len(), 2);
    let decoders = graph.pipeline.iterate_recurse().into_iter().flatten();
    let decoders = decoders.filter(|element| element.name().starts_with("avdec"));
    assert_eq!(decoders.count(), 2);
}

#[test]
fn a_full_disk_is_reported() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let (input, facts) = open(&clips::usual());
    let graph = Graph::parse(&input, &facts, VIDEO_ONLY, None).expect("a graph");
    let full = File::options().write(true).open("/dev/full");
    let full: OwnedFd = full.expect("a device").into();
    let write = sink::to_file(&full).expect("a sink");
    graph.add_chain(&[&write]).expect("a sink");
    graph.link(BranchKind::Video, &write).expect("a link");
    let failure = drive::run(&graph, 2.0, &mut |_| {}).expect_err("a full disk");
    assert_eq!(failure.code, FailureCode::NoSpace);
}
