//! Tasks besides rendering, asked for as the service asks, and the formats that libvips does not read.
#![cfg(feature = "codecs")]

use std::io::{Cursor, Write};

use sluice_media::{
    format::Format,
    task::{
        Done, Encode, Failure, FailureCode, Limits, OutputFacts, PageSize, Placeholder, Render,
        Task,
    },
};
use sluice_worker::image::{ImageProcessor, Raster, vips};

const LIMITS: Limits = Limits {
    max_pixels: 10_000_000,
    max_frames: 10,
    max_total_pixels: 10_000_000,
    max_output_bytes: 1 << 24,
    max_members: 10,
    max_duration_ms: 0,
    max_side: 0,
};

const RED: [u8; 4] = [200, 30, 40, 255];
const BLUE: [u8; 4] = [20, 40, 220, 255];

/// Red on the left, blue on the right.
fn halves(width: u32, height: u32) -> Raster {
    let pixels = (0..width * height)
        .flat_map(|index| if index % width < width / 2 { RED } else { BLUE })
        .collect();
    Raster {
        width,
        height,
        bands: 4,
        pixels,
    }
}

fn written(raster: &Raster, format: Format) -> Vec<u8> {
    vips::encode_raster(raster, &Encode::new(format, 95)).expect("an image")
}

fn perform(task: &Task, inputs: &[&[u8]]) -> Result<(Done, Vec<Vec<u8>>), Failure> {
    ImageProcessor::new().perform(task, inputs, &LIMITS)
}

fn output(task: &Task, inputs: &[&[u8]]) -> (OutputFacts, Vec<u8>) {
    let (done, mut outputs) = perform(task, inputs).expect("a result");
    assert_eq!((done.outputs.len(), outputs.len()), (1, 1));
    let (facts, bytes) = (done.outputs[0].clone(), outputs.remove(0));
    assert_eq!(facts.bytes, bytes.len() as u64);
    (facts, bytes)
}

fn pixel(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let at = (y * raster.width + x) as usize * usize::from(raster.bands);
    [0, 1, 2].map(|band| raster.pixels[at + band])
}

fn assert_near(found: [u8; 3], expected: [u8; 4], what: &str) {
    let off = found
        .iter()
        .zip(expected)
        .map(|(found, expected)| found.abs_diff(expected))
        .max();
    assert!(off <= Some(12), "{what}: {found:?} for {expected:?}");
}

fn assert_halves(raster: &Raster, what: &str) {
    let (left, right) = (raster.width / 4, raster.width * 3 / 4);
    for y in [raster.height / 4, raster.height * 3 / 4] {
        assert_near(pixel(raster, left, y), RED, what);
        assert_near(pixel(raster, right, y), BLUE, what);
    }
}

