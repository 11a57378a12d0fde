//! HDR and wide-gamut frames (PQ, HLG, BT.2020) as sRGB: tone mapping with white at 203 cd/m². White stays white, what
//! is brighter is pressed together below it, hues stay.
//!
//! The transfer functions are those of ITU-R BT.2100 (PQ and HLG) and BT.1886; reference white has 203 cd/m² (BT.2408).

use gstreamer_video as gst_video;

/// Bytes of a pixel that comes in: alpha, red, green, blue, 16 bits each.
pub const PIXEL_BYTES: usize = 8;

/// Number of levels of a sample.
const LEVELS: usize = 4096;
const LEVEL_SHIFT: u32 = 4;
/// Levels of linear light in the result; dark ones lie close together.
const LIGHT_LEVELS: usize = 1 << 16;

/// cd/m² of what is shown as white.
const WHITE_NITS: f32 = 203.0;
/// Light of this brightness, relative to white, and above becomes white.
const BRIGHTEST: f32 = 1000.0 / WHITE_NITS;
/// Up to here, in white, light stays as it is.
const KNEE: f32 = 0.7;

/// Transfer function from a form of frames to light.
pub struct TransferFunction {
    /// Light by level, in white.
    decode: Vec<f32>,
    /// Samples by light.
    encode: Vec<u8>,
    matrix: [[f32; 3]; 3],
    is_hlg: bool,
    is_bright: bool,
}

impl TransferFunction {
    /// `None`: what is shown as it is.
    pub fn of(colours: &gst_video::VideoColorimetry) -> Option<Self> {
        use gst_video::{VideoColorPrimaries as Primaries, VideoTransferFunction as Transfer};

        let transfer = colours.transfer();
        let is_wide = colours.primaries() == Primaries::Bt2020;
        let decode: fn(f32) -> f32 = match transfer {
            Transfer::Smpte2084 => from_pq,
            Transfer::AribStdB67 => from_hlg,
            _ if is_wide => from_bt1886,
            _ => return None,
        };
        Some(Self {
            decode: levels(LEVELS, decode),
            encode: levels(LIGHT_LEVELS, to_srgb),
            matrix: if is_wide { BT2020_TO_BT709 } else { UNCHANGED },
            is_hlg: transfer == Transfer::AribStdB67,
            is_bright: transfer == Transfer::AribStdB67 || transfer == Transfer::Smpte2084,
        })
    }

    /// Appends the 8-bit pixels of a row.
    pub fn develop(&self, row: &[u8], pixels: &mut Vec<u8>) {
        for pixel in row.chunks_exact(PIXEL_BYTES) {
            let sample = |at: usize| u16::from_ne_bytes([pixel[at], pixel[at + 1]]);
            let mut light = [2, 4, 6].map(|at| self.decode[usize::from(sample(at) >> LEVEL_SHIFT)]);
            if self.is_hlg {
                light = as_displayed(light);
            }
            let mut light = self
                .matrix
                .map(|row| (row[0] * light[0] + row[1] * light[1] + row[2] * light[2]).max(0.0));
            if self.is_bright {
                light = pressed(light);
            }
            pixels.extend(light.map(|light| {
                let level = light.min(1.0) * (LIGHT_LEVELS - 1) as f32;
                self.encode[level as usize]
            }));
        }
    }
}

fn levels<T>(count: usize, of: impl Fn(f32) -> T) -> Vec<T> {
    (0..count)
        .map(|level| of(level as f32 / (count - 1) as f32))
        .collect()
}

