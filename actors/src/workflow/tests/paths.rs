//! Paths of runs, in their logs and outputs.

use sluice_store::{
    lineage::{self, Derived},
    webhooks::{self, DeliveryFilter},
};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_goes_from_node_to_node_and_keeps_what_came_out() {
    let site = Site::open().await;
    site.workers.busy.store(2, SeqCst);
    let workflow = site.save(photos()).await;
    let run = site.completed(&workflow, "hills.png", "w=200").await;
    let stored = vec![("hills-200.webp".to_owned(), "w=200>png200>webp".to_owned())];
    assert_eq!(site.stored(&run).await, stored);
    assert_eq!(run.output(), None, "what was stored is no download");
    let steps = site.steps(&run).await;
    let log: Vec<_> = steps
        .iter()
        .map(|step| {
            (
                step.node_id.as_str(),
                step.kind.as_str(),
                step.message.as_str(),
            )
        })
        .collect();
    assert_eq!(
        log,
        [
            ("in", "upload", "took in hills.png"),
            ("small", "resize", "made hills.png"),
            ("webp", "convert", "made hills.webp"),
            ("name", "rename", "named it hills-200.webp"),
            ("keep", "storage", "stored hills-200.webp"),
            ("tell", "webhook", "goes out when the run has completed"),
        ]
    );
    for pair in steps.windows(2) {
        assert_eq!(pair[0].bytes_out, pair[1].bytes_in, "{pair:?}");
        assert!(pair[0].finished_at <= pair[1].finished_at);
    }
    assert_eq!(site.used().await, 1);
    assert!(!site.scratch_of(&run).exists(), "scratch goes with the run");
    let events = site.events("workflow.completed").await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["runId"], json!(run.id));
    assert_eq!(events[0]["outputs"][0]["filename"], "hills-200.webp");
    assert_eq!(events[0]["sequence"], 1);
    let mut reader = site.store.read().await.unwrap();
    let (filter, page) = (DeliveryFilter::default(), sluice_store::Page::first(10));
    let sent = webhooks::deliveries(&mut reader, site.account, &filter, page)
        .await
        .unwrap();
    let urls: Vec<_> = sent.iter().map(|sent| sent.endpoint_url.as_str()).collect();
    assert_eq!(urls, ["http://127.0.0.1:9/hook"]);
    let file = steps[4].stored_file_id.unwrap();
    let made = lineage::of(&mut reader, &Derived::file(file))
        .await
        .unwrap();
    assert_eq!(made[0].operation["runId"], json!(run.id));
    assert_eq!(made[0].operation["operations"][1]["tool"], "convert");
    let file = files::get(&mut reader, site.account, file).await.unwrap();
    assert_eq!((file.generation, file.width), (1, Some(200)));
    let counts = site.workflows.counts();
    assert_eq!((counts.completed, counts.turned_away), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_step_stored_is_the_output_of_the_run() {
    let site = Site::open().await;
    let upload_only = flow(&[("in", "upload", json!({}))], "");
    let mut named = flow(
        &[
            ("in", "upload", json!({})),
            ("webp", "convert", json!({"format": "webp"})),
        ],
        "in>webp",
    );
    named["renamePattern"] = json!("{n}! {original} {date}");
    let branch_last = {
        let mut definition = flow(
            &[
                ("in", "upload", json!({})),
                ("webp", "convert", json!({"format": "webp"})),
                ("wide", "branch", json!({})),
                ("tell", "webhook", json!({})),
            ],
            "in>webp webp>wide wide>true>tell",
        );
        definition["branchConditions"] = json!({"wide": {"logic": "and", "conditions": [
            {"field": "extension", "operator": "equals", "value": "webp"}]}});
        definition
    };
    let day = super::super::run::naming::date(now_ms());
    for (definition, name, text, expected) in [
        (upload_only, "a.b.png".to_owned(), "x", 0),
        (named, format!("1 a.b {day}.webp"), "x>webp", 0),
        (branch_last, "a.b.webp".to_owned(), "x>webp", 1),
    ] {
        let before = site.events("workflow.completed").await.len();
        let workflow = site.save(definition).await;
        let run = site.completed(&workflow, "a.b.png", "x").await;
        let output = run.output().unwrap();
        assert_eq!(output.filename, name);
        assert_eq!(site.text_of(&output.blob).await, text);
        let after = site.events("workflow.completed").await.len();
        assert_eq!(after - before, expected, "only a webhook step tells");
    }
    assert_eq!(site.all_files().await, 0);
}

fn gated() -> Value {
    let mut definition = photos();
    definition["uploadGate"] = json!({"logic": "and", "conditions": [
        {"field": "width", "operator": "gte", "value": 500},
        {"field": "upload_source", "operator": "equals", "value": "API"}]});
    definition
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_turns_away_what_does_not_meet_it() {
    let site = Site::open().await;
    let workflow = site.save(gated()).await;
    // A file that cannot be inspected lacks a width.
    for (text, is_met) in [("w=600", true), ("w=400", false), ("no size", false)] {
        let run = site.completed(&workflow, "a.png", text).await;
        assert_eq!(run.gate, Some(is_met), "{text}");
        let steps = site.steps(&run).await;
        assert_eq!(steps.len(), 6);
        if !is_met {
            assert!(steps.iter().all(|step| step.status == StepStatus::Skipped
                && step.message == "the upload does not meet the condition of the workflow"));
            assert_eq!((run.output(), steps[0].started_at), (None, None));
        }
    }
    assert_eq!((site.all_files().await, site.used().await), (1, 3));
    assert_eq!(site.events("workflow.completed").await.len(), 1);
    assert_eq!(site.workflows.counts().turned_away, 2);
}

/// Two branches, one behind the other, that come together again.
fn branches() -> Value {
    let mut definition = flow(
        &[
            ("in", "upload", json!({})),
            ("wide", "branch", json!({})),
            ("shrink", "resize", json!({"resizeWidth": 100})),
            ("jpeg", "branch", json!({})),
            ("webp", "convert", json!({"format": "webp"})),
            ("strip", "strip_metadata", json!({})),
            ("keep", "storage", json!({})),
            ("lost", "storage", json!({})),
        ],
        "in>wide wide>true>shrink shrink>keep wide>false>jpeg jpeg>true>webp jpeg>false>strip webp>keep strip>keep",
    );
    definition["branchConditions"] = json!({
        "wide": {"logic": "or", "conditions": [{"field": "width", "operator": "gt", "value": 300}]},
        "jpeg": {"logic": "or", "conditions": [{"field": "extension", "operator": "equals", "value": "JPG"}]},
    });
    definition
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_names_the_path_taken_and_the_steps_on_the_others() {
    let site = Site::open().await;
    let workflow = site.save(branches()).await;
    let on = |label: &str, branch: &str| {
        format!("on the `{label}` path of `The {branch}`, which was not taken")
    };
    let lost = "no path leads here".to_owned();
    for (name, text, done, left_out) in [
        (
            "a.png",
            "w=400",
            vec!["in", "wide", "shrink", "keep"],
            vec![
                ("jpeg", on("false", "wide")),
                ("webp", on("false", "wide")),
                ("strip", on("false", "wide")),
                ("lost", lost.clone()),
            ],
        ),
        (
            "a.jpg",
            "w=200",
            vec!["in", "wide", "jpeg", "webp", "keep"],
            vec![
                ("shrink", on("true", "wide")),
                ("strip", on("false", "jpeg")),
                ("lost", lost.clone()),
            ],
        ),
        (
            "a.png",
            "w=200",
            vec!["in", "wide", "jpeg", "strip", "keep"],
            vec![
                ("shrink", on("true", "wide")),
                ("webp", on("true", "jpeg")),
                ("lost", lost),
            ],
        ),
    ] {
        let run = site.completed(&workflow, name, text).await;
        assert_eq!(site.nodes(&run, StepStatus::Completed).await, done);
        let steps = site.steps(&run).await;
        let skipped: Vec<_> = steps
            .iter()
            .filter(|step| step.status == StepStatus::Skipped)
            .map(|step| (step.node_id.as_str(), step.message.clone()))
            .collect();
        assert_eq!(skipped, left_out);
        assert_eq!(steps[1].branch, Some(text == "w=400"));
        assert_eq!(site.stored(&run).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inspection_tells_its_facts_and_passes_the_file_on() {
    let site = Site::open().await;
    let definition = flow(
        &[
            ("in", "upload", json!({})),
            ("look", "inspect", json!({})),
            ("name", "rename", json!({"pattern": "{width}x{height}"})),
            ("keep", "storage", json!({})),
        ],
        "in>look look>name name>keep",
    );
    let workflow = site.save(definition).await;
    let run = site.completed(&workflow, "a.png", "w=640").await;
    let steps = site.steps(&run).await;
    assert_eq!(steps[1].facts.as_ref().unwrap()["width"], 640);
    let stored = vec![("640x100.png".to_owned(), "w=640".to_owned())];
    assert_eq!(site.stored(&run).await, stored);
    assert_eq!(
        site.workers.times("inspect"),
        1,
        "the size is known by then"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watermark_takes_its_image_from_a_stored_file() {
    let site = Site::open().await;
    let keep = flow(
        &[("in", "upload", json!({})), ("keep", "storage", json!({}))],
        "in>keep",
    );
    let keep = site.save(keep).await;
    let kept = site.completed(&keep, "logo.png", "logo").await;
    let logo = site.steps(&kept).await[1].stored_file_id.unwrap();
    for (mark, status) in [
        (logo.to_string(), RunStatus::Completed),
        (Uuid::now_v7().to_string(), RunStatus::Failed),
    ] {
        let definition = flow(
            &[
                ("in", "upload", json!({})),
                ("mark", "watermark", json!({"watermarkFile": mark})),
            ],
            "in>mark",
        );
        let workflow = site.save(definition).await;
        let run = site.submit(&workflow, "a.png", "a").await;
        let run = site.end_of(&run).await;
        assert_eq!(run.status, status, "{run:?}");
        if let Some(output) = run.output() {
            assert_eq!(site.text_of(&output.blob).await, "a>png+logo");
        } else {
            assert!(run.error.unwrap().contains("watermarkFile"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_storage_steps_keep_the_buffer_as_it_is_there() {
    let site = Site::open().await;
    let (folder, gone) = (site.new_folder("web").await, Uuid::now_v7());
    let definition = flow(
        &[
            ("in", "upload", json!({})),
            ("raw", "storage", json!({"folderId": gone})),
            ("webp", "convert", json!({"format": "webp"})),
            ("one", "storage", json!({"folderId": folder})),
            ("two", "storage", json!({})),
            ("small", "resize", json!({"resizeWidth": 10})),
        ],
        "in>raw raw>webp webp>one one>two two>small",
    );
    let workflow = site.save(definition).await;
    let run = site.completed(&workflow, "a.png", "a").await;
    let stored = site.stored(&run).await;
    let expected = [("a.png", "a"), ("a.webp", "a>webp"), ("a.webp", "a>webp")];
    assert_eq!(
        stored,
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );
    assert_eq!(run.output(), None);
    assert_eq!(site.events("file.uploaded").await.len(), 3);
    let places: Vec<_> = site.events("file.uploaded").await;
    assert_eq!(places[0]["folderId"], Value::Null, "its folder is gone");
    assert_eq!(places[1]["folderId"], json!(folder));
    let steps = site.steps(&run).await;
    assert_eq!(
        steps[1].message,
        "stored a.png at the top: its folder is gone"
    );
    assert_eq!(steps[3].message, "stored a.webp");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_facts_in_a_log_are_bounded_over_a_crash() {
    let mut site = Site::open().await;
    site.workers.tag_chars.store(100_000, SeqCst);
    let workflow = site
        .save(flow(
            &[
                ("in", "upload", json!({})),
                ("one", "inspect", json!({})),
                ("small", "resize", json!({"resizeWidth": 5})),
                ("two", "inspect", json!({})),
                ("webp", "convert", json!({"format": "webp"})),
                ("three", "inspect", json!({})),
                ("last", "resize", json!({"resizeWidth": 3})),
            ],
            "in>one one>small small>two two>webp webp>three three>last",
        ))
        .await;
    site.workers.hold("webp");
    let run = site.submit(&workflow, "a.png", "w=1").await;
    site.until_journalled(&run, 3).await;
    site.kill_and_start().await;
    site.workers.release();
    let run = site.end_of(&run).await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}");
    let steps = site.steps(&run).await;
    let has_facts: Vec<bool> = [1, 3, 5].map(|at| steps[at].facts.is_some()).into();
    assert_eq!(has_facts, [true, true, false]);
    assert!(
        steps[5].message.contains("left out"),
        "{}",
        steps[5].message
    );
}
