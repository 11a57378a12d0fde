//! Re-encoding branch of WebRTC: real encoders' units through a real worker process, which is killed and hung.

use std::{path::Path, process::Command, time::Duration};

use sluice_actors::{
    compute::{Sandbox, VideoSettings, launch_av},
    live::webrtc::branch::{Branch, BranchOutput, BranchTracks, Branches},
};
use sluice_media::unit::Unit;
use tokio::time::{Instant, sleep, timeout};

use super::{SOON, until_gone, workers};
use crate::support::{Failure, eventually};

#[path = "../../../worker/tests/live/material.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod material;

const BOTH: BranchTracks = BranchTracks {
    video: true,
    audio: true,
};

/// A clip with B-frames and AAC, 25 frames a second, 4 s.
fn clip(folder: &Path) -> Result<Vec<Unit>, Failure> {
    let path = folder.join("clip.mp4");
    let arguments = "-v error -y -f lavfi -i testsrc2=size=320x180:rate=25:duration=4 \
        -f lavfi -i sine=frequency=440:duration=4:sample_rate=44100 \
        -c:v libx264 -bf 3 -g 25 -pix_fmt yuv420p -c:a aac -ac 2";
    let made = Command::new("ffmpeg")
        .args(arguments.split_ascii_whitespace())
        .arg(&path)
        .status()?;
    assert!(made.success());
    Ok(material::units(&path))
}

fn branches(max_video: usize) -> Branches {
    let registry = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gstreamer-registry.bin");
    let program = env!("CARGO_BIN_EXE_sluice").into();
    let launch = launch_av(&VideoSettings::default(), program, registry);
    Branches::new(launch, Sandbox::BestEffort, max_video, 6_000_000)
}

/// Live workers of this process.
fn processes() -> Result<Vec<u32>, Failure> {
    let parent = format!("--parent {} ", std::process::id());
    workers(|command| command.contains(&parent) && command.contains("--live"))
}

/// Pushes units at their pace, forever shifted by the clip's length, until `done`; returns what came.
async fn play(
    branch: &mut Branch,
    units: &[Unit],
    rounds: i64,
    mut done: impl FnMut(&[BranchOutput]) -> bool,
) -> Vec<BranchOutput> {
    let mut outputs = Vec::new();
    let deadline = Instant::now() + SOON;
    for round in 0.. {
        for unit in units {
            let shift = (rounds + round) * 4 * 90_000;
            let mut unit = unit.clone();
            match &mut unit {
                Unit::Video(frame) => {
                    frame.dts_90k += shift;
                    sleep(Duration::from_millis(40)).await;
                }
                Unit::Audio(frame) => frame.pts_90k += shift,
                Unit::VideoConfig(_) | Unit::AudioConfig(_) if round > 0 => continue,
                Unit::VideoConfig(_) | Unit::AudioConfig(_) => {}
            }
            branch.put(&unit, true);
            while let Ok(output) = timeout(Duration::ZERO, branch.next()).await {
                outputs.push(output.expect("the branch works"));
            }
            if done(&outputs) {
                return outputs;
            }
            assert!(Instant::now() < deadline, "{} outputs", outputs.len());
        }
    }
    outputs
}

fn frames(outputs: &[BranchOutput]) -> Vec<(bool, i64)> {
    let frame = |output: &BranchOutput| match output {
        BranchOutput::Video { key, pts_90k, .. } => Some((*key, *pts_90k)),
        _ => None,
    };
    outputs.iter().filter_map(frame).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_branch_outlives_its_process_and_leaves_none_behind() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let units = clip(folder.path())?;
    let expected = material::times(&units, true);
    let branches = branches(1);
    let mut branch = Branch::start(&branches, BOTH)?;
    assert!(Branch::start(&branches, BOTH).is_err(), "one is allowed");
    let audio_alone = BranchTracks {
        video: false,
        audio: true,
    };
    let mut second = Branch::start(&branches, audio_alone)?;
    assert!(second.want(BOTH).is_err());
    drop(second);

    let outputs = play(&mut branch, &units, 0, |outputs| {
        frames(outputs).len() >= 30
    })
    .await;
    let made = frames(&outputs);
    assert!(made[0].0 && made.is_sorted_by(|a, b| a.1 < b.1), "{made:?}");
    let of_source = |pts: &i64| expected.iter().any(|it| (pts - it) % (4 * 90_000) == 0);
    assert!(made.iter().all(|(_, pts)| of_source(pts)), "{made:?}");
    let audio = |output: &BranchOutput| matches!(output, BranchOutput::Audio { .. });
    assert!(outputs.iter().any(audio));

    branch.want_key_frame();
    play(&mut branch, &units, 10, |outputs| {
        frames(outputs)
            .iter()
            .any(|(key, pts)| *key && *pts > 10 * 4 * 90_000)
    })
    .await;

    // One that a busy machine held up is replaced, and for a moment there are two.
    let killed = eventually("one process", SOON, async || {
        processes().ok().filter(|processes| processes.len() == 1)
    })
    .await?;
    Command::new("kill")
        .args(["-9", &killed[0].to_string()])
        .status()?;
    let replaced = |output: &BranchOutput| matches!(output, BranchOutput::Replaced { .. });
    let outputs = play(&mut branch, &units, 20, |outputs| {
        let at = outputs.iter().position(replaced);
        at.is_some_and(|at| frames(&outputs[at..]).len() > 10)
    })
    .await;
    let at = outputs.iter().position(replaced).expect("it was replaced");
    assert!(frames(&outputs[at..])[0].0, "a key frame first");

    // One that hangs is replaced too.
    let stopped = eventually("another process", SOON, async || {
        let processes = processes().ok()?;
        (processes.len() == 1 && processes != killed).then(|| processes[0])
    })
    .await?;
    Command::new("kill")
        .args(["-STOP", &stopped.to_string()])
        .status()?;
    play(&mut branch, &units, 30, |outputs| {
        outputs.iter().any(replaced)
    })
    .await;
    until_gone(stopped).await?;

    drop(branch);
    eventually("no process is left", SOON, async || {
        processes().ok()?.is_empty().then_some(())
    })
    .await?;
    assert_eq!(branches.with_video(), 0);
    Ok(())
}
