//! CPU per image of the libvips path, against a plain libvips program with the best settings that were found.
//!
//! `cargo bench -p sluice-worker --features codecs --bench vips [-- photo.jpg]`. Both run in this process, by turns, on
//! the same photograph in several forms; the plain program is the calls that a C programmer would write.
#![allow(
    unsafe_code,
    reason = "the peer of this bench is libvips' own interface"
)]
#![allow(clippy::print_stdout, reason = "a bench prints its figures")]

use std::{
    env,
    ffi::{CStr, CString, c_int, c_void},
    fs,
    path::{Path, PathBuf},
    ptr::{null, null_mut},
};

use libvips::bindings as c;
use sluice_media::{
    format::Format,
    task::{Effort, Encode, Fit, Limits, Render, Resize},
};
use sluice_worker::image::vips;

const LIMITS: Limits = Limits {
    max_pixels: 120_000_000,
    max_frames: 1,
    max_total_pixels: 120_000_000,
    max_output_bytes: 1 << 30,
    max_members: 1,
    max_duration_ms: 0,
    max_side: 0,
};
const ROUNDS: u32 = 5;
const PHOTOGRAPHS: &str = "/usr/share/wallpapers";

/// A form of the photograph, its result, and the plain program's way to it.
struct Case {
    what: &'static str,
    source: Form,
    width: u32,
    target: Format,
    effort: Effort,
    saver: &'static CStr,
}

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Jpeg,
    /// With an embedded profile of Display P3.
    WideGamut,
    Png,
    Webp,
}

const CASES: [Case; 7] = [
    Case {
        what: "PNG to WebP, 512 px",
        source: Form::Png,
        width: 512,
        target: Format::Webp,
        effort: Effort::Balanced,
        saver: c".webp[Q=80,effort=4,strip]",
    },
    Case {
        what: "PNG to PNG, 512 px",
        source: Form::Png,
        width: 512,
        target: Format::Png,
        effort: Effort::Balanced,
        saver: c".png[compression=6,strip]",
    },
    Case {
        what: "Display P3 JPEG to JPEG, 512 px",
        source: Form::WideGamut,
        width: 512,
        target: Format::Jpg,
        effort: Effort::Fast,
        saver: c".jpg[Q=80,optimize_coding,strip]",
    },
    Case {
        what: "Display P3 JPEG to WebP, 1024 px",
        source: Form::WideGamut,
        width: 1024,
        target: Format::Webp,
        effort: Effort::Fast,
        saver: c".webp[Q=80,effort=2,strip]",
    },
    Case {
        what: "WebP to WebP, 512 px",
        source: Form::Webp,
        width: 512,
        target: Format::Webp,
        effort: Effort::Balanced,
        saver: c".webp[Q=80,effort=4,strip]",
    },
    Case {
        what: "JPEG to AVIF, 1024 px",
        source: Form::Jpeg,
        width: 1024,
        target: Format::Avif,
        effort: Effort::Fast,
        saver: c".avif[Q=80,effort=0,bitdepth=8,strip]",
    },
    Case {
        what: "JPEG to JPEG, 512 px, not planar",
        source: Form::Jpeg,
        width: 512,
        target: Format::Jpg,
        effort: Effort::Fast,
        saver: c".jpg[Q=80,optimize_coding,strip]",
    },
];

fn main() {
    vips::start();
    let Some(photograph) = photograph() else {
        println!("no photograph: name one, or install plasma-workspace-wallpapers");
        return;
    };
    println!("{}", photograph.display());
    println!(
        "{:36} {:>9} {:>9} {:>6}",
        "CPU ms per image", "ours", "plain", "ratio"
    );
    let bytes = fs::read(&photograph).expect("the photograph can be read");
    for case in &CASES {
        let source = in_form(&bytes, case.source);
        let (mut ours, mut plain) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            ours = ours.min(cpu_of(|| render(case, &source)));
            plain = plain.min(cpu_of(|| render_plainly(case, &source)));
        }
        println!(
            "{:36} {ours:9.1} {plain:9.1} {:6.2}",
            case.what,
            ours / plain
        );
    }
}

/// The file named, or the largest JPEG among the wallpapers.
fn photograph() -> Option<PathBuf> {
    let named = env::args().skip(1).find(|word| !word.starts_with("--"));
    if let Some(named) = named {
        return Some(named.into());
    }
    let mut folders = vec![PathBuf::from(PHOTOGRAPHS)];
    let mut largest: Option<(u64, PathBuf)> = None;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let length = entry.metadata().map_or(0, |metadata| metadata.len());
            if path.is_dir() {
                folders.push(path);
            } else if is_jpeg(&path) && largest.as_ref().is_none_or(|(most, _)| length > *most) {
                largest = Some((length, path));
            }
        }
    }
    largest.map(|(_, path)| path)
}

fn is_jpeg(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jpg")
}

