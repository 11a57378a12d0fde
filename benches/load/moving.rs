//! Scenario `move`: a service with many files, brought to PostgreSQL and an object store by `sluice move`, and back.
//!
//! The move there is killed in its midst and run again. The lists of all files, and some of the files, are asked for before it,
//! on the other side, and after the way back: the answers are compared byte by byte.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::Value;
use sluice_testkit::{Failure, process::Server};
use tokio::time::sleep;

use crate::{
    cluster::Engines,
    http::Client,
    service::{Service, with_key, workplace},
    upload::{Files, fill},
};

const PAGE: usize = 100;
/// One file in so many is read whole.
const READ_EVERY: usize = 97;

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: Files,
    /// Seconds after which the first move is killed; 0 leaves that out.
    #[arg(long, default_value_t = 5)]
    kill_after: u64,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let engines = Engines::of_environment()?;
    let (root, scratch) = workplace()?;
    let program = root.join(&options.program);
    let began = Instant::now();
    let service = Service::start(&program, scratch.path()).await?;
    fill(&service, &options.files).await?;
    let before = answers(&service).await?;
    println!(
        "move: {}, stored in {:.0} s",
        options.files,
        began.elapsed().as_secs_f64()
    );
    drop(service);

    let there = [
        "move",
        "--to",
        &engines.database_url,
        "--objects",
        &engines.objects_url,
    ];
    let data = scratch.path().join("data");
    let command = |arguments: &[&str], settings: &[(&str, &str)]| {
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .current_dir(scratch.path())
            .env("SLUICE_STORE__DATA_DIR", &data)
            .envs(settings.iter().copied());
        command
    };
    if options.kill_after > 0 {
        let log = scratch.path().join("move.log");
        let killed = Server::start("sluice move", &mut command(&there, &engines.keys()), &log)?;
        sleep(Duration::from_secs(options.kill_after)).await;
        killed.figures()?;
        drop(killed);
        println!("  killed           after {} s", options.kill_after);
    }
    time("there", command(&there, &engines.keys())).await?;
    // A folder of its own: nothing of the old data folder is near.
    let moved = scratch.path().join("moved");
    std::fs::create_dir(&moved)?;
    compare(&program, &moved, &engines.settings(), &before).await?;

    let back = scratch.path().join("back");
    std::fs::create_dir(&back)?;
    let target = back.join("data").display().to_string();
    let mut command = command(&["move", "--back", &target], &engines.settings());
    time(
        "back",
        command.env("SLUICE_STORE__DATA_DIR", moved.join("data")),
    )
    .await?;
    compare(&program, &back, &[], &before).await
}

/// Runs a move to its end and prints its closing line and time.
async fn time(title: &str, command: impl std::borrow::BorrowMut<Command>) -> Result<(), Failure> {
    let mut command = command;
    let began = Instant::now();
    let output = command.borrow_mut().output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        return Err(format!("sluice move: {}: {said}{reason}", output.status).into());
    }
    println!(
        "  {title:<16} {:.1} s: {}",
        began.elapsed().as_secs_f64(),
        said.lines().next().unwrap_or_default()
    );
    Ok(())
}

/// Starts a service in this folder and compares its answers with those before.
async fn compare(
    program: &Path,
    folder: &Path,
    settings: &[(&str, &str)],
    before: &Answers,
) -> Result<(), Failure> {
    let service = Service::start_with(program, folder, settings).await?;
    let after = answers(&service).await?;
    if after != *before {
        return Err(format!(
            "{} files with {} read whole are not the {} and {} of before",
            after.files.len(),
            after.read.len(),
            before.files.len(),
            before.read.len()
        )
        .into());
    }
    println!(
        "  compared         {} files listed, {} of them read whole: equal",
        after.files.len(),
        after.read.len()
    );
    Ok(())
}

/// Answers of a service about its files.
#[derive(Debug, PartialEq)]
struct Answers {
    /// Records by id.
    files: BTreeMap<String, Value>,
    /// Bytes of some of them.
    read: BTreeMap<String, Vec<u8>>,
}

async fn answers(service: &Service) -> Result<Answers, Failure> {
    let mut client = Client::new(service.address());
    let headers = with_key("application/json");
    let of_bytes = format!("{headers}Accept: */*\r\n");
    let (mut files, mut read) = (BTreeMap::new(), BTreeMap::new());
    loop {
        let path = format!("/api/files?limit={PAGE}&offset={}", files.len());
        let page = client.get_with(&path, &headers).await?;
        if page.status != 200 {
            return Err(format!("{path}: {} {}", page.status, page.text()).into());
        }
        // Links name the port, which is another one at each start.
        let page = page.text().replace(service.address(), "service");
        let page: Value = serde_json::from_str(&page)?;
        let page = page["files"].as_array().ok_or("no files")?;
        if page.is_empty() {
            break;
        }
        for file in page {
            let id = file["id"].as_str().ok_or("a file without id")?;
            let mut record = file.clone();
            // It is signed until a moment that moves on.
            record["download_url"] = Value::Null;
            files.insert(id.to_owned(), record);
        }
    }
    for id in files.keys().step_by(READ_EVERY) {
        let path = format!("/api/files/{id}");
        let answer = client.get_with(&path, &of_bytes).await?;
        if answer.status != 200 {
            return Err(format!("{path}: {} {}", answer.status, answer.text()).into());
        }
        read.insert(id.clone(), answer.body);
    }
    Ok(Answers { files, read })
}
