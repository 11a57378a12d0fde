//! Light and colour of video frames: brightness, contrast, saturation, hue, grayscale, invert, blur, sharpen. They mean
//! the same as for images: changes that are linear in red, green and blue are linear in luma and chroma too.

use gst::prelude::*;
use gst_video::{VideoColorRange, VideoFrameRef, VideoInfo, prelude::*};
use gstreamer as gst;
use gstreamer_video as gst_video;
use parking_lot::Mutex;
use sluice_media::task::Adjust;

use super::kernel::{Kernel, Plane};

/// Middle grey, about which contrast turns, and where chroma is none.
const MIDDLE: f32 = 128.0;
/// Share of the smoothed detail that is added to sharpen.
const SHARPENING: i32 = 1;

/// Changes the frames that pass an element.
pub fn apply(element: &gst::Element, adjust: &Adjust) {
    let pad = element.static_pad("src").expect("a filter has two pads");
    let adjust = *adjust;
    // One thread streams through a pad, but its probe may not know that.
    let work: Mutex<Option<(gst::Caps, VideoInfo, Tone)>> = Mutex::new(None);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let Some(gst::PadProbeData::Buffer(buffer)) = &mut info.data else {
            return gst::PadProbeReturn::Ok;
        };
        let mut work = work.lock();
        let caps = pad.current_caps();
        if work.as_ref().map(|(known, ..)| known) != caps.as_ref() {
            *work = caps.and_then(|caps| {
                let info = VideoInfo::from_caps(&caps).ok()?;
                let is_full = info.colorimetry().range() == VideoColorRange::Range0_255;
                Some((caps, info, Tone::new(&adjust, is_full)))
            });
        }
        if let Some((_, info, tone)) = &mut *work
            && let Ok(mut frame) = VideoFrameRef::from_buffer_ref_writable(buffer.make_mut(), info)
        {
            tone.change(&mut frame);
        }
        gst::PadProbeReturn::Ok
    });
}

/// The changes, ready to be applied to values of one range.
struct Tone {
    blur: Option<[Kernel; 2]>,
    sharpen: Option<Kernel>,
    luma: [u8; 256],
    /// From both chroma values, about the middle, to each of them.
    chroma: [[f32; 2]; 2],
    rows: Vec<u8>,
    smooth: Vec<u8>,
}

const UNCHANGED_CHROMA: [[f32; 2]; 2] = [[1.0, 0.0], [0.0, 1.0]];

impl Tone {
    fn new(adjust: &Adjust, is_full: bool) -> Self {
        let &Adjust {
            blur,
            sharpen,
            // In `luma` and `chroma`.
            brightness: _,
            contrast: _,
            saturation: _,
            hue: _,
            grayscale: _,
            invert: _,
        } = adjust;
        // Chroma has half the rows and columns.
        let kernels = Kernel::new(blur).zip(Kernel::new((blur / 2.0).max(0.2)));
        Self {
            blur: kernels
                .filter(|_| blur > 0.0)
                .map(|(luma, chroma)| [luma, chroma]),
            sharpen: Kernel::new(sharpen).filter(|_| sharpen > 0.0),
            luma: luma(adjust, is_full),
            chroma: chroma(adjust),
            rows: Vec::new(),
            smooth: Vec::new(),
        }
    }

    fn change(&mut self, frame: &mut VideoFrameRef<&mut gst::BufferRef>) {
        for component in 0..3_u32 {
            let width = frame.comp_width(component) as usize;
            let height = frame.comp_height(component) as usize;
            let stride = frame.plane_stride()[component as usize] as usize;
            if let Ok(values) = frame.plane_data_mut(component) {
                self.change_plane(
                    component,
                    &mut Plane {
                        values,
                        width,
                        height,
                        stride,
                    },
                );
            }
        }
        if self.chroma != UNCHANGED_CHROMA {
            self.change_chroma(frame);
        }
    }

    fn change_plane(&mut self, component: u32, plane: &mut Plane<'_>) {
        let is_luma = component == 0;
        if let Some(kernels) = &self.blur {
            kernels[usize::from(!is_luma)].smooth(plane, &mut self.rows, &mut self.smooth);
            for_each(plane, &self.smooth, |_, smooth| smooth);
        }
        if !is_luma {
            return;
        }
        if let Some(kernel) = &self.sharpen {
            kernel.smooth(plane, &mut self.rows, &mut self.smooth);
            for_each(plane, &self.smooth, |value, smooth| {
                let edge = i32::from(value) - i32::from(smooth);
                (i32::from(value) + SHARPENING * edge).clamp(0, 255) as u8
            });
        }
        for row in plane.values.chunks_mut(plane.stride).take(plane.height) {
            for value in &mut row[..plane.width] {
                *value = self.luma[usize::from(*value)];
            }
        }
    }

