//! Paths of runs in their logs: branches, joins, gates, ends.

use serde_json::{Value, json};

use super::{
    chain, create, download, edge, entry, labelled, log, node, nodes, output, rule, run_to,
};
use crate::support::{
    Failure,
    images::drawn,
    json::{number, text},
    server::Server,
};

/// A definition with three diamonds one after another, and what of it a wide JPEG should see.
struct Drawing {
    nodes: Vec<Value>,
    edges: Vec<Value>,
    /// Ids, in the order of the way.
    taken: Vec<String>,
    /// Ids on the other ways.
    left: Vec<String>,
}

/// Nodes of a definition at most (docs/reference/limits.md).
const MOST_NODES: usize = 50;
/// Steps on each side of each diamond.
const SIDE: usize = 7;

impl Drawing {
    fn new() -> Self {
        let mut drawing = Self {
            nodes: Vec::new(),
            edges: Vec::new(),
            taken: Vec::new(),
            left: Vec::new(),
        };
        drawing.step(node("upload", "upload", json!({})), true);
        drawing
    }

    fn step(&mut self, node: Value, is_taken: bool) -> String {
        let id = node["id"].as_str().unwrap_or_default().to_owned();
        self.nodes.push(node);
        match is_taken {
            true => self.taken.push(id.clone()),
            false => self.left.push(id.clone()),
        }
        id
    }

    /// A branch after the last step taken, both of its sides, and where they meet again.
    fn diamond(&mut self, name: &str, answer: bool, join: Value) {
        let before = self.taken.last().expect("it begins with an upload").clone();
        let branch = self.step(node(name, "branch", json!({})), true);
        self.edges.push(edge(&before, &branch));
        let mut ends = Vec::new();
        for side in [true, false] {
            let mut last = branch.clone();
            for number in 1..=SIDE {
                let id = format!("{name}-{side}-{number}");
                let id = self.step(cheap(&id, number), side == answer);
                self.edges.push(match number {
                    1 => labelled(&last, side, &id),
                    _ => edge(&last, &id),
                });
                last = id;
            }
            ends.push(last);
        }
        let join = self.step(join, true);
        let met = ends.iter().map(|end| edge(end, &join));
        self.edges.extend(met);
    }
}

