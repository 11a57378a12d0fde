//! Animations of a clip, GIF or animated WebP: frame rate, delays, size; the frames are shown at even distances, in an
//! endless loop.
//!
//! Frames are decoded and reduced first, all of them; libvips begins when the graph has ended (see [`still`]).

use std::os::fd::OwnedFd;

use sluice_media::{
    av::{Animation, MediaFacts, Report},
    format::Format,
    geometry,
    task::{Done, Failure, FailureCode, Fit, Gravity, Limits, Render, Resize},
};

use super::{
    probe,
    source::Input,
    still::{self, FrameConverter, FrameReader},
};
use crate::image::{Raster, vips};

/// Viewers show GIFs whose delays are shorter than two hundredths of a second slowly instead.
const MOST_GIF_RATE: f64 = 50.0;
/// Lowest frame rate, in frames per second.
const LEAST_RATE: f64 = 0.01;
/// The finest step of a GIF's delays, and of a WebP's, in milliseconds.
const GIF_STEP_MS: f64 = 10.0;
const WEBP_STEP_MS: f64 = 1.0;
/// The share of the work that is decoding.
const DECODING: f32 = 0.6;

/// Makes the animation.
pub(super) fn perform(
    animation: &Animation,
    input: &Input,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let facts = probe::probe(input, limits)?;
    let track = facts
        .video_track()
        .ok_or_else(|| Failure::new(FailureCode::Impossible, "the file has no moving frame"))?;
    let reduction = Reduction::new(track.shown_size(), animation.resize.as_ref());
    let sequence = FrameSequence::take(animation, &reduction, input, &facts, limits, on_report)?;
    let render = Render {
        resize: reduction.resize,
        ..Render::new(Format::Png, animation.output)
    };
    let step_ms = step_ms(animation.output.format);
    let delays = sequence.delays(step_ms);
    let count = delays.len() as f32;
    let rasters = sequence
        .rasters
        .into_iter()
        .enumerate()
        .map(|(index, raster)| {
            let done = index as f32 / count;
            on_report(Report::Working {
                share: DECODING + (1.0 - DECODING) * done / 2.0,
            });
            raster
        });
    let duration_ms = delays.iter().map(|delay| delay.unsigned_abs()).sum::<u32>();
    let (mut image, bytes) = vips::animate(&render, rasters, delays, limits)?;
    image.duration_ms = Some(duration_ms.into());
    still::write(facts, vec![(image, bytes)], outputs, limits)
}

fn step_ms(format: Format) -> f64 {
    match format {
        Format::Gif => GIF_STEP_MS,
        _ => WEBP_STEP_MS,
    }
}

/// Reduction of frames while they are decoded, and the remaining scale.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Reduction {
    /// While they are decoded.
    size: (u32, u32),
    resize: Option<Resize>,
    /// Size of the result.
    last: (u32, u32),
}

impl Reduction {
    fn new(shown: (u32, u32), resize: Option<&Resize>) -> Self {
        let Some(resize) = resize else {
            return Self {
                size: shown,
                resize: None,
                last: shown,
            };
        };
        let plan = geometry::plan(shown.0, shown.1, resize, false);
        let shrink = plan.shrink().max(1.0);
        let reduced = |side: u32| (f64::from(side) / shrink).round().max(1.0) as u32;
        // Attention would choose another part of every frame.
        let gravity = match resize.gravity {
            Gravity::Smart => Gravity::CENTER,
            point => point,
        };
        let rest = match resize.fit {
            Fit::Contain => *resize,
            fit => Resize {
                width: Some(plan.width),
                height: Some(plan.height),
                fit: match fit {
                    Fit::Cover if resize.width.is_some() && resize.height.is_some() => Fit::Cover,
                    _ => Fit::Fill,
                },
                ..*resize
            },
        };
        Self {
            size: (reduced(shown.0), reduced(shown.1)),
            resize: Some(Resize { gravity, ..rest }),
            last: plan.size(),
        }
    }
}

/// Frames, and when they are shown.
struct FrameSequence {
    rasters: Vec<Raster>,
    /// The tick at which each begins.
    starts: Vec<u32>,
    ticks: u32,
    duration_s: f64,
}

