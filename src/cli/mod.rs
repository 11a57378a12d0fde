//! Sub-commands of `sluice` beside `serve`: `accounts`, `users`, `keys`, `backup`, `restore`, `move`, `doctor`, `config`,
//! `webhooks`, `mcp`.
//!
//! Each reads the same settings as `serve`. Decisions are pure functions; printing happens in the commands themselves.
//! Passwords come from standard input or are generated and shown once; they are never arguments, which other users of
//! the machine can see.
#![allow(
    clippy::print_stdout,
    reason = "what these commands print is their result"
)]

mod accounts;
mod backup;
mod config;
mod doctor;
pub(crate) mod event_stream;
mod keys;
mod manual;
mod mcp;
mod moving;
mod records;
mod restore;
mod rtc_gateway;
mod schema;
mod service;
mod srt_gateway;
mod transfer;
mod users;
mod webhooks;
mod worker;

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use sluice_store::{Store, StoreSettings};

use crate::{
    causes::WithCauses,
    config::{Config, ConfigError},
};

/// A sub-command beside `serve`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Make accounts, set their plans, suspend and resume them
    Accounts(accounts::Arguments),
    /// Add, list and revoke API keys
    Keys(keys::Arguments),
    /// Add users of the dashboard, set their roles and passwords, or list them
    Users(users::Arguments),
    /// Write a consistent copy of everything configured and all stored files, while the service runs or not
    Backup(backup::Arguments),
    /// Put a backup's database and files into the data folder, while the service is stopped
    Restore(restore::Arguments),
    /// Bring the data folder to PostgreSQL and an object store, or back, while the service is stopped
    Move(moving::Arguments),
    /// Check ports, disk, clock, settings and files, and say what to change
    Doctor(doctor::Arguments),
    /// Check the settings, or show those in force
    Config(config::Arguments),
    /// Follow events while writing a receiver for webhooks
    Webhooks(webhooks::Arguments),
    /// Serve the service's agent tools (MCP) on standard input and output
    Mcp(mcp::Arguments),
    /// Decode for the service that starts it
    #[command(hide = true)]
    Worker(worker::Arguments),
    /// Speak SRT for the service that starts it
    #[command(hide = true)]
    SrtGateway(srt_gateway::Arguments),
    /// Speak WebRTC for the service that starts it
    #[command(hide = true)]
    RtcGateway(rtc_gateway::Arguments),
    /// Print version and schema of this program as JSON, for the one that it replaces
    #[command(hide = true)]
    Schema,
    /// Write the man pages and shell completions into a folder
    #[command(hide = true)]
    Manual(manual::Arguments),
}

/// Reason why a command failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Settings(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] sluice_store::Error),
    #[error("{action}")]
    Io {
        action: &'static str,
        source: io::Error,
    },
    #[error("{0}")]
    Rejected(String),
}

impl Command {
    /// Runs to its end. `settings` is the file of `--config`, `program` the whole command line. Failures go to standard error
    /// and give code 1.
    pub fn run(self, settings: Option<&Path>, program: clap::Command) -> ExitCode {
        let outcome = match self {
            Self::Accounts(arguments) => accounts::run(arguments, settings),
            Self::Keys(arguments) => keys::run(arguments, settings),
            Self::Users(arguments) => users::run(arguments, settings),
            Self::Backup(arguments) => backup::run(&arguments, settings),
            Self::Restore(arguments) => restore::run(&arguments, settings),
            Self::Move(arguments) => moving::run(&arguments, settings),
            Self::Doctor(arguments) => doctor::run(&arguments, settings),
            Self::Config(arguments) => config::run(&arguments, settings),
            Self::Webhooks(arguments) => webhooks::run(arguments, settings),
            Self::Mcp(arguments) => mcp::run(arguments, settings),
            Self::Worker(arguments) => worker::run(arguments),
            Self::SrtGateway(arguments) => srt_gateway::run(&arguments),
            Self::RtcGateway(arguments) => rtc_gateway::run(&arguments),
            Self::Schema => schema::run(),
            Self::Manual(arguments) => manual::run(&arguments, program),
        };
        outcome.unwrap_or_else(|error| {
            eprintln!("sluice: {}", WithCauses(&error));
            ExitCode::FAILURE
        })
    }
}

/// Loads the settings; warnings about them go to standard error, since these commands have no log.
fn load(settings: Option<&Path>) -> Result<Config, Error> {
    let loaded = Config::load(settings)?;
    for warning in &loaded.warnings {
        eprintln!("sluice: {warning}");
    }
    Ok(loaded.config)
}

/// Returns the data folder for a command that copies the database in it. Rejected on PostgreSQL, where it is not: `instead` says
/// what to do there.
fn data_dir(
    settings: Option<&Path>,
    instead: impl FnOnce(&StoreSettings) -> String,
) -> Result<PathBuf, Error> {
    let store = load(settings)?.store;
    match store.is_on_postgres() {
        true => Err(Error::Rejected(instead(&store))),
        false => Ok(store.data_dir),
    }
}

/// Runs work on the store, on a small runtime of its own.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| Error::Io {
            action: "cannot start a runtime",
            source,
        })?
        .block_on(work)
}

/// Opens an existing database for reading, whether a service uses it or not.
async fn open_to_read(data_dir: &Path) -> Result<Store, Error> {
    Store::open_for_backup(data_dir)
        .await
        .map_err(|error| match error {
            sluice_store::Error::File { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Error::Rejected(format!(
                    "there is no database in {}: start the service once, or set store.data_dir to the folder it uses",
                    data_dir.display()
                ))
            }
            other => other.into(),
        })
}

/// Writes a command's result to standard output. A reader that has had enough (`| head`) is no failure.
fn show(text: &str) -> Result<(), Error> {
    let mut output = io::stdout().lock();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| Error::Io {
            action: "cannot write the result",
            source,
        }),
    }
}

/// Returns a foreign text without control characters, and of at most so many characters.
fn shown(text: &str, most: usize) -> String {
    let mut characters = text.chars();
    let mut shown: String = characters
        .by_ref()
        .take(most)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect();
    if characters.next().is_some() {
        shown.push('…');
    }
    shown
}
