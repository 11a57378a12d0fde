//! Tools on audio: what is joined, taken out and made louder, proved by its tones and its level.

use std::path::PathBuf;

use super::patient;
use crate::support::{
    Failure,
    clips::{Probed, check_copied, clip, decodes, on_disk, packets, samples},
    media::Recipe,
    server::Form,
};

/// Samples a second that everything is read at.
const RATE: usize = 48_000;
/// Tones in Hz, a second each.
const TONES: [f32; 3] = [440.0, 660.0, 990.0];
/// Looked at: the middle of a stretch, where codecs have settled.
const LOOKED_AT: usize = RATE / 5;

fn tone(hertz: f32, extension: &str, codec: &str) -> Result<PathBuf, Failure> {
    let arguments =
        format!("-f lavfi -i sine=frequency={hertz}:sample_rate=48000:duration=1 {codec}");
    clip(&format!("tone-{hertz}.{extension}"), &arguments)
}

/// Returns a stretch around that second.
fn around(samples: &[f32], second: f64) -> &[f32] {
    let middle = (second * RATE as f64) as usize;
    let from = middle.saturating_sub(LOOKED_AT / 2);
    &samples[from.min(samples.len())..(from + LOOKED_AT).min(samples.len())]
}

/// The root of the mean square.
fn level(samples: &[f32]) -> f32 {
    let sum: f32 = samples.iter().map(|sample| sample * sample).sum();
    (sum / samples.len().max(1) as f32).sqrt()
}

/// The frequency of a pure tone, by its zero crossings.
fn hertz(samples: &[f32]) -> f32 {
    let crossings = samples
        .windows(2)
        .filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0));
    crossings.count() as f32 * RATE as f32 / (2 * samples.len().max(1)) as f32
}

