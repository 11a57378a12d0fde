//! Every problem: its code, the node that it names, the field.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{super::*, chain, check, codes, node, valid, with};

fn edges(nodes: &[Value], edges: &[(&str, &str, Value)]) -> Value {
    let edges: Vec<Value> = edges
        .iter()
        .map(|(source, target, kind)| json!({"source": source, "target": target, "kind": kind}))
        .collect();
    json!({"nodes": nodes, "edges": edges})
}

fn upload() -> Value {
    node("up", "upload", json!({}))
}

fn storage(id: &str) -> Value {
    node(id, "storage", json!({}))
}

fn branch() -> Value {
    let condition = json!({"field": "width", "operator": "gt", "value": 1600});
    node("b", "branch", json!({"condition": condition}))
}

fn one(kind: &str, config: Value) -> Value {
    chain(&[node("x", kind, config), storage("keep")])
}

/// A definition, its first problem's code, and the node and field which that names.
fn wrong() -> Vec<(Value, Code, Option<&'static str>, Option<&'static str>)> {
    use Code::*;
    let nul = Value::Null;
    let crowd: Vec<Value> = (0..10_000).map(|at| storage(&format!("n{at}"))).collect();
    let two_ways = [("up", "b", nul.clone()), ("b", "keep", json!(true))];
    let titled = json!([upload(), {"id": "x", "data": {"kind": "storage", "title": 7}}]);
    vec![
        (json!([]), InvalidShape, None, None),
        (json!({"nodes": {}}), InvalidShape, None, Some("nodes")),
        (json!({"nodes": [1]}), InvalidShape, None, Some("nodes")),
        (
            json!({"nodes": [upload()], "edges": 1}),
            InvalidShape,
            None,
            Some("edges"),
        ),
        (
            json!({"nodes": [upload()], "edges": [1]}),
            InvalidShape,
            None,
            Some("edges"),
        ),
        (
            with(chain(&[]), "branchConditions", json!([])),
            InvalidShape,
            None,
            Some("branchConditions"),
        ),
        (json!({}), NoNodes, None, Some("nodes")),
        (chain(&crowd), TooManyNodes, Some("n49"), Some("nodes")),
        (
            edges(&[upload()], &vec![("up", "up", nul.clone()); 10_000]),
            TooManyEdges,
            None,
            Some("edges"),
        ),
        (
            json!({"nodes": [upload(), {"data": {"kind": "storage"}}]}),
            InvalidId,
            Some("nodes[1]"),
            Some("id"),
        ),
        (
            json!({"nodes": [upload(), storage("")]}),
            InvalidId,
            Some("nodes[1]"),
            Some("id"),
        ),
        (
            json!({"nodes": [upload(), storage("a\0b")]}),
            InvalidId,
            Some("a\0b"),
            Some("id"),
        ),
        (
            json!({"nodes": [upload(), storage("x"), storage("x")]}),
            DuplicateId,
            Some("x"),
            Some("id"),
        ),
        (
            json!({"nodes": titled}),
            InvalidTitle,
            Some("x"),
            Some("title"),
        ),
        (
            json!({"nodes": [upload(), {"id": "x"}]}),
            MissingKind,
            Some("x"),
            Some("kind"),
        ),
        (
            one("teleport", json!({})),
            UnknownKind,
            Some("x"),
            Some("kind"),
        ),
        (
            one("concat_audio", json!({})),
            UnknownKind,
            Some("x"),
            Some("kind"),
        ),
        (
            one("gif", json!({"fps": 0})),
            InvalidConfig,
            Some("x"),
            Some("fps"),
        ),
        (
            one("HLS", json!({"profile": "custom"})),
            InvalidConfig,
            Some("x"),
            Some("profile"),
        ),
        (
            one("resize", json!([])),
            InvalidConfig,
            Some("x"),
            Some("config"),
        ),
        (
            one("resize", json!({})),
            InvalidConfig,
            Some("x"),
            Some("resizePreset"),
        ),
        (
            one("convert", json!({})),
            InvalidConfig,
            Some("x"),
            Some("format"),
        ),
        (
            one("convert", json!({"format": "zip"})),
            InvalidConfig,
            Some("x"),
            Some("format"),
        ),
        (
            one("thumbnail", json!({"width": 0})),
            InvalidConfig,
            Some("x"),
            Some("width"),
        ),
        (
            one("watermark", json!({})),
            InvalidConfig,
            Some("x"),
            Some("text"),
        ),
        (
            one("watermark", json!({"watermarkFile": "me.png"})),
            InvalidConfig,
            Some("x"),
            Some("watermarkFile"),
        ),
        (
            one("storage", json!({"folderId": "photos"})),
            InvalidConfig,
            Some("x"),
            Some("folderId"),
        ),
        (
            one("storage", json!({"folderId": 7})),
            InvalidConfig,
            Some("x"),
            Some("folderId"),
        ),
        (
            one("rename", json!({"pattern": "{original}{x}"})),
            InvalidPattern,
            Some("x"),
            Some("pattern"),
        ),
        (
            one("rename", json!({"pattern": {}})),
            InvalidPattern,
            Some("x"),
            Some("pattern"),
        ),
        (
            with(chain(&[]), "renamePattern", json!("{")),
            InvalidPattern,
            None,
            Some("renamePattern"),
        ),
        (
            one("webhook", json!({"url": "ftp://host/"})),
            InvalidUrl,
            Some("x"),
            Some("url"),
        ),
        (
            with(chain(&[]), "webhookUrl", json!("https://me:secret@host/")),
            InvalidUrl,
            None,
            Some("webhookUrl"),
        ),
        (
            with(chain(&[]), "trigger", json!({"folderId": "x"})),
            InvalidTrigger,
            None,
            Some("trigger"),
        ),
        (
            with(chain(&[]), "trigger", json!("x")),
            InvalidTrigger,
            None,
            Some("trigger"),
        ),
        (
            json!({"nodes": [storage("x")]}),
            NoUpload,
            None,
            Some("nodes"),
        ),
        (
            json!({"nodes": [upload(), node("x", "upload", json!({}))]}),
            SeveralUploads,
            Some("x"),
            Some("kind"),
        ),
        (
            edges(&[upload()], &[("up", "x", nul.clone())]),
            DanglingEdge,
            Some("up"),
            Some("edges"),
        ),
        (
            edges(&[upload()], &[("x", "up", nul.clone())]),
            DanglingEdge,
            Some("up"),
            Some("edges"),
        ),
        (
            edges(&[upload()], &[("x", "y", nul.clone())]),
            DanglingEdge,
            Some("x"),
            Some("edges"),
        ),
        (
            edges(&[upload(), branch()], &[("b", "up", json!("maybe"))]),
            UnknownLabel,
            Some("b"),
            Some("edges"),
        ),
        (
            edges(
                &[upload(), storage("x"), storage("y")],
                &[("up", "x", nul.clone()), ("up", "y", nul.clone())],
            ),
            SeveralEdges,
            Some("up"),
            Some("edges"),
        ),
        (
            edges(
                &[upload(), branch(), storage("keep")],
                &[&two_ways[..], &two_ways[1..]].concat(),
            ),
            SeveralEdges,
            Some("b"),
            Some("edges"),
        ),
        (
            edges(&[upload()], &[("up", "up", nul.clone())]),
            Cycle,
            Some("up"),
            Some("edges"),
        ),
        (
            chain(&[node("x", "branch", json!({}))]),
            MissingCondition,
            Some("x"),
            Some("branchConditions"),
        ),
    ]
}

