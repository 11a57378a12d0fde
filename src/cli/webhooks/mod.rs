//! `sluice webhooks`: sub-commands for those who write webhook receivers.

mod envelope;
mod listen;
mod receiver;
mod screen;
mod selection;
mod service;

use std::{path::Path, process::ExitCode};

use clap::{Args, Subcommand};

use super::{Error, load};

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show events as they happen, and forward them, signed, to a receiver on this machine
    Listen(listen::Arguments),
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let config = load(settings)?;
    match arguments.command {
        Command::Listen(arguments) => listen::run(arguments, &config),
    }
}
