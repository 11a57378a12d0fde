//! `sluice config`: check of the settings, `--print` of those in force, `--defaults`.

use std::{path::Path, process::ExitCode};

use super::{Error, load, show};
use crate::config::DEFAULT_TOML;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Show all settings in force as TOML, secrets hidden
    #[arg(long)]
    print: bool,
    /// Show the defaults with their explanations instead; a good start for a settings file
    #[arg(long, conflicts_with = "print")]
    defaults: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    if arguments.defaults {
        show(DEFAULT_TOML)?;
    } else if arguments.print {
        show(&load(settings)?.print())?;
    } else {
        load(settings)?;
        show("the settings are valid; `sluice config --print` shows them\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
