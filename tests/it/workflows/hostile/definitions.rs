//! Wrong or hostile definitions are rejected with the node's name, before anything is stored.

use reqwest::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::{
    support::{
        Failure,
        dice::{Dice, seed},
        http,
        images::svg,
        json::{list, text},
        server::{API_KEY, Api, Server},
    },
    workflows::{chain, create, edge, file, get, labelled, node, rule, run_path, run_to},
};

/// Shapes of JSON that no definition has, as so many mutations of one that is right.
const MUTATIONS: usize = 400;

/// A definition that is right, with everything in it.
fn right() -> Value {
    json!({
        "nodes": [
            node("upload", "upload", json!({})),
            node("wide", "branch", json!({})),
            node("small", "resize", json!({"resizeWidth": 100})),
            node("named", "rename", json!({"pattern": "{original}-{width}"})),
            node("keep", "storage", json!({"folderId": null})),
            node("tell", "webhook", json!({})),
        ],
        "edges": [
            edge("upload", "wide"), labelled("wide", true, "small"), labelled("wide", false, "named"),
            edge("small", "named"), edge("named", "keep"), edge("keep", "tell"),
        ],
        "uploadGate": rule("mime", "starts_with", "image/"),
        "branchConditions": {"wide": rule("width", "gt", 100)},
        "renamePattern": "{original}-{n}",
        "webhookUrl": "https://example.com/hook",
    })
}

/// The right one with `change` made to it.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut definition = right();
    change(&mut definition);
    definition
}

fn push(list: &mut Value, value: Value) {
    if let Value::Array(list) = list {
        list.push(value);
    }
}

fn branch_on(group: Value) -> Value {
    changed(|it| it["branchConditions"]["wide"] = group)
}

/// `depth` groups, each in the one before.
fn nested(depth: usize) -> Value {
    (1..depth).fold(
        rule("width", "gt", 1),
        |inner, _| json!({"logic": "or", "conditions": [], "groups": [inner]}),
    )
}

fn many_nodes(count: usize) -> Value {
    let step = |number| node(&format!("n{number}"), "inspect", json!({}));
    chain((1..count).map(step).collect())
}

/// Returns the mistake, the definition, and the text that the rejection must have.
fn wrong() -> Vec<(&'static str, Value, &'static str)> {
    let regex = |pattern: &str| branch_on(rule("filename", "matches", pattern));
    let kind = |kind: &str| changed(|it| it["nodes"][2]["data"]["kind"] = json!(kind));
    let config = |config: Value| changed(|it| it["nodes"][2]["data"]["config"] = config);
    vec![
        ("no nodes", json!({"nodes": [], "edges": []}), "upload"),
        ("51 nodes", many_nodes(51), "50"),
        ("1 000 nodes", many_nodes(1_000), "50"),
        (
            "no upload",
            changed(|it| it["nodes"][0]["data"]["kind"] = json!("inspect")),
            "upload",
        ),
        ("two uploads", kind("upload"), "upload"),
        (
            "one id twice",
            changed(|it| it["nodes"][2]["id"] = json!("named")),
            "named",
        ),
        (
            "a long id",
            changed(|it| it["nodes"][2]["id"] = json!("x".repeat(101))),
            "100",
        ),
        (
            "no id",
            changed(|it| it["nodes"][2]["id"] = json!("")),
            "id",
        ),
        (
            "a cycle",
            changed(|it| push(&mut it["edges"], edge("tell", "small"))),
            "small",
        ),
        (
            "a step to itself",
            changed(|it| push(&mut it["edges"], edge("tell", "tell"))),
            "tell",
        ),
        (
            "an edge to nowhere",
            changed(|it| push(&mut it["edges"], edge("tell", "gone"))),
            "gone",
        ),
        (
            "an edge from nowhere",
            changed(|it| push(&mut it["edges"], edge("gone", "tell"))),
            "gone",
        ),
        (
            "two ways on",
            changed(|it| push(&mut it["edges"], edge("small", "keep"))),
            "small",
        ),
        (
            "true twice",
            changed(|it| push(&mut it["edges"], labelled("wide", true, "keep"))),
            "wide",
        ),
        (
            "a branch without condition",
            changed(|it| it["branchConditions"] = json!({})),
            "wide",
        ),
        ("no such kind", kind("teleport"), "small"),
        ("a tool of several files", kind("concat_audio"), "small"),
        ("no width", config(json!({})), "small"),
        (
            "a width of nothing",
            config(json!({"resizeWidth": 0})),
            "small",
        ),
        (
            "a width as text",
            config(json!({"resizeWidth": "wide"})),
            "small",
        ),
        (
            "a configuration that is a list",
            config(json!([1, 2])),
            "small",
        ),
        (
            "no such field",
            branch_on(rule("colour", "equals", "red")),
            "wide",
        ),
        (
            "no such operator",
            branch_on(rule("width", "resembles", 3)),
            "wide",
        ),
        (
            "no such logic",
            branch_on(json!({"logic": "xor", "conditions": []})),
            "wide",
        ),
        (
            "a number that is none",
            branch_on(rule("width", "gt", "wide")),
            "wide",
        ),
        ("a broken expression", regex("(unclosed"), "wide"),
        (
            "an expression of 100 kB",
            regex(&"a?".repeat(50_000)),
            "wide",
        ),
        (
            "an expression that grows",
            regex("(?:(?:a{500}){500}){500}"),
            "wide",
        ),
        ("9 groups deep", branch_on(nested(9)), "wide"),
        (
            "a gate 20 groups deep",
            changed(|it| it["uploadGate"] = nested(20)),
            "8",
        ),
        (
            "no such word in a pattern",
            changed(|it| it["nodes"][3]["data"]["config"] = json!({"pattern": "{owner}"})),
            "named",
        ),
        (
            "an address of another kind",
            changed(|it| it["webhookUrl"] = json!("ftp://example.com/")),
            "webhookUrl",
        ),
        (
            "an address of this network",
            changed(|it| it["nodes"][5]["data"]["config"] = json!({"url": "http://10.0.0.1/"})),
            "tell",
        ),
    ]
}