#[test]
fn each_mistake_has_its_code_and_names_its_node() {
    for (definition, code, node_id, field) in wrong() {
        let shown: String = definition.to_string().chars().take(300).collect();
        let checked = check(&definition);
        assert!(checked.definition.is_none(), "{shown} is accepted");
        let error = checked.error().expect("no definition without an error");
        let found = (error.code, error.node_id.as_deref(), error.field.as_deref());
        assert_eq!(found, (code, node_id, field), "{shown}: {}", error.message);
        if let Some(id) = node_id {
            assert!(
                error.message.contains(&format!("`{id}`")),
                "{}",
                error.message
            );
        }
        let sentence = error.message.trim();
        assert!(
            !sentence.is_empty() && !sentence.ends_with('.'),
            "{sentence}"
        );
    }
}

#[test]
fn every_error_is_met_in_some_test() {
    let elsewhere = [
        Code::InvalidCondition,
        Code::GroupTooDeep,
        Code::TooManyConditions,
        Code::UnknownLogic,
        Code::UnknownField,
        Code::UnknownOperator,
        Code::MissingValue,
        Code::InvalidValue,
        Code::InvalidExpression,
        Code::UnknownLegacyCondition,
        Code::InvalidShortForm,
    ];
    let met: HashSet<Code> = wrong()
        .into_iter()
        .map(|(_, code, ..)| code)
        .chain(elsewhere)
        .collect();
    for code in Code::ALL
        .iter()
        .filter(|code| code.severity() == Severity::Error)
    {
        assert!(met.contains(code), "{code:?}");
    }
    let names: HashSet<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(names.len(), Code::ALL.len());
}

