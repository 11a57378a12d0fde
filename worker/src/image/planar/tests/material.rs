//! JPEGs of every kind, drawn plane by plane, and profiles made byte by byte.

use sluice_media::format::Format;
use sluice_media::task::{Effort, Encode, Fit, Limits, Render, Resize};

use crate::image::planar::codec::{Compressor, Settings, YuvImage};
use crate::image::planar::plane::Sampling;

pub const LIMITS: Limits = Limits {
    max_pixels: 1_000_000,
    max_frames: 10,
    max_total_pixels: 1_000_000,
    max_output_bytes: 1 << 20,
    max_members: 10,
    max_duration_ms: 0,
    max_side: 0,
};

/// Every sampling that JPEG encoders in use write.
pub const SAMPLINGS: [Sampling; 7] = [
    Sampling::Grey,
    Sampling::FULL,
    Sampling::HALVED,
    Sampling::Colour { across: 2, down: 1 },
    Sampling::Colour { across: 1, down: 2 },
    Sampling::Colour { across: 4, down: 1 },
    Sampling::Colour { across: 1, down: 4 },
];

/// Properties of a made JPEG.
#[derive(Clone, Copy, Debug)]
pub struct Jpeg {
    pub width: u32,
    pub height: u32,
    pub sampling: Sampling,
    pub progressive: bool,
    /// EXIF; 0 writes none.
    pub orientation: u8,
}

impl Jpeg {
    pub fn new(width: u32, height: u32) -> Self {
        Self {
            width,
            height,
            sampling: Sampling::HALVED,
            progressive: false,
            orientation: 0,
        }
    }

    /// Small images have little slope in their colours: libjpeg repeats the colour of up to four pixels, the planar path
    /// goes from one to the next, and neither is wrong.
    fn calmness(&self) -> f64 {
        (f64::from(self.width.min(self.height)) / 64.0).min(1.0)
    }

    /// Slopes and slow waves that differ in each plane and have no symmetry.
    pub fn bytes(&self) -> Vec<u8> {
        let size = (self.width, self.height);
        let planes = [0, 1, 2].map(|component| {
            let (columns, rows) = self.sampling.plane_size(size, component);
            let (across, down) = self.sampling.pitch(component);
            (0..columns * rows)
                .map(|place| {
                    let middle = |index: u32, pitch: u32, length: u32| {
                        (f64::from(index * pitch) + f64::from(pitch) / 2.0) / f64::from(length)
                    };
                    let x = middle(place % columns, across, self.width);
                    let y = middle(place / columns, down, self.height);
                    level(component, x, y, self.calmness())
                })
                .collect::<Vec<u8>>()
        });
        let image = YuvImage::new(size, self.sampling, [&planes[0], &planes[1], &planes[2]])
            .expect("planes of the right size");
        let mut compressor = Compressor::new().expect("an encoder");
        compressor.progressive(self.progressive).expect("a setting");
        let settings = Settings {
            quality: 97,
            effort: Effort::Balanced,
        };
        let jpeg = compressor.encode(&image, settings).expect("a JPEG");
        match self.orientation {
            0 => jpeg,
            orientation => with_segment(&jpeg, 0xe1, &exif(orientation)),
        }
    }
}

fn level(component: usize, x: f64, y: f64, calmness: f64) -> u8 {
    let wave = |cycles: f64, at: f64| (cycles * at * std::f64::consts::TAU).sin();
    let value = match component {
        0 => 60.0 + 110.0 * x + 40.0 * y * y + 20.0 * wave(1.0, x + 0.3 * y),
        1 => 90.0 + calmness * (70.0 * y + 10.0 * wave(0.7, x)),
        _ => 170.0 - calmness * (80.0 * x * y + 20.0 * y),
    };
    value.clamp(0.0, 255.0) as u8
}

/// A JPEG with one more segment behind its start.
pub fn with_segment(jpeg: &[u8], marker: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len() + 2).expect("a short segment");
    let mut bytes = jpeg[..2].to_vec();
    bytes.extend([0xff, marker]);
    bytes.extend(length.to_be_bytes());
    bytes.extend(body);
    bytes.extend(&jpeg[2..]);
    bytes
}

fn exif(orientation: u8) -> Vec<u8> {
    let mut bytes = b"Exif\0\0MM\0*\0\0\0\x08\0\x01".to_vec();
    bytes.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]);
    bytes.extend([0; 4]);
    bytes
}

/// The colorants of sRGB and of Display P3.
pub const SRGB: [[f64; 3]; 3] = [
    [0.4361, 0.2225, 0.0139],
    [0.3851, 0.7169, 0.0971],
    [0.1431, 0.0606, 0.7139],
];
pub const DISPLAY_P3: [[f64; 3]; 3] = [
    [0.5151, 0.2412, -0.0011],
    [0.2920, 0.6922, 0.0419],
    [0.1571, 0.0666, 0.7841],
];

/// sRGB's curve as five parameters, and a plain exponent.
pub const SRGB_CURVE: &[f64] = &[2.4, 1.0 / 1.055, 0.055 / 1.055, 1.0 / 12.92, 0.040_45];
pub const GAMMA_2_2: &[f64] = &[2.2];

/// A matrix profile of a display.
pub fn profile(colorants: [[f64; 3]; 3], curve: &[f64]) -> Vec<u8> {
    let fixed = |value: &f64| ((value * 65_536.0).round() as i32).to_be_bytes();
    let mut tags: Vec<(&[u8; 4], Vec<u8>)> = Vec::new();
    for (name, colorant) in [b"rXYZ", b"gXYZ", b"bXYZ"].into_iter().zip(&colorants) {
        let mut body = b"XYZ \0\0\0\0".to_vec();
        body.extend(colorant.iter().flat_map(fixed));
        tags.push((name, body));
    }
    let kind = if curve.len() == 1 { 0 } else { 3 };
    for name in [b"rTRC", b"gTRC", b"bTRC"] {
        let mut body = b"para\0\0\0\0\0".to_vec();
        body.extend([kind, 0, 0]);
        body.extend(curve.iter().flat_map(fixed));
        tags.push((name, body));
    }
    let mut icc = vec![0; 128];
    icc[12..24].copy_from_slice(b"mntrRGB XYZ ");
    icc[36..40].copy_from_slice(b"acsp");
    icc.extend((tags.len() as u32).to_be_bytes());
    let mut start = icc.len() + 12 * tags.len();
    for (name, body) in &tags {
        icc.extend(*name);
        icc.extend((start as u32).to_be_bytes());
        icc.extend((body.len() as u32).to_be_bytes());
        start += body.len();
    }
    icc.extend(tags.into_iter().flat_map(|(_, body)| body));
    icc
}

/// A JPEG that embeds a profile in one part.
pub fn with_profile(jpeg: &[u8], icc: &[u8]) -> Vec<u8> {
    let mut body = b"ICC_PROFILE\0\x01\x01".to_vec();
    body.extend(icc);
    with_segment(jpeg, 0xe2, &body)
}

/// A plain request; sides of 0 are not given.
pub fn render(format: Format, width: u32, height: u32, fit: Fit) -> Render {
    let mut render = Render::new(Format::Jpg, Encode::new(format, 85));
    if width > 0 || height > 0 {
        render.resize = Some(Resize::new(
            (width > 0).then_some(width),
            (height > 0).then_some(height),
            fit,
        ));
    }
    render
}
