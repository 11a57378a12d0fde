//! Ledger of what the service acknowledged, and the comparison with what it has in the end: nothing lost, nothing twice, sums as a recount.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::time::sleep;

use super::{
    Failure,
    api::Api,
    eventually,
    installation::Installation,
    json::{number, text},
    receiver::Receiver,
};

/// All jobs, runs and deliveries end within so long after the last fault.
const SETTLED_WITHIN: Duration = Duration::from_secs(240);

/// Pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(300);

/// Promises to clients.
#[derive(Debug, Default)]
pub struct Ledger {
    books: Mutex<Books>,
}

#[derive(Clone, Debug, Default)]
pub struct Books {
    /// Hashes of the bytes by the ids of files.
    pub files: HashMap<String, [u8; 32]>,
    pub jobs: HashSet<String>,
    pub runs: HashSet<String>,
}

impl Ledger {
    pub fn note_file(&self, id: String, bytes: &[u8]) {
        let before = self.lock().files.insert(id, Sha256::digest(bytes).into());
        assert!(before.is_none(), "two acknowledgements have one file");
    }

    pub fn note_job(&self, id: String) {
        assert!(self.lock().jobs.insert(id), "two keys have one job");
    }

    pub fn note_run(&self, id: String) {
        assert!(self.lock().runs.insert(id), "two requests have one run");
    }

