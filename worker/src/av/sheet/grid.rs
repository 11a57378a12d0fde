//! Grid of a storyboard: places and size of its frames, limit of pixels (`image_workers.max_megapixels`).

use sluice_media::{
    av::Sheet,
    task::{Failure, FailureCode, Limits},
};

use crate::image::Raster;

/// Red, green, blue.
const BANDS: usize = 3;

/// A storyboard's form, within the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    pub cells: u32,
    columns: u32,
    /// Width and height of one frame.
    pub cell: (u32, u32),
}

impl Grid {
    /// For frames of that size; none is enlarged.
    pub fn new(sheet: &Sheet, shown: (u32, u32), limits: &Limits) -> Result<Self, Failure> {
        let cells = sheet.frames.max(1);
        let width = sheet.width.clamp(1, shown.0.max(1));
        let height = u64::from(width) * u64::from(shown.1) / u64::from(shown.0.max(1));
        let height = u32::try_from(height.max(1)).unwrap_or(u32::MAX);
        let grid = Self {
            cells,
            columns: sheet.columns.clamp(1, cells),
            cell: (width, height),
        };
        grid.check(limits)?;
        Ok(grid)
    }

    fn check(&self, limits: &Limits) -> Result<(), Failure> {
        let (width, height) = self.sides();
        if width.saturating_mul(height) <= limits.max_pixels {
            return Ok(());
        }
        Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the storyboard would have {width} × {height} pixels; at most {} megapixels are made (image_workers.max_megapixels), so ask for fewer or smaller frames",
                limits.max_pixels / 1_000_000
            ),
        ))
    }

    fn sides(&self) -> (u64, u64) {
        let rows = self.cells.div_ceil(self.columns);
        (
            u64::from(self.columns) * u64::from(self.cell.0),
            u64::from(rows) * u64::from(self.cell.1),
        )
    }

    /// Black, in the size of all.
    pub fn canvas(&self) -> Raster {
        let (width, height) = self.sides();
        Raster {
            width: width as u32,
            height: height as u32,
            bands: BANDS as u8,
            pixels: vec![0; (width * height) as usize * BANDS],
        }
    }

    /// Left and top of a frame, in pixels.
    pub fn place(&self, index: u32) -> (u32, u32) {
        (
            index % self.columns * self.cell.0,
            index / self.columns * self.cell.1,
        )
    }

    /// Puts a frame of the cells' size in its place.
    pub fn paste(&self, canvas: &mut Raster, index: u32, video_frame: &Raster) {
        let (left, top) = self.place(index);
        let row_bytes = video_frame.width as usize * BANDS;
        let across = canvas.width as usize;
        for (row, pixels) in video_frame.pixels.chunks_exact(row_bytes).enumerate() {
            let start = ((top as usize + row) * across + left as usize) * BANDS;
            canvas.pixels[start..start + row_bytes].copy_from_slice(pixels);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use sluice_media::{format::Format, task::Encode};

    use super::*;

    pub fn sheet(frames: u32, columns: u32, width: u32) -> Sheet {
        Sheet {
            frames,
            columns,
            width,
            output: Encode::new(Format::Jpg, 80),
            image_name: "board.jpg".into(),
        }
    }

    pub const NO_LIMITS: Limits = Limits {
        max_pixels: u64::MAX,
        max_frames: u32::MAX,
        max_total_pixels: u64::MAX,
        max_output_bytes: u64::MAX,
        max_members: u32::MAX,
        max_duration_ms: u64::MAX,
        max_side: u32::MAX,
    };

    const LIMITS: Limits = Limits {
        max_pixels: 10_000,
        ..NO_LIMITS
    };

    #[test]
    fn frames_are_in_rows_and_are_not_enlarged() {
        for (frames, columns, width, cell, sides, last) in [
            (5, 2, 16, (16, 9), (32, 27), (0, 18)),
            (1, 4, 16, (16, 9), (16, 9), (0, 0)),
            (4, 4, 999, (32, 18), (128, 18), (96, 0)),
            (3, 0, 1, (1, 1), (1, 3), (0, 2)),
        ] {
            let grid = Grid::new(&sheet(frames, columns, width), (32, 18), &LIMITS).expect("small");
            assert_eq!((grid.cell, grid.sides()), (cell, sides));
            assert_eq!(grid.place(frames - 1), last);
        }
    }

    #[test]
    fn what_is_pasted_is_where_the_map_says() {
        let grid = Grid::new(&sheet(3, 2, 2), (2, 1), &LIMITS).expect("small");
        let mut canvas = grid.canvas();
        for index in 0..3 {
            let cell = Raster {
                width: 2,
                height: 1,
                bands: 3,
                pixels: vec![index as u8 + 1; 6],
            };
            grid.paste(&mut canvas, index, &cell);
        }
        let greens: Vec<u8> = canvas.pixels.iter().skip(1).step_by(3).copied().collect();
        assert_eq!(greens, [1, 1, 2, 2, 3, 3, 0, 0]);
    }

    #[test]
    fn a_giant_is_rejected_by_the_name_of_its_limit() {
        for (frames, width) in [(100, 32), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            let rejected = Grid::new(&sheet(frames, 3, width), (u32::MAX, u32::MAX), &LIMITS);
            let rejected =
                rejected.or_else(|_| Grid::new(&sheet(frames, 3, width), (32, 18), &LIMITS));
            let failure = rejected.expect_err("too many pixels");
            assert_eq!(failure.code, FailureCode::TooLarge);
            assert!(failure.message.contains("image_workers.max_megapixels"));
        }
    }
}