#[test]
fn warnings_name_their_node_and_leave_a_definition() {
    use Code::*;
    let nul = Value::Null;
    let labelled = |label: &str| ("b", "keep", json!(label));
    let to_branch = ("up", "b", nul.clone());
    let branching = |ways: &[(&str, &str, Value)]| {
        let all = [std::slice::from_ref(&to_branch), ways].concat();
        edges(&[upload(), branch(), storage("keep")], &all)
    };
    let posting = chain(&[node("post", "webhook", json!({}))]);
    for (definition, code, node_id) in [
        (
            json!({"nodes": [upload(), storage("far")]}),
            UnreachableNode,
            Some("far"),
        ),
        (chain(&[node("x", "inspect", json!({}))]), NoDelivery, None),
        (
            with(chain(&[storage("x")]), "webhookUrl", json!("http://host")),
            UnusedWebhookUrl,
            None,
        ),
        (posting.clone(), WebhookWithoutUrl, Some("post")),
        (
            edges(&[upload(), storage("x")], &[("up", "x", json!(true))]),
            IgnoredLabel,
            Some("up"),
        ),
        (branching(&[labelled("true")]), MissingBranchEdge, Some("b")),
        (
            branching(&[labelled("False")]),
            MissingBranchEdge,
            Some("b"),
        ),
        (
            branching(&[("b", "keep", nul.clone())]),
            UnlabelledBranchEdge,
            Some("b"),
        ),
        (
            with(chain(&[storage("x")]), "branchConditions", json!({"x": 7})),
            UnusedCondition,
            Some("x"),
        ),
        (
            one("strip_metadata", json!({"quality": 3})),
            UnusedConfig,
            Some("x"),
        ),
        (
            one("resize", json!({"resize-width": 1, "resizeWidth": 2})),
            UnusedConfig,
            Some("x"),
        ),
    ] {
        let checked = check(&definition);
        assert_eq!(codes(&checked), [code], "{definition}");
        assert_eq!(
            checked.problems[0].node_id.as_deref(),
            node_id,
            "{definition}"
        );
        assert_eq!(checked.problems[0].severity, Severity::Warning);
        assert!(checked.definition.is_some(), "{definition}");
    }
    for valid in [
        branching(&[labelled("true"), labelled("false")]),
        with(posting, "webhookUrl", json!("https://host/hook?x=1")),
        one("resize", json!({"resize_width": 100})),
    ] {
        assert_eq!(codes(&check(&valid)), [], "{valid}");
    }
}

#[test]
fn nodes_are_read_in_all_their_spellings() {
    let cat = "0192d3c0-5d1f-7000-8000-000000000001";
    let definition = json!({
        "nodes": [
            {"id": 1, "type": "upload", "x": 10, "y": 20},
            {"id": "s", "data": {"kind": "Strip-Metadata", "label": " Clean "}},
            {"id": "w", "kind": "watermark", "config": {"watermark_file": cat, "opacity": "0.5"}},
            {"id": "c", "data": {"kind": "convert", "config": {"outputFormat": "webp"}}},
            {"id": "t", "data": {"kind": "thumbnail", "config": {"output_format": "PNG"}}},
            {"id": "k", "data": {"kind": "storage", "config": {"folder_id": cat}}},
            {"id": "h", "data": {"kind": "webhook", "config": {"url": ""}}},
        ],
        "edges": [
            {"source": 1, "target": "s"}, {"source": "s", "target": "w", "sourceHandle": "out"},
            {"source": "w", "target": "c", "kind": ""}, {"source": "c", "target": "t", "kind": "DEFAULT"},
            {"source": "t", "target": "k"}, {"source": "k", "target": "h"},
        ],
        "webhook_url": "HTTPS://host.example/",
        "trigger": {"folder_id": cat},
        "rename_pattern": "{original}",
        "somethingElse": {"kept": true},
    });
    let definition = valid(&definition);
    let kinds: Vec<&str> = definition
        .nodes
        .iter()
        .map(|node| node.kind.name())
        .collect();
    assert_eq!(
        kinds,
        [
            "upload",
            "strip_metadata",
            "watermark",
            "convert",
            "thumbnail",
            "storage",
            "webhook"
        ]
    );
    let titles: Vec<&str> = definition
        .nodes
        .iter()
        .map(|node| node.title.as_str())
        .collect();
    assert_eq!(titles[..3], ["Upload", "Clean", "Watermark"]);
    assert_eq!(
        definition
            .node("w")
            .map(|node| &node.config["watermark_file"]),
        Some(&json!(cat))
    );
    assert_eq!(
        definition
            .trigger_folder
            .map(|id| id.to_string())
            .as_deref(),
        Some(cat)
    );
    let Kind::Operation(thumbnail) = &definition.node("t").expect("thumbnail").kind else {
        panic!("no operation")
    };
    assert_eq!(
        thumbnail.output_format(crate::format::Format::Jpg),
        Some(crate::format::Format::Png)
    );
}