/// The photograph at 2040 px, as a file of that form.
fn in_form(bytes: &[u8], form: Form) -> Vec<u8> {
    const WIDTH: c_int = 2040;
    // SAFETY: `bytes` outlive the image, which is written and released here.
    unsafe {
        let mut image = null_mut();
        let code = c::vips_thumbnail_buffer(
            bytes.as_ptr() as *mut c_void,
            bytes.len() as c::size_t,
            &raw mut image,
            WIDTH,
            null::<i8>(),
        );
        assert_eq!(code, 0, "the photograph decodes");
        match form {
            Form::Jpeg => written(image, c".jpg[Q=92,strip]"),
            Form::Png => written(image, c".png[strip]"),
            Form::Webp => written(image, c".webp[Q=90,strip]"),
            Form::WideGamut => written(through_profile(image, c"p3"), c".jpg[Q=92]"),
        }
    }
}

fn render(case: &Case, source: &[u8]) {
    let format = match case.source {
        Form::Jpeg | Form::WideGamut => Format::Jpg,
        Form::Png => Format::Png,
        Form::Webp => Format::Webp,
    };
    let encode = Encode {
        effort: case.effort,
        ..Encode::new(case.target, 80)
    };
    let mut render = Render::new(format, encode);
    render.resize = Some(Resize::new(Some(case.width), None, Fit::Inside));
    let (_, bytes) = vips::render(&render, source, None, &LIMITS).expect("it renders");
    assert!(!bytes.is_empty());
}

fn render_plainly(case: &Case, source: &[u8]) {
    // SAFETY: `source` outlives every image made from it; each is released once.
    unsafe {
        let mut image = opened(source, "access=sequential".into());
        let times = f64::from((*image).Xsize) / f64::from(case.width);
        if let Some(scale) = scale_on_load(case.source, times) {
            c::g_object_unref(image.cast());
            image = opened(source, format!("access=sequential,{scale}"));
        }
        let mut resized = null_mut();
        let scale = f64::from(case.width) / f64::from((*image).Xsize);
        let code = c::vips_resize(image, &raw mut resized, scale, null::<i8>());
        assert_eq!(code, 0, "the image is scaled");
        c::g_object_unref(image.cast());
        if case.source == Form::WideGamut {
            resized = through_profile(resized, c"srgb");
        }
        assert!(!written(resized, case.saver).is_empty());
    }
}

/// Decoders scale to what leaves one and a half times the width.
fn scale_on_load(form: Form, times: f64) -> Option<String> {
    match form {
        Form::Png => None,
        Form::Webp => Some(format!("scale={}", 1.5 / times)),
        Form::Jpeg | Form::WideGamut => [8.0, 4.0, 2.0]
            .into_iter()
            .find(|factor| times / factor >= 1.5)
            .map(|factor| format!("shrink={factor}")),
    }
}

/// Brings the image into another profile and releases it.
unsafe fn through_profile(image: *mut c::VipsImage, profile: &CStr) -> *mut c::VipsImage {
    let mut converted = null_mut();
    // SAFETY: the image is the caller's to give.
    unsafe {
        let code = c::vips_icc_transform(
            image,
            &raw mut converted,
            profile.as_ptr(),
            c"embedded".as_ptr(),
            1 as c_int,
            c"input_profile".as_ptr(),
            c"srgb".as_ptr(),
            null::<i8>(),
        );
        assert_eq!(code, 0, "libvips has the profile");
        c::g_object_unref(image.cast());
    }
    converted
}

unsafe fn opened(source: &[u8], options: String) -> *mut c::VipsImage {
    let options = CString::new(options).expect("options have no zero byte");
    // SAFETY: the caller keeps `source` for as long as the image.
    let image = unsafe {
        c::vips_image_new_from_buffer(
            source.as_ptr().cast(),
            source.len() as c::size_t,
            options.as_ptr(),
            null::<i8>(),
        )
    };
    assert!(!image.is_null(), "the source opens");
    image
}

/// Writes the image and releases it.
unsafe fn written(image: *mut c::VipsImage, saver: &CStr) -> Vec<u8> {
    let (mut buffer, mut length) = (null_mut(), 0);
    // SAFETY: the image is the caller's to give; the buffer is copied and freed here.
    unsafe {
        let code = c::vips_image_write_to_buffer(
            image,
            saver.as_ptr(),
            &raw mut buffer,
            &raw mut length,
            null::<i8>(),
        );
        assert_eq!(code, 0, "the image is written");
        let bytes = std::slice::from_raw_parts(buffer.cast::<u8>(), length as usize).to_vec();
        c::g_free(buffer);
        c::g_object_unref(image.cast());
        bytes
    }
}

/// Milliseconds of processor time, of all threads, that `work` takes.
fn cpu_of(work: impl FnOnce()) -> f64 {
    let before = cpu();
    work();
    cpu() - before
}

fn cpu() -> f64 {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    clock.tv_sec as f64 * 1e3 + clock.tv_nsec as f64 / 1e6
}
