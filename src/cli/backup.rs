//! `sluice backup DIR`: a consistent copy of database and files while the service writes; `--verify`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use bytesize::ByteSize;
use sluice_store::{StoreSettings, backup, now_ms};

use super::{
    Error, block_on, data_dir, open_to_read, show,
    transfer::{report_lost, summary, transfer},
};
use crate::application::system::LastBackup;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// A new or empty folder, or an earlier backup, to which only what is missing is copied
    dir: PathBuf,
    /// Read every file in the backup and compare it with its checksum
    #[arg(long)]
    verify: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let data_dir = data_dir(settings, on_postgres)?;
    let transfer = transfer(arguments.verify);
    let made = block_on(async {
        let store = open_to_read(&data_dir).await?;
        let made = backup::backup(&store, &arguments.dir, transfer, now_ms()).await;
        store.close().await;
        Ok(made?)
    })?;
    if made.blobs.lost == 0 {
        note_backup(&data_dir, &arguments.dir);
    }
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

/// Says how a service on PostgreSQL is backed up. A file that the dump names is kept for a day at least, so that the dump comes
/// first; folders of recordings are kept for the shortest time.
fn on_postgres(store: &StoreSettings) -> String {
    let (schema, folder) = (&store.database_schema, store.data_dir.display());
    format!(
        "the rows are on PostgreSQL (store.database_url), which this command does not copy. Make a backup in two steps, while the service runs: \
         first `pg_dump --format=custom --schema={schema} --exclude-table-data={schema}.changes --file=FILE DATABASE`; then, within a day, \
         copy the folders recordings, video and blobs of {folder}, in this order. \
         docs/guide/cluster.md has both as a script"
    )
}

/// Notes the backup in the data folder, where the service finds it. A backup by a user who may only read is one all the same.
fn note_backup(data_dir: &Path, folder: &Path) {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let note = LastBackup {
        at_ms: now_ms(),
        folder: folder.display().to_string(),
    };
    let json = serde_json::to_vec(&note).expect("a note is plain data");
    if let Err(error) = fs::write(LastBackup::path(data_dir), json) {
        eprintln!("sluice: the dashboard will not show this backup: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_postgres_the_dump_comes_before_the_files() {
        let store = StoreSettings {
            database_url: "postgres://sluice:swordfish@db/sluice".into(),
            database_schema: "media".into(),
            data_dir: "/var/lib/sluice".into(),
            ..StoreSettings::default()
        };
        let text = on_postgres(&store);
        let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
        assert!(place("pg_dump") < place("--schema=media"));
        assert!(place("--schema=media") < place("recordings, video and blobs of /var/lib/sluice"));
        assert!(!text.contains("swordfish"), "{text}");
    }
}
