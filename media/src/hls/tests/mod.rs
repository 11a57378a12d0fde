//! Tests of the packager as a whole: synthetic encoders in, an independent reader of boxes and playlists out.

pub(super) mod encoder;
mod ffmpeg;
mod journal;
mod playlists;
mod properties;
mod reader;
mod sessions;
mod tracks;
mod vod;

use std::time::Duration;

use proptest::test_runner::Config as ProptestConfig;

use super::*;

/// Wall-clock time at which every test begins: 2026-11-21T11:00:00Z.
const NOON_MS: i64 = 1_795_258_800_000;

fn settings(target_duration_s: u32) -> PackagerSettings {
    PackagerSettings {
        part_target: Duration::from_millis(200),
        segment_min: Duration::from_millis(1_900),
        target_duration_s,
        track_wait: Duration::from_secs(1),
    }
}

fn header(target_duration_s: u32) -> Header {
    Header {
        broadcast: "8fJ2".to_owned(),
        started_ms: NOON_MS,
        target_duration_s,
        low_latency: true,
        fence: 1,
        boot_id: "boot".to_owned(),
    }
}

fn window_of(outputs: &[Output], target_duration_s: u32) -> Window {
    let mut window = Window::new(header(target_duration_s));
    outputs.iter().for_each(|output| window.apply(output));
    window
}

/// Returns a configuration of `cases` random cases, or of as many as the environment requests.
fn sampled(cases: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok());
    ProptestConfig {
        cases: asked.unwrap_or(cases),
        failure_persistence: None,
        ..Default::default()
    }
}
