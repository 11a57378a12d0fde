//! Drawings of audio.

use std::path::Path;

use sluice_media::{
    av::{AvTask, Waveform},
    format::Format,
    task::{Colour, Encode, FailureCode},
};
use sluice_worker::image::Raster;

use super::{
    clips::{self, can_be_made, clip},
    material::{Performed, perform, pixel, raster},
};

const COLOUR: Colour = Colour {
    red: 10,
    green: 120,
    blue: 240,
};

fn waveform(clip: &Path, format: Format) -> Result<Performed, sluice_media::task::Failure> {
    let task = AvTask::Waveform(Waveform {
        width: 100,
        height: 80,
        colour: COLOUR,
        output: Encode::new(format, 90),
    });
    perform(&task, clip)
}

/// Counts the drawn rows of a column.
fn drawn(raster: &Raster, x: u32) -> u32 {
    let alpha = |y: u32| raster.pixels[((y * raster.width + x) * 4 + 3) as usize];
    (0..raster.height).filter(|y| alpha(*y) > 127).count() as u32
}

#[test]
fn columns_follow_the_loudness() {
    if !can_be_made() {
        return;
    }
    // A full tone that fades in over two seconds and stops after three of four.
    let audio = "-f lavfi -i aevalsrc=exprs='0.99*sin(440*2*PI*t)*min(t/2\\,1)*lt(t\\,3)':duration=4:sample_rate=16000";
    for (name, codec) in [
        ("fade.wav", "-c:a pcm_s16le"),
        ("fade.flac", "-c:a flac -sample_fmt s32"),
        ("fade.mp3", "-c:a libmp3lame -b:a 128k"),
        ("fade.mkv", "-c:a pcm_f32le -af pan=stereo|c0=0.1*c0|c1=c0"),
        ("fade.ogg", "-c:a libopus -b:a 96k"),
    ] {
        let performed =
            waveform(&clip(name, &format!("{audio} {codec}")), Format::Png).expect(name);
        let image = raster(&performed.outputs[0], Format::Png);
        assert_eq!((image.width, image.height, image.bands), (100, 80, 4));
        for (x, rows) in [
            (2, 4),
            (12, 20),
            (25, 40),
            (37, 60),
            (60, 79),
            (80, 1),
            (97, 1),
        ] {
            let found = drawn(&image, x);
            assert!(
                found.abs_diff(rows) <= 6,
                "{name}: column {x} has {found} rows"
            );
        }
        assert_eq!(pixel(&image, 60, 40), [10, 120, 240], "{name}");
    }
}

#[test]
fn what_has_no_audio_is_refused_and_silence_is_a_line() {
    if !can_be_made() {
        return;
    }
    let silence = clip(
        "silence.flac",
        "-f lavfi -i anullsrc=r=8000:cl=mono -t 3600",
    );
    let performed = waveform(&silence, Format::Webp).expect("a line");
    let image = raster(&performed.outputs[0], Format::Webp);
    assert!((0..100).all(|x| drawn(&image, x) <= 2));
    assert!(performed.outputs[0].len() < 2_000);

    let silent = clip("silent.mp4", &format!("{} {}", clips::VIDEO, clips::H264));
    let failure = waveform(&silent, Format::Png).err().expect("no audio");
    assert_eq!(failure.code, FailureCode::Impossible);
}
