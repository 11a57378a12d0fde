//! Cost of the planar path for each format and scale of the decoder, on a made photograph of 2040 × 1356.
//!
//! `cargo bench -p sluice-worker --features codecs --bench planar`

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use sluice_media::format::Format;
use sluice_media::task::{Effort, Encode, Fit, Limits, Path, Render, Resize, Task};
use sluice_worker::image::{ImageProcessor, Raster, vips};

const LIMITS: Limits = Limits {
    max_pixels: 10_000_000,
    max_frames: 1,
    max_total_pixels: 10_000_000,
    max_output_bytes: 1 << 24,
    max_members: 1,
    max_duration_ms: 0,
    max_side: 0,
};

/// Edges and noise of all sizes, so that Huffman coding has as much to do as with a photograph.
fn photograph() -> Vec<u8> {
    let (width, height) = (2040, 1356);
    let mut noise = 1_u32;
    let mut pixels = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let hill = 80.0 * ((x as f32 / 90.0).sin() * (y as f32 / 70.0).cos());
            let stones = if (x / 37 + y / 23) % 3 == 0 {
                40.0
            } else {
                0.0
            };
            let grain = (noise >> 24) as f32 / 16.0;
            let light = 90.0 + hill + stones + grain;
            pixels.extend([light, light * 0.9 + 10.0, light * 0.7 + 30.0].map(|it| it as u8));
        }
    }
    let raster = Raster {
        width,
        height,
        bands: 3,
        pixels,
    };
    vips::encode_raster(&raster, &Encode::new(Format::Jpg, 85)).expect("a JPEG")
}

fn task(format: Format, width: u32, path: Path) -> Task {
    let output = Encode {
        effort: Effort::Fast,
        ..Encode::new(format, 80)
    };
    let mut render = Render::new(Format::Jpg, output);
    render.path = path;
    render.resize = Some(Resize::new(Some(width), None, Fit::Inside));
    Task::Render(Box::new(render))
}

fn paths(criterion: &mut Criterion) {
    let mut processor = ImageProcessor::new();
    let jpeg = photograph();
    let mut group = criterion.benchmark_group("render");
    group.sample_size(20);
    for (format, width) in [
        (Format::Jpg, 160),
        (Format::Jpg, 512),
        (Format::Jpg, 1280),
        (Format::Webp, 512),
        (Format::Avif, 512),
    ] {
        for path in [Path::Planar, Path::Vips] {
            let task = task(format, width, path);
            group.bench_function(format!("{format:?} {width} {path:?}"), |bencher| {
                bencher.iter(|| {
                    let done = processor.perform(&task, &[&jpeg], &LIMITS);
                    black_box(done.expect("a result"))
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, paths);
criterion_main!(benches);
