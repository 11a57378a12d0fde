//! `sluice move`: brings a data folder to PostgreSQL and an object store, or back to a data folder, while the service is stopped.

use std::{
    io::{self, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use bytesize::ByteSize;
use sluice_store::{
    StoreSettings,
    backup::BackupProgress,
    moving::{self, CarriedUploads, MoveOptions, MoveProgress, Moved},
};

use super::{
    Error, block_on, load, show,
    transfer::{CLEAR, SHOWN_EVERY, line, report_lost},
};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// PostgreSQL to which the rows go, as store.database_url has it; a password is best in ~/.pgpass
    #[arg(long, value_name = "URL", conflicts_with = "back")]
    to: Option<String>,
    /// Schema of that database, made when it is missing; store.database_schema without it
    #[arg(long, value_name = "NAME", requires = "to")]
    schema: Option<String>,
    /// Object store to which the stored files go, as store.objects_url has it
    #[arg(long, value_name = "URL", conflicts_with = "back")]
    objects: Option<String>,
    /// New data folder to which rows and files come back from PostgreSQL and the object store
    #[arg(long, value_name = "FOLDER")]
    back: Option<PathBuf>,
    /// Leave out files that are missing or damaged
    #[arg(long)]
    skip_damaged: bool,
}

pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let source = load(settings)?.store;
    let options = MoveOptions {
        skip_damaged: arguments.skip_damaged,
        watch: watch(),
    };
    let (moved, next) = match &arguments.back {
        Some(folder) => {
            let moved = block_on(async { Ok(moving::back(&source, folder, options).await?) });
            (moved, next_step_back(folder))
        }
        None => {
            let target = target(arguments, &source)?;
            let moved = block_on(async { Ok(moving::forward(&source, &target, options).await?) });
            (moved, next_step(&source, &target))
        }
    };
    clear();
    let moved = moved?;
    let _lost = report_lost(&moved.blobs, &moved.streams);
    report_lost_uploads(&moved.uploads);
    if !moved.is_finished {
        eprintln!(
            "sluice: the move has not ended: put these files back and run the same command again, \
             or leave them out with --skip-damaged"
        );
        return Ok(ExitCode::FAILURE);
    }
    show(&format!("{}\n{next}\n", summary(&moved)))?;
    if let Some(note) = note_of_uploads(&moved, &source.data_dir) {
        show(&format!("{note}\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Names the unfinished uploads that could not be brought on standard error.
fn report_lost_uploads(uploads: &CarriedUploads) {
    for lost in &uploads.lost_named {
        eprintln!("sluice: {lost}");
    }
    let unnamed = uploads.lost - uploads.lost_named.len() as u64;
    if unnamed > 0 {
        eprintln!("sluice: and {unnamed} more unfinished uploads");
    }
}

/// Says what has to be kept for the uploads that continue from the data folder; `None` when there are none.
fn note_of_uploads(moved: &Moved, data_dir: &Path) -> Option<String> {
    let (count, folder) = (moved.uploads_in_folder, data_dir.join("partial"));
    (count > 0).then(|| {
        format!(
            "{count} unfinished resumable uploads continue from {}: keep it, and the folder blobs beside it, in which their files will be",
            folder.display()
        )
    })
}

/// Returns the settings with which the service goes on.
fn target(arguments: &Arguments, source: &StoreSettings) -> Result<StoreSettings, Error> {
    if arguments.to.is_none() && arguments.objects.is_none() {
        return Err(Error::Rejected(
            "say where to: --to postgres://…, --objects s3://… or file:///…, or both; or --back FOLDER".into(),
        ));
    }
    let mut target = source.clone();
    if let Some(database_url) = &arguments.to {
        target.database_url.clone_from(database_url);
        if !target.is_on_postgres() {
            return Err(Error::Rejected(
                "--to: expected postgres://USER@HOST/DATABASE".into(),
            ));
        }
    }
    if let Some(schema) = &arguments.schema {
        target.database_schema.clone_from(schema);
    }
    if let Some(objects_url) = &arguments.objects {
        target.objects_url.clone_from(objects_url);
    }
    Ok(target)
}

/// Formats the command's result, such as "moved 1200 rows, 12 files (3.4 MiB), 2 video streams (8.0 MiB)".
fn summary(moved: &Moved) -> String {
    let mut parts = Vec::new();
    if moved.rows > 0 {
        parts.push(format!("{} rows", moved.rows));
    }
    let (count, bytes) = (moved.blobs.brought, ByteSize(moved.blobs.brought_bytes));
    parts.push(format!("{count} files ({bytes})"));
    if moved.streams.count > 0 {
        let (count, bytes) = (moved.streams.count, ByteSize(moved.streams.bytes));
        parts.push(format!("{count} video streams ({bytes})"));
    }
    if moved.uploads.count > moved.uploads.lost {
        let (count, bytes) = (
            moved.uploads.count - moved.uploads.lost,
            ByteSize(moved.uploads.bytes),
        );
        parts.push(format!("{count} unfinished uploads ({bytes})"));
    }
    let left_out = moved.blobs.lost + moved.streams.lost.len() as u64 + moved.uploads.lost;
    if left_out > 0 {
        parts.push(format!("{left_out} files left out"));
    }
    format!("moved {}", parts.join(", "))
}

/// Says with which settings the service goes on. Addresses may have a password, and are not shown.
fn next_step(source: &StoreSettings, target: &StoreSettings) -> String {
    let mut keys = Vec::new();
    if source.database_url != target.database_url {
        keys.push("store.database_url");
    }
    if source.database_schema != target.database_schema {
        keys.push("store.database_schema");
    }
    if source.objects_url != target.objects_url {
        keys.push("store.objects_url");
    }
    let kept = match target.objects_url.is_empty() {
        true => "it still needs its data folder, which has the files".to_owned(),
        false => format!(
            "{} has the stored files still, which may be removed when all is well",
            source.data_dir.join("blobs").display()
        ),
    };
    match keys.as_slice() {
        [] => format!("the service can be started; {kept}"),
        _ => format!(
            "set {} in the settings file before the service is started; {kept}",
            keys.join(" and ")
        ),
    }
}

fn next_step_back(folder: &Path) -> String {
    format!(
        "set store.data_dir to {}, and store.database_url, store.objects_url and cluster.listen to nothing, before the service \
         is started",
        folder.display()
    )
}

/// Shows how far the move is where a person looks on: on standard error, when that is a terminal.
fn watch() -> Box<dyn FnMut(MoveProgress) + Send> {
    if !io::stderr().is_terminal() {
        return Box::new(|_| ());
    }
    let (mut shown, mut rate): (Option<Instant>, Option<Rate>) = (None, None);
    Box::new(move |progress| {
        let is_over = is_over(&progress);
        if !is_over && shown.is_some_and(|at| at.elapsed() < SHOWN_EVERY) {
            return;
        }
        shown = Some(Instant::now());
        let text = match &progress {
            _ if is_over => String::new(),
            MoveProgress::Rows {
                table,
                count,
                total,
            } => format!("{count} of {total} rows of {table}"),
            MoveProgress::Compared { table } => format!("comparing the rows of {table}"),
            MoveProgress::Bytes(bytes)
            | MoveProgress::Streams(bytes)
            | MoveProgress::Uploads(bytes) => {
                let rate = rate.get_or_insert_with(|| Rate::begin(bytes));
                format!("{}{}", line(bytes), rate.of(bytes))
            }
        };
        // A terminal that has gone is no reason to stop.
        let _ = write!(io::stderr(), "{CLEAR}{text}");
    })
}

/// Clears the line of the last progress.
fn clear() {
    if io::stderr().is_terminal() {
        let _ = write!(io::stderr(), "{CLEAR}");
    }
}

fn is_over(progress: &MoveProgress) -> bool {
    match progress {
        MoveProgress::Rows { .. } | MoveProgress::Compared { .. } => false,
        MoveProgress::Bytes(bytes)
        | MoveProgress::Streams(bytes)
        | MoveProgress::Uploads(bytes) => bytes.count == bytes.total_count,
    }
}

/// Speed since the first bytes.
struct Rate {
    since: Instant,
    bytes: u64,
}

impl Rate {
    fn begin(progress: &BackupProgress) -> Self {
        Self {
            since: Instant::now(),
            bytes: progress.bytes,
        }
    }

    fn of(&self, progress: &BackupProgress) -> String {
        rate(
            progress.bytes.saturating_sub(self.bytes),
            self.since.elapsed(),
        )
    }
}

/// Formats a speed, such as ", 12.0 MiB/s"; nothing in the first second.
fn rate(bytes: u64, time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 1.0 => String::new(),
        seconds => format!(", {}/s", ByteSize((bytes as f64 / seconds) as u64)),
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::backup::{Carried, CarriedStreams};

    use super::*;

    fn arguments() -> Arguments {
        Arguments {
            to: None,
            schema: None,
            objects: None,
            back: None,
            skip_damaged: false,
        }
    }

    #[test]
    fn the_target_is_the_source_but_for_what_was_named() {
        let source = StoreSettings::default();
        assert!(target(&arguments(), &source).is_err());
        let objects = Arguments {
            objects: Some("file:///srv/objects".into()),
            ..arguments()
        };
        let named = target(&objects, &source).unwrap();
        let expected = StoreSettings {
            objects_url: "file:///srv/objects".into(),
            ..source.clone()
        };
        assert_eq!(named, expected);
        let wrong = Arguments {
            to: Some("mysql://db/sluice".into()),
            ..arguments()
        };
        assert!(target(&wrong, &source).is_err());
        let rows = Arguments {
            to: Some("postgres://sluice:swordfish@db/sluice".into()),
            schema: Some("media".into()),
            ..objects
        };
        let named = target(&rows, &source).unwrap();
        assert_eq!(named.database_schema, "media");
        let text = next_step(&source, &named);
        assert!(
            text.contains("store.database_url and store.database_schema"),
            "{text}"
        );
        assert!(!text.contains("swordfish"), "{text}");
    }

    #[test]
    fn the_summary_names_what_was_moved() {
        let moved = Moved {
            rows: 1200,
            blobs: Carried {
                brought: 12,
                brought_bytes: 3 << 20,
                lost: 1,
                ..Carried::default()
            },
            streams: CarriedStreams {
                count: 2,
                bytes: 8 << 20,
                lost: Vec::new(),
            },
            uploads: CarriedUploads {
                count: 4,
                bytes: 5 << 20,
                lost: 1,
                lost_named: Vec::new(),
            },
            uploads_in_folder: 0,
            is_finished: true,
        };
        assert_eq!(
            summary(&moved),
            "moved 1200 rows, 12 files (3.0 MiB), 2 video streams (8.0 MiB), 3 unfinished uploads (5.0 MiB), 2 files left out"
        );
        assert_eq!(note_of_uploads(&moved, Path::new("data")), None);
        let forward = Moved {
            uploads_in_folder: 2,
            ..moved
        };
        let note = note_of_uploads(&forward, Path::new("data")).unwrap();
        assert!(note.contains("data/partial: keep it"), "{note}");
        assert_eq!(rate(24 << 20, Duration::from_secs(2)), ", 12.0 MiB/s");
        assert_eq!(rate(24 << 20, Duration::from_millis(2)), "");
    }
}