fn check_tone(samples: &[f32], second: f64, expected: f32) {
    let found = hertz(around(samples, second));
    assert!(
        (found - expected).abs() < 10.0,
        "{found} Hz instead of {expected} at {second} s"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joined_audio_is_exact() -> Result<(), Failure> {
    let server = patient().await?;
    let api = server.api();
    let mut plain = Form::new().field("gapMs", "500").field("format", "flac");
    let mut mixed = Form::new().field("format", "wav");
    let kinds = [
        ("wav", "-c:a pcm_s16le"),
        ("m4a", "-c:a aac"),
        ("ogg", "-c:a libopus"),
    ];
    for (hertz, (extension, codec)) in TONES.into_iter().zip(kinds) {
        let wave = std::fs::read(tone(hertz, "wav", "-c:a pcm_s16le")?)?;
        plain = plain.file("files", &format!("{hertz}.wav"), &wave);
        let coded = std::fs::read(tone(hertz, extension, codec)?)?;
        mixed = mixed.file("files", &format!("{hertz}.{extension}"), &coded);
    }
    let (_, bytes) = api.result_of("/api/media/concat-audio", plain).await?;
    let joined = on_disk(&bytes, "flac")?;
    decodes(joined.path()).await?;
    let heard = samples(joined.path()).await?;
    // Three seconds and two gaps of half a second, to the sample.
    assert_eq!(heard.len(), 4 * RATE);
    for (index, expected) in TONES.into_iter().enumerate() {
        check_tone(&heard, 1.5 * index as f64 + 0.5, expected);
    }
    for gap_s in [1.0, 2.5] {
        let from = (gap_s * RATE as f64) as usize;
        let gap = &heard[from..from + RATE / 2];
        assert!(
            gap.iter().all(|sample| sample.abs() < 1e-4),
            "noise at {gap_s} s"
        );
        assert!(level(around(&heard, gap_s - 0.2)) > 0.05);
    }

    let (_, bytes) = api.result_of("/api/media/concat-audio", mixed).await?;
    let joined = on_disk(&bytes, "wav")?;
    let heard = samples(joined.path()).await?;
    // The encoder's priming samples are dropped, and up to a frame of AAC with them.
    assert!(
        (3 * RATE - 1_024..3 * RATE + 4_096).contains(&heard.len()),
        "{}",
        heard.len()
    );
    for (index, expected) in TONES.into_iter().enumerate() {
        check_tone(&heard, index as f64 + 0.5, expected);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audio_of_a_video_comes_out_whole() -> Result<(), Failure> {
    let source = Recipe::numbered(0).lasting(10).make()?.mp4;
    let bytes = std::fs::read(&source)?;
    let server = patient().await?;
    let api = server.api();
    for (format, codec) in [
        ("mp3", "mp3"),
        ("m4a", "aac"),
        ("wav", "pcm_s16le"),
        ("ogg", "opus"),
        ("flac", "flac"),
    ] {
        let fields = [("format", format)];
        let (_, audio) = api
            .tool("extract-audio", "clip.mp4", &bytes, &fields)
            .await?;
        let audio = on_disk(&audio, format)?;
        let found = Probed::of(audio.path()).await?;
        assert_eq!((found.codec("audio"), found.codec("video")), (codec, ""));
        assert!(
            (found.duration_s() - 10.0).abs() < 0.1,
            "{format}: {}",
            found.duration_s()
        );
        let heard = samples(audio.path()).await?;
        for second in [0.5, 5.0, 9.5] {
            check_tone(&heard, second, 440.0);
        }
        if format == "m4a" {
            check_copied(&source, audio.path(), "a").await?;
        }
    }
    let silent = std::fs::read(clip("silent.mp4", "VIDEO H264")?)?;
    let form = Form::new().file("file", "silent.mp4", &silent);
    let refused = api.post_form("/api/media/extract-audio", form).await?;
    refused.expect(422)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audio_is_as_loud_as_asked() -> Result<(), Failure> {
    let arguments = "-f lavfi -i sine=frequency=440:sample_rate=48000:duration=6 -c:a pcm_s16le";
    let source = clip("six.wav", arguments)?;
    let video = clip(
        "six.mp4",
        "-f lavfi -i testsrc2=size=160x90:rate=25:duration=6 \
         -f lavfi -i sine=frequency=440:sample_rate=48000:duration=6 H264 -c:a aac",
    )?;
    let server = patient().await?;
    let api = server.api();
    let before = level(around(&samples(&source).await?, 3.0));
    for (source, name, extension) in [(&source, "six.wav", "wav"), (&video, "six.mp4", "mp4")] {
        let bytes = std::fs::read(source)?;
        let mut measured = Vec::new();
        for fields in [
            &[("volume", "0.5")][..],
            &[("volume", "2")],
            &[("fadeIn", "2"), ("fadeOut", "2")],
        ] {
            let (_, adjusted) = api.tool("adjust", name, &bytes, fields).await?;
            let adjusted = on_disk(&adjusted, extension)?;
            decodes(adjusted.path()).await?;
            let heard = samples(adjusted.path()).await?;
            measured
                .push([0.3, 1.0, 3.0, 5.0, 5.7].map(|at_s| level(around(&heard, at_s)) / before));
            if extension == "mp4" {
                let (video_frames, kept) = (
                    packets(&video, "v").await?,
                    packets(adjusted.path(), "v").await?,
                );
                assert_eq!(video_frames.len(), kept.len(), "frames are copied");
            }
        }
        let [half, double, faded] = &measured[..] else {
            unreachable!("three were asked for");
        };
        assert!(
            half.iter().all(|share| (share - 0.5).abs() < 0.03),
            "{half:?}"
        );
        assert!(
            double.iter().all(|share| (share - 2.0).abs() < 0.1),
            "{double:?}"
        );
        assert!((faded[2] - 1.0).abs() < 0.05, "{faded:?}");
        for (edge, towards) in [(0, 1), (4, 3)] {
            let (edge, towards) = (faded[edge], faded[towards]);
            assert!(edge < 0.35 && edge < towards && towards < 0.8, "{faded:?}");
        }
    }
    let (_, even) = api
        .tool(
            "adjust",
            "six.wav",
            &std::fs::read(&source)?,
            &[("normalize", "true")],
        )
        .await?;
    let even = on_disk(&even, "wav")?;
    let loudness = loudness_lufs(even.path()).await?;
    assert!((loudness + 16.0).abs() < 1.0, "{loudness} LUFS");
    Ok(())
}

/// The integrated loudness (EBU R 128), as ffmpeg measures it.
async fn loudness_lufs(path: &std::path::Path) -> Result<f64, Failure> {
    let mut command = tokio::process::Command::new("ffmpeg");
    command.args(["-nostdin", "-hide_banner", "-i"]).arg(path);
    let output = command
        .args(["-af", "ebur128", "-f", "null", "-"])
        .output()
        .await?;
    let said = String::from_utf8_lossy(&output.stderr);
    let (_, summary) = said.rsplit_once("Summary:").ok_or("no summary")?;
    let (_, rest) = summary.split_once("I:").ok_or("no loudness")?;
    let number = rest.split_whitespace().next().ok_or("no loudness")?;
    Ok(number.parse()?)
}
