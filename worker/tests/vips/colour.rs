//! Colour spaces, depths and profiles all end as the sRGB that a viewer would show.

use sluice_media::format::Format;
use sluice_worker::image::{Raster, vips};

use crate::material::*;

fn decoded(format: Format, input: &[u8]) -> Raster {
    vips::raster(format, 1, input, &LIMITS, 1000).unwrap()
}

fn flat(colour: [u8; 3]) -> Vec<u8> {
    let mut raster = quarters(32, 32);
    raster.pixels = colour.repeat(32 * 32);
    written(&raster, Format::Jpg)
}

#[test]
fn a_wide_gamut_is_brought_to_srgb() {
    // In Display P3, (200, 100, 100) is (214, 96, 97) of sRGB; a red at its edge clips.
    let cases = [
        ([200, 100, 100], [214, 96, 97], 4),
        ([255, 0, 0], [255, 0, 0], 8),
        ([128, 128, 128], [128, 128, 128], 3),
    ];
    for (stored, shown, tolerance) in cases {
        let input = with_profile(&flat(stored), &display_p3());
        let seen = vips::inspect(Format::Jpg, &input, &LIMITS).unwrap();
        assert_eq!(seen.profile.as_deref(), Some("Test P3"));
        let found = colour_at(&decoded(Format::Jpg, &input), 0.5, 0.5);
        assert_colour(&found, &shown, tolerance, &format!("P3 {stored:?}"));
        let mut small = request(Format::Jpg, Format::Png);
        small.resize = Some(sluice_media::task::Resize::new(
            Some(8),
            None,
            sluice_media::task::Fit::Cover,
        ));
        let (_, bytes) = vips::render(&small, &input, None, &LIMITS).unwrap();
        let seen = vips::inspect(Format::Png, &bytes, &LIMITS).unwrap();
        assert_eq!(seen.profile, None);
        let found = colour_at(&decoded(Format::Png, &bytes), 0.5, 0.5);
        assert_colour(
            &found,
            &shown,
            tolerance,
            &format!("P3 {stored:?}, resized"),
        );
    }
}

#[test]
fn a_broken_profile_counts_as_none() {
    let profile = display_p3();
    let mut lying = profile.clone();
    lying[128..132].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut cmyk = profile.clone();
    cmyk[16..20].copy_from_slice(b"CMYK");
    for broken in [&profile[..140], &lying, &cmyk, &b"garbage"[..], &[0; 200]] {
        let input = with_profile(&flat([200, 100, 100]), broken);
        let found = colour_at(&decoded(Format::Jpg, &input), 0.5, 0.5);
        assert_colour(&found, &[200, 100, 100], 4, "broken profile");
    }
}

#[test]
fn inks_become_light() {
    let page = |ink: [u8; 4]| TiffPage {
        width: 8,
        height: 8,
        bits: 8,
        samples: 4,
        photometric: 5,
        pixels: ink.repeat(64),
    };
    let cases = [
        ([0, 0, 0, 0], [255, 255, 255], 6),
        ([255, 0, 0, 0], [0, 150, 230], 60),
        ([0, 255, 255, 0], [230, 30, 35], 60),
        ([0, 0, 0, 255], [30, 30, 30], 40),
    ];
    for (ink, shown, tolerance) in cases {
        let input = tiff(&[page(ink)]);
        let seen = vips::inspect(Format::Tiff, &input, &LIMITS).unwrap();
        assert_eq!((&*seen.colour_space, seen.bands), ("cmyk", 4));
        let found = decoded(Format::Tiff, &input);
        assert_eq!(found.bands, 3);
        assert_colour(
            &colour_at(&found, 0.5, 0.5),
            &shown,
            tolerance,
            &format!("{ink:?}"),
        );
    }
}

