//! Dry runs: certain and possible paths, facts that steps change, charged operations, expected files.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    super::{Certainty, DryRun, Facts, Field, Premise, dry_run},
    node, valid, with,
};

/// A photograph of 4032 × 3024.
fn photo() -> Premise {
    Premise {
        facts: Facts {
            mime: Some("image/jpeg".into()),
            size_bytes: Some(3_100_000),
            width: Some(4032),
            height: Some(3024),
            upload_source: Some("api".into()),
            ..Facts::named("beach.jpeg")
        },
        unknown: BTreeSet::new(),
        date: "2026-11-21".into(),
        clean: str::to_owned,
    }
}

fn without(fields: &[Field]) -> Premise {
    Premise {
        unknown: fields.iter().copied().collect(),
        ..photo()
    }
}

fn wider_than(pixels: u32) -> Value {
    json!({"conditions": [{"field": "width", "operator": "gt", "value": pixels}]})
}

/// A definition of these nodes; edges are `a>b` or `a>true>b`.
fn flow(nodes: &[(&str, &str, Value)], edges: &str) -> Value {
    let nodes: Vec<Value> = nodes
        .iter()
        .map(|(id, kind, config)| node(id, kind, config.clone()))
        .collect();
    let edges: Vec<Value> = edges
        .split_whitespace()
        .map(|edge| match edge.split('>').collect::<Vec<_>>()[..] {
            [source, target] => json!({"source": source, "target": target}),
            [source, kind, target] => json!({"source": source, "target": target, "kind": kind}),
            _ => panic!("{edge}"),
        })
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

/// The example of the reference, without its webhook.
fn photos() -> Value {
    flow(
        &[
            ("up", "upload", json!({})),
            ("wide", "branch", json!({"condition": wider_than(1600)})),
            ("large", "resize", json!({"resizeWidth": 1600})),
            ("webp", "convert", json!({"format": "webp"})),
            ("keep", "storage", json!({})),
        ],
        "up>wide wide>true>large wide>false>webp large>webp webp>keep",
    )
}

fn run(definition: &Value, premise: &Premise) -> DryRun {
    dry_run(&valid(definition), premise)
}

/// The path as `id:state`, with `?`, `+` or `-` behind branches and `!` behind steps that fail.
fn shown(run: &DryRun) -> String {
    let steps: Vec<String> = run
        .path
        .iter()
        .map(|step| {
            let branch = match step.branch {
                None => "",
                Some(None) => "?",
                Some(Some(true)) => "+",
                Some(Some(false)) => "-",
            };
            let failure = if step.fails { "!" } else { "" };
            format!("{}{branch}{failure}:{}", step.node_id, step.state.name())
        })
        .collect();
    steps.join(" ")
}

fn because<'r>(run: &'r DryRun, id: &str) -> &'r str {
    let step = run.path.iter().find(|step| step.node_id == id);
    &step.expect("every node is in the path").because
}

#[test]
fn a_branch_on_known_facts_is_decided_and_the_other_path_is_named() {
    let wide = run(&photos(), &photo());
    assert_eq!(
        shown(&wide),
        "up:taken wide+:taken large:taken webp:taken keep:taken"
    );
    assert_eq!(
        because(&wide, "wide"),
        "takes the `true` path: width is 4032"
    );
    assert_eq!(because(&wide, "keep"), "stores beach.webp");
    let small = Premise {
        facts: Facts {
            width: Some(800),
            ..photo().facts
        },
        ..photo()
    };
    let narrow = run(&photos(), &small);
    assert_eq!(
        shown(&narrow),
        "up:taken wide-:taken webp:taken keep:taken large:notTaken"
    );
    assert_eq!(
        because(&narrow, "large"),
        "on the `true` path of `Branch`, which is not taken"
    );
}

#[test]
fn what_lies_behind_an_unknown_branch_on_both_paths_is_certain() {
    let run = run(&photos(), &without(&[Field::Width]));
    assert_eq!(
        shown(&run),
        "up:taken wide?:taken large:unknown webp:taken keep:taken"
    );
    assert_eq!(
        because(&run, "wide"),
        "takes one of its paths: width is not known"
    );
    assert_eq!(
        because(&run, "large"),
        "only on the `true` path of `Branch`"
    );
    assert_eq!((run.operations.charged, run.operations.unknown), (1, 0));
    assert_eq!(run.files.len(), 1);
    assert_eq!(run.files[0].facts.filename.as_deref(), Some("beach.webp"));
    assert_eq!(run.files[0].facts.size_bytes, None);
    assert_eq!(run.files[0].state, Certainty::Taken);
}

