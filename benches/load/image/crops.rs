//! Photographs of the image scenarios: crops of Debian's wallpapers, made once per machine.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use sluice_testkit::Failure;

const COUNT: usize = 100;
const WIDTH: u32 = 2040;
const HEIGHT: u32 = 1356;
/// Changes when crops of the same name would look different.
const GENERATION: u32 = 1;

/// Places of wallpapers: installed, or unpacked by `scripts/install.sh bench`.
const PLACES: [&str; 4] = [
    "/usr/share/wallpapers",
    "/usr/share/backgrounds/mate/nature",
    "target/tools/plasma-wallpapers/usr/share/wallpapers",
    "target/tools/mate-backgrounds/usr/share/backgrounds/mate/nature",
];

/// Files of one format.
#[derive(Clone, Debug)]
pub(crate) struct Crops {
    pub(crate) folder: PathBuf,
    pub(crate) names: Vec<String>,
}

impl Crops {
    /// Returns those of an extension, in order; cuts them when they do not exist yet.
    pub(crate) fn obtain(root: &Path, extension: &str) -> Result<Self, Failure> {
        let folder = root.join(format!("target/load/crops-{GENERATION}"));
        if !folder.exists() {
            cut(root, &folder)?;
        }
        let mut names: Vec<String> = std::fs::read_dir(&folder)?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.ends_with(extension))
            .collect();
        names.sort();
        Ok(Self { folder, names })
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        Ok(std::fs::read(self.folder.join(name))?)
    }
}

fn cut(root: &Path, folder: &Path) -> Result<(), Failure> {
    let mut sources = Vec::new();
    for place in PLACES {
        walk(&root.join(place), &mut sources);
    }
    if sources.is_empty() {
        return Err("no photographs: run scripts/install.sh bench".into());
    }
    println!(
        "cutting {COUNT} photographs of {} wallpapers",
        sources.len()
    );
    let unfinished = tempfile::TempDir::new_in(root.join("target/load"))?;
    let status = Command::new("python3")
        .env("PYTHONPATH", root.join("target/tools/python"))
        .arg(root.join("benches/load/image/crops.py"))
        .arg(unfinished.path())
        .args([COUNT.to_string(), WIDTH.to_string(), HEIGHT.to_string()])
        .args(sources)
        .status()?;
    if !status.success() {
        return Err("the photographs could not be cut (Pillow: scripts/install.sh bench)".into());
    }
    Ok(std::fs::rename(unfinished.keep(), folder)?)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            walk(&path, files);
        } else if path.extension().is_some_and(|it| it == "jpg") && !is_small(&path) {
            files.push(path);
        }
    }
}

/// Plasma's packages hold each wallpaper in a dozen sizes; one of them is enough.
fn is_small(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let size = name.split_once('x');
    let width = size.and_then(|(width, _)| width.parse::<u32>().ok());
    width.is_some_and(|width| width != 2560) || name.starts_with("screenshot")
}