#[test]
fn every_depth_of_png_means_the_same() {
    let deep = |samples: &[u16]| -> Vec<Vec<u8>> {
        let pixel: Vec<u8> = samples.iter().flat_map(|s| s.to_be_bytes()).collect();
        vec![pixel.repeat(8); 8]
    };
    let cases: [(&str, Vec<u8>, &[u8]); 8] = [
        (
            "1-bit grey",
            png(8, 8, 1, 0, &[], &vec![vec![0xff]; 8]),
            &[255; 3],
        ),
        (
            "2-bit grey",
            png(8, 8, 2, 0, &[], &vec![vec![0x55, 0x55]; 8]),
            &[85; 3],
        ),
        (
            "8-bit grey",
            png(8, 8, 8, 0, &[], &vec![vec![77; 8]; 8]),
            &[77; 3],
        ),
        (
            "palette",
            png(8, 8, 8, 3, &[0, 0, 0, 10, 200, 30], &vec![vec![1; 8]; 8]),
            &[10, 200, 30],
        ),
        (
            "16-bit grey",
            png(8, 8, 16, 0, &[], &deep(&[0x8000])),
            &[128; 3],
        ),
        (
            "16-bit colour",
            png(8, 8, 16, 2, &[], &deep(&[0xffff, 0x8000, 0])),
            &[255, 128, 0],
        ),
        (
            "16-bit grey and alpha",
            png(8, 8, 16, 4, &[], &deep(&[0x4000, 0x8000])),
            &[64, 64, 64, 128],
        ),
        (
            "16-bit colour and alpha",
            png(8, 8, 16, 6, &[], &deep(&[0xffff, 0x8000, 0, 0x8000])),
            &[255, 128, 0, 128],
        ),
    ];
    for (what, input, expected) in cases {
        let found = decoded(Format::Png, &input);
        assert_eq!(usize::from(found.bands), expected.len(), "{what}");
        assert_colour(&colour_at(&found, 0.5, 0.5), expected, 1, what);
        let mut small = request(Format::Png, Format::Png);
        small.resize = Some(sluice_media::task::Resize::new(
            Some(3),
            None,
            sluice_media::task::Fit::Cover,
        ));
        let (_, bytes) = vips::render(&small, &input, None, &LIMITS).unwrap();
        let found = decoded(Format::Png, &bytes);
        assert_colour(&colour_at(&found, 0.5, 0.5), expected, 1, what);
    }
}

#[test]
fn odd_tiffs_are_read() {
    let page = |bits, samples, photometric, pixel: &[u8]| {
        tiff(&[TiffPage {
            width: 8,
            height: 8,
            bits,
            samples,
            photometric,
            pixels: pixel.repeat(64),
        }])
    };
    let bits = tiff(&[TiffPage {
        width: 8,
        height: 8,
        bits: 1,
        samples: 1,
        photometric: 0,
        pixels: vec![0; 8],
    }]);
    for (what, input, expected) in [
        ("1 bit, white is zero", bits, [255; 3]),
        ("16 bits", page(16, 1, 1, &[0, 0x80]), [128; 3]),
        (
            "16 bits of colour",
            page(16, 3, 2, &[0xff, 0xff, 0, 0x80, 0, 0]),
            [255, 128, 0],
        ),
        (
            "five bands",
            page(8, 5, 2, &[9, 90, 200, 255, 255]),
            [9, 90, 200],
        ),
    ] {
        let found = colour_at(&decoded(Format::Tiff, &input), 0.5, 0.5);
        assert_colour(&found, &expected, 1, what);
    }
}

#[test]
fn grey_stays_one_band_where_the_format_has_it() {
    let grey = png(8, 8, 8, 0, &[], &vec![vec![77; 8]; 8]);
    for format in [Format::Jpg, Format::Png, Format::Tiff] {
        let (_, bytes) = vips::render(&request(Format::Png, format), &grey, None, &LIMITS).unwrap();
        let seen = vips::inspect(format, &bytes, &LIMITS).unwrap();
        assert_eq!(
            (seen.bands, &*seen.colour_space),
            (1, "b-w"),
            "{}",
            format.name()
        );
    }
}
