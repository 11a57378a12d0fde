//! `sluice doctor`: the report of [`crate::doctor`] as text or `--json`; exit code.

use std::{path::Path, process::ExitCode};

use super::{Error, show};
use crate::doctor::examine;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The report as one JSON object: {"ok", "checks": [{"check", "level", "message", "advice"}]}
    #[arg(long)]
    json: bool,
}

/// Runs the checks; exit code 1 when one failed, 0 with warnings alone.
pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let report = examine(settings);
    if arguments.json {
        let json = serde_json::to_string_pretty(&report).expect("a report is plain data");
        show(&format!("{json}\n"))?;
    } else {
        show(&report.text())?;
    }
    Ok(if report.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