const UNCHANGED: [[f32; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

/// ITU-R BT.2087.
const BT2020_TO_BT709: [[f32; 3]; 3] = [
    [1.6605, -0.5876, -0.0728],
    [-0.1246, 1.1329, -0.0083],
    [-0.0182, -0.1006, 1.1187],
];

/// BT.2100, table 4.
fn from_pq(sample: f32) -> f32 {
    const M1: f32 = 2610.0 / 16384.0;
    const M2: f32 = 2523.0 / 4096.0 * 128.0;
    const C1: f32 = 3424.0 / 4096.0;
    const C2: f32 = 2413.0 / 4096.0 * 32.0;
    const C3: f32 = 2392.0 / 4096.0 * 32.0;
    let power = sample.powf(1.0 / M2);
    let share = ((power - C1).max(0.0) / (C2 - C3 * power)).powf(1.0 / M1);
    share * 10_000.0 / WHITE_NITS
}

/// BT.2100, table 5: light of the scene, of which 1 is the most.
fn from_hlg(sample: f32) -> f32 {
    const A: f32 = 0.178_832_77;
    const B: f32 = 0.284_668_92;
    const C: f32 = 0.559_910_7;
    if sample <= 0.5 {
        sample * sample / 3.0
    } else {
        (((sample - C) / A).exp() + B) / 12.0
    }
}

/// Light of the scene as a display of 1000 cd/m² shows it, in white (BT.2100, table 5, gamma 1.2).
fn as_displayed(scene: [f32; 3]) -> [f32; 3] {
    let luminance = 0.2627 * scene[0] + 0.678 * scene[1] + 0.0593 * scene[2];
    let gain = luminance.max(1e-6).powf(0.2) * BRIGHTEST;
    scene.map(|light| light * gain)
}

fn from_bt1886(sample: f32) -> f32 {
    sample.powf(2.4)
}

/// IEC 61966-2-1.
fn to_srgb(light: f32) -> u8 {
    let sample = if light <= 0.003_130_8 {
        light * 12.92
    } else {
        1.055 * light.powf(1.0 / 2.4) - 0.055
    };
    (sample * 255.0).round() as u8
}

/// Light above the knee on a curve that ends at white; all three colours by the same factor.
fn pressed(light: [f32; 3]) -> [f32; 3] {
    let most = light[0].max(light[1]).max(light[2]);
    if most <= KNEE {
        return light;
    }
    let over = |light: f32| (light - KNEE) / (1.0 - KNEE);
    let (excess, end) = (over(most.min(BRIGHTEST)), over(BRIGHTEST));
    let curve = excess * (1.0 + excess / (end * end)) / (1.0 + excess);
    let factor = (KNEE + (1.0 - KNEE) * curve) / most;
    light.map(|light| light * factor)
}

#[cfg(test)]
mod tests {
    use gst_video::{
        VideoColorMatrix, VideoColorPrimaries, VideoColorRange, VideoTransferFunction,
    };

    use super::*;

    fn light(
        transfer: VideoTransferFunction,
        primaries: VideoColorPrimaries,
    ) -> Option<TransferFunction> {
        TransferFunction::of(&gst_video::VideoColorimetry::new(
            VideoColorRange::Range0_255,
            VideoColorMatrix::Rgb,
            transfer,
            primaries,
        ))
    }

    fn developed(light: &TransferFunction, colours: [f32; 3]) -> [u8; 3] {
        let mut row = vec![0xff, 0xff];
        for colour in colours {
            row.extend_from_slice(&((colour * 65535.0).round() as u16).to_ne_bytes());
        }
        let mut pixels = Vec::new();
        light.develop(&row, &mut pixels);
        pixels.try_into().expect("one pixel")
    }

    #[test]
    fn only_what_is_wide_or_bright_is_changed() {
        let (bt709, bt2020) = (VideoColorPrimaries::Bt709, VideoColorPrimaries::Bt2020);
        assert!(light(VideoTransferFunction::Bt709, bt709).is_none());
        assert!(light(VideoTransferFunction::Unknown, bt709).is_none());
        assert!(light(VideoTransferFunction::Bt709, bt2020).is_some());
        assert!(light(VideoTransferFunction::Smpte2084, bt2020).is_some());
        assert!(light(VideoTransferFunction::AribStdB67, bt2020).is_some());
    }

    #[test]
    fn greys_stay_grey_in_their_order_and_white_is_nearly_white() {
        for transfer in [
            VideoTransferFunction::Smpte2084,
            VideoTransferFunction::AribStdB67,
            VideoTransferFunction::Bt709,
        ] {
            let light = light(transfer, VideoColorPrimaries::Bt2020).expect("a wide gamut");
            let mut last = 0;
            for step in 0..=50 {
                let [red, green, blue] = developed(&light, [step as f32 / 50.0; 3]);
                assert!(
                    red.abs_diff(green) < 2 && green.abs_diff(blue) < 2,
                    "{transfer:?}"
                );
                assert!(green >= last, "{transfer:?} {step}");
                last = green;
            }
            assert_eq!(developed(&light, [0.0; 3]), [0; 3]);
            assert_eq!(developed(&light, [1.0; 3]), [255; 3]);
        }
        // Reference white is at 58 % of PQ and at 75 % of HLG (BT.2408, table 1).
        let pq = light(
            VideoTransferFunction::Smpte2084,
            VideoColorPrimaries::Bt2020,
        );
        let [white, ..] = developed(&pq.expect("PQ"), [0.58; 3]);
        let hlg = light(
            VideoTransferFunction::AribStdB67,
            VideoColorPrimaries::Bt2020,
        );
        let [other, ..] = developed(&hlg.expect("HLG"), [0.75; 3]);
        assert!(
            (220..250).contains(&white) && (220..250).contains(&other),
            "{white} {other}"
        );
    }

    #[test]
    fn hues_stay() {
        let pq = light(
            VideoTransferFunction::Smpte2084,
            VideoColorPrimaries::Bt2020,
        );
        let [red, green, blue] = developed(&pq.expect("PQ"), [0.6, 0.3, 0.3]);
        assert!(red > 200 && green < 60 && blue < 60, "{red} {green} {blue}");
    }
}
