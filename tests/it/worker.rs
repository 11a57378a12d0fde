//! Worker processes and their sandbox: what each layer covers, and what the pool does when a worker dies, hangs or
//! takes too much memory.
//!
//! Workers are the real binary. A pool whose workers misbehave on demand is started with a script in the program's
//! place. Tests that need one, and those that put on single layers of the sandbox, are of debug builds: a release
//! program has no switches for them.
#![cfg_attr(
    not(debug_assertions),
    allow(
        dead_code,
        unused_imports,
        reason = "of tests that only debug builds have"
    )
)]

#[cfg(debug_assertions)]
mod av;
mod beside_live;
mod fairness;
mod figures;
#[cfg(debug_assertions)]
mod layers;
mod live;
mod orphans;
#[cfg(debug_assertions)]
mod pool;
#[cfg(not(debug_assertions))]
mod release;
#[cfg(debug_assertions)]
mod replacement;

use std::{
    fs::{self, File},
    io::{Seek, Write},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use sluice_actors::compute::{
    Assignment, Compute, ComputeSettings, Follow, Output, PoolStatus, VideoSettings,
};
use sluice_media::{format::Format, task::Task};
use tempfile::TempDir;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::support::{Failure, eventually};

/// For conditions; a debug build on a busy machine starts a worker in less than a second.
const SOON: Duration = Duration::from_secs(20);
/// The argument by which a process is known that works on clips.
pub(crate) const OF_CLIPS: &str = "--av-registry";
/// The script whose workers listen to demands; a release program has none that do.
const FAULTY: Option<&str> = if cfg!(debug_assertions) {
    Some("faulty.sh")
} else {
    None
};
/// A PNG of one red pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// A pool of its own, without a service.
struct Pool {
    compute: Compute,
    program: PathBuf,
    /// Folder of the program's links; removed after the pool.
    _folder: TempDir,
    _system: System,
}

/// The actix system that the pool's arbiter lives in; ends when dropped.
struct System {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Pool {
    /// Two workers that listen to demands.
    fn start() -> Result<Self, Failure> {
        Self::with(ComputeSettings {
            workers: 2,
            ..ComputeSettings::default()
        })
    }

    fn with(settings: ComputeSettings) -> Result<Self, Failure> {
        Self::launch(FAULTY, settings, VideoSettings::default())
    }

    /// Starts one image worker, and a pool for clips whose workers misbehave on demand, too.
    fn of_video(video: VideoSettings) -> Result<Self, Failure> {
        let settings = ComputeSettings {
            workers: 1,
            ..ComputeSettings::default()
        };
        Self::launch(FAULTY, settings, video)
    }

    /// A program of this folder in the real one's place.
    fn of(script: &str, settings: ComputeSettings) -> Result<Self, Failure> {
        Self::launch(Some(script), settings, VideoSettings::default())
    }

    /// The program itself, whose workers listen to no demands.
    fn of_program(settings: ComputeSettings) -> Result<Self, Failure> {
        Self::launch(None, settings, VideoSettings::default())
    }

    fn launch(
        script: Option<&str>,
        settings: ComputeSettings,
        video: VideoSettings,
    ) -> Result<Self, Failure> {
        let folder = TempDir::new()?;
        let program = folder.path().join(script.unwrap_or("sluice"));
        if let Some(script) = script {
            let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/worker");
            symlink(scripts.join(script), &program)?;
        }
        symlink(env!("CARGO_BIN_EXE_sluice"), folder.path().join("sluice"))?;
        let (started, compute) = mpsc::channel();
        let (stop, stopped) = oneshot::channel();
        let launched = program.clone();
        // A shared registry, so that it is written only once for all tests.
        let registry = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gstreamer-registry.bin");
        let thread = thread::spawn(move || {
            actix_rt::System::new().block_on(async move {
                let _ = started.send(Compute::start(&settings, &video, launched, registry));
                let _ = stopped.await;
            });
        });
        Ok(Self {
            compute: compute.recv()?,
            program,
            _folder: folder,
            _system: System {
                stop: Some(stop),
                thread: Some(thread),
            },
        })
    }

    /// Waits until the pool's state is as asked.
    async fn until(
        &self,
        what: &str,
        condition: impl Fn(&PoolStatus) -> bool,
    ) -> Result<(), Failure> {
        eventually(what, SOON, async || {
            condition(&self.compute.status()).then_some(())
        })
        .await
    }

    /// The processes of this pool's image workers.
    fn processes(&self) -> Result<Vec<u32>, Failure> {
        self.processes_that(|command| !command.contains(OF_CLIPS))
    }

    /// The processes that work on clips.
    fn clip_processes(&self) -> Result<Vec<u32>, Failure> {
        self.processes_that(|command| command.contains(OF_CLIPS))
    }

    fn processes_that(&self, is_meant: impl Fn(&str) -> bool) -> Result<Vec<u32>, Failure> {
        let folder = self.program.parent().expect("it lies in a folder");
        let folder = folder.to_string_lossy();
        workers(|command| command.contains(&*folder) && is_meant(command))
    }
}

impl Drop for System {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Running processes `… worker …` whose command line is as asked; zombies have none.
pub(crate) fn workers(is_meant: impl Fn(&str) -> bool) -> Result<Vec<u32>, Failure> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let Ok(process) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(" worker ") && is_meant(&command) {
            found.push(process);
        }
    }
    Ok(found)
}

async fn until_gone(process: u32) -> Result<(), Failure> {
    let what = format!("process {process} is gone");
    eventually(&what, SOON, async || {
        (!Path::new(&format!("/proc/{process}")).exists()).then_some(())
    })
    .await
}

/// Makes an image whose worker obeys a demand, then inspects it.
fn look_at(compute: &Compute, demand: &str) -> Result<Assignment, Failure> {
    let mut bytes = PNG.to_vec();
    bytes.extend_from_slice(demand.as_bytes());
    Ok(Assignment {
        account_id: Uuid::nil(),
        task: Task::Inspect {
            format: Format::Png,
        },
        inputs: vec![Arc::new(file_with(&bytes)?)],
        output: Output::Memory,
        limits: compute.limits(),
        follow: Follow::default(),
        pixels: None,
    })
}

fn file_with(bytes: &[u8]) -> Result<File, Failure> {
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}
