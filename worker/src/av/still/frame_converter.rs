//! Converts decoded frames to images: upright, square pixels, 8-bit sRGB; rotation, pixel aspect, colour matrix and
//! range.
//!
//! Matrix and range (BT.601, BT.709, BT.2020; limited or full) are those of the track. What is of a wider gamut or a higher
//! dynamic range goes through 16 bits and [`hdr`].

use gstreamer as gst;
use gstreamer_video as gst_video;
use sluice_media::{
    av::{MediaFacts, VideoTrack},
    task::Failure,
};

use super::hdr;
use crate::{av::refused, image::Raster};

/// Red, green, blue.
const BANDS: usize = 3;

/// Develops the frames of one track.
pub struct FrameConverter {
    /// Degrees clockwise.
    rotation: u16,
    setup: Option<ConversionSetup>,
}

/// State that is the same for frames of one form.
struct ConversionSetup {
    from: gst_video::VideoInfo,
    to: gst_video::VideoInfo,
    converter: gst_video::VideoConverter,
    light: Option<hdr::TransferFunction>,
}

impl FrameConverter {
    /// For the track that counts as the frame.
    pub fn of(facts: &MediaFacts) -> Self {
        Self {
            rotation: facts.video_track().map_or(0, |track| track.rotation),
            setup: None,
        }
    }

    /// For frames that were turned already.
    pub fn upright() -> Self {
        Self {
            rotation: 0,
            setup: None,
        }
    }

    /// The frame in that size, or in its own.
    pub fn develop(
        &mut self,
        video_frame: &gst::Sample,
        size: Option<(u32, u32)>,
    ) -> Result<Raster, Failure> {
        let from = info_of(video_frame)?;
        let (width, height) = size.unwrap_or_else(|| shown_size(&from, self.rotation));
        let stored = match self.rotation {
            90 | 270 => (height, width),
            _ => (width, height),
        };
        let raster = self.setup(from, stored)?.develop(video_frame)?;
        Ok(turned(raster, self.rotation))
    }

    fn setup(
        &mut self,
        from: gst_video::VideoInfo,
        size: (u32, u32),
    ) -> Result<&ConversionSetup, Failure> {
        let fits = |setup: &ConversionSetup| {
            setup.from == from && (setup.to.width(), setup.to.height()) == size
        };
        let setup = match self.setup.take().filter(fits) {
            Some(setup) => setup,
            None => ConversionSetup::new(from, size)?,
        };
        Ok(self.setup.insert(setup))
    }
}

impl ConversionSetup {
    fn new(from: gst_video::VideoInfo, (width, height): (u32, u32)) -> Result<Self, Failure> {
        let light = hdr::TransferFunction::of(&from.colorimetry());
        let format = match light {
            Some(_) => gst_video::VideoFormat::Argb64,
            None => gst_video::VideoFormat::Rgb,
        };
        // A converter changes neither rate nor fields.
        let to = gst_video::VideoInfo::builder(format, width, height)
            .fps(from.fps())
            .interlace_mode(from.interlace_mode())
            .build()
            .map_err(|_| refused("a decoded frame has no usual form"))?;
        let converter = gst_video::VideoConverter::new(&from, &to, None)
            .map_err(|_| refused("a decoded frame has no usual form"))?;
        Ok(Self {
            from,
            to,
            converter,
            light,
        })
    }

    fn develop(&self, video_frame: &gst::Sample) -> Result<Raster, Failure> {
        let unreadable = || refused("a decoded frame cannot be read");
        let source = video_frame.buffer().ok_or_else(unreadable)?;
        let source = gst_video::VideoFrameRef::from_buffer_ref_readable(source, &self.from)
            .map_err(|_| unreadable())?;
        let mut buffer = gst::Buffer::with_size(self.to.size())
            .map_err(|_| refused("a decoded frame has no usual form"))?;
        let target = buffer.get_mut().expect("a new buffer has one owner");
        let mut target = gst_video::VideoFrameRef::from_buffer_ref_writable(target, &self.to)
            .map_err(|_| unreadable())?;
        self.converter.frame_ref(&source, &mut target);
        let stride = self.to.stride()[0].unsigned_abs() as usize;
        let rows = target.plane_data(0).map_err(|_| unreadable())?;
        let rows = rows.chunks(stride).take(self.to.height() as usize);
        let width = self.to.width() as usize;
        let mut pixels = Vec::with_capacity(width * self.to.height() as usize * BANDS);
        for row in rows {
            match &self.light {
                None => pixels.extend_from_slice(&row[..width * BANDS]),
                Some(light) => light.develop(&row[..width * hdr::PIXEL_BYTES], &mut pixels),
            }
        }
        Ok(Raster {
            width: self.to.width(),
            height: self.to.height(),
            bands: BANDS as u8,
            pixels,
        })
    }
}

fn info_of(video_frame: &gst::Sample) -> Result<gst_video::VideoInfo, Failure> {
    video_frame
        .caps()
        .and_then(|caps| gst_video::VideoInfo::from_caps(caps).ok())
        .ok_or_else(|| refused("a decoded frame has no form"))
}

fn shown_size(info: &gst_video::VideoInfo, rotation: u16) -> (u32, u32) {
    let aspect = info.par();
    let track = VideoTrack {
        width: info.width(),
        height: info.height(),
        pixel_aspect: (aspect.numer().unsigned_abs(), aspect.denom().unsigned_abs()),
        rotation,
        ..VideoTrack::default()
    };
    track.shown_size()
}

/// Turned clockwise by a whole number of quarters.
fn turned(raster: Raster, degrees: u16) -> Raster {
    let (width, height) = (raster.width as usize, raster.height as usize);
    // Where the pixel in a row and a column of the result comes from.
    let from: fn(usize, usize, usize, usize) -> (usize, usize) = match degrees {
        90 => |row, column, _, height| (height - 1 - column, row),
        180 => |row, column, width, height| (height - 1 - row, width - 1 - column),
        270 => |row, column, width, _| (column, width - 1 - row),
        _ => return raster,
    };
    let (across, down) = match degrees {
        180 => (width, height),
        _ => (height, width),
    };
    let mut pixels = Vec::with_capacity(raster.pixels.len());
    for row in 0..down {
        for column in 0..across {
            let (row, column) = from(row, column, width, height);
            let start = (row * width + column) * BANDS;
            pixels.extend_from_slice(&raster.pixels[start..start + BANDS]);
        }
    }
    Raster {
        width: across as u32,
        height: down as u32,
        pixels,
        ..raster
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarters_turn_clockwise() {
        // a b c
        // d e f
        let pixels = |text: &str| -> Vec<u8> { text.bytes().flat_map(|byte| [byte; 3]).collect() };
        let raster = Raster {
            width: 3,
            height: 2,
            bands: 3,
            pixels: pixels("abcdef"),
        };
        for (degrees, size, expected) in [
            (0, (3, 2), "abcdef"),
            (90, (2, 3), "daebfc"),
            (180, (3, 2), "fedcba"),
            (270, (2, 3), "cfbead"),
        ] {
            let turned = turned(raster.clone(), degrees);
            assert_eq!((turned.width, turned.height), size, "{degrees}");
            assert_eq!(turned.pixels, pixels(expected), "{degrees}");
        }
    }
}
