//! `sluice worker`: one image, video or audio worker, started by the service; its arguments for memory, file size and tests. Not
//! for people.
//!
//! Nothing is set up for it, no log and no runtime: it must have one thread until its sandbox is on. What tests ask of it is
//! in debug builds only: a release program has no switch that weakens a worker.

use std::{path::PathBuf, process::ExitCode};

#[cfg(debug_assertions)]
use sluice_worker::prove::{self, Proof};
use sluice_worker::{
    sandbox::limits::{Bounds, DESCRIPTORS},
    serve::{self, Args},
};

use super::Error;
#[cfg(debug_assertions)]
use super::show;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The process id of the service: the worker ends with it
    #[arg(long, default_value_t = 0)]
    parent: u32,
    /// The address space that it may use, in bytes
    #[arg(long, default_value_t = 3 << 30)]
    memory: u64,
    /// The largest file that it may write, in bytes
    #[arg(long, default_value_t = 1 << 30)]
    file_size: u64,
    /// Load the codecs of video and audio too; the file is GStreamer's memory of its plug-ins
    #[arg(long, value_name = "FILE")]
    av_registry: Option<PathBuf>,
    /// Re-encode a live stream: behind the service in turn, before conversions
    #[arg(long)]
    live: bool,
    /// For tests: inputs may ask for misbehaviour
    #[cfg(debug_assertions)]
    #[arg(long)]
    faults: bool,
    /// For tests: put on only these layers of the sandbox (limits, privileges, files, calls, all, none) and try something
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "LAYERS", requires = "attempt")]
    prove: Option<String>,
    /// Attempt to make
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "NAME")]
    attempt: Option<String>,
    /// Folder in which it is made
    #[cfg(debug_assertions)]
    #[arg(long, value_name = "FOLDER", default_value = "/tmp")]
    folder: PathBuf,
}

/// Serves until the service closes the channel; with `--prove`, in tests, tries one thing and says what came of it.
pub(super) fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let bounds = Bounds {
        memory_bytes: arguments.memory,
        file_bytes: arguments.file_size,
        descriptors: DESCRIPTORS,
    };
    #[cfg(debug_assertions)]
    if let Some(layers) = arguments.prove {
        let choice = prove::choice(&layers)
            .ok_or_else(|| Error::Rejected(format!("{layers:?} names no layers")))?;
        return try_out(&Proof {
            choice,
            bounds,
            attempt: arguments.attempt.unwrap_or_default(),
            folder: arguments.folder,
        });
    }
    let args = Args {
        parent: arguments.parent,
        bounds,
        av_registry: arguments.av_registry,
        is_live: arguments.live,
        #[cfg(debug_assertions)]
        faults: arguments.faults,
    };
    serve::serve(args).map_err(|error| Error::Rejected(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(debug_assertions)]
fn try_out(proof: &Proof) -> Result<ExitCode, Error> {
    let outcome = prove::prove(proof).map_err(|source| Error::Io {
        action: "cannot prove anything",
        source,
    })?;
    let json = serde_json::to_string(&outcome).expect("an outcome is plain data");
    show(&format!("{json}\n"))?;
    Ok(ExitCode::SUCCESS)
}