#[test]
fn a_rename_node_has_its_own_pattern_or_the_definitions_or_the_default() {
    let pattern =
        |definition: &Value| match valid(definition).node("x").map(|node| node.kind.clone()) {
            Some(Kind::Rename(pattern)) => pattern,
            other => panic!("{other:?}"),
        };
    let parsed = |text: &str| Pattern::parse(text).expect("a pattern");
    assert_eq!(
        pattern(&one("rename", json!({}))),
        parsed("{original}-{format}")
    );
    let general = with(one("rename", json!({})), "renamePattern", json!("{n}"));
    assert_eq!(pattern(&general), parsed("{n}"));
    let own = with(
        one("rename", json!({"pattern": "a"})),
        "renamePattern",
        json!("{n}"),
    );
    assert_eq!(pattern(&own), parsed("a"));
}

#[test]
fn every_operation_that_can_be_a_node_is_a_kind_and_no_later_kind_is() {
    let kinds: Vec<KindInfo> = kinds().collect();
    let names: HashSet<&str> = kinds.iter().map(|info| info.kind).collect();
    assert_eq!(names.len(), kinds.len());
    for row in crate::operation::TABLE {
        let Some(name) = row.node else { continue };
        let info = kinds.iter().find(|info| info.kind == name).expect("a kind");
        assert_eq!(info.fields.len(), row.fields.len(), "{name}");
        for (info, field) in info.fields.iter().zip(row.fields) {
            assert_eq!(info.name, field.name);
            assert_eq!(
                info.default.is_some(),
                field.default.is_some(),
                "{name} {}",
                info.name
            );
            assert!(!info.default.as_ref().is_some_and(Value::is_null));
        }
    }
    let thumbnail = kinds
        .iter()
        .find(|info| info.kind == "thumbnail")
        .expect("a kind");
    let value = serde_json::to_value(thumbnail).expect("plain data");
    assert_eq!(value["fields"][0]["type"], "integer");
    assert_eq!(value["fields"][0]["default"], 512);
    assert_eq!(
        value["fields"][2]["values"],
        json!(["cover", "contain", "inside"])
    );
}

#[test]
fn a_cycle_is_reported_by_its_nodes_alone() {
    let nul = Value::Null;
    let nodes = [
        upload(),
        storage("x"),
        storage("y"),
        storage("z"),
        storage("behind"),
        branch(),
    ];
    let ways = [
        ("up", "x", nul.clone()),
        ("x", "y", nul.clone()),
        ("y", "b", nul.clone()),
        ("b", "z", json!(true)),
        ("b", "behind", json!(false)),
        ("z", "x", nul),
    ];
    let checked = check(&edges(&nodes, &ways));
    let message = &checked.error().expect("a cycle").message;
    for id in ["`x`", "`y`", "`z`", "`b`"] {
        assert!(message.contains(id), "{message}");
    }
    assert!(
        !message.contains("behind") && !message.contains("`up`"),
        "{message}"
    );
}

#[test]
fn problems_are_reported_as_json() {
    let checked = check(&one("teleport", json!({})));
    let value = serde_json::to_value(&checked.problems[0]).expect("plain data");
    assert_eq!(value["severity"], "error");
    assert_eq!(value["nodeId"], "x");
    assert_eq!(value["code"], "unknown_kind");
    let checked = check(&json!({}));
    let value = serde_json::to_value(&checked.problems[0]).expect("plain data");
    assert_eq!(value["nodeId"], Value::Null);
}
