//! Storyboards of a clip: frames at even distances on one image, and the WebVTT map that gives a player the place of
//! each.

mod grid;
mod map;

use std::os::fd::OwnedFd;

use sluice_media::{
    av::{MediaFacts, Report, Sheet},
    task::{Done, Failure, FailureCode, Limits, OutputFacts},
};

use self::grid::Grid;
use super::{
    probe,
    source::Input,
    still::{self, FrameConverter, FrameReader},
};
use crate::image::{Raster, vips};

/// Draws the storyboard (output 0) and writes its map (output 1).
pub(super) fn perform(
    sheet: &Sheet,
    input: &Input,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    on_report: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let facts = probe::probe(input, limits)?;
    let mut canvas = StoryboardCanvas::new(sheet, &facts, limits)?;
    draw(&mut canvas, input, &facts, on_report)?;
    let results = canvas.finish(sheet)?;
    still::write(facts, results, outputs, limits)
}

/// Every frame sought where it is; progress by frames.
fn draw(
    canvas: &mut StoryboardCanvas,
    input: &Input,
    facts: &MediaFacts,
    on_report: &mut dyn FnMut(Report),
) -> Result<(), Failure> {
    let mut video_frames = FrameReader::open(input, facts)?;
    let mut converter = FrameConverter::of(facts);
    while let Some(at_s) = canvas.next_s() {
        let video_frame = video_frames
            .at(at_s, on_report)?
            .ok_or_else(still::no_video_frame)?;
        canvas.paste(&converter.develop(&video_frame.sample, Some(canvas.cell()))?);
        on_report(Report::Working {
            share: canvas.next as f32 / (canvas.grid.cells + 1) as f32,
        });
    }
    Ok(())
}

/// A storyboard in the making.
pub(super) struct StoryboardCanvas {
    grid: Grid,
    duration_s: f64,
    canvas: Raster,
    /// Frames that are there.
    next: u32,
}

impl StoryboardCanvas {
    /// For the frames of such a clip.
    pub(super) fn new(sheet: &Sheet, facts: &MediaFacts, limits: &Limits) -> Result<Self, Failure> {
        let track = facts
            .video_track()
            .ok_or_else(|| Failure::new(FailureCode::Impossible, "the file has no moving frame"))?;
        let grid = Grid::new(sheet, track.shown_size(), limits)?;
        let duration_s = facts.duration_s().ok_or_else(|| {
            Failure::new(
                FailureCode::Impossible,
                "the duration of the file is unknown, so frames cannot be spread over it",
            )
        })?;
        Ok(Self {
            canvas: grid.canvas(),
            grid,
            duration_s,
            next: 0,
        })
    }

    /// Returns the time of the next frame, the middle of its interval; `None`: all are there.
    pub(super) fn next_s(&self) -> Option<f64> {
        let middle = (f64::from(self.next) + 0.5) * self.duration_s / f64::from(self.grid.cells);
        (self.next < self.grid.cells).then_some(middle)
    }

    /// Width and height of a frame.
    pub(super) fn cell(&self) -> (u32, u32) {
        self.grid.cell
    }

    /// Puts the next frame in its place.
    pub(super) fn paste(&mut self, video_frame: &Raster) {
        self.grid.paste(&mut self.canvas, self.next, video_frame);
        self.next += 1;
    }

    /// The image and its map.
    pub(super) fn finish(self, sheet: &Sheet) -> Result<Vec<(OutputFacts, Vec<u8>)>, Failure> {
        let image = vips::encode_raster(&self.canvas, &sheet.output)?;
        let image_facts = OutputFacts {
            width: Some(self.canvas.width),
            height: Some(self.canvas.height),
            ..OutputFacts::of(Some(sheet.output.format), image.len())
        };
        let map = map::write(&self.grid, self.duration_s, &sheet.image_name).into_bytes();
        let map_facts = OutputFacts::of(None, map.len());
        Ok(vec![(image_facts, image), (map_facts, map)])
    }
}