/// 32 bits a pixel, rows from the top.
fn targa(raster: &Raster) -> Vec<u8> {
    let mut file = vec![0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend_from_slice(&(raster.width as u16).to_le_bytes());
    file.extend_from_slice(&(raster.height as u16).to_le_bytes());
    file.extend_from_slice(&[32, 0x28]);
    for rgba in raster.pixels.chunks_exact(4) {
        file.extend_from_slice(&[rgba[2], rgba[1], rgba[0], rgba[3]]);
    }
    file
}

/// 24 bits a pixel, rows from the bottom; the width is a multiple of four.
fn bitmap(raster: &Raster) -> Vec<u8> {
    let mut file = b"BM\0\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    file.extend_from_slice(&raster.width.to_le_bytes());
    file.extend_from_slice(&raster.height.to_le_bytes());
    file.extend_from_slice(&[1, 0, 24, 0]);
    file.extend_from_slice(&[0; 24]);
    let row = raster.width as usize * 4;
    for row in raster.pixels.chunks_exact(row).rev() {
        for rgba in row.chunks_exact(4) {
            file.extend_from_slice(&[rgba[2], rgba[1], rgba[0]]);
        }
    }
    file
}

/// A tiny frame, and a large one as a PNG whose depth is not stated.
fn icon(raster: &Raster) -> Vec<u8> {
    let png = written(raster, Format::Png);
    let tiny = written(&halves(4, 4), Format::Png);
    let mut file = vec![0, 0, 1, 0, 2, 0];
    let mut offset = 38u32;
    for (side, bits, video_frame) in [(4, 32, &tiny), (raster.width as u8, 0, &png)] {
        file.extend_from_slice(&[side, side, 0, 0, 1, 0, bits, 0]);
        file.extend_from_slice(&(video_frame.len() as u32).to_le_bytes());
        file.extend_from_slice(&offset.to_le_bytes());
        offset += video_frame.len() as u32;
    }
    [file, tiny, png].concat()
}

#[test]
fn formats_that_libvips_does_not_read_go_the_same_way() {
    let source = halves(64, 48);
    let square = halves(64, 64);
    for (format, file, height) in [
        (Format::Tga, targa(&source), 48),
        (Format::Bmp, bitmap(&source), 48),
        (Format::Ico, icon(&square), 64),
    ] {
        let render = Render::new(format, Encode::new(Format::Webp, 95));
        let (facts, bytes) = output(&Task::Render(Box::new(render)), &[&file]);
        assert_eq!((facts.width, facts.height), (Some(64), Some(height)));
        let seen = vips::raster(Format::Webp, 1, &bytes, &LIMITS, 64).expect("a WebP");
        assert_halves(&seen, format.name());

        let (done, _) = perform(&Task::Inspect { format }, &[&file]).expect("facts");
        let facts = done.image.expect("facts of an image");
        assert_eq!((facts.width, facts.height), (64, height), "{facts:?}");
        let failure = perform(&Task::Inspect { format }, &[&file[..20]]).expect_err("a stump");
        assert_eq!(failure.code, FailureCode::Undecodable);
    }
}

#[test]
fn a_traced_drawing_looks_like_its_source() {
    let source = written(&halves(80, 60), Format::Jpg);
    for mono in [false, true] {
        let task = Task::Vectorize {
            source: Format::Jpg,
            mono,
        };
        let (facts, svg) = output(&task, &[&source]);
        assert_eq!((facts.width, facts.height), (Some(80), Some(60)));
        let seen = vips::raster(Format::Svg, 1, &svg, &LIMITS, 80).expect("an SVG");
        assert_eq!((seen.width, seen.height), (80, 60));
        if mono {
            let alpha = |x: usize| seen.pixels[(30 * 80 + x) * 4 + 3];
            assert_eq!((alpha(20), alpha(60)), (0, 255), "blue is the darker half");
        } else {
            assert_halves(&seen, "the tracing");
        }
    }
}

#[test]
fn a_document_has_a_page_for_each_image() {
    let photo = written(&halves(400, 300), Format::Jpg);
    let mut ghost = halves(64, 48);
    ghost
        .pixels
        .chunks_exact_mut(4)
        .for_each(|rgba| rgba[3] = 0);
    let ghost = written(&ghost, Format::Png);
    let svg = br##"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><rect width="40" height="20" fill="#1428dc"/></svg>"##;
    let task = Task::ImagesToPdf {
        sources: vec![Format::Jpg, Format::Png, Format::Svg],
        page_size: PageSize::Auto,
    };
    let (facts, pdf) = output(&task, &[&photo, &ghost, svg]);
    assert_eq!(facts.pages, 3);
    assert_eq!(Format::sniff(&pdf), Some(Format::Pdf));
    let page = |page| vips::raster(Format::Pdf, page, &pdf, &LIMITS, 200).expect("a page");
    assert_halves(&page(1), "the photograph");
    assert_near(pixel(&page(2), 50, 50), [255; 4], "transparency is white");
    assert_near(pixel(&page(3), 50, 50), BLUE, "the drawing");
    let failure = perform(&task, &[&photo, b"no image", svg]).expect_err("a bad page");
    assert_eq!(failure.code, FailureCode::Undecodable);
}

#[test]
fn placeholders_are_short_text_of_every_format() {
    let raster = halves(300, 200);
    for (source, file) in [
        (Format::Jpg, written(&raster, Format::Jpg)),
        (Format::Bmp, bitmap(&raster)),
    ] {
        for (style, length) in [(Placeholder::BlurHash, 28), (Placeholder::ThumbHash, 28)] {
            let task = Task::Placeholder {
                source,
                page: 1,
                style,
            };
            let (_, text) = output(&task, &[&file]);
            assert_eq!(text.len(), length, "{style:?}");
            assert!(text.is_ascii());
        }
    }
}

#[test]
fn archives_are_listed_and_unpacked() {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for name in ["trip/one.jpg", "trip/day 2/two.jpg"] {
        writer.start_file(name, options).expect("a member");
        writer.write_all(name.as_bytes()).expect("its bytes");
    }
    let file = writer.finish().expect("an archive").into_inner();
    let (done, outputs) = perform(&Task::ListArchive, &[&file]).expect("a list");
    assert!(outputs.is_empty());
    let members = done.members.expect("members");
    let names: Vec<&str> = members.iter().map(|member| &*member.filename).collect();
    assert_eq!(names, ["one.jpg", "two.jpg"]);
    let task = Task::ExtractMember {
        index: members[1].index,
    };
    assert_eq!(output(&task, &[&file]).1, b"trip/day 2/two.jpg");
    let failure = perform(&Task::ListArchive, &[&file[..40]]).expect_err("a stump");
    assert_eq!(failure.code, FailureCode::Undecodable);
}
