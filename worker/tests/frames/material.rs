//! Counted clips, tasks on them, and how results are read.

use std::{
    fs::File,
    io::{Read as _, Seek as _},
    path::{Path, PathBuf},
};

use sluice_media::{
    av::{AvTask, Report, Still},
    format::Format,
    task::{Done, Encode, Failure, Limits, Render},
};
use sluice_worker::{
    av,
    image::{Raster, vips},
};

use super::clips::{self, LIMITS};

/// Difference of a frame's luma to the one before it; the first has [`FIRST`].
const STEP: u32 = 7;
const FIRST: u32 = 20;
/// Counted frames of a clip.
pub const COUNT: u32 = 30;
/// Frames in a second.
pub const RATE: f64 = 10.0;

/// Frames of 64 × 48 in one grey each: 30 of them, 10 a second, a key frame every `ARGS -g`.
pub fn counted(name: &str, arguments: &str) -> PathBuf {
    let grey = format!("geq=lum='{FIRST}+{STEP}*N':cb=128:cr=128");
    let source =
        format!("-f lavfi -i color=size=64x48:rate={RATE}:duration=3,format=yuv420p,{grey}");
    clips::clip(name, &format!("{source} {arguments}"))
}

/// x264 without loss of flat greys, a key frame a second.
pub const X264: &str = "-c:v libx264 -preset ultrafast -qp 1 -g 10 -bf 0";

/// The number of the frame that a raster shows.
pub fn number(raster: &Raster) -> u32 {
    let middle = pixel(raster, raster.width / 2, raster.height / 2);
    let luma = f64::from(middle[1]) * 219.0 / 255.0 + 16.0;
    ((luma - f64::from(FIRST)) / f64::from(STEP)).round() as u32
}

pub fn pixel(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let at = (y * raster.width + x) as usize * usize::from(raster.bands);
    [0, 1, 2].map(|band| raster.pixels[at + band])
}

pub fn assert_near(found: [u8; 3], expected: [u8; 3], tolerance: u8, what: &str) {
    let is_near = found
        .iter()
        .zip(expected)
        .all(|(one, other)| one.abs_diff(other) <= tolerance);
    assert!(is_near, "{what}: {found:?} is not {expected:?}");
}

/// Results, with the reports meanwhile.
pub struct Performed {
    pub done: Done,
    pub outputs: Vec<Vec<u8>>,
    pub shares: Vec<f32>,
}

pub fn perform_within(task: &AvTask, clip: &Path, limits: &Limits) -> Result<Performed, Failure> {
    let _alone = clips::alone();
    let input = File::open(clip).expect("a clip");
    let mut files: Vec<File> = (0..task.outputs())
        .map(|_| tempfile::tempfile().expect("a file"))
        .collect();
    let outputs = files
        .iter()
        .map(|file| file.try_clone().expect("a descriptor").into())
        .collect();
    let mut shares = Vec::new();
    let mut on_report = |report| match report {
        Report::Working { share } => shares.push(share),
        Report::Waiting { .. } => panic!("a worker does not wait"),
        Report::Init { .. } | Report::Segment { .. } => {}
    };
    let done = av::perform(task, vec![input.into()], outputs, limits, &mut on_report)?;
    let outputs: Vec<Vec<u8>> = files.iter_mut().map(content).collect();
    for (facts, bytes) in done.outputs.iter().zip(&outputs) {
        assert_eq!(facts.bytes, bytes.len() as u64);
    }
    Ok(Performed {
        done,
        outputs,
        shares,
    })
}

pub fn perform(task: &AvTask, clip: &Path) -> Result<Performed, Failure> {
    perform_within(task, clip, &LIMITS)
}

fn content(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().expect("a seekable file");
    file.read_to_end(&mut bytes).expect("a readable file");
    bytes
}

/// The frame at that time, without loss.
pub fn still(at_s: f64) -> AvTask {
    AvTask::Still(Still {
        at_s,
        render: Render::new(Format::Png, Encode::new(Format::Png, 100)),
    })
}

pub fn shown(clip: &Path, at_s: f64) -> Raster {
    let name = clip.display();
    let performed =
        perform(&still(at_s), clip).unwrap_or_else(|failure| panic!("{name}: {failure:?}"));
    raster(&performed.outputs[0], Format::Png)
}

pub fn raster(bytes: &[u8], format: Format) -> Raster {
    vips::raster(format, 1, bytes, &LIMITS, 16_000).expect("an image")
}
