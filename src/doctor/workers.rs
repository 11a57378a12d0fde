//! `sluice doctor` on workers: start of an image and a video worker, sandbox layers, GStreamer elements.

use std::{env, fs, io, path::PathBuf};

use sluice_actors::compute::{self, ComputeSettings, Sandbox, VideoSettings};
use sluice_worker::{
    process::{StartError, WorkerProcess},
    protocol::Layers,
};

use super::finding::Finding;

const CHECK: &str = "image workers";
const VIDEO_CHECK: &str = "video workers";
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Starts one worker as the service does, and ends it.
pub(super) fn check(settings: &ComputeSettings) -> Finding {
    match own_program() {
        Ok(program) => {
            let started = WorkerProcess::start(&compute::launch(settings, program));
            judge(
                started.map(|worker| worker.layers().clone()),
                settings.sandbox,
            )
        }
        Err(error) => Finding::warn(
            CHECK,
            format!("the program's own file cannot be found: {error}"),
            "mount /proc: workers are started from there",
        ),
    }
}

/// Starts one worker for video and audio as the service does, with a memory of plug-ins of its own, and ends it.
pub(super) fn check_video(settings: &VideoSettings) -> Finding {
    let folder = env::temp_dir();
    let registry = folder.join(format!("sluice-doctor-{}.registry", std::process::id()));
    let finding = start_video(settings, registry.clone());
    // It is there only when the worker could write it.
    let _ = fs::remove_file(registry);
    finding
}

/// Path of this same program, also when another one has replaced it on the disk (proc_pid_exe(5)).
fn own_program() -> io::Result<PathBuf> {
    fs::read_link(OWN_PROGRAM).map(|_| OWN_PROGRAM.into())
}

fn start_video(settings: &VideoSettings, registry: PathBuf) -> Finding {
    let started = own_program()
        .map_err(|error| error.to_string())
        .and_then(|program| {
            let launch = compute::launch_av(settings, program, registry);
            WorkerProcess::start(&launch).map_err(|error| error.to_string())
        });
    match started {
        Ok(worker) => judge_elements(worker.missing_elements()),
        Err(error) => Finding::fail(
            VIDEO_CHECK,
            error,
            "video and audio are not processed until a worker starts: install the packages of scripts/install.sh, and look at av_workers.memory",
        ),
    }
}

fn judge_elements(missing: &[String]) -> Finding {
    match missing {
        [] => Finding::ok(VIDEO_CHECK, "one starts, GStreamer has all that is needed"),
        missing => Finding::fail(
            VIDEO_CHECK,
            format!("GStreamer lacks {}", missing.join(", ")),
            "install gstreamer1.0-plugins-base, -good, -bad, -ugly and gstreamer1.0-libav (their Debian names)",
        ),
    }
}

fn judge(layers: Result<Layers, StartError>, sandbox: Sandbox) -> Finding {
    let layers = match layers {
        Ok(layers) => layers,
        Err(error) => {
            return Finding::fail(
                CHECK,
                error.to_string(),
                "images are not processed until a worker starts: install the packages of scripts/install.sh, and look at image_workers.memory",
            );
        }
    };
    let missing = layers.missing().join(", ");
    match sandbox {
        _ if missing.is_empty() => Finding::ok(
            CHECK,
            format!(
                "one starts, all layers of its sandbox are in force (landlock ABI {})",
                layers.landlock.unwrap_or_default()
            ),
        ),
        Sandbox::Required => Finding::fail(
            CHECK,
            format!("this machine lacks {missing}: images are not processed"),
            "run a kernel that has it (landlock: 5.13, and named in /sys/kernel/security/lsm), or set image_workers.sandbox = \"best-effort\"",
        ),
        Sandbox::BestEffort => Finding::warn(
            CHECK,
            format!("this machine lacks {missing}: a crafted image can do more than it should"),
            "run a kernel that has it (landlock: 5.13, and named in /sys/kernel/security/lsm)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn missing_elements_are_named() {
        assert_eq!(judge_elements(&[]).level, Level::Ok);
        let finding = judge_elements(&["x264enc".into(), "avdec_h264".into()]);
        assert_eq!(finding.level, Level::Fail);
        assert!(finding.message.contains("x264enc, avdec_h264"));
    }

    #[test]
    fn a_missing_layer_fails_where_it_is_required() {
        let whole = Layers {
            rlimits: true,
            no_new_privileges: true,
            landlock: Some(7),
            seccomp: true,
        };
        let without_landlock = Layers {
            landlock: None,
            ..whole.clone()
        };
        for (layers, sandbox, level) in [
            (whole.clone(), Sandbox::Required, Level::Ok),
            (whole, Sandbox::BestEffort, Level::Ok),
            (without_landlock.clone(), Sandbox::Required, Level::Fail),
            (without_landlock, Sandbox::BestEffort, Level::Warn),
        ] {
            let finding = judge(Ok(layers.clone()), sandbox);
            assert_eq!(finding.level, level, "{layers:?} {sandbox:?}");
            assert_eq!(
                finding.message.contains("landlock,") || finding.message.contains("lacks landlock"),
                level != Level::Ok,
                "{}",
                finding.message
            );
        }
        let not_started = StartError::NotReady("exit status: 127".into());
        let finding = judge(Err(not_started), Sandbox::BestEffort);
        assert_eq!(finding.level, Level::Fail);
    }
}