/// A step that takes no time.
fn cheap(id: &str, number: usize) -> Value {
    match number % 3 {
        0 => node(id, "strip_metadata", json!({})),
        1 => node(
            id,
            "rename",
            json!({"pattern": format!("{{original}}-{id}")}),
        ),
        _ => node(id, "inspect", json!({})),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_fifty_nodes_with_three_branches_shows_its_way() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut drawing = Drawing::new();
    // The image is 240 pixels wide until the first join makes it 100.
    let smaller = node("smaller", "resize", json!({"resizeWidth": 100}));
    drawing.diamond("wide", true, smaller);
    drawing.diamond(
        "still-wide",
        false,
        node("webp", "convert", json!({"format": "webp"})),
    );
    drawing.diamond("named", true, node("keep", "storage", json!({})));
    assert_eq!(drawing.nodes.len(), 49);
    drawing.step(node("tell", "webhook", json!({})), true);
    drawing.edges.push(edge("keep", "tell"));
    assert_eq!(drawing.nodes.len(), MOST_NODES);
    let definition = json!({
        "nodes": drawing.nodes, "edges": drawing.edges,
        "branchConditions": {
            "wide": rule("width", "gt", 200),
            "still-wide": rule("width", "greater-than", "200"),
            "named": {
                "logic": "or", "negate": true,
                "conditions": [{"field": "extension", "operator": "equals", "value": "jpg"}],
                "groups": [rule("mime", "equals", "image/jpeg"), rule("filename", "is_empty", Value::Null)],
            },
        },
    });
    let workflow = create(&api, "three branches", &definition).await?;

    let run = run_to(
        &api,
        &workflow,
        "plain.jpg",
        &drawn("plain.jpg")?,
        "completed",
    )
    .await?;
    assert_eq!(nodes(&run, "completed"), drawing.taken, "{run}");
    let mut left = nodes(&run, "skipped");
    left.sort();
    drawing.left.sort();
    assert_eq!(left, drawing.left, "{run}");
    for (branch, answer) in [("wide", true), ("still-wide", false), ("named", true)] {
        assert_eq!(entry(&run, branch)?["branch"], json!(answer), "{branch}");
    }
    check_entries(&run, &definition)?;
    let output = output(&run)?;
    assert!(output["storedFileId"].is_string(), "{output}");
    assert_eq!(output["mimeType"], "image/webp");
    assert_eq!(
        json!(download(&api, &output).await?.len()),
        output["sizeBytes"]
    );
    Ok(())
}

/// Every entry says what it is about; steps that were taken hand on what they made.
fn check_entries(run: &Value, definition: &Value) -> Result<(), Failure> {
    let mut handed_on = run["inputSize"].clone();
    let mut ended = String::new();
    for entry in log(run) {
        let node = definition["nodes"]
            .as_array()
            .and_then(|nodes| nodes.iter().find(|node| node["id"] == entry["nodeId"]));
        let node = node.ok_or_else(|| format!("{entry} is about no node"))?;
        assert_eq!(entry["kind"], node["data"]["kind"], "{entry}");
        assert!(!text(&entry["title"])?.is_empty(), "{entry}");
        assert_eq!(
            entry["branch"].is_boolean(),
            entry["kind"] == "branch" && entry["status"] == "completed",
            "{entry}"
        );
        if entry["status"] != "completed" {
            assert_eq!(
                (&entry["startedAt"], &entry["bytesOut"]),
                (&Value::Null, &Value::Null),
                "{entry}"
            );
            continue;
        }
        let (from, to) = (text(&entry["startedAt"])?, text(&entry["finishedAt"])?);
        assert!(ended <= from && from <= to, "{entry} after {ended}");
        ended = to;
        assert_eq!(entry["bytesIn"], handed_on, "{entry}");
        number(&entry["bytesOut"])?;
        handed_on = entry["bytesOut"].clone();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_that_is_not_met_skips_every_step() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut definition = chain(vec![
        node("small", "resize", json!({"resizeWidth": 100})),
        node("keep", "storage", json!({})),
        node("tell", "webhook", json!({})),
    ]);
    definition["uploadGate"] = rule("mime", "starts_with", "image/");
    let workflow = create(&api, "images only", &definition).await?;

    let run = run_to(
        &api,
        &workflow,
        "notes.txt",
        b"no image at all",
        "completed",
    )
    .await?;
    assert_eq!((&run["gate"], &run["error"]), (&json!(false), &Value::Null));
    assert_eq!(nodes(&run, "completed"), [""; 0]);
    let skipped = nodes(&run, "skipped");
    for id in ["small", "keep", "tell"] {
        assert!(skipped.iter().any(|it| it == id), "{id}: {run}");
    }
    assert_eq!(run["outputs"], json!([]), "{run}");

    let run = run_to(
        &api,
        &workflow,
        "plain.png",
        &drawn("plain.png")?,
        "completed",
    )
    .await?;
    assert_eq!(run["gate"], json!(true));
    assert_eq!(
        nodes(&run, "completed"),
        ["upload", "small", "keep", "tell"]
    );
    assert_eq!(nodes(&run, "skipped"), [""; 0]);
    // A gate that closes is a run all the same.
    assert_eq!(api.operations_used().await?, 2);
    let completed = crate::webhooks::events(&api).await?;
    let completed = completed
        .iter()
        .filter(|it| it["type"] == "workflow.completed");
    assert_eq!(completed.count(), 1);
    Ok(())
}

/// A branch without an edge for its answer ends the run there; without storage, what there is can be downloaded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_way_that_ends_early_ends_the_run() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let definition = json!({
        "nodes": [
            node("upload", "upload", json!({})),
            node("small", "resize", json!({"resizeWidth": 60})),
            node("large", "branch", json!({})),
            node("keep", "storage", json!({})),
        ],
        "edges": [edge("upload", "small"), edge("small", "large"), labelled("large", true, "keep")],
        "branchConditions": {"large": rule("size_bytes", "gte", 100_000_000)},
    });
    let workflow = create(&api, "large ones only", &definition).await?;

    let run = run_to(
        &api,
        &workflow,
        "plain.jpg",
        &drawn("plain.jpg")?,
        "completed",
    )
    .await?;
    assert_eq!(nodes(&run, "completed"), ["upload", "small", "large"]);
    assert_eq!(nodes(&run, "skipped"), ["keep"]);
    assert_eq!(entry(&run, "large")?["branch"], json!(false));
    let output = output(&run)?;
    assert_eq!(output["storedFileId"], Value::Null);
    assert_eq!(output["sizeBytes"], entry(&run, "small")?["bytesOut"]);
    let bytes = download(&api, &output).await?;
    assert!(bytes.starts_with(b"\xFF\xD8"), "a JPEG");
    let files = crate::files::all_files(&api).await?;
    assert_eq!(
        files,
        [Value::Null; 0],
        "a run's input and its output are no files"
    );
    Ok(())
}

/// Forms of an older time: a gate and a branch by name, labels as text.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn legacy_forms_still_choose_the_way() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let definition = json!({
        "nodes": [
            node("upload", "upload", json!({})),
            node("large", "branch", json!({})),
            node("keep", "storage", json!({})),
            node("small", "resize", json!({"resizeWidth": 60})),
        ],
        "edges": [
            edge("upload", "large"), labelled("large", true, "keep"), labelled("large", false, "small"),
        ],
        "uploadConditions": ["images-only"], "uploadLogicGate": "and", "branchCondition": "larger-than-100mb",
    });
    let workflow = create(&api, "of old", &definition).await?;
    let run = run_to(
        &api,
        &workflow,
        "plain.jpg",
        &drawn("plain.jpg")?,
        "completed",
    )
    .await?;
    assert_eq!(
        nodes(&run, "completed"),
        ["upload", "large", "small"],
        "{run}"
    );
    let run = run_to(&api, &workflow, "notes.txt", b"no image", "completed").await?;
    assert_eq!(run["gate"], json!(false), "{run}");
    Ok(())
}
