//! Benchmark of the HLS packager: a 6 Mbit/s 1080p30 stream with AAC, in parts of 200 ms.
//!
//! One iteration is a second of media, so that an iteration's time divided by a second is the share of a core that a
//! stream takes; a fifth of it is the cost of one part.

use std::{hint::black_box, sync::Arc, time::Duration};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    hls::{
        Header, MediaOptions, Output, Packager, PackagerSettings, Window, WindowLimits, journal,
        media_playlist,
    },
    unit::{AudioUnit, Unit, VideoUnit},
};

const FRAME_RATE: usize = 30;
const VIDEO_BYTES_PER_SECOND: usize = 6_000_000 / 8;
const AUDIO_FRAME_BYTES: usize = 340;
const KEY_FRAME_WEIGHT: usize = 8;

fn configurations() -> [Unit; 2] {
    let video = VideoConfig {
        codec: VideoCodec::Avc,
        record: Bytes::from_static(&[1, 0x64, 0, 0x28, 0xff, 0xe0, 0]),
        width: 1_920,
        height: 1_080,
        pixel_aspect: (1, 1),
        frame_rate: Some(FRAME_RATE as f64),
        nal_length_size: 4,
        codecs: "avc1.640028".to_owned(),
        profile: "High".to_owned(),
        level: "4".to_owned(),
        bit_depth: 8,
        may_reorder: Some(false),
    };
    let audio = AudioConfig {
        codec: AudioCodec::Aac,
        record: Bytes::from_static(&[0x11, 0x90]),
        sample_rate: 48_000,
        channels: 2,
        codecs: "mp4a.40.2".to_owned(),
        samples_per_frame: 1_024,
    };
    [
        Unit::VideoConfig(Arc::new(video)),
        Unit::AudioConfig(Arc::new(audio)),
    ]
}

/// The units of second `index`, with a key frame every other second.
fn second(index: usize) -> Vec<Unit> {
    let share = VIDEO_BYTES_PER_SECOND / (FRAME_RATE + KEY_FRAME_WEIGHT / 2);
    let mut timed = Vec::new();
    for video_frame in index * FRAME_RATE..(index + 1) * FRAME_RATE {
        let key = video_frame % (2 * FRAME_RATE) == 0;
        let len = if key { share * KEY_FRAME_WEIGHT } else { share };
        let dts_90k = (video_frame * 1_000 / FRAME_RATE * 90) as i64;
        let data = Bytes::from(vec![video_frame as u8; len]);
        timed.push((
            dts_90k,
            Unit::Video(VideoUnit {
                dts_90k,
                cts_90k: 0,
                key,
                data,
            }),
        ));
    }
    let frames = |seconds: usize| (seconds * 48_000).div_ceil(1_024);
    for frame in frames(index)..frames(index + 1) {
        let pts_90k = (frame * 64 / 3 * 90) as i64;
        let data = Bytes::from(vec![frame as u8; AUDIO_FRAME_BYTES]);
        timed.push((pts_90k, Unit::Audio(AudioUnit { pts_90k, data })));
    }
    timed.sort_by_key(|&(time, _)| time);
    timed.into_iter().map(|(_, unit)| unit).collect()
}

fn packager() -> Packager {
    Packager::new(
        PackagerSettings {
            part_target: Duration::from_millis(200),
            segment_min: Duration::from_millis(1_900),
            target_duration_s: 4,
            track_wait: Duration::from_secs(1),
        },
        None,
    )
}

fn window() -> Window {
    Window::new(Header {
        broadcast: "8fJ2".to_owned(),
        started_ms: 0,
        target_duration_s: 4,
        low_latency: true,
        fence: 1,
        boot_id: "boot".to_owned(),
    })
}

/// A running stream: the packager alone, then with what each part costs beside it.
fn one_second(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("one second of 6 Mbit/s 1080p30");
    group.throughput(Throughput::Elements(5));
    for with_window in [false, true] {
        let name = if with_window {
            "parts, window, journal, playlist"
        } else {
            "parts"
        };
        group.bench_function(name, |bencher| {
            let mut stream = Stream::new(with_window);
            bencher.iter_batched(
                || stream_second(&mut stream.seconds),
                |units| stream_push(&mut stream.packager, &mut stream.beside, units),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

struct Stream {
    packager: Packager,
    beside: Option<Beside>,
    seconds: usize,
}

/// Work of a packager's owner on its outputs.
struct Beside {
    window: Window,
    line: Vec<u8>,
}

impl Stream {
    fn new(with_window: bool) -> Self {
        let mut packager = packager();
        packager.begin_session(&mut Vec::new());
        for unit in configurations() {
            packager.push(unit, 0, &mut Vec::new());
        }
        let beside = with_window.then(|| Beside {
            window: window(),
            line: Vec::new(),
        });
        Self {
            packager,
            beside,
            seconds: 0,
        }
    }
}

fn stream_second(seconds: &mut usize) -> Vec<Unit> {
    *seconds += 1;
    second(*seconds - 1)
}

fn stream_push(packager: &mut Packager, beside: &mut Option<Beside>, units: Vec<Unit>) {
    let mut out = Vec::new();
    for unit in units {
        packager.push(unit, 0, &mut out);
        for output in out.drain(..) {
            if let Some(beside) = beside {
                beside.take(&output);
            }
            black_box(output);
        }
    }
}

impl Beside {
    fn take(&mut self, output: &Output) {
        let keep = WindowLimits {
            list_for: Duration::from_secs(20),
            min_segments: 6,
        };
        self.line.clear();
        journal::encode(&journal::Record::of(output, 0), &mut self.line);
        self.window.apply(output);
        black_box(self.window.retire(keep));
        let snapshot = self.window.clone();
        black_box(media_playlist(&snapshot, MediaOptions::default()));
    }
}

criterion_group!(benches, one_second);
criterion_main!(benches);
