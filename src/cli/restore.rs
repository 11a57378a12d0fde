//! `sluice restore DIR`: the way back from `sluice backup`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use sluice_store::{backup, now_ms};

use super::{Error, block_on, data_dir, show};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder that `sluice backup` wrote
    dir: PathBuf,
    /// Replace the database that is there; it is kept in the data folder's `backups`
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let data_dir = data_dir(settings)?;
    let kept = block_on(async {
        backup::restore(&arguments.dir, &data_dir, arguments.force, now_ms())
            .await
            .map_err(|error| explain(error, arguments.force))
    })?;
    let kept = kept.map_or_else(String::new, |path| {
        format!(
            "the database that was there is kept as {}\n",
            path.display()
        )
    });
    let (from, to) = (arguments.dir.display(), data_dir.display());
    show(&format!("restored {from} to {to}\n{kept}"))?;
    Ok(ExitCode::SUCCESS)
}

/// A data folder in use needs a decision that only `--force` expresses.
fn explain(error: sluice_store::Error, force: bool) -> Error {
    match error {
        sluice_store::Error::Conflict(text) if !force => Error::Refused(format!(
            "{text}; with --force its database is set aside and replaced"
        )),
        other => other.into(),
    }
}
