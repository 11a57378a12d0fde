//! Decoding of an image by Pillow.

use std::{io::Write, time::Duration};

use serde::Deserialize;
use tempfile::NamedTempFile;
use tokio::{process::Command, time::timeout};

use super::{Failure, python, script};

/// Red, green, blue, alpha.
pub type Pixel = [u8; 4];

/// Cells a side of [`DecodedImage::grid`].
const GRID: usize = 4;
/// The start of Python and a second of decoding on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// An image as the independent decoder sees it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DecodedImage {
    /// Pillow's names: `JPEG`, `PNG`, `WEBP`, `AVIF`, `TIFF`, `GIF`, `HEIF`, `JXL`, `BMP`, `ICO`, `TGA`.
    pub format: String,
    pub width: u32,
    pub height: u32,
    /// `RGB`, `RGBA`, `L`, `P`, `CMYK`.
    pub mode: String,
    pub frames: u32,
    pub has_alpha: bool,
    /// Orientation in EXIF; 1 when the image is stored upright.
    pub orientation: u8,
    pub exif_tags: u32,
    /// The description in the embedded ICC profile.
    pub profile: Option<String>,
    /// Mean colours in sRGB of 4×4 cells, row by row, of the first frame.
    grid: Vec<Pixel>,
    /// Delays of an animation, in milliseconds.
    pub delays: Vec<u32>,
    last_grid: Option<Vec<Pixel>>,
}

impl DecodedImage {
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// The corner cells: top left, top right, bottom left, bottom right.
    pub fn corners(&self) -> [Pixel; 4] {
        corners(&self.grid)
    }

    /// Returns the corners of the last frame of an animation.
    pub fn last_corners(&self) -> Option<[Pixel; 4]> {
        self.last_grid.as_deref().map(corners)
    }

    /// Fails unless each corner is within `tolerance` of `expected` in each channel.
    pub fn check_corners(&self, expected: [Pixel; 4], tolerance: u8) -> Result<(), Failure> {
        let found = self.corners();
        if near(found, expected, tolerance) {
            return Ok(());
        }
        Err(format!("corners {found:?}, expected {expected:?}").into())
    }
}

fn corners(grid: &[Pixel]) -> [Pixel; 4] {
    [0, GRID - 1, GRID * (GRID - 1), GRID * GRID - 1].map(|cell| grid[cell])
}

fn near(found: [Pixel; 4], expected: [Pixel; 4], tolerance: u8) -> bool {
    let pairs = found.iter().flatten().zip(expected.iter().flatten());
    pairs.into_iter().all(|(a, b)| a.abs_diff(*b) <= tolerance)
}

/// Decodes an image to its end; a failure holds Pillow's complaint.
pub async fn look(bytes: &[u8]) -> Result<DecodedImage, Failure> {
    let file = written(bytes)?;
    run("look", &[&file]).await
}

/// Returns the mean difference of two images in sRGB, 0 to 255 a channel.
pub async fn difference(first: &[u8], second: &[u8]) -> Result<f64, Failure> {
    let (first, second) = (written(first)?, written(second)?);
    run("difference", &[&first, &second]).await
}

fn written(bytes: &[u8]) -> Result<NamedTempFile, Failure> {
    let mut file = NamedTempFile::new()?;
    file.write_all(bytes)?;
    Ok(file)
}

async fn run<T: for<'a> Deserialize<'a>>(
    what: &str,
    files: &[&NamedTempFile],
) -> Result<T, Failure> {
    let mut command = Command::from(python(script("decode.py")));
    command.arg(what).args(files.iter().map(|file| file.path()));
    let output = timeout(DEADLINE, command.kill_on_drop(true).output()).await??;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let last = complaint.lines().last().unwrap_or_default().to_owned();
        return Err(format!("the independent decoder: {last}").into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
