//! What service and worker say to each other: one message each way per job, over a Unix socket pair.
//!
//! A message is JSON in one frame of bounded length; descriptors of inputs, then of outputs, ride on the job's frame
//! (`SCM_RIGHTS`). Both sides are the same binary, yet the version is checked: an upgrade may leave an old worker running.

use serde::{Deserialize, Serialize};
use sluice_media::{
    av::Report,
    task::{Done, Failure, Limits, Task},
};

/// Rises with every change of the messages.
pub const VERSION: u16 = 2;
/// The longest frame, in bytes.
pub const MAX_FRAME: usize = 1 << 20;
/// Descriptors that a job may carry, inputs and outputs together: what the kernel takes in one message (`SCM_MAX_FD`).
pub const MAX_DESCRIPTORS: usize = 253;

/// Service → worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub version: u16,
    pub id: u64,
    pub task: Task,
    pub limits: Limits,
    /// How many of the descriptors are inputs; the rest are outputs.
    pub inputs: u8,
    pub outputs: u8,
    /// CPU seconds after which the kernel ends the worker.
    pub cpu_seconds: u32,
}

/// Worker → service, once when it is ready and once per job; between them, any number of reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "snake_case")]
pub enum Reply {
    Ready {
        version: u16,
        layers: Layers,
        /// Elements of GStreamer that the work needs and this machine lacks.
        #[serde(default)]
        missing_elements: Vec<String>,
    },
    Told {
        id: u64,
        report: Report,
    },
    Done {
        id: u64,
        done: Box<Done>,
    },
    Failed {
        id: u64,
        failure: Failure,
    },
}

/// Which layers of the sandbox are in force in a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Layers {
    pub rlimits: bool,
    pub no_new_privileges: bool,
    /// The ABI in force; `None`: the kernel has no landlock.
    pub landlock: Option<u8>,
    pub seccomp: bool,
}

impl Layers {
    /// The names of what is missing, for people.
    pub fn missing(&self) -> Vec<&'static str> {
        [
            ("rlimits", self.rlimits),
            ("no_new_privs", self.no_new_privileges),
            ("landlock", self.landlock.is_some()),
            ("seccomp", self.seccomp),
        ]
        .into_iter()
        .filter_map(|(name, there)| (!there).then_some(name))
        .collect()
    }
}
