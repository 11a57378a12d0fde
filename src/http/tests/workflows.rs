//! Workflows by their API. Without an actor tree runs stay queued; [`Working`] has one, for definitions whose
//! steps need no worker.

mod definitions;
mod dry_runs;
mod lists;
mod outcomes;
mod reruns;
mod runs;

use kameo::actor::ActorRef;
use serde_json::{Value, json};
use sluice_actors::{
    component::ComponentStatuses,
    tree::{Args, Root},
};
use tokio_util::sync::CancellationToken;

use super::{Answer, Site, Subsystem as _, request};
use crate::config::Config;

const UNKNOWN_ID: &str = "00000000-0000-0000-0000-000000000000";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0";

/// A site whose runs are worked on.
struct Working {
    site: Site,
    _root: ActorRef<Root>,
}

impl Working {
    async fn open_with(adjust: impl FnOnce(&mut Config)) -> Self {
        let site = Site::open_with(adjust).await;
        let root = Root::start(Args {
            components: site.app.workflows.workflows.components(),
            component_statuses: ComponentStatuses::default(),
            lost: CancellationToken::new(),
        });
        Self { site, _root: root }
    }
}

impl Site {
    async fn save(&self, body: Value) -> Answer {
        self.call("POST", "/api/workflows", Some(body)).await
    }

    /// The record of a new workflow.
    async fn workflow(&self, definition: Value) -> Value {
        let answer = self
            .save(json!({"name": "Product photos", "definition": definition}))
            .await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["workflow"].clone()
    }

    async fn run(&self, workflow: &Value, name: &str, bytes: &[u8]) -> Answer {
        self.send_form(
            self.first.api_key.expose(),
            &format!("{}/run", path(workflow)),
            form("file", name, bytes),
        )
        .await
    }

    async fn folder(&self) -> String {
        let made = self
            .call("POST", "/api/folders", Some(json!({"name": "Photos"})))
            .await;
        id(&made.json()["folder"])
    }

    /// The newest runs of a workflow.
    async fn history(&self, workflow: &Value) -> Vec<Value> {
        let answer = self
            .call("GET", &format!("{}/run", path(workflow)), None)
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["runs"].as_array().unwrap().clone()
    }
}

fn id(record: &Value) -> String {
    record["id"].as_str().unwrap().to_owned()
}

fn path(workflow: &Value) -> String {
    format!("/api/workflows/{}", id(workflow))
}

fn run_path(answer: &Value) -> String {
    format!("/api/workflows/runs/{}", answer["runId"].as_str().unwrap())
}

/// A form with one file in that field.
fn form(field: &str, name: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n"
    );
    [head.as_bytes(), bytes, b"\r\n--edge--\r\n"].concat()
}

/// A definition of an upload and what follows it, one after the other.
fn chain(steps: &[(&str, &str, Value)]) -> Value {
    let upload = [("up", "upload", json!({}))];
    let nodes: Vec<Value> = upload
        .iter()
        .chain(steps)
        .map(|(id, kind, config)| json!({"id": id, "data": {"kind": kind, "config": config}}))
        .collect();
    let edges: Vec<Value> = nodes
        .windows(2)
        .map(|pair| json!({"source": pair[0]["id"], "target": pair[1]["id"]}))
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

fn storing() -> Value {
    chain(&[("keep", "storage", json!({}))])
}
