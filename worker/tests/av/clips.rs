//! Clips for tests: made by ffmpeg once, kept in the target folder's place for temporary files.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use sluice_media::task::Limits;
use sluice_worker::av::{self, source::Input};

pub const LIMITS: Limits = Limits {
    max_pixels: 100_000_000,
    max_frames: 1_000,
    max_total_pixels: 100_000_000,
    max_output_bytes: 1 << 28,
    max_members: 0,
    max_duration_ms: 12 * 3_600_000,
    max_side: 8_192,
};

/// Colours and a counter, 160×90, 10 frames a second, 2 seconds.
pub const VIDEO: &str = "-f lavfi -i testsrc2=size=160x90:rate=10:duration=2";
/// 440 Hz, 2 seconds.
pub const AUDIO: &str = "-f lavfi -i sine=frequency=440:duration=2";
pub const H264: &str = "-c:v libx264 -preset ultrafast -g 10 -pix_fmt yuv420p";

/// Starts GStreamer. Tests here may run side by side: nothing in them uses libvips.
pub fn start() {
    av::start(&folder().join("registry.bin")).expect("GStreamer starts");
}

/// Starts GStreamer and keeps other tests out meanwhile, for those that use libvips beside it.
#[allow(dead_code, reason = "not every test binary has such tests")]
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let guard = ALONE.lock();
    start();
    guard
}

/// Returns whether clips can be made. Where tests must not be left out, a missing encoder fails.
pub fn can_be_made() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        let is_there = Command::new("ffmpeg").arg("-version").output().is_ok();
        assert!(
            is_there || std::env::var_os("CI").is_none(),
            "ffmpeg is missing"
        );
        is_there
    })
}

pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("av");
        fs::create_dir_all(&folder).expect("a folder");
        folder
    })
}

/// A clip by that name, made with these arguments, which are separated by spaces. It takes its name when it is whole: another
/// test may make or read it meanwhile.
pub fn clip(name: &str, arguments: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let unfinished = folder().join(format!("{}-{number}-{name}", std::process::id()));
    let made = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-y"])
        .args(arguments.split_whitespace())
        .args(["-threads", "1"])
        .arg(&unfinished)
        .status()
        .expect("ffmpeg runs");
    assert!(made.success(), "{name} is made");
    let path = folder().join(name);
    fs::rename(&unfinished, &path).expect("a folder that takes it");
    path
}

/// Returns ffmpeg's standard output; a file that it complains about fails.
#[allow(dead_code, reason = "not every test binary reads results")]
pub fn ffmpeg(path: &Path, arguments: &str) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-nostdin", "-i"])
        .arg(path)
        .args(arguments.split_whitespace())
        .arg("-")
        .output()
        .expect("ffmpeg runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.is_empty(),
        "{path:?}: {said}"
    );
    output.stdout
}

/// A usual clip with video and audio.
pub fn usual() -> PathBuf {
    static USUAL: OnceLock<PathBuf> = OnceLock::new();
    USUAL
        .get_or_init(|| {
            clip(
                "usual.mp4",
                &format!("{VIDEO} {AUDIO} {H264} -c:a aac -shortest"),
            )
        })
        .clone()
}

/// An Ogg file of parts of 2 seconds each, one behind the other, of 440 Hz, 880 Hz and so on, each coded as it says.
#[allow(dead_code, reason = "not every test binary has such tests")]
pub fn chain(name: &str, codecs: &[&str]) -> PathBuf {
    let mut whole = Vec::new();
    for (index, codec) in codecs.iter().enumerate() {
        let hertz = 440 * (index + 1);
        let part = clip(
            &format!("{index}-of-{name}"),
            &format!("-f lavfi -i sine=frequency={hertz}:duration=2 {codec}"),
        );
        whole.extend(fs::read(part).expect("a part"));
    }
    bytes(name, &whole)
}

pub fn input(path: &Path) -> Input {
    let file = File::open(path).expect("a clip");
    Input::new(file.into()).expect("an input")
}

pub fn bytes(name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder().join(name);
    fs::write(&path, bytes).expect("a file");
    path
}
