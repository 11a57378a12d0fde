//! Bytes that lie, ask for too much or name other files: typed failures, and nothing else happens.

use std::{io::ErrorKind, net::TcpListener};

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Limits, OutputFacts, Resize},
};
use sluice_worker::image::vips;

use crate::material::*;

const SOURCES: [Format; 10] = [
    Format::Jpg,
    Format::Png,
    Format::Webp,
    Format::Avif,
    Format::Tiff,
    Format::Gif,
    Format::Heif,
    Format::Jxl,
    Format::Svg,
    Format::Pdf,
];

fn to_png(source: Format, input: &[u8]) -> Result<(OutputFacts, Vec<u8>), Failure> {
    vips::render(&request(source, Format::Png), input, None, &LIMITS)
}

fn honest(format: Format) -> Vec<u8> {
    match format {
        Format::Svg => {
            br#"<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"/>"#.to_vec()
        }
        Format::Pdf => pdf(),
        _ => written(&quarters(64, 48), format),
    }
}

#[test]
fn a_format_is_read_by_its_own_loader_only() {
    let others: [(&str, &[u8]); 12] = [
        ("nothing", b""),
        ("zeros", &[0; 64]),
        (
            "HLS",
            b"#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:10,\nhttp://127.0.0.1/a.ts\n",
        ),
        ("XML", b"<?xml version=\"1.0\"?><a xmlns:xlink=\"x\"/>"),
        ("PPM", b"P6 1 1 255 abc"),
        ("CSV", b"1,2,3\n4,5,6\n"),
        ("FITS", b"SIMPLE  =                    T"),
        ("libvips", b"\xb6\xa6\xf2\x08\x01\0\0\0\x01\0\0\0\x01\0\0\0"),
        (
            "MVG",
            b"push graphic-context\nimage over 0,0 0,0 'file:///etc/passwd'\npop graphic-context",
        ),
        (
            "Radiance",
            b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n1234",
        ),
        (
            "BMP",
            b"BM\x3a\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\x18\0",
        ),
        ("JPEG 2000", b"\0\0\0\x0cjP  \r\n\x87\n"),
    ];
    for source in SOURCES {
        for (what, bytes) in others {
            let failure = to_png(source, bytes).expect_err(what);
            assert_eq!(
                failure.code,
                FailureCode::Undecodable,
                "{what} as {source:?}"
            );
        }
        for other in SOURCES.into_iter().filter(|other| {
            let same_loader = [Format::Avif, Format::Heif];
            *other != source && !(same_loader.contains(other) && same_loader.contains(&source))
        }) {
            let failure = to_png(source, &honest(other)).expect_err("another format");
            assert_eq!(
                failure.code,
                FailureCode::Undecodable,
                "{other:?} as {source:?}"
            );
        }
    }
    for never in [Format::Mp4, Format::Zip, Format::Mp3] {
        let failure = to_png(never, b"whatever").unwrap_err();
        assert_eq!(failure.code, FailureCode::UnsupportedType);
    }
}

#[test]
fn giants_are_refused_by_their_header() {
    let giant_png = png(935_820, 854_554, 8, 2, &[], &[vec![0; 8]]);
    let mut giant_jpeg = written(&quarters(16, 16), Format::Jpg);
    let frame = giant_jpeg
        .windows(2)
        .position(|marker| marker == [0xff, 0xc0])
        .unwrap();
    giant_jpeg[frame + 1] = 0xc2;
    giant_jpeg[frame + 5..frame + 9].copy_from_slice(&[0x4e, 0x20, 0x4e, 0x20]);
    let mut giant_gif = gif(1, 1, 2);
    let frame = giant_gif.iter().position(|byte| *byte == 0x2c).unwrap();
    giant_gif[6..10].copy_from_slice(&[0xff; 4]);
    giant_gif[frame + 5..frame + 9].copy_from_slice(&[0xff; 4]);
    let giant_tiff = tiff(&[TiffPage {
        width: 1_000_000,
        height: 1_000_000,
        bits: 8,
        samples: 1,
        photometric: 1,
        pixels: vec![0; 16],
    }]);
    let mut giant_avif = honest(Format::Avif);
    let size = giant_avif
        .windows(4)
        .position(|name| name == b"ispe")
        .unwrap()
        + 8;
    giant_avif[size..size + 8].copy_from_slice(&[0, 0, 0x2e, 0xe0, 0, 0, 0x2e, 0xe0]);
    for (format, input) in [
        (Format::Avif, giant_avif),
        (Format::Png, giant_png),
        (Format::Jpg, giant_jpeg),
        (Format::Gif, giant_gif),
        (Format::Tiff, giant_tiff),
    ] {
        for target in [Format::Png, Format::Webp] {
            let render = request(format, target);
            let failure = vips::render(&render, &input, None, &LIMITS).unwrap_err();
            assert_eq!(failure.code, FailureCode::TooLarge, "{format:?}: {failure}");
            assert!(
                failure.message.contains("image_workers.max_megapixels"),
                "{failure}"
            );
        }
    }
}