    fn change_chroma(&self, frame: &mut VideoFrameRef<&mut gst::BufferRef>) {
        let width = frame.comp_width(1) as usize;
        let height = frame.comp_height(1) as usize;
        let strides = [1, 2].map(|plane| frame.plane_stride()[plane] as usize);
        let [_, blue, red, _] = frame.planes_data_mut();
        for y in 0..height {
            let blue = &mut blue[y * strides[0]..][..width];
            let red = &mut red[y * strides[1]..][..width];
            for (blue, red) in blue.iter_mut().zip(red) {
                let from = [f32::from(*blue) - MIDDLE, f32::from(*red) - MIDDLE];
                let [to_blue, to_red] = self
                    .chroma
                    .map(|row| (row[0] * from[0] + row[1] * from[1] + MIDDLE).round());
                (*blue, *red) = (to_blue as u8, to_red as u8);
            }
        }
    }
}

/// Sets every value by itself and its smoothed self.
fn for_each(plane: &mut Plane<'_>, smooth: &[u8], change: impl Fn(u8, u8) -> u8) {
    let rows = plane.values.chunks_mut(plane.stride).take(plane.height);
    for (row, smooth) in rows.zip(smooth.chunks(plane.width.max(1))) {
        for (value, smooth) in row.iter_mut().zip(smooth) {
            *value = change(*value, *smooth);
        }
    }
}

/// Returns the result of each luma value.
fn luma(adjust: &Adjust, is_full: bool) -> [u8; 256] {
    let (black, white) = if is_full { (0.0, 255.0) } else { (16.0, 235.0) };
    let is_changed = adjust.brightness != 1.0 || adjust.contrast != 1.0 || adjust.invert;
    std::array::from_fn(|value| {
        if !is_changed {
            return value as u8;
        }
        let light = (value as f32 - black) / (white - black) * 255.0;
        let factor = adjust.brightness * adjust.contrast;
        let mut light = (light * factor + MIDDLE * (1.0 - adjust.contrast)).clamp(0.0, 255.0);
        if adjust.invert {
            light = 255.0 - light;
        }
        (black + light / 255.0 * (white - black)).round() as u8
    })
}

/// Saturation and hue are length and angle of chroma; whatever light is multiplied by, chroma is too.
fn chroma(adjust: &Adjust) -> [[f32; 2]; 2] {
    if adjust.grayscale {
        return [[0.0; 2]; 2];
    }
    let mut length = adjust.brightness * adjust.contrast * adjust.saturation;
    if adjust.invert {
        length = -length;
    }
    let (sine, cosine) = (adjust.hue % 360.0).to_radians().sin_cos();
    [
        [length * cosine, -length * sine],
        [length * sine, length * cosine],
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn light_changes_as_that_of_images_does() {
        let unchanged = Adjust::default();
        let cases = [
            (unchanged, true, 200, 200),
            (unchanged, false, 255, 255),
            (
                Adjust {
                    brightness: 2.0,
                    ..unchanged
                },
                true,
                100,
                200,
            ),
            (
                Adjust {
                    brightness: 2.0,
                    ..unchanged
                },
                true,
                200,
                255,
            ),
            (
                Adjust {
                    brightness: 2.0,
                    ..unchanged
                },
                false,
                16,
                16,
            ),
            (
                Adjust {
                    brightness: 0.0,
                    ..unchanged
                },
                false,
                235,
                16,
            ),
            (
                Adjust {
                    contrast: 0.0,
                    ..unchanged
                },
                true,
                7,
                128,
            ),
            (
                Adjust {
                    contrast: 2.0,
                    ..unchanged
                },
                true,
                128,
                128,
            ),
            (
                Adjust {
                    contrast: 2.0,
                    ..unchanged
                },
                true,
                100,
                72,
            ),
            (
                Adjust {
                    invert: true,
                    ..unchanged
                },
                true,
                30,
                225,
            ),
            (
                Adjust {
                    invert: true,
                    ..unchanged
                },
                false,
                235,
                16,
            ),
        ];
        for (adjust, is_full, from, to) in cases {
            assert_eq!(luma(&adjust, is_full)[from], to, "{from} {adjust:?}");
        }
    }

    #[test]
    fn chroma_turns_grows_and_vanishes() {
        let unchanged = Adjust::default();
        let cases = [
            (unchanged, UNCHANGED_CHROMA),
            (
                Adjust {
                    saturation: 0.5,
                    ..unchanged
                },
                [[0.5, 0.0], [0.0, 0.5]],
            ),
            (
                Adjust {
                    hue: 90.0,
                    ..unchanged
                },
                [[0.0, -1.0], [1.0, 0.0]],
            ),
            (
                Adjust {
                    hue: -270.0,
                    ..unchanged
                },
                [[0.0, -1.0], [1.0, 0.0]],
            ),
            (
                Adjust {
                    invert: true,
                    ..unchanged
                },
                [[-1.0, 0.0], [0.0, -1.0]],
            ),
            (
                Adjust {
                    grayscale: true,
                    hue: 40.0,
                    ..unchanged
                },
                [[0.0, 0.0], [0.0, 0.0]],
            ),
        ];
        for (adjust, expected) in cases {
            let found = chroma(&adjust);
            let is_near = found
                .iter()
                .flatten()
                .zip(expected.iter().flatten())
                .all(|(one, other)| (one - other).abs() < 1e-5);
            assert!(is_near, "{adjust:?}: {found:?}");
        }
    }
}
