//! Progress line of `sluice backup` and `sluice restore`, their summary, and the files that could not be copied.

use std::{
    io::{self, IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use bytesize::ByteSize;
use sluice_store::backup::{BackupProgress, Carried, CarriedStreams, Transfer};

/// Time between two updates of the line; a terminal far away is slow.
pub(super) const SHOWN_EVERY: Duration = Duration::from_millis(200);
/// Returns to the beginning of the line and clears it.
pub(super) const CLEAR: &str = "\r\x1b[K";

/// A transfer that shows how far it is where a person looks on: on standard error, when that is a terminal.
pub(super) fn transfer(verify: bool) -> Transfer {
    if !io::stderr().is_terminal() {
        return Transfer {
            verify,
            ..Transfer::default()
        };
    }
    let mut shown: Option<Instant> = None;
    let watch = move |progress: BackupProgress| {
        let is_over = progress.count == progress.total_count;
        if is_over || shown.is_none_or(|at| at.elapsed() >= SHOWN_EVERY) {
            shown = Some(Instant::now());
            let line = if is_over {
                String::new()
            } else {
                line(&progress)
            };
            // A terminal that has gone is no reason to stop.
            let _ = write!(io::stderr(), "{CLEAR}{line}");
        }
    };
    Transfer {
        verify,
        watch: Box::new(watch),
    }
}

/// Formats how far a transfer is.
pub(super) fn line(progress: &BackupProgress) -> String {
    format!(
        "{} of {} files, {} of {}",
        progress.count,
        progress.total_count,
        ByteSize(progress.bytes),
        ByteSize(progress.total_bytes),
    )
}

/// Formats the command's result, such as "12 files (3.4 MiB), 2 of them new (1.1 MiB), 1 video stream (8.0 MiB)".
pub(super) fn summary(blobs: &Carried, streams: &CarriedStreams) -> String {
    let mut summary = format!(
        "{} files ({}), {} of them new ({})",
        blobs.count,
        ByteSize(blobs.bytes),
        blobs.brought,
        ByteSize(blobs.brought_bytes)
    );
    if streams.count > 0 {
        let (count, bytes) = (streams.count, ByteSize(streams.bytes));
        let plural = if count == 1 { "" } else { "s" };
        summary.push_str(&format!(", {count} video stream{plural} ({bytes})"));
    }
    summary
}

/// Names the files that could not be brought on standard error; then the command has failed, though the rest is there.
pub(super) fn report_lost(blobs: &Carried, streams: &CarriedStreams) -> ExitCode {
    for lost in &streams.lost {
        eprintln!("sluice: {lost}");
    }
    if blobs.lost == 0 {
        return match streams.lost.is_empty() {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    for lost in &blobs.lost_named {
        eprintln!("sluice: {lost}");
    }
    let unnamed = blobs.lost - blobs.lost_named.len() as u64;
    if unnamed > 0 {
        eprintln!("sluice: and {unnamed} more");
    }
    eprintln!(
        "sluice: {} of {} files are lost; everything else is in place",
        blobs.lost, blobs.count
    );
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_reported_in_files_and_bytes() {
        let progress = BackupProgress {
            count: 12,
            bytes: 3 << 20,
            total_count: 340,
            total_bytes: 5 << 30,
        };
        assert_eq!(line(&progress), "12 of 340 files, 3.0 MiB of 5.0 GiB");
    }
}
