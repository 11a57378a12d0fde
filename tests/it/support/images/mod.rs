//! Images to send, and what an independent decoder makes of the images that come back.
//!
//! Both are Python programs on Pillow (`draw.py`, `craft.py`, `decode.py`), which `scripts/install.sh test` puts under
//! target/tools/python. Images are made once per machine, under a lock, and moved into place whole.

mod decoder;
mod photographs;

pub use self::{
    decoder::{DecodedImage, Pixel, difference, look},
    photographs::photographs,
};

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use super::{Failure, media::target_folder, skip};

/// Size of every drawn image but the photograph, the icon and the odd one.
pub const WIDTH: u32 = 240;
pub const HEIGHT: u32 = 160;

/// Mean colours of the four quadrants of every drawn image, as the grid's corner cells give them.
pub const RED: Pixel = [186, 45, 40, 255];
pub const GREEN: Pixel = [36, 149, 54, 255];
pub const BLUE: Pixel = [43, 67, 192, 255];
pub const YELLOW: Pixel = [216, 192, 48, 255];

/// The frame delays of the drawn animations, in milliseconds.
pub const DELAYS: [u32; 4] = [80, 120, 160, 240];

/// Changes when images of the same name would look different.
const GENERATION: u32 = 1;

/// The bytes of a drawn image, such as `orientation-6.jpg`; draw.py lists them all.
pub fn drawn(name: &str) -> Result<Vec<u8>, Failure> {
    read(&drawn_folder()?.join(name))
}

/// The bytes of a crafted file, such as `giant.png`; craft.py lists them all.
pub fn crafted(name: &str) -> Result<Vec<u8>, Failure> {
    read(&crafted_folder()?.join(name))
}

/// Returns a small image in one colour, which is rendered fast.
pub fn svg(colour: &str) -> Vec<u8> {
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30"><rect width="40" height="30" fill="{colour}"/></svg>"#
    )
    .into_bytes()
}

/// Drawn images that were cut short or changed: names and bytes, always the same ones.
pub fn spoilt() -> Result<Vec<(String, Vec<u8>)>, Failure> {
    let entries = std::fs::read_dir(crafted_folder()?.join("spoilt"))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.push((name, std::fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()).into())
}

/// Returns whether the decoder is installed; prints that `scenario` is left out when it is not. A failure where nothing
/// may be left out.
pub fn available(scenario: &str) -> Result<bool, Failure> {
    if python_folder().join("complete").exists() {
        return Ok(true);
    }
    if std::env::var_os("CI").is_some() {
        return Err("no independent decoder: run scripts/install.sh test".into());
    }
    skip(scenario, "no independent decoder (scripts/install.sh test)");
    Ok(false)
}

fn drawn_folder() -> Result<&'static Path, Failure> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&FOLDER, || make("drawn", "draw.py", &[]))
}

fn crafted_folder() -> Result<&'static Path, Failure> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    once(&FOLDER, || make("crafted", "craft.py", &[drawn_folder()?]))
}

fn once(
    folder: &'static OnceLock<Result<PathBuf, String>>,
    make: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<&'static Path, Failure> {
    match folder.get_or_init(|| make().map_err(|failure| failure.to_string())) {
        Ok(folder) => Ok(folder),
        Err(text) => Err(text.clone().into()),
    }
}

/// Test processes that start at once wait for the first one's work.
fn make(name: &str, program: &str, arguments: &[&Path]) -> Result<PathBuf, Failure> {
    let media = target_folder().join("test-media");
    std::fs::create_dir_all(&media)?;
    let folder = media.join(format!("{name}-{GENERATION}"));
    let lock = File::create(media.join(format!("{name}.lock")))?;
    lock.lock()?;
    if !folder.exists() {
        let unfinished = tempfile::TempDir::new_in(&media)?;
        let mut command = python(script(program));
        let output = command.arg(unfinished.path()).args(arguments).output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into());
        }
        std::fs::rename(unfinished.keep(), &folder)?;
    }
    Ok(folder)
}

/// Python with the decoder's packages.
fn python(script: PathBuf) -> Command {
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", python_folder()).arg(script);
    command
}

fn python_folder() -> PathBuf {
    target_folder().join("tools/python")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/support/images")
        .join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decoder sees what was drawn, so that a scenario that fails speaks of the service.
    #[tokio::test]
    async fn the_decoder_sees_what_was_drawn() -> Result<(), Failure> {
        if !available("the_decoder_sees_what_was_drawn")? {
            return Ok(());
        }
        let upright = [RED, GREEN, BLUE, YELLOW];
        for (name, format, tolerance) in [
            ("plain.png", "PNG", 0),
            ("plain.avif", "AVIF", 3),
            ("plain.heic", "HEIF", 3),
            ("plain.jxl", "JXL", 3),
            ("adobe-rgb.jpg", "JPEG", 3),
            ("deep.png", "PNG", 1),
        ] {
            let image = look(&drawn(name)?).await?;
            assert_eq!(image.format, format, "{name}");
            assert_eq!(image.size(), (WIDTH, HEIGHT), "{name}");
            image.check_corners(upright, tolerance)?;
        }
        let sideways = look(&drawn("orientation-6.jpg")?).await?;
        assert_eq!(sideways.size(), (HEIGHT, WIDTH));
        assert_eq!(sideways.orientation, 6);
        assert!(sideways.check_corners(upright, 60).is_err());
        let animation = look(&drawn("animated.webp")?).await?;
        assert_eq!(animation.delays, DELAYS);
        assert_ne!(animation.last_corners(), Some(animation.corners()));
        let (plain, inked) = (drawn("plain.png")?, drawn("cmyk-profile.jpg")?);
        assert!(difference(&plain, &inked).await? > 20.0);
        assert!(look(b"GIF89a").await.is_err());
        Ok(())
    }
}
