//! Files made byte by byte: what our own encoders cannot write, and what no one honest would.

use sluice_media::{
    format::Format,
    task::{Encode, Limits, Render},
};
use sluice_worker::image::{Raster, vips};

pub const RED: [u8; 3] = [220, 30, 30];
pub const GREEN: [u8; 3] = [30, 180, 60];
pub const BLUE: [u8; 3] = [40, 60, 200];
pub const GREY: [u8; 3] = [128, 128, 128];

/// Limits of the default settings.
pub const LIMITS: Limits = Limits {
    max_pixels: 120_000_000,
    max_frames: 2_000,
    max_total_pixels: 400_000_000,
    max_output_bytes: 1 << 30,
    max_members: 1_000,
    max_duration_ms: 0,
    max_side: 0,
};

/// Quarters: red and green above, blue and grey below.
pub fn quarters(width: u32, height: u32) -> Raster {
    let pixels = each(width, height, |x, y| {
        match (x < width / 2, y < height / 2) {
            (true, true) => RED,
            (false, true) => GREEN,
            (true, false) => BLUE,
            (false, false) => GREY,
        }
        .to_vec()
    });
    Raster {
        width,
        height,
        bands: 3,
        pixels,
    }
}

/// [`quarters`] whose right half is transparent.
pub fn half_transparent(width: u32, height: u32) -> Raster {
    let opaque = quarters(width, height);
    let mut pixels = Vec::new();
    for (index, pixel) in opaque.pixels.chunks(3).enumerate() {
        pixels.extend_from_slice(pixel);
        pixels.push(if index as u32 % width < width / 2 {
            255
        } else {
            0
        });
    }
    Raster {
        bands: 4,
        pixels,
        ..opaque
    }
}

fn each(width: u32, height: u32, pixel: impl Fn(u32, u32) -> Vec<u8>) -> Vec<u8> {
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .flat_map(|(x, y)| pixel(x, y))
        .collect()
}

/// The raster in a format, at a quality that hardly changes colours.
pub fn written(raster: &Raster, format: Format) -> Vec<u8> {
    vips::encode_raster(raster, &Encode::new(format, 95)).unwrap()
}

/// A request that libvips is to answer.
pub fn request(source: Format, output: Format) -> Render {
    Render {
        path: sluice_media::task::Path::Vips,
        ..Render::new(source, Encode::new(output, 95))
    }
}

/// The colour at a place given as shares of width and height.
pub fn colour_at(raster: &Raster, x: f64, y: f64) -> Vec<u8> {
    let column = (f64::from(raster.width) * x) as usize;
    let row = (f64::from(raster.height) * y) as usize;
    let bands = raster.bands as usize;
    let start = (row * raster.width as usize + column) * bands;
    raster.pixels[start..start + bands].to_vec()
}

/// Fails when a colour is further off than `tolerance` in any band.
#[track_caller]
pub fn assert_colour(found: &[u8], expected: &[u8], tolerance: u8, what: &str) {
    let near = found.len() >= expected.len()
        && found
            .iter()
            .zip(expected)
            .all(|(found, expected)| found.abs_diff(*expected) <= tolerance);
    assert!(near, "{what}: {found:?} instead of {expected:?}");
}

/// A PNG (RFC 2083) of that bit depth and colour type, its rows stored without compression.
pub fn png(
    width: u32,
    height: u32,
    depth: u8,
    colour_type: u8,
    palette: &[u8],
    rows: &[Vec<u8>],
) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = Vec::new();
    header.extend(width.to_be_bytes());
    header.extend(height.to_be_bytes());
    header.extend([depth, colour_type, 0, 0, 0]);
    chunk(&mut file, b"IHDR", &header);
    if !palette.is_empty() {
        chunk(&mut file, b"PLTE", palette);
    }
    let raw: Vec<u8> = rows
        .iter()
        .flat_map(|row| std::iter::once(&0).chain(row))
        .copied()
        .collect();
    chunk(&mut file, b"IDAT", &stored(&raw));
    chunk(&mut file, b"IEND", &[]);
    file
}

fn chunk(file: &mut Vec<u8>, name: &[u8; 4], body: &[u8]) {
    file.extend((body.len() as u32).to_be_bytes());
    let start = file.len();
    file.extend(name);
    file.extend(body);
    let sum = crc32(&file[start..]);
    file.extend(sum.to_be_bytes());
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |mut sum, byte| {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = (sum >> 1) ^ (0xedb8_8320 * (sum & 1));
        }
        sum
    })
}

