//! Operations on audio.

use std::path::Path;

use sluice_media::{
    av::{AudioWork, Concat, Range, Transcode},
    format::Format,
    task::FailureCode,
};

use crate::{
    clips::{H264, VIDEO, alone, can_be_made, chain, clip},
    made::{Made, convert, join, samples, to},
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

/// Returns ffmpeg's measurement: LUFS and dBTP.
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
fn audio_files_are_joined_sample_by_sample() {
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
    let silent = clip("join-silent.mp4", VIDEO);
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
    let failure = join(&[&one, &silent], concat(Format::Wav, 0)).expect_err("no audio");
    assert_eq!(failure.code, FailureCode::Impossible);
    assert!(failure.message.contains("file 2"), "{failure}");
    let failure = join(&[&one], concat(Format::Mp4, 0)).expect_err("no audio format");
    assert_eq!(failure.code, FailureCode::Impossible);
}

/// Hertz, by how often the samples between two times cross zero.
fn pitch(samples: &[f32], from_s: f64, to_s: f64) -> f64 {
    let at = |second: f64| (second * RATE as f64) as usize;
    let stretch = &samples[at(from_s)..at(to_s)];
    let crossings = stretch
        .windows(2)
        .filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0);
    crossings.count() as f64 / (to_s - from_s)
}

fn assert_pitches(made: &Made, expected: &[(f64, f64, f64)]) {
    let found = samples(&made.path);
    for (from_s, to_s, hertz) in expected {
        let pitch = pitch(&found, *from_s, *to_s);
        assert!((pitch - hertz).abs() < 12.0, "{from_s}: {pitch} Hz");
    }
}

#[test]
fn the_parts_of_a_chain_follow_one_another() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    let (opus, vorbis) = ("-c:a libopus", "-c:a libvorbis -ar 48000");
    let other = "-c:a libvorbis -ar 44100 -ac 2";
    let parts = [(0.1, 1.9, 440.0), (2.1, 3.9, 880.0), (4.1, 5.9, 1_320.0)];
    for (name, codecs) in [
        ("parts.opus", [opus, opus, opus]),
        ("parts.ogg", [vorbis, vorbis, vorbis]),
        ("other-parts.ogg", [vorbis, other, vorbis]),
        ("mixed-parts.ogg", [opus, vorbis, opus]),
    ] {
        let chain = chain(name, &codecs);
        // Coded as it is already, too: its parts have headers of their own.
        for format in [
            Format::Wav,
            Format::Flac,
            Format::Ogg,
            Format::Mp3,
            Format::M4a,
        ] {
            let made =
                convert(&chain, to(format)).unwrap_or_else(|it| panic!("{name} {format:?}: {it}"));
            let seconds = made.probed().duration_s();
            assert!((seconds - 6.0).abs() < 0.08, "{name} {format:?}: {seconds}");
            assert_pitches(&made, &parts);
        }
        let work = AudioWork {
            normalize: true,
            ..AudioWork::default()
        };
        let made = convert(&chain, audio(Format::Wav, work)).expect("a conversion");
        assert_pitches(&made, &parts);
        for (start_s, duration_s, expected) in [
            (
                1.0,
                Some(2.0),
                &[(0.05, 0.9, 440.0), (1.1, 1.95, 880.0)][..],
            ),
            (2.5, Some(1.0), &[(0.0, 1.0, 880.0)]),
            (0.0, Some(0.5), &[(0.05, 0.5, 440.0)]),
            (3.0, None, &[(0.0, 0.9, 880.0), (1.1, 2.9, 1_320.0)]),
        ] {
            let cut = Transcode {
                range: Some(Range {
                    start_s,
                    duration_s,
                    accurate: true,
                }),
                ..to(Format::Wav)
            };
            let made = convert(&chain, cut).unwrap_or_else(|it| panic!("{name} {start_s}: {it}"));
            let seconds = samples(&made.path).len() as f64 / RATE as f64;
            let wanted = duration_s.unwrap_or(6.0 - start_s);
            assert!(
                (seconds - wanted).abs() < 0.03,
                "{name} {start_s}: {seconds}"
            );
            assert_pitches(&made, expected);
        }
    }
}

/// An edit list leaves out the priming of an AAC encoder, and the part that a cut without encoding could not remove.
#[test]
fn edit_lists_cost_no_audio() {
    if !can_be_made() {
        return;
    }
    let _alone = alone();
    // A sweep, of which every stretch is another.
    let sweep = "-f lavfi -i aevalsrc=0.5*sin(2*PI*(300*t+150*t*t)):d=6:s=48000";
    let plain = clip("sweep.wav", &format!("{sweep} -c:a pcm_s16le"));
    let plain = samples(&plain);
    let video_frames = "-f lavfi -i testsrc2=size=160x90:rate=25:duration=6";
    let both = format!("{video_frames} {sweep} {H264} -g 100 -c:a aac -b:a 192k");
    let whole = clip("sweep.mp4", &both);
    let copied = format!("-ss 2.3 -i {} -c copy", whole.display());
    let late = clip("late-sweep.mp4", &copied);
    let alone = clip("sweep.m4a", &format!("{sweep} -c:a aac -b:a 192k"));
    let cut = |start_s, duration_s| {
        Some(Range {
            start_s,
            duration_s: Some(duration_s),
            accurate: true,
        })
    };
    for (path, from_s) in [(&whole, 0.0), (&late, 2.3), (&alone, 0.0)] {
        for (range, start_s, end_s) in [
            (None, from_s, 6.0),
            (cut(0.0, 1.0), from_s, from_s + 1.0),
            (cut(1.2, 1.5), from_s + 1.2, from_s + 2.7),
        ] {
            let task = Transcode {
                range,
                ..to(Format::Wav)
            };
            let made = convert(path, task).unwrap_or_else(|it| panic!("{path:?} {range:?}: {it}"));
            let found = samples(&made.path);
            let place = (start_s * RATE as f64) as usize;
            let expected = &plain[place..(end_s * RATE as f64) as usize];
            let missing = expected.len() as f64 - found.len() as f64;
            // A frame's time, to which a cut without encoding may be rounded.
            let tolerance = if *path == late { 0.04 } else { 0.001 } * RATE as f64;
            assert!(
                missing.abs() <= tolerance,
                "{path:?} {range:?}: {missing} samples"
            );
            // The difference of two sweeps that are apart is loud. Behind a seek the decoder's first block lacks the one
            // before it, and a sample may be rounded away; else all is in step from the first sample on.
            let (unlike, loudest) = match range {
                None => (0, 0.001),
                Some(_) => (1_024, 0.03),
            };
            let (mut error, mut energy) = (0.0, 0.0);
            for (one, other) in found.iter().zip(expected).skip(unlike) {
                error += f64::from(one - other).powi(2);
                energy += f64::from(*other).powi(2);
            }
            let share = error / energy;
            if *path != late {
                assert!(share < loudest, "{path:?} {range:?}: {share}");
            }
        }
    }
}