impl FrameSequence {
    /// Takes the frames of the part asked for, at the rate asked for. One that is shown for longer is taken once.
    fn take(
        animation: &Animation,
        reduction: &Reduction,
        input: &Input,
        facts: &MediaFacts,
        limits: &Limits,
        on_report: &mut dyn FnMut(Report),
    ) -> Result<Self, Failure> {
        animation.range.check_start(facts.duration_s())?;
        let span_s = animation.range.span_s(facts.duration_s());
        let rate = rate(animation);
        let ticks = span_s.map(|seconds| ((seconds * rate).round() as u32).max(1));
        let (width, height) = reduction.last;
        vips::check_animation(width, height, ticks.unwrap_or(1), limits)?;

        let mut video_frames = FrameReader::open(input, facts)?;
        let mut converter = FrameConverter::of(facts);
        let mut sequence = Self {
            rasters: Vec::new(),
            starts: Vec::new(),
            ticks: 0,
            duration_s: 0.0,
        };
        let mut last_s = f64::NAN;
        while ticks.is_none_or(|ticks| sequence.ticks < ticks) {
            let at_s = animation.range.start_s + f64::from(sequence.ticks) / rate;
            let video_frame = video_frames
                .at(at_s, on_report)?
                .ok_or_else(still::no_video_frame)?;
            if video_frame.at_s != last_s {
                last_s = video_frame.at_s;
                vips::check_animation(width, height, sequence.rasters.len() as u32 + 1, limits)?;
                let raster = converter.develop(&video_frame.sample, Some(reduction.size))?;
                sequence.rasters.push(raster);
                sequence.starts.push(sequence.ticks);
            }
            sequence.ticks += 1;
            if ticks.is_none() && video_frames.is_at_end() {
                break;
            }
            let done = ticks.map_or(0.0, |ticks| sequence.ticks as f32 / ticks as f32);
            on_report(Report::Working {
                share: DECODING * done,
            });
        }
        sequence.duration_s = span_s.unwrap_or(f64::from(sequence.ticks) / rate);
        Ok(sequence)
    }

    /// Milliseconds for each frame, in whole steps, so distributed that their sum is that of the part.
    fn delays(&self, step_ms: f64) -> Vec<i32> {
        let steps = (self.duration_s * 1_000.0 / step_ms).round();
        let boundary = |tick: u32| {
            let at = (f64::from(tick) * steps / f64::from(self.ticks)).round();
            (at * step_ms) as i32
        };
        let ends = self.starts.iter().skip(1).chain(Some(&self.ticks));
        let both = self.starts.iter().zip(ends);
        both.map(|(start, end)| boundary(*end) - boundary(*start))
            .collect()
    }
}

fn rate(animation: &Animation) -> f64 {
    let most = match animation.output.format {
        Format::Gif => MOST_GIF_RATE,
        _ => 1_000.0 / WEBP_STEP_MS,
    };
    f64::from(animation.frames_per_second).clamp(LEAST_RATE, most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_add_up() {
        for (starts, ticks, duration_s, step_ms, expected) in [
            (vec![0, 1, 2], 3, 1.0, 10.0, vec![330, 340, 330]),
            (vec![0, 1, 2], 3, 1.0, 1.0, vec![333, 334, 333]),
            (vec![0], 1, 0.04, 10.0, vec![40]),
            (vec![0, 3], 4, 0.4, 10.0, vec![300, 100]),
        ] {
            let sequence = FrameSequence {
                rasters: Vec::new(),
                starts,
                ticks,
                duration_s,
            };
            assert_eq!(sequence.delays(step_ms), expected);
        }
        let sequence = FrameSequence {
            rasters: Vec::new(),
            starts: (0..48).collect(),
            ticks: 48,
            duration_s: 4.0,
        };
        let delays = sequence.delays(GIF_STEP_MS);
        assert_eq!(delays.iter().sum::<i32>(), 4_000);
        assert!(delays.iter().all(|delay| matches!(delay, 80 | 90)));
    }

    #[test]
    fn frames_are_reduced_to_what_the_result_needs() {
        let resize = |width, height, fit| Resize {
            gravity: Gravity::Smart,
            ..Resize::new(width, height, fit)
        };
        for (resize, size, last, fit) in [
            (
                resize(Some(480), None, Fit::Inside),
                (480, 270),
                (480, 270),
                Fit::Fill,
            ),
            (
                resize(Some(99), Some(99), Fit::Cover),
                (176, 99),
                (99, 99),
                Fit::Cover,
            ),
            (
                resize(Some(99), Some(99), Fit::Contain),
                // The side that shrinks less decides.
                (100, 56),
                (99, 99),
                Fit::Contain,
            ),
            (
                resize(Some(4000), None, Fit::Inside),
                (1920, 1080),
                (1920, 1080),
                Fit::Fill,
            ),
        ] {
            let reduction = Reduction::new((1920, 1080), Some(&resize));
            assert_eq!((reduction.size, reduction.last), (size, last));
            let rest = reduction.resize.expect("something is left");
            assert_eq!((rest.fit, rest.gravity), (fit, Gravity::CENTER));
        }
    }
}