#[test]
fn facts_that_a_step_changes_are_unknown_behind_it() {
    let behind = |nodes: &[(&str, &str, Value)], condition: Value| {
        let mut all = vec![("up", "upload", json!({}))];
        all.extend_from_slice(nodes);
        all.push(("if", "branch", json!({"condition": condition})));
        all.push(("yes", "storage", json!({})));
        let ids: Vec<&str> = all.iter().map(|(id, ..)| *id).collect();
        let mut edges: Vec<String> = ids[..ids.len() - 1]
            .windows(2)
            .map(|pair| format!("{}>{}", pair[0], pair[1]))
            .collect();
        edges.push("if>true>yes".into());
        let run = run(&flow(&all, &edges.join(" ")), &photo());
        let step = run.path.iter().find(|step| step.node_id == "if");
        let step = step.expect("it is in the path").clone();
        (step.branch.expect("it is a branch"), step.because)
    };
    let webp = ("webp", "convert", json!({"format": "webp"}));
    let is = |field: &str, value: Value| json!({"conditions": [{"field": field, "operator": "equals", "value": value}]});
    let (result, reason) = behind(std::slice::from_ref(&webp), wider_than(1600));
    assert_eq!(result, None);
    assert!(
        reason.ends_with("width is known only after `Convert`"),
        "{reason}"
    );
    for (condition, expected) in [
        (is("mime", json!("image/webp")), Some(true)),
        (is("extension", json!("jpeg")), Some(false)),
        (is("filename", json!("beach.webp")), Some(true)),
        (is("upload_source", json!("api")), Some(true)),
        (is("size_bytes", json!(3_100_000)), None),
        // One part decides, whatever the other one is.
        (
            json!({"logic": "or", "conditions": [
            {"field": "size_bytes", "operator": "gt", "value": 1},
            {"field": "extension", "operator": "equals", "value": "webp"}]}),
            Some(true),
        ),
        (
            json!({"logic": "and", "negate": true, "conditions": [
            {"field": "size_bytes", "operator": "gt", "value": 1},
            {"field": "extension", "operator": "equals", "value": "png"}]}),
            Some(true),
        ),
        (
            json!({"logic": "and", "conditions": [
            {"field": "size_bytes", "operator": "gt", "value": 1},
            {"field": "extension", "operator": "equals", "value": "webp"}]}),
            None,
        ),
    ] {
        assert_eq!(
            behind(std::slice::from_ref(&webp), condition.clone()).0,
            expected,
            "{condition}"
        );
    }
    let named = |pattern: &str| [("name", "rename", json!({"pattern": pattern}))];
    for (pattern, condition, expected) in [
        (
            "{original} {date}",
            is("filename", json!("beach 2026-11-21.jpeg")),
            Some(true),
        ),
        (
            "{original}-{width}",
            is("filename", json!("beach-4032.jpeg")),
            Some(true),
        ),
        (
            "{original}-{n}",
            is("filename", json!("beach-1.jpeg")),
            None,
        ),
        ("{original}-{n}", is("extension", json!("jpeg")), Some(true)),
    ] {
        assert_eq!(behind(&named(pattern), condition).0, expected, "{pattern}");
    }
}

#[test]
fn a_gate_lets_through_turns_away_or_leaves_all_open() {
    let gated = with(photos(), "uploadGate", wider_than(5000));
    let turned_away = run(&gated, &photo());
    assert_eq!(turned_away.gate, Some(Some(false)));
    assert!(
        turned_away
            .path
            .iter()
            .all(|step| step.state == Certainty::NotTaken)
    );
    assert_eq!(
        because(&turned_away, "up"),
        "the upload does not meet the condition of the workflow: width is 4032"
    );
    assert_eq!(turned_away.operations.charged, 1);
    assert_eq!(turned_away.files, []);
    let open = run(&gated, &without(&[Field::Width]));
    assert_eq!(open.gate, Some(None));
    assert!(
        open.path
            .iter()
            .all(|step| step.state == Certainty::Unknown)
    );
    assert_eq!(open.operations.charged, 1);
    assert_eq!(run(&photos(), &photo()).gate, None);
}

#[test]
fn a_step_that_cannot_be_done_on_such_a_file_fails_and_what_follows_is_not_reached() {
    let definition = flow(
        &[
            ("up", "upload", json!({})),
            ("first", "hls", json!({})),
            ("keep", "storage", json!({})),
        ],
        "up>first first>keep",
    );
    let failed = run(&definition, &photo());
    assert_eq!(shown(&failed), "up:taken first!:taken keep:notTaken");
    assert_eq!(because(&failed, "keep"), "not reached, because `Hls` fails");
    assert_eq!(
        (failed.operations.charged, failed.operations.unknown),
        (0, 0)
    );
    assert_eq!(failed.files, []);
    let video = Premise {
        facts: Facts {
            mime: Some("video/mp4".into()),
            ..Facts::named("clip.mp4")
        },
        ..photo()
    };
    let streamed = run(&definition, &video);
    assert_eq!(shown(&streamed), "up:taken first:taken keep:taken");
    assert_eq!(
        streamed.operations.charged, 2,
        "a stream costs one of its own"
    );
    let text = Premise {
        facts: Facts {
            mime: Some("text/plain".into()),
            ..Facts::named("notes.txt")
        },
        ..photo()
    };
    let unreadable = run(&photos(), &text);
    assert_eq!(
        shown(&unreadable),
        "up:taken wide-:taken webp!:taken large:notTaken keep:notTaken",
        "a text has no width"
    );
}

#[test]
fn a_run_that_stores_nothing_leaves_its_last_buffer() {
    let definition = flow(
        &[
            ("up", "upload", json!({})),
            ("wide", "branch", json!({"condition": wider_than(1600)})),
            ("keep", "storage", json!({})),
            ("png", "convert", json!({"format": "png"})),
        ],
        "up>wide wide>true>keep wide>false>png",
    );
    let sure = run(&definition, &photo());
    assert_eq!(sure.files.len(), 1);
    assert_eq!(sure.files[0].node_id.as_deref(), Some("keep"));
    assert_eq!(sure.files[0].facts.width, Some(4032));
    let open = run(&definition, &without(&[Field::Width]));
    let files: Vec<_> = open
        .files
        .iter()
        .map(|file| {
            (
                file.node_id.as_deref(),
                file.facts.filename.as_deref(),
                file.state,
            )
        })
        .collect();
    assert_eq!(
        files,
        [
            (Some("keep"), Some("beach.jpeg"), Certainty::Unknown),
            (None, Some("beach.png"), Certainty::Unknown),
        ]
    );
}
