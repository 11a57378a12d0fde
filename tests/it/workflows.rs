//! Workflows as their authors and their users see them: every acknowledged run ends once, after faulty definitions and
//! files, kills and rejections, and its log says what happened.

mod branches;
mod crash;
mod guide;
mod hostile;
mod limits;
mod triggers;
mod webhooks;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    definition::{chain, edge, labelled, node, rule},
    eventually,
    json::{list, text},
    server::{Api, Form, Settings},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);
/// For runs in a debug build, on a machine with other work.
const ENDED: Duration = Duration::from_secs(120);

/// A workflow as its owner knows it after saving it.
#[derive(Clone, Debug)]
pub(crate) struct Workflow {
    id: String,
    secret: String,
    /// The whole record.
    record: Value,
}

/// A service whose requests to run a workflow are answered at once, with the run on its way.
fn impatient() -> Settings {
    crate::webhooks::settings().env("SLUICE_WORKFLOWS__INLINE_WAIT", "0s")
}

async fn get(api: &Api, path: &str) -> Result<Value, Failure> {
    api.expect(StatusCode::OK, Method::GET, path, None).await
}

pub(crate) async fn create(api: &Api, name: &str, definition: &Value) -> Result<Workflow, Failure> {
    let body = json!({"name": name, "definition": definition});
    let made = api.expect(
        StatusCode::CREATED,
        Method::POST,
        "/api/workflows",
        Some(&body),
    );
    let record = made.await?["workflow"].clone();
    Ok(Workflow {
        id: text(&record["id"])?,
        secret: text(&record["webhookSecret"])?,
        record,
    })
}

/// Saves another definition; the record.
async fn save(api: &Api, workflow: &Workflow, definition: &Value) -> Result<Value, Failure> {
    let body =
        json!({"id": workflow.id, "name": workflow.record["name"], "definition": definition});
    let saved = api.expect(StatusCode::OK, Method::POST, "/api/workflows", Some(&body));
    Ok(saved.await?["workflow"].clone())
}

async fn set_active(api: &Api, workflow: &Workflow, is_active: bool) -> Result<(), Failure> {
    let path = format!("/api/workflows/{}", workflow.id);
    let body = json!({"isActive": is_active});
    let changed = api.expect(StatusCode::OK, Method::PATCH, &path, Some(&body));
    assert_eq!(changed.await?["workflow"]["isActive"], json!(is_active));
    Ok(())
}

fn file(filename: &str, bytes: &[u8]) -> Form {
    Form::new().file("file", filename, bytes)
}

fn run_path(workflow: &Workflow) -> String {
    format!("/api/workflows/{}/run", workflow.id)
}

/// Gives the workflow a file; returns the run's id, whether it has ended already or continues.
async fn begin(
    api: &Api,
    workflow: &Workflow,
    filename: &str,
    bytes: &[u8],
) -> Result<String, Failure> {
    let answer = api
        .post_form(&run_path(workflow), file(filename, bytes))
        .await?;
    let body = answer.json()?;
    let is_explained = match answer.status {
        StatusCode::OK => body["status"] == "completed" || body["status"] == "failed",
        StatusCode::ACCEPTED => body["status"] == "queued" || body["status"] == "processing",
        _ => false,
    };
    let id = text(&body["runId"])?;
    assert!(is_explained, "{}: {body}", answer.status);
    assert_eq!(
        (&body["run"]["id"], &body["run"]["status"]),
        (&json!(id), &body["status"])
    );
    Ok(id)
}

async fn run(api: &Api, id: &str) -> Result<Value, Failure> {
    Ok(get(api, &format!("/api/workflows/runs/{id}")).await?["run"].clone())
}

/// The newest runs, at most 50.
async fn runs(api: &Api, workflow: &Workflow) -> Result<Vec<Value>, Failure> {
    list(&get(api, &run_path(workflow)).await?["runs"])
}

fn has_ended(run: &Value) -> bool {
    ["completed", "failed", "cancelled"]
        .iter()
        .any(|status| run["status"] == *status)
}

/// Waits until the run has ended, completed or not.
async fn wait_ended(api: &Api, id: &str) -> Result<Value, Failure> {
    eventually(&format!("run {id} has ended"), ENDED, async || {
        run(api, id).await.ok().filter(has_ended)
    })
    .await
}

/// Runs the file to the run's end, which must be this one.
pub(crate) async fn run_to(
    api: &Api,
    workflow: &Workflow,
    filename: &str,
    bytes: &[u8],
    status: &str,
) -> Result<Value, Failure> {
    let id = begin(api, workflow, filename, bytes).await?;
    let run = wait_ended(api, &id).await?;
    match run["status"] == status {
        true => Ok(run),
        false => Err(format!("not {status}: {run}").into()),
    }
}

/// The entries of a run's log.
fn log(run: &Value) -> Vec<Value> {
    run["log"].as_array().cloned().unwrap_or_default()
}

/// The entry of a node.
fn entry(run: &Value, node_id: &str) -> Result<Value, Failure> {
    let found = log(run).into_iter().find(|it| it["nodeId"] == node_id);
    found.ok_or_else(|| format!("no {node_id} in the log of {run}").into())
}

/// Ids of the nodes that the log gives this status, in its order.
fn nodes(run: &Value, status: &str) -> Vec<String> {
    let entries = log(run).into_iter().filter(|it| it["status"] == status);
    entries.filter_map(|it| text(&it["nodeId"]).ok()).collect()
}

/// The one output.
pub(crate) fn output(run: &Value) -> Result<Value, Failure> {
    match <[Value; 1]>::try_from(list(&run["outputs"])?) {
        Ok([output]) => Ok(output),
        Err(outputs) => Err(format!("{} outputs of {run}", outputs.len()).into()),
    }
}

/// The bytes behind an output's address.
pub(crate) async fn download(api: &Api, output: &Value) -> Result<Vec<u8>, Failure> {
    let answer = api.fetch(&text(&output["downloadUrl"])?).await?;
    Ok(answer.expect(200)?.bytes.to_vec())
}
