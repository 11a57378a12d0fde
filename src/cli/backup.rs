//! `sluice backup DIR`: a consistent copy of database and files while the service writes; `--verify`.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use bytesize::ByteSize;
use sluice_store::{backup, now_ms};

use super::{
    Error, block_on, data_dir, open_to_read, show,
    transfer::{report_lost, summary, transfer},
};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A new or empty folder, or an earlier backup, to which only what is missing is copied
    dir: PathBuf,
    /// Read every file in the backup and compare it with its checksum
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let data_dir = data_dir(settings)?;
    let transfer = transfer(arguments.verify);
    let made = block_on(async {
        let store = open_to_read(&data_dir).await?;
        let made = backup::backup(&store, &arguments.dir, transfer, now_ms()).await;
        store.close().await;
        Ok(made?)
    })?;
    let database_bytes: u64 = made.manifest.files.iter().map(|file| file.bytes).sum();
    show(&format!(
        "backed up {} to {}: database {}, schema {}; {}\n",
        data_dir.display(),
        arguments.dir.display(),
        ByteSize(database_bytes),
        made.manifest.schema_version,
        summary(&made.blobs, &made.streams),
    ))?;
    Ok(report_lost(&made.blobs, &made.streams))
}