    pub fn books(&self) -> Books {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nothing is open, and compares everything: rows, bytes from each node, charges, events and deliveries of the
    /// endpoints at these paths of the receiver. `followed` is the feed as a client read it all the time.
    pub async fn check(
        &self,
        installation: &Installation,
        receiver: &Receiver,
        endpoints: &[String],
        followed: impl AsyncFnOnce() -> Result<Vec<Value>, Failure>,
    ) -> Result<(), Failure> {
        let (books, api) = (self.books(), installation.api());
        settle(&api).await?;
        let stored = check_files(&books, installation).await?;
        let jobs = check_jobs(&books, &api).await?;
        let runs = check_runs(&books, &api).await?;
        check_sums(&api, &stored, jobs.len() + runs.len()).await?;
        let (events, _) = api.events(String::new()).await?;
        check_events(&events, &stored, &jobs, &runs)?;
        for node in &installation.nodes {
            let (seen, _) = node.api().events(String::new()).await?;
            assert!(seen == events, "the feed of {} is another one", node.name);
        }
        let followed = followed().await?;
        assert_eq!(
            ids(&followed),
            ids(&events),
            "what a client followed has a gap or a repetition"
        );
        check_deliveries(&api, &events, receiver, endpoints).await
    }
}

fn ids(events: &[Value]) -> Vec<&str> {
    let ids = events.iter().map(|event| event["id"].as_str());
    ids.map(Option::unwrap_or_default).collect()
}

/// Waits until no job, run and delivery is open.
async fn settle(api: &Api) -> Result<(), Failure> {
    eventually(
        "all work and all deliveries have ended",
        SETTLED_WITHIN,
        async || {
            sleep(LOOK_AGAIN).await;
            for (path, field) in [
                ("/api/jobs?status=pending", "jobs"),
                ("/api/jobs?status=processing", "jobs"),
                ("/api/workflows/runs?status=queued", "runs"),
                ("/api/workflows/runs?status=processing", "runs"),
                ("/api/webhooks/deliveries?status=pending", "deliveries"),
                ("/api/webhooks/deliveries?status=retrying", "deliveries"),
                ("/api/webhooks/deliveries?status=delivering", "deliveries"),
            ] {
                let page = api.get(&format!("{path}&limit=1")).await.ok()?;
                if !page[field].as_array()?.is_empty() {
                    return None;
                }
            }
            Some(())
        },
    )
    .await
}

/// Returns the records of all files. Each that was acknowledged is there, with its bytes from each node.
async fn check_files(books: &Books, installation: &Installation) -> Result<Vec<Value>, Failure> {
    let stored = installation.api().all("/api/files", "files").await?;
    let mut names = HashSet::new();
    for file in stored.iter().filter(|file| file["role"] == "uploaded") {
        let name = text(&file["filename"])?;
        assert!(!names.contains(&name), "{name} was stored twice");
        names.insert(name);
    }
    let present: HashSet<String> = stored
        .iter()
        .filter_map(|file| text(&file["id"]).ok())
        .collect();
    assert_eq!(present.len(), stored.len(), "a file is listed twice");
    for (id, hash) in &books.files {
        assert!(present.contains(id), "{id} was acknowledged and is lost");
        for node in &installation.nodes {
            let api = node.api();
            let record = api.get(&format!("/api/files/{id}")).await?;
            let url = text(&record["file"]["download_url"])?;
            let bytes = api.look(&url).await?.expect(200)?.bytes;
            let found: [u8; 32] = Sha256::digest(&bytes).into();
            assert!(found == *hash, "{id} has other bytes from {}", node.name);
        }
    }
    Ok(stored)
}

/// Returns the ids of all jobs: each completed.
async fn check_jobs(books: &Books, api: &Api) -> Result<HashSet<String>, Failure> {
    let jobs = api.all("/api/jobs", "jobs").await?;
    check_ended("job", &books.jobs, &jobs, "jobId")
}

/// Returns the ids of all runs: each completed.
async fn check_runs(books: &Books, api: &Api) -> Result<HashSet<String>, Failure> {
    let runs = api.all("/api/workflows/runs", "runs").await?;
    check_ended("run", &books.runs, &runs, "id")
}

fn check_ended(
    kind: &str,
    acknowledged: &HashSet<String>,
    all: &[Value],
    id: &str,
) -> Result<HashSet<String>, Failure> {
    let mut ended = HashSet::new();
    for record in all {
        assert_eq!(record["status"], "completed", "{record}");
        assert!(ended.insert(text(&record[id])?), "a {kind} is listed twice");
    }
    let lost: Vec<_> = acknowledged.difference(&ended).collect();
    assert!(
        lost.is_empty(),
        "{kind}s that were acknowledged and are lost: {lost:?}"
    );
    Ok(ended)
}

async fn check_sums(api: &Api, stored: &[Value], operations: usize) -> Result<(), Failure> {
    let usage = api.get("/api/usage").await?;
    let mut bytes = 0;
    for file in stored {
        bytes += number(&file["size_bytes"])?;
    }
    let expected = json!({"files": stored.len(), "usedBytes": bytes, "limitBytes": null});
    assert_eq!(usage["storage"], expected, "the sum of storage");
    assert_eq!(
        number(&usage["operations"]["used"])?,
        operations as u64,
        "charges"
    );
    Ok(())
}

/// Each file, job and run has its event once, and there are none of others.
fn check_events(
    events: &[Value],
    stored: &[Value],
    jobs: &HashSet<String>,
    runs: &HashSet<String>,
) -> Result<(), Failure> {
    let distinct: HashSet<&str> = ids(events).into_iter().collect();
    assert_eq!(
        distinct.len(),
        events.len(),
        "an event is in the feed twice"
    );
    let of_type = |kind: &str, field: &str| -> Result<Vec<String>, Failure> {
        let events = events.iter().filter(|event| event["type"] == kind);
        let mut of_resources: Vec<String> = events
            .map(|event| text(&event["data"][field]))
            .collect::<Result<_, _>>()?;
        of_resources.sort();
        Ok(of_resources)
    };
    let sorted = |ids: &mut dyn Iterator<Item = String>| {
        let mut ids: Vec<String> = ids.collect();
        ids.sort();
        ids
    };
    let files = sorted(&mut stored.iter().filter_map(|file| text(&file["id"]).ok()));
    assert_eq!(
        of_type("file.uploaded", "fileId")?,
        files,
        "events of files"
    );
    let jobs = sorted(&mut jobs.iter().cloned());
    assert_eq!(
        of_type("conversion.completed", "jobId")?,
        jobs,
        "events of jobs"
    );
    let runs = sorted(&mut runs.iter().cloned());
    assert_eq!(
        of_type("workflow.completed", "runId")?,
        runs,
        "events of runs"
    );
    Ok(())
}

/// Each event has one delivery to each endpoint, which arrived, with one body however often.
async fn check_deliveries(
    api: &Api,
    events: &[Value],
    receiver: &Receiver,
    endpoints: &[String],
) -> Result<(), Failure> {
    let deliveries = api.all("/api/webhooks/deliveries", "deliveries").await?;
    let mut seen = HashSet::new();
    for delivery in &deliveries {
        assert_eq!(delivery["status"], "delivered", "{delivery}");
        let of = (text(&delivery["endpointUrl"])?, text(&delivery["eventId"])?);
        assert!(!seen.contains(&of), "two deliveries: {delivery}");
        seen.insert(of);
    }
    assert_eq!(
        deliveries.len(),
        events.len() * endpoints.len(),
        "deliveries"
    );
    for path in endpoints {
        let mut bodies: HashMap<String, Vec<u8>> = HashMap::new();
        for arrival in receiver.arrivals(path) {
            let first = bodies
                .entry(arrival.event_id)
                .or_insert_with(|| arrival.body.clone());
            assert_eq!(*first, arrival.body, "one id, two bodies");
        }
        let missing: Vec<&str> = ids(events)
            .into_iter()
            .filter(|id| !bodies.contains_key(*id))
            .collect();
        assert!(missing.is_empty(), "{path} lacks {missing:?}");
        assert_eq!(
            bodies.len(),
            events.len(),
            "{path} got events that are not in the feed"
        );
    }
    Ok(())
}
