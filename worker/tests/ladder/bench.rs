//! Support of ladder tests: runs the task as the worker does, and reads the files with ffprobe.

use std::{
    fs::{self, File},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::Command,
};

use sluice_media::{
    av::{
        AvTask, Ladder, Report, Resume,
        ladder::{self, Profile, Rung},
    },
    hls::StreamInfo,
    task::{Done, Failure, Limits},
};
use sluice_worker::av::{self, probe};

pub use super::clips::ffmpeg;
use super::clips::{self, LIMITS};

/// A segment as it was reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    pub number: u32,
    pub offset: u64,
    pub length: u64,
    pub start_90k: i64,
    pub duration_90k: u32,
    pub key_length: u64,
}

/// A rendition's file and what was reported of it.
#[derive(Clone, Debug)]
pub struct Made {
    pub path: PathBuf,
    pub init: Option<(u64, StreamInfo, bool)>,
    pub segments: Vec<Segment>,
}

impl Made {
    pub fn times(&self) -> Vec<(i64, u32)> {
        let time = |segment: &Segment| (segment.start_90k, segment.duration_90k);
        self.segments.iter().map(time).collect()
    }
}

/// Result of a run.
#[derive(Debug)]
pub struct Run {
    pub renditions: Vec<Made>,
    pub shares: Vec<f32>,
    pub result: Result<Done, Failure>,
}

/// Renditions with these short edges.
pub fn heights(heights: &[u32]) -> Profile {
    let rung = |&height| Rung {
        height,
        bitrate: None,
    };
    Profile::Custom(heights.iter().map(rung).collect())
}

/// Plans a clip's renditions in segments of 2 s.
pub fn plan(clip: &Path, profile: &Profile) -> Ladder {
    let facts = probe::probe(&clips::input(clip), &LIMITS).expect("facts");
    let plan = ladder::plan(&facts, profile, 2).expect("a plan");
    plan.ladder
}

/// Makes a ladder in new files.
pub fn make(name: &str, clip: &Path, ladder: &Ladder) -> Run {
    let count = ladder.video.len() + usize::from(ladder.audio.is_some());
    let paths: Vec<PathBuf> = (0..count)
        .map(|index| clips::folder().join(format!("{name}.{index}.mp4")))
        .collect();
    for path in &paths {
        fs::write(path, []).expect("an empty file");
    }
    run(clip, ladder, &paths, &LIMITS)
}

/// Continues a ladder from segment `number` on, after cutting its files there.
pub fn resume(clip: &Path, ladder: &Ladder, made: &Run, number: u32) -> Run {
    let mut at_90k = 0;
    for (rendition, index) in made.renditions.iter().zip(0..) {
        let is_audio = index == ladder.video.len();
        let file = File::options().write(true).open(&rendition.path);
        let length = if is_audio {
            0
        } else {
            let next = rendition.segments[number as usize];
            at_90k = next.start_90k;
            next.offset
        };
        file.expect("a file")
            .set_len(length)
            .expect("a shorter file");
    }
    let paths: Vec<PathBuf> = made.renditions.iter().map(|one| one.path.clone()).collect();
    let mut ladder = ladder.clone();
    ladder.resume = Some(Resume { number, at_90k });
    run(clip, &ladder, &paths, &LIMITS)
}

pub fn run(clip: &Path, ladder: &Ladder, paths: &[PathBuf], limits: &Limits) -> Run {
    let open = |path: &PathBuf| -> OwnedFd {
        let file = File::options().read(true).write(true).open(path);
        file.expect("a file").into()
    };
    let mut run = Run {
        renditions: paths
            .iter()
            .map(|path| Made {
                path: path.clone(),
                init: None,
                segments: Vec::new(),
            })
            .collect(),
        shares: Vec::new(),
        result: Ok(Done::default()),
    };
    let (renditions, shares) = (&mut run.renditions, &mut run.shares);
    let mut on_report = |report| match report {
        Report::Working { share } => shares.push(share),
        Report::Waiting { .. } => panic!("a worker does not wait"),
        Report::Init {
            rendition,
            length,
            info,
            copied,
        } => {
            let made = &mut renditions[usize::from(rendition)];
            assert!(made.init.is_none() && made.segments.is_empty());
            assert!(file_length(&made.path) >= length);
            made.init = Some((length, info, copied));
        }
        Report::Segment {
            rendition,
            number,
            offset,
            length,
            start_90k,
            duration_90k,
            key_length,
        } => {
            let made = &mut renditions[usize::from(rendition)];
            assert!(
                file_length(&made.path) >= offset + length,
                "written before it is reported"
            );
            made.segments.push(Segment {
                number,
                offset,
                length,
                start_90k,
                duration_90k,
                key_length,
            });
        }
    };
    let input = File::open(clip).expect("a clip").into();
    let outputs = paths.iter().map(open).collect();
    let task = AvTask::Ladder(ladder.clone());
    run.result = av::perform(&task, vec![input], outputs, limits, &mut on_report);
    run
}

fn file_length(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").len()
}

/// A packet as ffprobe sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    pub pts_s: f64,
    pub duration_s: f64,
    pub offset: u64,
    pub key: bool,
}

/// All packets of a file, which must be read without a complaint.
pub fn packets(path: &Path) -> Vec<Packet> {
    let entries = "packet=pts_time,duration_time,pos,flags";
    let text = ffprobe(path, &["-show_entries", entries, "-of", "csv=p=0"]);
    text.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            Packet {
                pts_s: fields[0].parse().expect("a time"),
                // Not known of a first frame of audio.
                duration_s: fields[1].parse().unwrap_or(0.0),
                offset: fields[2].parse().expect("a place"),
                key: fields[3].starts_with('K'),
            }
        })
        .collect()
}

/// The value of one entry of the only stream.
pub fn entry(path: &Path, name: &str) -> String {
    let entries = format!("stream={name}");
    let text = ffprobe(path, &["-show_entries", &entries, "-of", "csv=p=0"]);
    text.trim().to_owned()
}

fn ffprobe(path: &Path, arguments: &[&str]) -> String {
    output(
        Command::new("ffprobe")
            .args(["-v", "error"])
            .args(arguments)
            .arg(path),
    )
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(complaint.is_empty(), "{command:?}: {complaint}");
    String::from_utf8(output.stdout).expect("text")
}
