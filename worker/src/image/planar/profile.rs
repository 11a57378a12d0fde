//! Detects ICC profiles that mean sRGB, by their primaries and their transfer curve.
//!
//! Dozens of profiles mean sRGB (HP's of 1998, the v4 and the tiny ones of phones and web tools), and a description can
//! be wrong; the numbers cannot. (ICC.1:2022 §7.2, §9.2, §10.6, §10.18.)

/// D50-adapted sRGB colorants: red, green, blue, each X, Y, Z (IEC 61966-2-1 through Bradford).
const COLORANTS: [(&[u8; 4], [f64; 3]); 3] = [
    (b"rXYZ", [0.436_07, 0.222_49, 0.013_92]),
    (b"gXYZ", [0.385_15, 0.716_87, 0.097_08]),
    (b"bXYZ", [0.143_07, 0.060_61, 0.714_10]),
];

const CURVES: [&[u8; 4]; 3] = [b"rTRC", b"gTRC", b"bTRC"];

/// Half of what separates sRGB from the nearest profile in use (Apple's *sRGB-ish* displays): below one 8-bit level.
const COLORANT_TOLERANCE: f64 = 0.002;

/// In linear light; one 8-bit level is 0.004 to 0.009 in the upper half of the curve.
const CURVE_TOLERANCE: f64 = 0.004;

/// Points at which the curves are compared.
const CURVE_POINTS: u32 = 32;

/// Returns whether `icc` is a matrix profile of an RGB display with sRGB's primaries and curves.
pub fn is_srgb(icc: &[u8]) -> bool {
    is_matrix_display(icc)
        && COLORANTS
            .iter()
            .all(|(name, expected)| tag(icc, name).is_some_and(|xyz| is_colorant(xyz, expected)))
        && CURVES
            .iter()
            .all(|name| tag(icc, name).is_some_and(is_srgb_curve))
}

fn is_matrix_display(icc: &[u8]) -> bool {
    const LOOK_UP_TABLE: &[u8; 4] = b"A2B0";
    icc.get(12..24) == Some(b"mntrRGB XYZ ")
        && icc.get(36..40) == Some(b"acsp")
        && tag(icc, LOOK_UP_TABLE).is_none()
}

/// The body of a tag, from its type on.
pub(crate) fn tag<'a>(icc: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    let count = usize::try_from(u32_at(icc, 128)?).ok()?;
    let entry = icc
        .get(132..)?
        .chunks_exact(12)
        .take(count)
        .find(|entry| entry.starts_with(name))?;
    let start = usize::try_from(u32_at(entry, 4)?).ok()?;
    let length = usize::try_from(u32_at(entry, 8)?).ok()?;
    icc.get(start..start.checked_add(length)?)
}

fn is_colorant(tag: &[u8], expected: &[f64; 3]) -> bool {
    tag.starts_with(b"XYZ ")
        && expected.iter().enumerate().all(|(index, expected)| {
            fixed_at(tag, 8 + 4 * index)
                .is_some_and(|value| (value - expected).abs() < COLORANT_TOLERANCE)
        })
}

fn is_srgb_curve(tag: &[u8]) -> bool {
    (0..=CURVE_POINTS).all(|point| {
        let encoded = f64::from(point) / f64::from(CURVE_POINTS);
        linear(tag, encoded)
            .is_some_and(|value| (value - srgb_to_linear(encoded)).abs() < CURVE_TOLERANCE)
    })
}

fn srgb_to_linear(encoded: f64) -> f64 {
    if encoded <= 0.040_45 {
        encoded / 12.92
    } else {
        ((encoded + 0.055) / 1.055).powf(2.4)
    }
}

/// Returns the value of a curve tag at `encoded`; `None` for a curve of another type.
fn linear(tag: &[u8], encoded: f64) -> Option<f64> {
    match tag.get(..4)? {
        b"curv" => sampled(tag, encoded),
        b"para" => parametric(tag, encoded),
        _ => None,
    }
}

fn sampled(tag: &[u8], encoded: f64) -> Option<f64> {
    let samples = tag.get(12..)?;
    let count = usize::try_from(u32_at(tag, 8)?).ok()?;
    if count == 0 {
        return Some(encoded);
    }
    if count == 1 {
        return Some(encoded.powf(f64::from(u16_at(samples, 0)?) / 256.0));
    }
    let place = encoded * (count - 1) as f64;
    let below = (place as usize).min(count - 2);
    let value = |index: usize| Some(f64::from(u16_at(samples, index.checked_mul(2)?)?) / 65_535.0);
    let (low, high) = (value(below)?, value(below + 1)?);
    Some(low + (high - low) * (place - below as f64))
}

/// ICC.1 table 68: Y = (aX + b)^g + e above d, cX + f below.
fn parametric(tag: &[u8], encoded: f64) -> Option<f64> {
    let kind = u16_at(tag, 8)?;
    let parameter = |index: usize| fixed_at(tag, 12 + 4 * index);
    let g = parameter(0)?;
    let (a, b) = if kind == 0 {
        (1.0, 0.0)
    } else {
        (parameter(1)?, parameter(2)?)
    };
    let (c, d, e, f) = match kind {
        0 => (0.0, f64::NEG_INFINITY, 0.0, 0.0),
        1 => (0.0, -b / a, 0.0, 0.0),
        2 => (0.0, -b / a, parameter(3)?, parameter(3)?),
        3 => (parameter(3)?, parameter(4)?, 0.0, 0.0),
        4 => (parameter(3)?, parameter(4)?, parameter(5)?, parameter(6)?),
        _ => return None,
    };
    Some(if encoded >= d {
        (a * encoded + b).powf(g) + e
    } else {
        c * encoded + f
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// s15Fixed16.
fn fixed_at(bytes: &[u8], at: usize) -> Option<f64> {
    Some(f64::from(u32_at(bytes, at)? as i32) / 65_536.0)
}
