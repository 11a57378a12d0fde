//! Any folder of images: `SLUICE_CORPUS=/folder cargo test -p sluice-worker --features codecs --test vips corpus -- --ignored --nocapture`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use sluice_media::{
    format::Format,
    task::{FailureCode, Fit, Gravity, Render, Resize},
};
use sluice_worker::image::vips;

use crate::material::*;

#[test]
#[ignore = "needs a folder of images in SLUICE_CORPUS"]
fn every_file_is_answered_without_a_defect() {
    let folder = env::var("SLUICE_CORPUS").expect("SLUICE_CORPUS names a folder");
    let (mut rendered, mut refused, mut defects) = (0, 0, Vec::new());
    for path in files(Path::new(&folder)) {
        let Ok(bytes) = fs::read(&path) else { continue };
        let Some(format) = Format::sniff(&bytes[..bytes.len().min(4096)]) else {
            continue;
        };
        eprintln!("{} ({})", path.display(), format.name());
        let began = Instant::now();
        let inspected = vips::inspect(format, &bytes, &LIMITS).map(drop);
        for answer in std::iter::once(inspected).chain(
            requests(format)
                .into_iter()
                .map(|render| vips::render(&render, &bytes, None, &LIMITS).map(drop)),
        ) {
            match answer {
                Ok(()) => rendered += 1,
                Err(failure) if failure.code == FailureCode::Internal => {
                    defects.push(format!("{}: {failure}", path.display()));
                }
                Err(failure) => {
                    refused += 1;
                    eprintln!("    {:?}: {failure}", failure.code);
                }
            }
        }
        if began.elapsed() > Duration::from_secs(3) {
            eprintln!("    took {:?}", began.elapsed());
        }
    }
    eprintln!("{rendered} answered, {refused} refused");
    assert!(defects.is_empty(), "{defects:#?}");
}

fn requests(format: Format) -> Vec<Render> {
    let mut small = request(format, Format::Webp);
    small.resize = Some(Resize {
        gravity: Gravity::Smart,
        ..Resize::new(Some(100), Some(80), Fit::Cover)
    });
    small.trim = true;
    small.rotate = 15;
    small.adjust.saturation = 1.5;
    small.adjust.blur = 1.0;
    vec![request(format, Format::Png), small]
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
