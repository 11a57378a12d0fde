//! Watermark over every frame of a clip: drawn once, by the code that draws it on images, then composed from memory.

use gst::prelude::*;
use gst_video::{
    VideoFormat, VideoFrameFlags, VideoMeta, VideoOverlayComposition, VideoOverlayFormatFlags,
    VideoOverlayRectangle,
};
use gstreamer as gst;
use gstreamer_video as gst_video;
use sluice_media::task::{Failure, FailureCode, Limits, Watermark};

use crate::{
    av::{internal, sink::make, source::Input},
    image::{Raster, vips},
};

/// The largest file that is read as a watermark's image, in bytes.
const MAX_IMAGE_BYTES: usize = 64 << 20;

/// A watermark with its place.
pub struct PlacedWatermark {
    raster: Raster,
    left: u32,
    top: u32,
}

impl PlacedWatermark {
    /// For frames of that size; `None`: there is nothing to show.
    pub fn make(
        wanted: &Watermark,
        image: Option<&Input>,
        size: (u32, u32),
        limits: &Limits,
    ) -> Result<Option<Self>, Failure> {
        let bytes = image.map(bytes).transpose()?;
        let watermark = vips::placed_watermark(wanted, bytes.as_deref(), size, limits)?;
        Ok(watermark.map(|(raster, (left, top))| Self { raster, left, top }))
    }

    /// The element that lays it over.
    pub fn elements(self) -> Result<Vec<gst::Element>, Failure> {
        let element = make("overlaycomposition")?;
        let composition = self
            .composition()
            .map_err(|error| internal(format!("a watermark cannot be laid over: {error}")))?;
        element.connect("draw", false, move |_| Some(composition.to_value()));
        Ok(vec![element])
    }

    fn composition(self) -> Result<VideoOverlayComposition, gst::glib::BoolError> {
        let Raster {
            width,
            height,
            mut pixels,
            ..
        } = self.raster;
        // Compositions are blue, green, red, alpha.
        for pixel in pixels.as_chunks_mut::<4>().0 {
            pixel.swap(0, 2);
        }
        let mut buffer = gst::Buffer::from_mut_slice(pixels);
        let writable = buffer.get_mut().expect("a new buffer is ours alone");
        VideoMeta::add(
            writable,
            VideoFrameFlags::empty(),
            VideoFormat::Bgra,
            width,
            height,
        )?;
        let rectangle = VideoOverlayRectangle::new_raw(
            &buffer,
            self.left as i32,
            self.top as i32,
            width,
            height,
            VideoOverlayFormatFlags::empty(),
        );
        VideoOverlayComposition::new([&rectangle])
    }
}

fn bytes(image: &Input) -> Result<Vec<u8>, Failure> {
    if image.len() > MAX_IMAGE_BYTES as u64 {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "the watermark's image has {} bytes, at most {MAX_IMAGE_BYTES} are read",
                image.len()
            ),
        ));
    }
    image
        .head(MAX_IMAGE_BYTES)
        .map_err(|error| internal(format!("the watermark's image cannot be read: {error}")))
}
