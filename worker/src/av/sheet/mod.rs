//! Storyboards: pictures at even distances on one image, and the WebVTT map that tells a player where each of them is.

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
    still::{self, Developer, Pictures},
};
use crate::image::{Raster, vips};

/// Draws the storyboard (output 0) and writes its map (output 1).
pub(super) fn perform(
    sheet: &Sheet,
    input: &Input,
    outputs: Vec<OwnedFd>,
    limits: &Limits,
    tell: &mut dyn FnMut(Report),
) -> Result<Done, Failure> {
    let facts = probe::probe(input, limits)?;
    let track = facts
        .picture()
        .ok_or_else(|| Failure::new(FailureCode::Impossible, "the file has no moving picture"))?;
    let grid = Grid::new(sheet, track.shown_size(), limits)?;
    let duration_s = facts.duration_s().ok_or_else(|| {
        Failure::new(
            FailureCode::Impossible,
            "nobody knows how long the file lasts, so pictures cannot be spread over it",
        )
    })?;
    let raster = draw(&grid, duration_s, input, &facts, tell)?;
    let image = vips::encode_raster(&raster, &sheet.output)?;
    let image_facts = OutputFacts {
        width: Some(raster.width),
        height: Some(raster.height),
        ..OutputFacts::of(Some(sheet.output.format), image.len())
    };
    let map = map::write(&grid, duration_s, &sheet.image_name).into_bytes();
    let map_facts = OutputFacts::of(None, map.len());
    let results = vec![(image_facts, image), (map_facts, map)];
    still::write(facts, results, outputs, limits)
}

/// Every picture sought where it is; progress by pictures.
fn draw(
    grid: &Grid,
    duration_s: f64,
    input: &Input,
    facts: &MediaFacts,
    tell: &mut dyn FnMut(Report),
) -> Result<Raster, Failure> {
    let mut pictures = Pictures::open(input, facts)?;
    let mut developer = Developer::of(facts);
    let mut canvas = grid.canvas();
    for index in 0..grid.cells {
        let at_s = middle(index, grid.cells, duration_s);
        let picture = pictures.at(at_s, tell)?.ok_or_else(still::no_picture)?;
        let cell = developer.develop(&picture, Some(grid.cell))?;
        grid.paste(&mut canvas, index, &cell);
        tell(Report::Working {
            share: (index + 1) as f32 / (grid.cells + 1) as f32,
        });
    }
    Ok(canvas)
}

/// The time of a picture: the middle of what it stands for.
fn middle(index: u32, of: u32, duration_s: f64) -> f64 {
    (f64::from(index) + 0.5) * duration_s / f64::from(of)
}