async fn post(api: &Api, path: &str, definition: &Value) -> Result<(StatusCode, Value), Failure> {
    let body = json!({"name": "hostile", "definition": definition});
    api.call(Method::POST, path, Some(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_refused_with_the_nodes_name() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    for (case, definition, names) in wrong() {
        let (status, refused) = post(&api, "/api/workflows", &definition).await?;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{case}: {refused}");
        assert_eq!(refused["code"], "invalid_definition", "{case}: {refused}");
        let error = text(&refused["error"])?;
        assert!(error.contains(names), "{case}: no {names} in {error}");
        assert!(
            error.len() < 1_000,
            "{case}: {} bytes of error",
            error.len()
        );
        let problems = list(&refused["detail"])?;
        assert!(
            problems.iter().any(|it| it["severity"] == "error"),
            "{case}: {refused}"
        );

        // The same is said without saving.
        let (status, linted) = post(&api, "/api/workflows/lint", &definition).await?;
        assert_eq!(
            (status, &linted["valid"]),
            (StatusCode::OK, &json!(false)),
            "{case}: {linted}"
        );
        assert_eq!(linted["problems"], refused["detail"], "{case}");
    }
    assert_eq!(
        get(&api, "/api/workflows").await?["workflows"],
        json!([]),
        "nothing was stored"
    );
    let (status, linted) = post(&api, "/api/workflows/lint", &right()).await?;
    assert_eq!(
        (status, &linted["valid"]),
        (StatusCode::OK, &json!(true)),
        "{linted}"
    );
    let (status, saved) = post(&api, "/api/workflows", &right()).await?;
    assert_eq!(status, StatusCode::CREATED, "{saved}");
    // Eight nested groups are allowed, and fields of the drawing alone are returned unchanged.
    let deep = changed(|it| {
        it["branchConditions"]["wide"] = nested(8);
        it["nodes"][0]["x"] = json!(12);
    });
    let (status, saved) = post(&api, "/api/workflows", &deep).await?;
    assert_eq!(status, StatusCode::CREATED, "{saved}");
    assert_eq!(saved["workflow"]["definition"], deep);
    Ok(())
}

/// Bodies that are too large or too deep to be read, beyond any list of cases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_large_is_refused_unseen() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let body = |definition: &str| format!(r#"{{"name":"hostile","definition":{definition}}}"#);
    let deep = |depth: usize| {
        let open = r#"{"logic":"or","conditions":[],"groups":["#.repeat(depth);
        let gate = format!("{open}{}", "]}".repeat(depth));
        body(&format!(r#"{{"nodes":[],"edges":[],"uploadGate":{gate}}}"#))
    };
    let ten_thousand = many_nodes(10_000).to_string();
    let cases = [
        ("10 000 nodes", body(&ten_thousand), &[400, 413][..]),
        (
            "5 MB",
            body(&format!(r#"{{"nodes":"{}"}}"#, "x".repeat(5_000_000))),
            &[413],
        ),
        ("5 MB of brackets", "[".repeat(5_000_000), &[413]),
        ("half a MB of brackets", "[".repeat(500_000), &[400]),
        ("1 000 groups deep", deep(1_000), &[400]),
        ("10 000 groups deep", deep(10_000), &[400]),
        ("half an object", r#"{"name":"#.into(), &[400]),
        ("no object", "7".into(), &[400]),
        ("nothing", String::new(), &[400]),
        ("no definition", r#"{"name":"x"}"#.into(), &[400]),
        ("a text as definition", body(r#""{}""#), &[400]),
    ];
    for (case, body, statuses) in cases {
        for path in ["/api/workflows", "/api/workflows/lint"] {
            let request = http::client()
                .post(format!("{}{path}", server.base_url()))
                .bearer_auth(API_KEY)
                .header("content-type", "application/json")
                .body(body.clone());
            let answer = request.send().await?;
            let (status, said) = (answer.status().as_u16(), answer.text().await?);
            let is_linted =
                path.ends_with("lint") && status == 200 && said.contains(r#""valid":false"#);
            assert!(
                statuses.contains(&status) || is_linted,
                "{case} to {path}: {status} {said}"
            );
            assert!(
                said.len() < 100_000,
                "{case}: {} bytes of answer",
                said.len()
            );
        }
    }
    // Anyone who sends such things harms no other.
    let workflow = create(
        &api,
        "fine",
        &chain(vec![node("png", "convert", json!({"format": "png"}))]),
    )
    .await?;
    run_to(&api, &workflow, "a.svg", &svg("red"), "completed").await?;
    Ok(())
}

/// An expression that takes other engines longer than the age of the universe takes no time here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_catastrophic_expression_is_harmless() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let name = format!("{}!.svg", "a".repeat(200));
    for pattern in [r"^(a+)+$", r"^(a|aa)*b$", r"^(.*a){20}b$", r"^(\w*)*\d$"] {
        let mut definition = chain(vec![node("png", "convert", json!({"format": "png"}))]);
        definition["uploadGate"] = rule("filename", "matches", pattern);
        let workflow = create(&api, pattern, &definition).await?;
        let run = run_to(&api, &workflow, &name, &svg("red"), "completed").await?;
        assert_eq!(run["gate"], json!(false), "{pattern}");
    }
    Ok(())
}

/// Any value of a right definition put in the place of another, or of any other kind: never a failure of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_shape_of_json_is_a_failure_of_the_service() -> Result<(), Failure> {
    let seed = seed()?;
    eprintln!("SLUICE_TEST_SEED={seed}");
    let mut dice = Dice::new(seed);
    let server = Server::start().await?;
    let api = server.api();
    for _ in 0..MUTATIONS {
        let mut definition = right();
        for _ in 0..=dice.below(3) {
            mutate(&mut definition, &mut dice);
        }
        let (status, answer) = post(&api, "/api/workflows/lint", &definition).await?;
        assert!(
            status == 200 || status == 400,
            "{status} {answer} for {definition}"
        );
        if answer["valid"] == json!(true) && dice.below(10) == 0 {
            let workflow = create(&api, "mutant", &definition).await?;
            let answer = api
                .post_form(&run_path(&workflow), file("a.svg", &svg("red")))
                .await?;
            assert!(answer.status.is_success(), "{answer:?} for {definition}");
        }
    }
    Ok(())
}

/// Changes one value somewhere.
fn mutate(value: &mut Value, dice: &mut Dice) {
    let children = match value {
        Value::Array(list) => list.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    if children == 0 || dice.below(8) == 0 {
        *value = odd(dice);
        return;
    }
    let chosen = dice.below(children as u64) as usize;
    match value {
        Value::Array(list) if dice.below(8) == 0 => list.push(list[chosen].clone()),
        Value::Array(list) if dice.below(8) == 0 => drop(list.remove(chosen)),
        Value::Array(list) => mutate(&mut list[chosen], dice),
        Value::Object(fields) => mutate_field(fields, chosen, dice),
        _ => {}
    }
}

fn mutate_field(fields: &mut Map<String, Value>, chosen: usize, dice: &mut Dice) {
    let Some(name) = fields.keys().nth(chosen).cloned() else {
        return;
    };
    match dice.below(8) {
        0 => drop(fields.remove(&name)),
        _ => mutate(&mut fields[&name], dice),
    }
}

fn odd(dice: &mut Dice) -> Value {
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("upload"),
        json!("\u{0}\u{202e}{original}"),
        json!("x".repeat(10_000)),
        json!([]),
        json!({}),
        json!([[[[]]]]),
        json!({"logic": "and"}),
        json!(["images-only"]),
    ];
    odd[dice.below(odd.len() as u64) as usize].clone()
}
