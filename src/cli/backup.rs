//! `sluice backup DIR`: a copy of the database that is consistent although the service goes on writing.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use sluice_store::{backup, now_ms};

use super::{Error, block_on, data_dir, open_to_read, show};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A new or empty folder
    dir: PathBuf,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let data_dir = data_dir(settings)?;
    let manifest = block_on(async {
        let store = open_to_read(&data_dir).await?;
        let manifest = backup::backup(&store, &arguments.dir, now_ms()).await;
        store.close().await;
        Ok(manifest?)
    })?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    show(&format!(
        "backed up {} to {}: {}, schema {}\n",
        data_dir.display(),
        arguments.dir.display(),
        bytesize::ByteSize(bytes),
        manifest.schema_version,
    ))?;
    Ok(ExitCode::SUCCESS)
}
