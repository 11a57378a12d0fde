//! `sluice restore DIR`: puts a backup's database and files into the data folder; `--force`, `--verify`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use sluice_store::{StoreSettings, backup, now_ms};

use super::{
    Error, block_on, data_dir, show,
    transfer::{report_lost, summary, transfer},
};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A folder that `sluice backup` wrote
    dir: PathBuf,
    /// Replace the database that is there; it is kept in the data folder's `backups`
    #[arg(long)]
    force: bool,
    /// Read every file that is put back and compare it with its checksum
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let data_dir = data_dir(settings, on_postgres)?;
    let (force, transfer) = (arguments.force, transfer(arguments.verify));
    let restored = block_on(async {
        backup::restore(&arguments.dir, &data_dir, force, transfer, now_ms())
            .await
            .map_err(|error| explain(error, force))
    })?;
    let kept = restored.kept.map_or_else(String::new, |path| {
        format!(
            "the database that was there is kept as {}\n",
            path.display()
        )
    });
    let (from, to) = (arguments.dir.display(), data_dir.display());
    let files = summary(&restored.blobs, &restored.streams);
    show(&format!("restored {from} to {to}: {files}\n{kept}"))?;
    Ok(report_lost(&restored.blobs, &restored.streams))
}

/// Says how a backup is restored to PostgreSQL.
fn on_postgres(store: &StoreSettings) -> String {
    format!(
        "the rows are on PostgreSQL (store.database_url), to which this command restores nothing. With the service stopped, \
         put the folders recordings, video and blobs of the backup into {}, load its dump with pg_restore, \
         and continue the numbers of events: docs/guide/cluster.md has each step",
        store.data_dir.display()
    )
}

/// Explains that a data folder in use needs `--force`.
fn explain(error: sluice_store::Error, force: bool) -> Error {
    match error {
        sluice_store::Error::Conflict(text) if !force => Error::Rejected(format!(
            "{text}; with --force its database is set aside and replaced"
        )),
        other => other.into(),
    }
}
