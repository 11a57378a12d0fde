//! `sluice mcp`: the service's MCP tools on standard input and output, with files of this machine (`--root`, `mcp.roots`).
//!
//! It is a bridge to the `/mcp` of a running service and holds nothing itself. Standard output carries the protocol alone;
//! words for people go to standard error. Whatever is wrong (no key, no service, bad settings) is the answer to each request, for
//! a process that ends shows an agent's user nothing.

mod bridge;
mod endpoint;
mod error;
mod header;
mod line;
mod message;
mod output;
mod roots;
mod tool;
mod upload;

use std::{
    env, io,
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use tokio::{sync::mpsc, time::timeout};

use super::{Error, load, service::Access};
use crate::{
    causes::WithCauses,
    config::{Config, Mcp},
};
use bridge::{Bridge, Parts};
use endpoint::Endpoint;
use line::{Line, next_line};
use output::Output;
use roots::Roots;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    access: Access,
    /// A folder whose files agents may send; may be given again [default: mcp.roots, none]
    #[arg(long = "root", value_name = "DIR")]
    roots: Vec<PathBuf>,
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let loaded = load(settings);
    let is_loaded = loaded.as_ref().map(drop).map_err(with_causes_of);
    let config = loaded.unwrap_or_default();
    let folders = match arguments.roots.is_empty() {
        true => config.mcp.roots.clone(),
        false => arguments.roots,
    };
    let access = arguments.access;
    let endpoint = is_loaded.and_then(|()| open(access, &config));
    if let Err(reason) = &endpoint {
        eprintln!("sluice: {reason}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io_error("cannot start a runtime"))?;
    runtime.block_on(serve(endpoint, roots(&folders)?, &config.mcp));
    // A file on a network may still be being opened.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

fn open(access: Access, config: &Config) -> Result<Endpoint, String> {
    let service = access.open(config).map_err(with_causes_of)?;
    let patience = config.mcp.stdio_patience;
    Ok(Endpoint::new(service, patience, max_message(&config.mcp)))
}

fn roots(folders: &[PathBuf]) -> Result<Roots, Error> {
    let home = env::home_dir();
    let roots = Roots::new(folders, home.as_deref());
    let roots = roots.map_err(io_error("cannot find the current folder"))?;
    for folder in roots.missing() {
        eprintln!(
            "sluice: {} is no folder; files below it cannot be sent until it is one",
            folder.display()
        );
    }
    Ok(roots)
}

async fn serve(endpoint: Result<Endpoint, String>, roots: Roots, settings: &Mcp) {
    let (output, written) = Output::start(io::stdout());
    let max_message = max_message(settings);
    let parts = Parts {
        endpoint,
        roots,
        output,
        max_message,
    };
    let bridge = Bridge::new(parts, settings.stdio_calls, settings.stdio_linger);
    bridge.run(input(max_message)).await;
    // Whether a client still reads, and how fast, is its own matter.
    let _ = timeout(settings.stdio_linger, written).await;
}

/// Lines of standard input, read on a thread of their own: such a read cannot be cancelled.
fn input(max_message: usize) -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(1);
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Ok(Some(line)) = next_line(&mut input, max_message) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn max_message(settings: &Mcp) -> usize {
    usize::try_from(settings.stdio_message.as_u64()).unwrap_or(usize::MAX)
}

fn with_causes_of(error: impl std::error::Error) -> String {
    WithCauses(&error).to_string()
}

fn io_error(action: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Io { action, source }
}