/// A zlib stream of stored blocks (RFC 1950, 1951).
fn stored(raw: &[u8]) -> Vec<u8> {
    let mut stream = vec![0x78, 0x01];
    let blocks: Vec<_> = raw.chunks(0xffff).collect();
    for (index, block) in blocks.iter().enumerate() {
        stream.push(u8::from(index + 1 == blocks.len()));
        let length = block.len() as u16;
        stream.extend(length.to_le_bytes());
        stream.extend((!length).to_le_bytes());
        stream.extend(*block);
    }
    let (low, high) = raw.iter().fold((1u32, 0u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    stream.extend((high << 16 | low).to_be_bytes());
    stream
}

/// An uncompressed TIFF 6.0: one entry of samples, bits and photometric interpretation for each page.
pub struct TiffPage {
    pub width: u32,
    pub height: u32,
    pub bits: u16,
    pub samples: u16,
    pub photometric: u16,
    pub pixels: Vec<u8>,
}

pub fn tiff(pages: &[TiffPage]) -> Vec<u8> {
    const SHORT: u16 = 3;
    const LONG: u16 = 4;
    let mut file = b"II*\0".to_vec();
    let mut next_at = file.len();
    file.extend([0; 4]);
    for page in pages {
        let pixels_at = file.len() as u32;
        file.extend(&page.pixels);
        let bits_at = file.len() as u32;
        for _ in 0..page.samples {
            file.extend(page.bits.to_le_bytes());
        }
        if file.len() % 2 == 1 {
            file.push(0);
        }
        let mut entries = vec![
            (256, LONG, 1, page.width),
            (257, LONG, 1, page.height),
            (258, SHORT, u32::from(page.samples), bits_at),
            (259, SHORT, 1, 1),
            (262, SHORT, 1, u32::from(page.photometric)),
            (273, LONG, 1, pixels_at),
            (277, SHORT, 1, u32::from(page.samples)),
            (278, LONG, 1, page.height),
            (279, LONG, 1, page.pixels.len() as u32),
        ];
        if page.samples <= 2 {
            entries[2].3 = u32::from(page.bits) * if page.samples == 2 { 0x1_0001 } else { 1 };
        }
        let directory = file.len() as u32;
        file[next_at..next_at + 4].copy_from_slice(&directory.to_le_bytes());
        file.extend((entries.len() as u16).to_le_bytes());
        for (tag, kind, count, value) in entries {
            file.extend((tag as u16).to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(count.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        next_at = file.len();
        file.extend([0; 4]);
    }
    file
}

/// A GIF89a of full frames of one palette entry each: red, green, blue, grey in turn, 50, 60, 70 … ms.
pub fn gif(width: u16, height: u16, frames: u32) -> Vec<u8> {
    let mut file = b"GIF89a".to_vec();
    file.extend(width.to_le_bytes());
    file.extend(height.to_le_bytes());
    file.extend([0b1000_0001, 0, 0]);
    for colour in [RED, GREEN, BLUE, GREY] {
        file.extend(colour);
    }
    file.extend(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x03\x00\x00");
    for frame in 0..frames {
        let delay = (5 + frame % 10) as u16;
        file.extend([0x21, 0xf9, 4, 0b0000_0100]);
        file.extend(delay.to_le_bytes());
        file.extend([0, 0, 0x2c, 0, 0, 0, 0]);
        file.extend(width.to_le_bytes());
        file.extend(height.to_le_bytes());
        file.push(0);
        let pixels = usize::from(width) * usize::from(height);
        file.extend(gif_pixels((frame % 4) as u8, pixels));
    }
    file.push(0x3b);
    file
}

/// LZW without compression: codes stay eight bits wide as long as a clear code comes often enough.
fn gif_pixels(value: u8, pixels: usize) -> Vec<u8> {
    const CLEAR: u8 = 0x80;
    const END: u8 = 0x81;
    let mut codes = Vec::new();
    for index in 0..pixels {
        if index % 100 == 0 {
            codes.push(CLEAR);
        }
        codes.push(value);
    }
    codes.push(END);
    let mut data = vec![7];
    for block in codes.chunks(255) {
        data.push(block.len() as u8);
        data.extend(block);
    }
    data.push(0);
    data
}

/// The JPEG with a segment after its start of image.
pub fn with_segment(jpeg: &[u8], marker: u8, body: &[u8]) -> Vec<u8> {
    let mut file = jpeg[..2].to_vec();
    file.extend([0xff, marker]);
    file.extend((body.len() as u16 + 2).to_be_bytes());
    file.extend(body);
    file.extend(&jpeg[2..]);
    file
}

/// An EXIF block with an orientation and a maker.
pub fn exif(orientation: u8) -> Vec<u8> {
    let mut body = b"Exif\0\0MM\0*\0\0\0\x08\0\x02".to_vec();
    body.extend(b"\x01\x0f\0\x02\0\0\0\x06\0\0\0\x26");
    body.extend([0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0]);
    body.extend(b"\0\0\0\0Canon\0");
    body
}

/// A matrix profile of Display P3's primaries with a gamma of 2.2 (ICC.1:2022 §8.3).
pub fn display_p3() -> Vec<u8> {
    let fixed = |value: f64| ((value * 65_536.0).round() as i32).to_be_bytes();
    let xyz = |x: f64, y: f64, z: f64| {
        let mut tag = b"XYZ \0\0\0\0".to_vec();
        for value in [x, y, z] {
            tag.extend(fixed(value));
        }
        tag
    };
    let curve = b"curv\0\0\0\0\0\0\0\x01\x02\x33\0\0".to_vec();
    let tags: [(&[u8; 4], Vec<u8>); 8] = [
        (b"wtpt", xyz(0.9642, 1.0, 0.8249)),
        (b"rXYZ", xyz(0.51512, 0.2412, -0.00105)),
        (b"gXYZ", xyz(0.29198, 0.69225, 0.04189)),
        (b"bXYZ", xyz(0.1571, 0.06657, 0.78407)),
        (b"rTRC", curve.clone()),
        (b"gTRC", curve.clone()),
        (b"bTRC", curve),
        (b"desc", {
            let mut tag = b"desc\0\0\0\0\0\0\0\x08".to_vec();
            tag.extend(b"Test P3\0");
            tag.extend([0; 79]);
            tag
        }),
    ];
    let mut body = Vec::new();
    let mut table = (tags.len() as u32).to_be_bytes().to_vec();
    let start = 128 + 4 + 12 * tags.len();
    for (name, tag) in &tags {
        table.extend(*name);
        table.extend(((start + body.len()) as u32).to_be_bytes());
        table.extend((tag.len() as u32).to_be_bytes());
        body.extend(tag);
        while body.len() % 4 != 0 {
            body.push(0);
        }
    }
    let mut profile = vec![0; 128];
    let length = (start + body.len()) as u32;
    profile[..4].copy_from_slice(&length.to_be_bytes());
    profile[8..12].copy_from_slice(&[2, 0x10, 0, 0]);
    profile[12..24].copy_from_slice(b"mntrRGB XYZ ");
    profile[24..36].copy_from_slice(&[7, 0xea, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    profile[36..40].copy_from_slice(b"acsp");
    for (index, value) in [0.9642, 1.0, 0.8249].into_iter().enumerate() {
        profile[68 + 4 * index..][..4].copy_from_slice(&fixed(value));
    }
    profile.extend(table);
    profile.extend(body);
    profile
}

/// The JPEG with a profile (ICC.1:2022 annex B.4).
pub fn with_profile(jpeg: &[u8], profile: &[u8]) -> Vec<u8> {
    let mut body = b"ICC_PROFILE\0\x01\x01".to_vec();
    body.extend(profile);
    with_segment(jpeg, 0xe2, &body)
}

/// A PDF of A5-like pages of 200 × 100 points, filled with red, then green.
pub fn pdf() -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    let mut object = |text: String| {
        places.push(file.len());
        let number = places.len();
        file.extend(format!("{number} 0 obj\n{text}\nendobj\n").bytes());
    };
    object("<</Type/Catalog/Pages 2 0 R>>".into());
    object("<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>".into());
    for contents in [5, 6] {
        object(format!(
            "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents {contents} 0 R>>"
        ));
    }
    for colour in ["1 0 0", "0 1 0"] {
        let stream = format!("{colour} rg 0 0 200 100 re f");
        object(format!(
            "<</Length {}>>\nstream\n{stream}\nendstream",
            stream.len()
        ));
    }
    let table = file.len();
    let mut tail = format!("xref\n0 {}\n0000000000 65535 f \n", places.len() + 1);
    for place in &places {
        tail.push_str(&format!("{place:010} 00000 n \n"));
    }
    tail.push_str(&format!(
        "trailer<</Size {}/Root 1 0 R>>\nstartxref\n{table}\n%%EOF\n",
        places.len() + 1
    ));
    file.extend(tail.bytes());
    file
}
