//! Files that were made to break image libraries, through the whole service: those of gdk-pixbuf, librsvg and Pillow.
//!
//! Each is stored, converted and requested from image delivery. For all of them the answer is an image or an error
//! that says why: no 5xx, no end of the service. `make corpus` prints the table; `make test` runs it as one test.
#![allow(
    clippy::print_stdout,
    reason = "the table is what `make corpus` is for"
)]

mod report;
mod sources;
#[path = "../it/support/mod.rs"]
mod support;

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use self::{
    report::Report,
    support::{
        Failure, eventually,
        server::{Api, Fetched, Form, Server, Settings},
    },
};

/// Files in progress at a time: two for each worker, so that none waits for a request's way.
const AT_ONCE: usize = 4;
/// Timeout of a file that hangs; then its worker is killed and the next file continues.
const WORKER_TIMEOUT: &str = "5s";
/// Time without an answer after which the service counts as stuck.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);
/// Files between two lines of progress.
const PROGRESS_EVERY: usize = 250;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_comes_is_answered_in_kind() -> Result<(), Failure> {
    let files = sources::files();
    if files.is_empty() {
        assert!(
            std::env::var_os("CI").is_none(),
            "no corpus: run scripts/install.sh test"
        );
        support::skip("the corpus", "no files (scripts/install.sh test)");
        return Ok(());
    }
    let mut server = Settings::new()
        .env("SLUICE_IMAGE_WORKERS__TIMEOUT", WORKER_TIMEOUT)
        .env("SLUICE_CDN__NEW_VARIANTS_PER_MINUTE", "0")
        .start()
        .await?;
    let key = server.api().delivery_key().await?;
    let started = Instant::now();
    let report = send_all(&server.api(), &key, files).await?;
    progress(&format!(
        "corpus: done in {:.0?}\n{report}",
        started.elapsed()
    ));

    assert!(server.is_running(), "the service has ended");
    server.wait_ready(ANSWER_DEADLINE).await?;
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    check_no_leftovers(&server).await
}

async fn send_all(api: &Api, key: &str, files: Vec<PathBuf>) -> Result<Report, Failure> {
    let total = files.len();
    let mut report = Report::default();
    let mut under_way = JoinSet::new();
    let key: Arc<str> = key.into();
    let mut waiting = files.into_iter();
    let mut done = 0;
    loop {
        while under_way.len() < AT_ONCE {
            let Some(path) = waiting.next() else { break };
            let (api, key) = (api.clone(), Arc::clone(&key));
            under_way.spawn(async move { send(&api, &key, &path).await });
        }
        let Some(outcome) = under_way.join_next().await else {
            return Ok(report);
        };
        report.merge(outcome??);
        done += 1;
        if done % PROGRESS_EVERY == 0 {
            progress(&format!("corpus: {done} of {total} files"));
        }
    }
}

/// Sends a file along its three ways.
async fn send(api: &Api, key: &str, path: &Path) -> Result<Report, Failure> {
    let bytes = std::fs::read(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut report = Report::default();
    for format in ["png", "webp"] {
        let form = Form::new()
            .file("files", &name, &bytes)
            .field("format", format);
        let answer = api.post_form("/api/convert", form).await?;
        report.add(&format!("convert to {format}"), path, &answer);
    }
    let stored: Fetched = api
        .post_form("/api/files", Form::new().file("file", &name, &bytes))
        .await?;
    report.add("store", path, &stored);
    if let Some(id) = stored.json()?["file"]["id"].as_str() {
        let delivered = api.deliver(key, id, "w=64").await?;
        report.add("deliver w=64", path, &delivered);
    }
    Ok(report)
}

async fn check_no_leftovers(server: &Server) -> Result<(), Failure> {
    let temporary = server.data_dir().join("tmp");
    eventually("no temporary file is left", ANSWER_DEADLINE, async || {
        let mut entries = std::fs::read_dir(&temporary).ok()?;
        entries.next().is_none().then_some(())
    })
    .await
}

/// Past the test harness, which keeps what a test prints.
fn progress(text: &str) {
    // A terminal that is gone is no failure.
    let _ = writeln!(std::io::stderr(), "{text}");
}
