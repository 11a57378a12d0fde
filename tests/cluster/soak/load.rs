//! Clients that store files in three ways, make jobs and begin runs, each again and again until it has its answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use crate::support::{
    Failure,
    api::{Answer, Api, fetch, persistently},
    dice::Dice,
    json::text,
    ledger::Ledger,
};

const CLIENTS: usize = 4;
/// Pause of a client after each answer.
const PAUSE: Duration = Duration::from_millis(250);
/// Longest time in which a call succeeds at last, over any fault.
const AT_LAST: Duration = Duration::from_secs(120);
/// Lengths of resumable uploads, and of the requests that they come in.
const RESUMABLE_BYTES: usize = 900_000;
const PATCH_BYTES: usize = 300_000;

/// Least numbers of what is done before the clients stop.
#[derive(Clone, Copy, Debug)]
pub struct Least {
    pub files: usize,
    pub jobs: usize,
    pub runs: usize,
}

/// The clients.
pub struct Load {
    clients: JoinSet<Result<(), Failure>>,
    stop: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Work {
    api: Api,
    ledger: Arc<Ledger>,
    workflow: String,
    least: Least,
    /// Number of the next thing.
    next: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Load {
    pub fn start(
        api: Api,
        ledger: Arc<Ledger>,
        workflow: String,
        least: Least,
        dice: &mut Dice,
    ) -> Self {
        let work = Work {
            api,
            ledger,
            workflow,
            least,
            next: Arc::default(),
            stop: Arc::default(),
        };
        let mut clients = JoinSet::new();
        for _ in 0..CLIENTS {
            clients.spawn(work.clone().run(dice.another()));
        }
        Self {
            clients,
            stop: work.stop,
        }
    }

    /// Fails when a client has.
    pub async fn check(&mut self) -> Result<(), Failure> {
        match self.clients.try_join_next() {
            Some(ended) => ended?,
            None => Ok(()),
        }
    }

    /// Waits until the clients have done the least and have stopped.
    pub async fn finish(mut self) -> Result<(), Failure> {
        self.stop.store(true, Relaxed);
        while let Some(ended) = self.clients.join_next().await {
            ended??;
        }
        Ok(())
    }
}

impl Work {
    async fn run(self, mut dice: Dice) -> Result<(), Failure> {
        while !self.may_stop() {
            let number = self.next.fetch_add(1, Relaxed);
            let image = image(number, &mut dice);
            match dice.below(6) {
                0 => self.upload(number, &image).await,
                1 => self.upload_directly(number, &image).await,
                2 => self.upload_resumably(number, &mut dice).await,
                3 | 4 => self.convert(number, &image).await,
                _ => self.begin_run(number, &image).await,
            }?;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    fn may_stop(&self) -> bool {
        let books = self.ledger.books();
        let Least { files, jobs, runs } = self.least;
        self.stop.load(Relaxed)
            && books.files.len() >= files
            && books.jobs.len() >= jobs
            && books.runs.len() >= runs
    }

    /// A call of unknown outcome may have stored the file, so that each has a name of its own.
    async fn upload(&self, number: usize, image: &[u8]) -> Result<(), Failure> {
        let file = persistently(AT_LAST, |attempt| async move {
            let name = format!("{number}-{attempt}.svg");
            self.api.upload(&name, image).await
        })
        .await?;
        self.ledger.note_file(text(&file["id"])?, image);
        Ok(())
    }

    /// A repeated completion finds the same file.
    async fn upload_directly(&self, number: usize, image: &[u8]) -> Result<(), Failure> {
        let new = &json!({"filename": format!("{number}-direct.svg"), "sizeBytes": image.len(), "contentType": "image/svg+xml"});
        let made = persistently(AT_LAST, |_| async move {
            let made = self.api.post("/api/uploads", new).await?;
            made.expect(200)?.json()
        })
        .await?;
        let url = &text(&made["upload"]["signedUrl"])?;
        let completion = &made["complete"]["body"];
        let file = persistently(AT_LAST, |_| async move {
            let put = self.api.anonymous(Method::PUT, url).body(image.to_vec());
            let put = fetch(put).await?;
            // Once the bytes are there, they are not taken again.
            if !put.status.is_success() && put.status != 409 {
                return Err(unexpected(&put));
            }
            let completed = self.api.post("/api/uploads/complete", completion).await?;
            match completed.status.is_success() {
                true => completed.json(),
                false => Err(unexpected(&completed)),
            }
        })
        .await?;
        self.ledger.note_file(text(&file["file"]["id"])?, image);
        Ok(())
    }

    /// Resumes at the offset that the service names, and never behind one that it acknowledged.
    async fn upload_resumably(&self, number: usize, dice: &mut Dice) -> Result<(), Failure> {
        let words = (0..RESUMABLE_BYTES / 8).flat_map(|_| dice.next().to_le_bytes());
        let bytes: Vec<u8> = words.collect();
        let named = &format!(
            "filename {}",
            STANDARD.encode(format!("{number}-resumable.bin"))
        );
        let made = persistently(AT_LAST, |_| async move {
            let request = self.tus(Method::POST, "/api/uploads/tus");
            let made = request
                .header("upload-length", RESUMABLE_BYTES)
                .header("upload-metadata", named);
            fetch(made).await?.expect(201)
        })
        .await?;
        let url = made.header("location");
        let mut acknowledged = 0;
        loop {
            let head = persistently(AT_LAST, |_| async move {
                fetch(self.tus(Method::HEAD, url)).await?.expect(200)
            })
            .await?;
            let file = head.header("service-file-id");
            if !file.is_empty() {
                self.ledger.note_file(file.to_owned(), &bytes);
                return Ok(());
            }
            let offset: usize = head.header("upload-offset").parse()?;
            assert!(
                offset >= acknowledged,
                "{offset} after {acknowledged} was acknowledged"
            );
            let end = RESUMABLE_BYTES.min(offset + PATCH_BYTES);
            let patch = self
                .tus(Method::PATCH, url)
                .header("content-type", "application/offset+octet-stream")
                .header("upload-offset", offset)
                .body(bytes[offset..end].to_vec());
            match fetch(patch).await {
                Ok(answer) if answer.status == 204 => {
                    acknowledged = answer.header("upload-offset").parse()?;
                }
                _ => sleep(PAUSE).await,
            }
        }
    }

    fn tus(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.api
            .request(method, path)
            .header("tus-resumable", "1.0.0")
    }

    /// A repeated request with the same key finds the same job.
    async fn convert(&self, number: usize, image: &[u8]) -> Result<(), Failure> {
        let name = &format!("{number}-job.svg");
        let job = persistently(AT_LAST, |_| self.api.convert(name, image)).await?;
        self.ledger.note_job(job);
        Ok(())
    }

    async fn begin_run(&self, number: usize, image: &[u8]) -> Result<(), Failure> {
        let path = &format!("/api/workflows/{}/run", self.workflow);
        let run = persistently(AT_LAST, |attempt| async move {
            let name = format!("{number}-{attempt}-run.svg");
            let begun = self.api.send(path, ("file", &name, image), &[], &[]);
            let begun = begun.await?;
            match begun.status.is_success() {
                true => begun.json(),
                false => Err(unexpected(&begun)),
            }
        })
        .await?;
        self.ledger.note_run(text(&run["runId"])?);
        Ok(())
    }
}

fn unexpected(answer: &Answer) -> Failure {
    format!("{}: {}", answer.status, answer.text()).into()
}

/// Returns a small image that is like no other.
pub fn image(number: usize, dice: &mut Dice) -> Vec<u8> {
    let colour = dice.below(0x0100_0000);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="60" height="40">
        <title>{number}</title><rect width="60" height="40" fill="#{colour:06x}"/></svg>"##
    )
    .into_bytes()
}

/// Makes a workflow that converts a file, stores the result and announces it; its id.
pub async fn make_workflow(api: &Api) -> Result<String, Failure> {
    let node = |id: &str, kind: &str, config: Value| json!({"id": id, "data": {"kind": kind, "config": config}});
    let edge = |source: &str, target: &str| json!({"source": source, "target": target});
    let definition = json!({
        "nodes": [
            node("upload", "upload", json!({})),
            node("webp", "convert", json!({"format": "webp"})),
            node("keep", "storage", json!({})),
            // Its event announces the run.
            node("announce", "webhook", json!({})),
        ],
        "edges": [edge("upload", "webp"), edge("webp", "keep"), edge("keep", "announce")],
    });
    let body = json!({"name": "convert and keep", "definition": definition});
    let made = api.post("/api/workflows", &body).await?.expect(201)?;
    text(&made.json()?["workflow"]["id"])
}
