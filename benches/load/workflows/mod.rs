//! Scenario `workflows`: photographs of 8 KB to 2 MB through resize → convert to WebP → storage, each waited for.
//!
//! Measures the cost of the engine without the operations. Those run in worker processes, so that the processor time of
//! the service's own process is the engine's and the façade's: receiving, spooling and hashing the upload, the journal,
//! the stored result. The share of every upload is measured first, by `POST /api/files` of as many bytes, and
//! subtracted.

mod images;

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use clap::Args;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use self::images::{Image, obtain};
use sluice_testkit::{Failure, process::Figures};

use crate::{
    http::Client,
    report::{self, Runs, Span},
    service::{Service, workplace},
    upload::{form, form_headers, upload},
};

/// Images for costs that occur once: connections, pools, workers and plans of statements.
const WARM_UP: usize = 50;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Runs at a time.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u16).range(1..=100))]
    connections: u16,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// The images that are still to be sent, each under a number.
type Waiting = Arc<Mutex<VecDeque<(usize, Image)>>>;

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let program = root.join(&options.program);
    let service = Service::start(&program, scratch.path()).await?;
    let images = obtain(root, service.address()).await?;
    let chosen = |count: usize| images.iter().cycle().take(count).cloned().enumerate();
    println!(
        "workflows: {} runs, {} at a time, {}",
        options.runs,
        options.connections,
        images::sizes(&images)
    );
    let path = create(&service).await?;
    let clients = usize::from(options.connections);
    measure(&service, clients, chosen(WARM_UP), Work::Run(path.clone())).await?;
    measure(&service, clients, chosen(WARM_UP), Work::Store).await?;
    let count = options.runs as usize;
    let stored = measure(&service, clients, chosen(count), Work::Store).await?;
    let mut ran = measure(&service, clients, chosen(count), Work::Run(path)).await?;
    report::runs(&mut Runs {
        count,
        storing: stored.span,
        running: ran.span,
        resident_kib: ran.resident_kib,
        whole: std::mem::take(&mut ran.whole),
        answers: ran.answers,
    });
    Ok(())
}

/// Saves the workflow; the path that runs it.
async fn create(service: &Service) -> Result<String, Failure> {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "data": {"kind": kind, "config": config}});
    let edge = |source: &str, target: &str| json!({"source": source, "target": target});
    let body = json!({"name": "load", "definition": {
        "nodes": [
            node("upload", "upload", json!({})),
            node("small", "resize", json!({"resizeWidth": 800})),
            node("webp", "convert", json!({"format": "webp"})),
            node("keep", "storage", json!({})),
        ],
        "edges": [edge("upload", "small"), edge("small", "webp"), edge("webp", "keep")],
    }});
    let answer = service.post("/api/workflows", &body.to_string()).await?;
    let id = answer["workflow"]["id"].as_str();
    let id = id.ok_or_else(|| format!("no workflow in {answer}"))?;
    Ok(format!("/api/workflows/{id}/run"))
}

/// Work on each image.
#[derive(Clone, Debug)]
enum Work {
    /// Into storage, as it is: what of a run is not the engine's.
    Store,
    /// Through the workflow at this path.
    Run(String),
}

/// Measurement of a turn over the images.
#[derive(Debug)]
struct Turn {
    span: Span,
    /// Each time it was looked at.
    resident_kib: Vec<u64>,
    /// From the request's first byte to the answer's last.
    whole: Vec<Duration>,
    /// From the last step's end to the answer's last byte.
    answers: Vec<Duration>,
}

async fn measure(
    service: &Service,
    clients: usize,
    images: impl Iterator<Item = (usize, Image)>,
    work: Work,
) -> Result<Turn, Failure> {
    let waiting = Waiting::new(Mutex::new(images.collect()));
    let (before, started) = (service.server.figures()?, Instant::now());
    let mut connections = JoinSet::new();
    for _ in 0..clients {
        let client = Client::new(service.address());
        connections.spawn(one_client(client, waiting.clone(), work.clone()));
    }
    let (mut resident_kib, mut whole, mut answers) = (Vec::new(), Vec::new(), Vec::new());
    while !connections.is_empty() {
        tokio::select! {
            Some(done) = connections.join_next() => {
                let times = done??;
                whole.extend(times.iter().map(|it| it.0));
                answers.extend(times.iter().filter_map(|it| it.1));
            }
            () = sleep(LOOK_AGAIN) => resident_kib.push(service.server.figures()?.resident_kib),
        }
    }
    let after: Figures = service.server.figures()?;
    resident_kib.push(after.resident_kib);
    Ok(Turn {
        span: Span {
            before,
            after,
            lasted: started.elapsed(),
        },
        resident_kib,
        whole,
        answers,
    })
}

/// Sends images until none waits; of each, how long it took and how long the answer came after the last step.
async fn one_client(
    mut client: Client,
    waiting: Waiting,
    work: Work,
) -> Result<Vec<(Duration, Option<Duration>)>, Failure> {
    let mut times = Vec::new();
    loop {
        let next = {
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.pop_front()
        };
        let Some((number, image)) = next else {
            return Ok(times);
        };
        let mut bytes = std::fs::read(&image.path)?;
        // Behind the frame's end, so that nothing is there already: what is equal is stored once.
        bytes.extend_from_slice(format!("{number} {work:?}").as_bytes());
        let started = Instant::now();
        let after_end = match &work {
            Work::Store => {
                upload(&mut client, &image.name, &bytes).await?;
                None
            }
            Work::Run(path) => {
                let body = form("file", &image.name, &bytes, &[]);
                let answer = client.post(path, &form_headers(), &body).await?;
                let answered_at = SystemTime::now();
                if answer.status != 200 {
                    return Err(
                        format!("{}: {} {}", image.name, answer.status, answer.text()).into(),
                    );
                }
                Some(since_last_step(
                    &serde_json::from_slice(&answer.body)?,
                    answered_at,
                )?)
            }
        };
        times.push((started.elapsed(), after_end));
    }
}

/// Returns the time since the last step. The service reads the same clock, in milliseconds.
fn since_last_step(answer: &Value, answered_at: SystemTime) -> Result<Duration, Failure> {
    let log = answer["run"]["log"].as_array();
    let ends = log
        .into_iter()
        .flatten()
        .filter_map(|it| it["finishedAt"].as_str());
    let last = ends.max().ok_or_else(|| format!("no step in {answer}"))?;
    let ended_at = SystemTime::from(last.parse::<jiff::Timestamp>()?);
    Ok(answered_at.duration_since(ended_at).unwrap_or_default())
}