#[test]
fn limits_hold_for_every_format_that_is_written() {
    let limits = Limits {
        max_pixels: 64 * 48 - 1,
        ..LIMITS
    };
    for format in SOURCES {
        if matches!(format, Format::Svg | Format::Pdf) {
            continue;
        }
        let failure = vips::render(
            &request(format, Format::Png),
            &honest(format),
            None,
            &limits,
        )
        .unwrap_err();
        assert_eq!(failure.code, FailureCode::TooLarge, "{format:?}");
        assert!(vips::inspect(format, &honest(format), &limits).is_ok());
    }
    let few = Limits {
        max_output_bytes: 20,
        ..LIMITS
    };
    let failure = vips::render(
        &request(Format::Png, Format::Png),
        &honest(Format::Png),
        None,
        &few,
    )
    .unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge);
    assert!(
        failure.message.contains("image_workers.max_output"),
        "{failure}"
    );
}

#[test]
fn animations_are_bounded_in_frames_and_in_all() {
    let long = gif(1, 1, 200_000);
    let failure =
        vips::render(&request(Format::Gif, Format::Webp), &long, None, &LIMITS).unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    assert!(
        failure.message.contains("image_workers.max_frames"),
        "{failure}"
    );
    assert!(
        to_png(Format::Gif, &long).is_ok(),
        "a still needs one frame"
    );
    let limits = Limits {
        max_total_pixels: 40 * 30 * 6 - 1,
        ..LIMITS
    };
    let render = request(Format::Gif, Format::Gif);
    let failure = vips::render(&render, &gif(40, 30, 6), None, &limits).unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge);
    assert!(
        failure
            .message
            .contains("image_workers.max_total_megapixels"),
        "{failure}"
    );
}

/// libwebp would take minutes before it returns their number.
#[test]
fn frames_of_a_webp_are_counted_before_it_is_opened() {
    let webp = |frames: usize| {
        let chunks = b"ANMF\x01\0\0\0ab".repeat(frames);
        [b"RIFF\xff\xff\xff\xffWEBP", &chunks[..]].concat()
    };
    for (frames, code) in [
        (10_000, FailureCode::Undecodable),
        (10_001, FailureCode::TooLarge),
        (500_000, FailureCode::TooLarge),
    ] {
        let failure = vips::inspect(Format::Webp, &webp(frames), &LIMITS).unwrap_err();
        assert_eq!(failure.code, code, "{frames}: {failure}");
    }
}

#[test]
fn results_have_bounds_as_well() {
    let grown = |format: Format, width, height| {
        let mut render = request(Format::Png, format);
        render.resize = Some(Resize {
            enlarge: true,
            ..Resize::new(Some(width), Some(height), sluice_media::task::Fit::Fill)
        });
        vips::render(&render, &honest(Format::Png), None, &LIMITS).unwrap_err()
    };
    for failure in [
        grown(Format::Png, 16_383, 16_383),
        grown(Format::Heif, 8_000, 8_000),
        grown(Format::Avif, 10_000, 10_000),
    ] {
        assert_eq!(failure.code, FailureCode::TooLarge, "{failure}");
    }
    let line = png(17_000, 1, 8, 0, &[], &[vec![9; 17_000]]);
    let render = request(Format::Png, Format::Webp);
    let failure = vips::render(&render, &line, None, &LIMITS).unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge);
    assert!(failure.message.contains("16383"), "{failure}");
}

#[test]
fn what_is_cut_short_does_not_decode() {
    for format in SOURCES {
        let whole = honest(format);
        let cut = &whole[..whole.len() * 6 / 10];
        match to_png(format, cut) {
            Err(failure) => assert_eq!(failure.code, FailureCode::Undecodable, "{format:?}"),
            // Poppler looks for objects where the table of a document is missing.
            Ok(_) => assert_eq!(format, Format::Pdf, "{format:?} came out of 60 %"),
        }
    }
}

