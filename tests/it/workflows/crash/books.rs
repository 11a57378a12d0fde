//! Compares the acknowledgements with the service's records and the receivers' requests.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use serde_json::{Value, json};

use crate::{
    support::{
        Failure,
        json::{list, number, text},
        receiver::{Receiver, Request},
        server::Api,
    },
    webhooks::events,
    workflows::{Workflow, get, run},
};

/// The feed, after all has ended.
#[derive(Debug)]
pub(super) struct Books {
    /// Ids of runs, by the event that says that they have completed.
    completed: HashMap<String, String>,
    /// Ids of files, once for each event.
    uploaded: Vec<String>,
}

impl Books {
    pub(super) async fn read(api: &Api) -> Result<Self, Failure> {
        let mut books = Self {
            completed: HashMap::new(),
            uploaded: Vec::new(),
        };
        for event in events(api).await? {
            match event["type"].as_str() {
                Some("workflow.completed") => {
                    let run = text(&event["data"]["runId"])?;
                    let before = books.completed.insert(text(&event["id"])?, run);
                    assert_eq!(before, None, "one id twice");
                }
                Some("file.uploaded") => books.uploaded.push(text(&event["data"]["fileId"])?),
                _ => return Err(format!("an event of nothing that was done: {event}").into()),
            }
        }
        Ok(books)
    }

    /// Returns the events of completed runs.
    pub(super) fn completed(&self) -> usize {
        self.completed.len()
    }

    /// Every run that was begun, acknowledged or not, completed once, was charged once, and stored each of its files
    /// once.
    pub(super) async fn check_runs(
        &self,
        api: &Api,
        workflow: &Workflow,
        acknowledged: &[String],
        stored_each: usize,
    ) -> Result<(), Failure> {
        let runs: HashSet<&String> = self.completed.values().collect();
        assert_eq!(runs.len(), self.completed.len(), "a run completed twice");
        assert_eq!(
            run_count(api, workflow).await?,
            runs.len() as u64,
            "runs without an end"
        );
        assert_eq!(api.operations_used().await?, runs.len() as u64, "charges");

        let distinct: HashSet<&String> = self.uploaded.iter().collect();
        assert_eq!(
            distinct.len(),
            self.uploaded.len(),
            "a file was reported twice"
        );
        let mut stored = HashSet::new();
        for file in crate::files::all_files(api).await? {
            stored.insert(text(&file["id"])?);
        }
        assert_eq!(stored.len(), runs.len() * stored_each, "stored files");
        assert!(
            stored
                .iter()
                .eq(stored.iter().filter(|id| distinct.contains(id))),
            "one was not reported"
        );

        for id in acknowledged {
            assert!(
                runs.contains(id),
                "{id} was acknowledged and has not completed"
            );
            let run = run(api, id).await?;
            assert_eq!(run["status"], "completed", "{run}");
            let outputs = list(&run["outputs"])?;
            assert_eq!(outputs.len(), stored_each, "{run}");
            for output in outputs {
                assert!(
                    stored.remove(&text(&output["storedFileId"])?),
                    "{output} twice or gone"
                );
            }
        }
        Ok(())
    }

    /// Checks that every receiver got every run, with one body however often.
    pub(super) fn check_arrivals(&self, receivers: &[&Receiver]) {
        let mut bodies: HashMap<String, Arc<Request>> = HashMap::new();
        for receiver in receivers {
            let mut heard = HashSet::new();
            for request in receiver.requests() {
                if request.header("service-event") != "workflow.completed" {
                    continue;
                }
                let id = request.event_id().to_owned();
                assert!(self.completed.contains_key(&id), "{id} has no run");
                heard.insert(id.clone());
                let first = bodies.entry(id).or_insert_with(|| request.clone());
                assert_eq!(first.body, request.body, "one id, two bodies");
            }
            assert_eq!(heard.len(), self.completed.len(), "{}", receiver.url(""));
        }
        let runs = bodies.values().filter_map(|it| it.json().ok());
        let of_runs = runs.filter(|it| {
            self.completed
                .get(it["id"].as_str().unwrap_or_default())
                .is_some_and(|run| it["data"]["runId"] == json!(run))
        });
        assert_eq!(
            of_runs.count(),
            self.completed.len(),
            "bodies of other runs"
        );
    }
}

/// Runs of the workflow since its making.
pub(super) async fn run_count(api: &Api, workflow: &Workflow) -> Result<u64, Failure> {
    let answer: Value = get(api, &format!("/api/workflows/{}", workflow.id)).await?;
    number(&answer["workflow"]["runCount"])
}

impl fmt::Display for Books {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} completed, {} files reported",
            self.completed.len(),
            self.uploaded.len()
        )
    }
}
