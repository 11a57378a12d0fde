//! What is done to sound.

use std::path::Path;

use sluice_media::{
    av::{AudioWork, Concat, Transcode},
    format::Format,
    task::FailureCode,
};

use crate::{
    clips::{PICTURES, alone, can_be_made, clip},
    made::{convert, join, samples, to},
};

const RATE: usize = 48_000;

fn audio(format: Format, audio: AudioWork) -> Transcode {
    Transcode {
        audio,
        ..to(format)
    }
}

/// The largest sample between two times.
fn peak(samples: &[f32], from_s: f64, to_s: f64) -> f32 {
    let at = |second: f64| ((second * RATE as f64) as usize).min(samples.len());
    samples[at(from_s)..at(to_s)]
        .iter()
        .fold(0.0, |peak, sample| sample.abs().max(peak))
}

/// What ffmpeg measures: LUFS and dBTP.
fn loudness(path: &Path) -> (f64, f64) {
    let output = std::process::Command::new("ffmpeg")
        .args(["-nostdin", "-hide_banner", "-i"])
        .arg(path)
        .args(["-af", "ebur128=peak=true", "-f", "null", "-"])
        .output()
        .expect("ffmpeg runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = said.rsplit("Summary:").next().expect("a summary");
    let value = |name: &str| {
        let rest = summary.split(name).nth(1).expect("a value");
        let word = rest.split_whitespace().next().expect("a word");
        word.parse::<f64>().expect("a number")
    };
    (value("I:"), value("Peak:"))
}

#[test]
fn volume_and_fades_shape_the_samples() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let clip = clip(
        "tone.wav",
        "-f lavfi -i sine=frequency=1000:duration=4:sample_rate=48000 -c:a pcm_s16le",
    );
    let plain = peak(&samples(&clip), 0.0, 4.0);
    let work = AudioWork {
        volume: 2.0,
        fade_in_s: 1.0,
        fade_out_s: 2.0,
        ..AudioWork::default()
    };
    let made = convert(&clip, audio(Format::Flac, work)).expect("a conversion");
    let found = samples(&made.path);
    assert_eq!(found.len(), 4 * RATE);
    for (from_s, to_s, expected) in [
        (0.0, 0.01, 0.02),
        (0.49, 0.51, 1.0),
        (1.2, 1.9, 2.0),
        (2.99, 3.01, 1.0),
        (3.99, 4.0, 0.01),
    ] {
        let share = peak(&found, from_s, to_s) / plain;
        assert!((share - expected).abs() < 0.05, "{from_s}: {share}");
    }
    assert!(made.shares.is_sorted());
}

#[test]
fn loudness_is_brought_to_sixteen_below_full_scale() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    // A quiet tone with one bang, and a loud one.
    for (name, source) in [
        (
            "quiet.wav",
            "aevalsrc=0.05*sin(2800*t)+0.6*between(t\\,2\\,2.002)*sin(2000*t):d=6:s=48000",
        ),
        ("loud.wav", "aevalsrc=0.9*sin(2800*t):d=4:s=48000"),
    ] {
        let clip = clip(name, &format!("-f lavfi -i {source} -ac 2 -c:a pcm_s16le"));
        let work = AudioWork {
            normalize: true,
            ..AudioWork::default()
        };
        // What an encoder that loses something adds to a peak is not known before.
        for (format, ceiling) in [(Format::Wav, -1.0), (Format::Mp4, 0.0)] {
            let made = convert(&clip, audio(format, work)).expect("a conversion");
            let (integrated, peak) = loudness(&made.path);
            assert!(
                (integrated + 16.0).abs() < 1.0,
                "{name} {format:?}: {integrated} LUFS"
            );
            assert!(peak < ceiling, "{name} {format:?}: {peak} dBTP");
        }
    }
}

#[test]
fn sounds_are_joined_sample_by_sample() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let one = clip(
        "join-1.wav",
        "-f lavfi -i sine=frequency=500:duration=1:sample_rate=48000 -c:a pcm_s16le",
    );
    let two = clip(
        "join-2.wav",
        "-f lavfi -i sine=frequency=900:duration=0.5:sample_rate=48000 -c:a pcm_s16le",
    );
    let other = clip(
        "join-3.mp3",
        "-f lavfi -i sine=frequency=700:duration=1:sample_rate=22050 -ac 2 -c:a libmp3lame",
    );
    let silent = clip("join-silent.mp4", PICTURES);
    let concat = |format, gap_ms| Concat {
        format,
        bitrate_kbps: None,
        gap_ms,
    };
    for format in [Format::Wav, Format::Flac] {
        let made = join(&[&one, &two, &one], concat(format, 250)).expect("joined");
        let gap = vec![0.0; RATE / 4];
        let expected = [
            samples(&one),
            gap.clone(),
            samples(&two),
            gap,
            samples(&one),
        ]
        .concat();
        assert!(samples(&made.path) == expected, "{format:?}");
        assert_eq!(made.done.outputs[0].duration_ms, Some(3_000));
    }
    for format in [Format::Mp3, Format::M4a, Format::Ogg] {
        let made = join(&[&one, &other], concat(format, 0)).expect("joined");
        let probed = made.probed();
        assert_eq!(probed.number("audio", "channels"), 2, "{format:?}");
        assert!(
            (probed.duration_s() - 2.0).abs() < 0.15,
            "{format:?}: {}",
            probed.duration_s()
        );
    }
    let failure = join(&[&one, &silent], concat(Format::Wav, 0)).expect_err("no sound");
    assert_eq!(failure.code, FailureCode::Impossible);
    assert!(failure.message.contains("file 2"), "{failure}");
    let failure = join(&[&one], concat(Format::Mp4, 0)).expect_err("no audio format");
    assert_eq!(failure.code, FailureCode::Impossible);
}