#[test]
fn changed_bytes_never_do_worse_than_a_typed_failure() {
    let mut state = 7u32;
    let mut next = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize
    };
    for format in SOURCES {
        let whole = honest(format);
        for _ in 0..40 {
            let mut changed = whole.clone();
            for _ in 0..=next() % 4 {
                let place = next() % changed.len();
                changed[place] = next() as u8;
            }
            let answers = [
                to_png(format, &changed).map(drop),
                vips::inspect(format, &changed, &LIMITS).map(drop),
            ];
            for failure in answers.into_iter().filter_map(Result::err) {
                assert!(
                    matches!(
                        failure.code,
                        FailureCode::Undecodable | FailureCode::TooLarge | FailureCode::Impossible
                    ),
                    "{format:?}: {failure:?}"
                );
            }
        }
    }
}

#[test]
fn a_drawing_opens_no_file_and_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret.png");
    std::fs::write(&secret, honest(Format::Png)).unwrap();
    let secret = secret.display();
    let drawings = [
        format!(r#"<image width="64" height="64" xlink:href="file://{secret}"/>"#),
        format!(r#"<image width="64" height="64" href="{secret}"/>"#),
        format!(r#"<image width="64" height="64" xlink:href="http://127.0.0.1:{port}/a.png"/>"#),
        format!(r#"<use xlink:href="file://{secret}#a"/>"#),
        format!(r#"<style>@import url("http://127.0.0.1:{port}/a.css");</style>"#),
        format!(r#"<style>@import url("file://{secret}");</style>"#),
        format!(
            r#"<filter id="f"><feImage xlink:href="file://{secret}"/></filter><rect width="64" height="64" fill="none" filter="url(#f)"/>"#
        ),
        format!(
            r#"<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="file://{secret}" parse="text"/>"#
        ),
        format!(
            r#"<text y="20" font-size="20" style="font-family:url(http://127.0.0.1:{port}/f.ttf)"> </text>"#
        ),
    ];
    for drawing in drawings {
        for head in [
            "",
            &format!(r#"<?xml-stylesheet href="http://127.0.0.1:{port}/b.css"?>"#),
        ] {
            let svg = format!(
                r#"<?xml version="1.0"?>{head}<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="64" height="64">{drawing}</svg>"#
            );
            if let Ok(raster) = vips::raster(Format::Svg, 1, svg.as_bytes(), &LIMITS, 64) {
                let seen = raster.pixels.chunks(4).any(|pixel| pixel[3] != 0);
                assert!(!seen, "something was drawn by {drawing}");
            }
        }
    }
    let entity = format!(
        r#"<!DOCTYPE svg [<!ENTITY a SYSTEM "file://{secret}"><!ENTITY % b SYSTEM "http://127.0.0.1:{port}/x.dtd"> %b;]><svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"><text y="40" font-size="40">&a;</text></svg>"#
    );
    if let Ok(raster) = vips::raster(Format::Svg, 1, entity.as_bytes(), &LIMITS, 64) {
        assert!(
            raster.pixels.chunks(4).all(|pixel| pixel[3] == 0),
            "an entity was read"
        );
    }
    let no_one_came = listener.accept().unwrap_err();
    assert_eq!(no_one_came.kind(), ErrorKind::WouldBlock);
}

#[test]
fn drawings_of_any_size_are_bounded() {
    let sized = |attributes: &str| {
        let svg = format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" {attributes}><rect width="100%" height="100%" fill="#f00"/></svg>"##
        );
        to_png(Format::Svg, svg.as_bytes())
    };
    for attributes in [
        "",
        r#"width="100%" height="100%""#,
        r#"width="50%" height="50%" viewBox="0 0 10 10""#,
        r#"viewBox="0 0 1000000000 1000000000""#,
        r#"width="1e9" height="1e9""#,
        r#"width="0" height="0""#,
        r#"width="-5" height="10""#,
        r#"width="0.001" height="0.001""#,
        r#"width="100000" height="1""#,
        r#"width="NaN" height="inf""#,
        r#"viewBox="0 0 0 0""#,
    ] {
        match sized(attributes) {
            Ok((facts, _)) => {
                assert!(
                    facts.width.unwrap().max(facts.height.unwrap()) <= 1024,
                    "{attributes}"
                );
            }
            Err(failure) => assert!(
                matches!(
                    failure.code,
                    FailureCode::Undecodable | FailureCode::TooLarge
                ),
                "{attributes}: {failure:?}"
            ),
        }
    }
    let long = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg"><!--{}--></svg>"#,
        "x".repeat(17 << 20)
    );
    let failure = to_png(Format::Svg, long.as_bytes()).unwrap_err();
    assert_eq!(failure.code, FailureCode::TooLarge);
}
