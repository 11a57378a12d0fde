//! Workflows (`/api/workflows`): save, lint, pause, delete.

use serde_json::{Value, json};
use sluice_store::api_keys::Scope;

use super::{PNG, Site, UNKNOWN_ID, chain, id, path, storing};

#[actix_web::test]
async fn a_workflow_is_answered_as_it_was_saved() {
    let site = Site::open().await;
    let mut definition = storing();
    definition["nodes"][1]["position"] = json!({"x": 1.5, "y": -2});
    definition["viewport"] = json!(null);
    let made = site
        .save(json!({"name": " Photos ", "definition": definition}))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json()["workflow"].clone();
    assert!(
        made["webhookSecret"]
            .as_str()
            .unwrap()
            .starts_with("whsec_"),
        "{made}"
    );
    let shown = site.call("GET", &path(&made), None).await.json()["workflow"].clone();
    for (field, expected) in [
        ("name", json!("Photos")),
        ("isActive", json!(true)),
        ("version", json!(1)),
        ("definition", definition),
        ("template", Value::Null),
        ("outputFormat", Value::Null),
        ("compressionMode", Value::Null),
        ("webhookSecret", Value::Null),
        ("runCount", json!(0)),
        ("lastRunAt", Value::Null),
        ("createdAt", made["createdAt"].clone()),
        ("updatedAt", made["createdAt"].clone()),
    ] {
        assert_eq!(shown.get(field), Some(&expected), "{field}");
    }
    let second = site.workflow(storing()).await;
    let listed = site.call("GET", "/api/workflows", None).await.json();
    let ids: Vec<String> = listed["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(id)
        .collect();
    assert_eq!(ids, [id(&second), id(&shown)]);
    assert_eq!(listed["workflows"][1], shown);
    let page = site
        .call("GET", "/api/workflows?limit=1", None)
        .await
        .json();
    let rest = format!(
        "/api/workflows?cursor={}",
        page["nextCursor"].as_str().unwrap()
    );
    let rest = site.call("GET", &rest, None).await.json();
    assert_eq!(rest["workflows"], json!([shown]));
}

#[actix_web::test]
async fn a_workflow_is_its_owners() {
    let site = Site::open().await;
    let workflow = site.workflow(storing()).await;
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    let (one, replace) = (path(&workflow), json!({"id": id(&workflow), "name": "x"}));
    let cases = [
        ("GET", one.clone(), None, 200, 404),
        (
            "PATCH",
            one.clone(),
            Some(json!({"isActive": false})),
            403,
            404,
        ),
        ("DELETE", one.clone(), None, 403, 404),
        ("POST", "/api/workflows".to_owned(), Some(replace), 403, 404),
        ("POST", format!("{one}/rotate-secret"), None, 403, 404),
        (
            "POST",
            format!("{one}/run-file"),
            Some(json!({"fileId": UNKNOWN_ID})),
            403,
            404,
        ),
        ("GET", format!("{one}/run"), None, 200, 404),
        ("GET", format!("{one}/versions"), None, 200, 404),
        ("GET", format!("{one}/versions/1"), None, 200, 404),
        ("GET", format!("{one}/versions/2"), None, 404, 404),
        (
            "GET",
            format!("/api/workflows/{UNKNOWN_ID}"),
            None,
            404,
            404,
        ),
        ("GET", "/api/workflows/lint".to_owned(), None, 405, 405),
        (
            "POST",
            "/api/workflows/lint".to_owned(),
            Some(storing()),
            200,
            200,
        ),
    ];
    for (method, path, body, to_reader, to_stranger) in cases {
        for (key, status) in [(&reader, to_reader), (&stranger, to_stranger)] {
            let answer = site.call_as(key, method, &path, body.clone()).await;
            assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        }
    }
    let theirs = site.call_as(&stranger, "GET", "/api/workflows", None).await;
    assert_eq!(theirs.json()["workflows"], json!([]));
}

/// Each comes with its whole definition.
#[actix_web::test]
async fn a_list_that_names_no_limit_has_fifty_workflows() {
    let site = Site::open().await;
    let mut made = Vec::new();
    for _ in 0..51 {
        made.push(id(&site.workflow(storing()).await));
    }
    made.reverse();
    let mut address = "/api/workflows".to_owned();
    for (expected, has_more) in [(&made[..50], true), (&made[50..], false)] {
        let page = site.call("GET", &address, None).await.json();
        let listed = page["workflows"].as_array().unwrap().iter().map(id);
        assert_eq!(listed.collect::<Vec<_>>(), expected);
        let cursor = page["nextCursor"].as_str();
        assert_eq!(cursor.is_some(), has_more);
        address = format!("/api/workflows?cursor={}", cursor.unwrap_or_default());
    }
}

#[actix_web::test]
async fn each_save_makes_a_version_and_crossing_ones_are_reported() {
    let site = Site::open().await;
    let first = site.workflow(storing()).await;
    let id = id(&first);
    let renaming = chain(&[("name", "rename", json!({"pattern": "{original}-{n}"}))]);
    let cases = [
        (
            json!({"id": id, "definition": renaming, "version": 1}),
            200,
            json!(2),
        ),
        (
            json!({"id": id, "definition": storing(), "version": 1}),
            409,
            json!(2),
        ),
        (
            json!({"id": id, "definition": storing(), "version": 3}),
            409,
            json!(2),
        ),
        (
            json!({"id": id, "name": "Other", "version": 2}),
            200,
            json!(3),
        ),
        // Without a version the last save wins.
        (
            json!({"id": id, "definition": storing(), "is_active": false}),
            200,
            json!(4),
        ),
        (
            json!({"id": UNKNOWN_ID, "definition": storing()}),
            404,
            Value::Null,
        ),
        (
            json!({"id": "x", "definition": storing()}),
            400,
            Value::Null,
        ),
    ];
    for (body, status, version) in cases {
        let answer = site.save(body.clone()).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        let answer = answer.json();
        let version_shown = match status {
            200 => &answer["workflow"]["version"],
            _ => &answer["version"],
        };
        assert_eq!(*version_shown, version, "{body}");
        if status == 409 {
            assert!(
                answer["error"].as_str().unwrap().contains("version is 2"),
                "{answer}"
            );
        }
    }
    let now = site.call("GET", &path(&first), None).await.json()["workflow"].clone();
    assert_eq!(
        (&now["name"], &now["isActive"], &now["definition"]),
        (&json!("Other"), &json!(false), &storing())
    );
    let versions = site
        .call("GET", &format!("{}/versions", path(&first)), None)
        .await
        .json();
    let numbers: Vec<i64> = versions["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_i64().unwrap())
        .collect();
    assert_eq!(numbers, [4, 3, 2, 1]);
    let second = site
        .call("GET", &format!("{}/versions/2", path(&first)), None)
        .await
        .json();
    assert_eq!(
        second["version"],
        json!({"version": 2, "definition": renaming})
    );
    // What was read may be sent back whole.
    let mut whole = now.clone();
    whole["name"] = json!("Third");
    let saved = site.save(whole).await;
    assert_eq!(
        (saved.status, &saved.json()["workflow"]["version"]),
        (200, &json!(5))
    );
}

/// Returns the answer to the save of a definition that cannot be saved.
async fn rejection(site: &Site, definition: &Value) -> Value {
    let answer = site
        .save(json!({"name": "x", "definition": definition}))
        .await;
    assert_eq!(answer.status, 400, "{definition}: {answer:?}");
    answer.json()
}

#[actix_web::test]
async fn what_the_account_does_not_have_is_named_with_its_node() {
    let site = Site::open().await;
    let text = id(&site.stored("notes.txt", b"no image").await);
    let logo = id(&site.stored("logo.png", PNG).await);
    let stranger = site.stranger().await;
    let theirs = site
        .call_as(
            &stranger,
            "POST",
            "/api/folders",
            Some(json!({"name": "x"})),
        )
        .await
        .json();
    let folder = id(&theirs["folder"]);
    let hook = |url: &str| chain(&[("post", "webhook", json!({"url": url}))]);
    let mark = |file: &str| chain(&[("mark", "watermark", json!({"watermarkFile": file}))]);
    let with = |mut definition: Value, field: &str, value: Value| {
        definition[field] = value;
        definition
    };
    let cases = [
        (
            chain(&[("keep", "storage", json!({"folderId": folder}))]),
            json!("keep"),
            "unknown_folder",
            folder.as_str(),
        ),
        (
            with(storing(), "trigger", json!({"folderId": UNKNOWN_ID})),
            Value::Null,
            "unknown_folder",
            UNKNOWN_ID,
        ),
        (mark(UNKNOWN_ID), json!("mark"), "unknown_file", UNKNOWN_ID),
        (
            chain(&[("mark", "watermark", json!({"watermark_file": UNKNOWN_ID}))]),
            json!("mark"),
            "unknown_file",
            UNKNOWN_ID,
        ),
        (mark(&text), json!("mark"), "unknown_file", "text/plain"),
        (
            hook("http://127.0.0.1:9/"),
            json!("post"),
            "refused_url",
            "outbound.allow",
        ),
        (
            hook("http://[::1]/"),
            json!("post"),
            "refused_url",
            "outbound.allow",
        ),
        (
            with(
                chain(&[("post", "webhook", json!({}))]),
                "webhookUrl",
                json!("http://10.1.2.3/"),
            ),
            Value::Null,
            "refused_url",
            "10.1.2.3",
        ),
    ];
    for (definition, node, code, said) in cases {
        let rejected = rejection(&site, &definition).await;
        assert_eq!(rejected["code"], "invalid_definition", "{rejected}");
        let problem = &rejected["detail"][0];
        assert_eq!(
            (&problem["severity"], &problem["nodeId"], &problem["code"]),
            (&json!("error"), &node, &json!(code)),
            "{rejected}"
        );
        let error = rejected["error"].as_str().unwrap();
        assert_eq!(problem["message"], error);
        assert!(error.contains(said), "{error}");
        if let Some(node) = node.as_str() {
            assert!(error.contains(node), "{error}");
        }
    }
    let audio = [
        mark(&logo),
        hook("https://93.184.215.14/hook"),
        hook("https://unheard-of.invalid/"),
    ];
    for definition in audio {
        site.workflow(definition).await;
    }
}

#[actix_web::test]
async fn hostile_definitions_are_rejected_with_a_word() {
    let site = Site::open_with(|config| {
        config.workflows.max_definition = bytesize::ByteSize::kib(4);
    })
    .await;
    let many: Vec<Value> = (0..10_000)
        .map(|n| json!({"id": n.to_string(), "data": {"kind": "resize"}}))
        .collect();
    let mut nested = json!({"field": "mime", "operator": "equals", "value": "x"});
    for _ in 0..60 {
        nested = json!({"logic": "and", "conditions": [], "groups": [nested]});
    }
    let circle = json!({
        "nodes": [
            {"id": "up", "data": {"kind": "upload"}}, {"id": "a", "data": {"kind": "compress"}},
            {"id": "b", "data": {"kind": "compress"}},
        ],
        "edges": [{"source": "up", "target": "a"}, {"source": "a", "target": "b"}, {"source": "b", "target": "a"}],
    });
    let mut deep = storing();
    deep["uploadGate"] = nested;
    let mut large = storing();
    large["note"] = json!("x".repeat(5_000));
    let save = |definition: Value| json!({"name": "x", "definition": definition});
    let cases = [
        (save(json!({"nodes": many, "edges": []})), 400, "nodes"),
        (save(deep), 400, "uploadGate"),
        (save(circle), 400, "a"),
        (save(json!({})), 400, "nodes"),
        (save(json!("x")), 400, "expected an object"),
        (
            save(chain(&[("clip", "gif", json!({"fps": 0}))])),
            400,
            "fps",
        ),
        (save(chain(&[("small", "resize", json!({}))])), 400, "small"),
        (save(large), 413, "workflows.max_definition"),
        (
            json!({"name": "x", "definition": {"x": "y".repeat(2 << 20)}}),
            413,
            "http.max_json",
        ),
        (json!({"definition": storing()}), 400, "name is missing"),
        (
            json!({"name": "ü".repeat(81), "definition": storing()}),
            400,
            "1 to 80 characters, got 81",
        ),
        (json!({"name": "x"}), 400, "definition"),
        (
            json!({"name": "x", "template": "post"}),
            400,
            "convert-compress-post",
        ),
        (
            json!({"name": "x", "compressionMode": 101}),
            400,
            "compressionMode",
        ),
        (json!({"name": "x", "outputFormat": "docx"}), 400, "docx"),
    ];
    for (body, status, said) in cases {
        let answer = site.save(body.clone()).await;
        let shown: String = body.to_string().chars().take(80).collect();
        assert_eq!(answer.status, status, "{shown}: {answer:?}");
        assert!(answer.error().contains(said), "{shown}: {}", answer.error());
        if status == 413 {
            let linted = site.call("POST", "/api/workflows/lint", Some(body)).await;
            assert_eq!((linted.status, linted.error()), (413, answer.error()));
        }
    }
    let listed = site.call("GET", "/api/workflows", None).await.json();
    assert_eq!(listed["workflows"], json!([]));
}

#[actix_web::test]
async fn short_forms_expand_to_definitions() {
    let site = Site::open().await;
    let made = site
        .save(json!({"name": "Short", "outputFormat": "webp", "compression_mode": "high"}))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json()["workflow"].clone();
    let kinds = |workflow: &Value| -> Vec<String> {
        let nodes = workflow["definition"]["nodes"].as_array().unwrap().clone();
        nodes
            .iter()
            .map(|node| node["data"]["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds(&made), ["upload", "convert", "compress", "webhook"]);
    assert_eq!(
        (
            &made["template"],
            &made["outputFormat"],
            &made["compressionMode"]
        ),
        (&Value::Null, &json!("webp"), &json!("high"))
    );
    let mut unchanged = made.clone();
    unchanged["name"] = json!("Renamed");
    let renamed = site.save(unchanged).await.json()["workflow"].clone();
    assert_eq!(
        (&renamed["outputFormat"], &renamed["definition"]),
        (&json!("webp"), &made["definition"])
    );
    let mut other = renamed.clone();
    other["definition"] = storing();
    let other = site.save(other).await.json()["workflow"].clone();
    assert_eq!(
        (
            &other["outputFormat"],
            &other["compressionMode"],
            &other["definition"]
        ),
        (&Value::Null, &Value::Null, &storing())
    );
    let again = site
        .save(json!({"id": id(&made), "template": "compress-post", "compressionMode": 40}))
        .await;
    let again = again.json()["workflow"].clone();
    assert_eq!(kinds(&again), ["upload", "compress", "webhook"]);
    assert_eq!(
        (
            &again["template"],
            &again["compressionMode"],
            &again["name"]
        ),
        (&json!("compress-post"), &json!(40), &json!("Renamed"))
    );
}

#[actix_web::test]
async fn lint_shows_what_a_save_would_and_saves_nothing() {
    let site = Site::open().await;
    let lint = async |body: Value| {
        let answer = site.call("POST", "/api/workflows/lint", Some(body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let audio = lint(json!({"definition": storing()})).await;
    assert_eq!(audio, json!({"problems": [], "valid": true}));
    assert_eq!(lint(storing()).await, audio);
    let warned = lint(chain(&[("small", "resize", json!({"resizeWidth": 8}))])).await;
    assert_eq!(
        (&warned["valid"], &warned["problems"][0]["severity"]),
        (&json!(true), &json!("warning"))
    );
    let broken = lint(chain(&[
        ("small", "resize", json!({})),
        ("keep", "storage", json!({"folderId": UNKNOWN_ID})),
    ]))
    .await;
    assert_eq!(
        (&broken["valid"], &broken["problems"][0]["nodeId"]),
        (&json!(false), &json!("small"))
    );
    let unknown = lint(chain(&[(
        "keep",
        "storage",
        json!({"folderId": UNKNOWN_ID}),
    )]))
    .await;
    assert_eq!(
        (&unknown["valid"], &unknown["problems"][0]["code"]),
        (&json!(false), &json!("unknown_folder"))
    );
    let short = lint(json!({"template": "convert-post"})).await;
    assert_eq!(
        (&short["valid"], &short["problems"][0]["field"]),
        (&json!(false), &json!("outputFormat"))
    );
    let nothing = lint(json!({})).await;
    assert_eq!(
        (&nothing["valid"], &nothing["problems"][0]["field"]),
        (&json!(false), &json!("definition"))
    );
    for problem in broken["problems"].as_array().unwrap() {
        for field in ["severity", "nodeId", "field", "code", "message"] {
            assert!(problem.get(field).is_some(), "{field}: {problem}");
        }
    }
    let listed = site.call("GET", "/api/workflows", None).await.json();
    assert_eq!(listed["workflows"], json!([]));
}

#[actix_web::test]
async fn a_workflow_is_paused_given_another_secret_and_deleted() {
    let site = Site::open_with(|config| config.workflows.max_workflows = 1).await;
    let hook = chain(&[(
        "post",
        "webhook",
        json!({"url": "https://93.184.215.14/hook"}),
    )]);
    let workflow = site.workflow(hook).await;
    let one = path(&workflow);
    let full = site
        .save(json!({"name": "Second", "definition": storing()}))
        .await;
    assert_eq!(
        (
            full.status,
            full.error().contains("workflows.max_workflows")
        ),
        (409, true)
    );

    let missing = site.call("PATCH", &one, Some(json!({"name": "x"}))).await;
    assert_eq!(
        (
            missing.status,
            missing.error().contains("isActive is missing")
        ),
        (400, true)
    );
    let paused = site
        .call("PATCH", &one, Some(json!({"isActive": false})))
        .await
        .json();
    assert_eq!(
        (
            &paused["workflow"]["isActive"],
            &paused["workflow"]["version"]
        ),
        (&json!(false), &json!(1))
    );
    let rejected = site.run(&workflow, "a.png", PNG).await;
    assert_eq!(
        (rejected.status, rejected.error().contains("paused")),
        (409, true)
    );
    assert_eq!(site.used().await, 0);

    let rotated = site
        .call("POST", &format!("{one}/rotate-secret"), None)
        .await
        .json();
    let secret = rotated["workflow"]["webhookSecret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_") && json!(secret) != workflow["webhookSecret"]);
    // Its own addresses are no webhooks of the account.
    let hooks = site.call("GET", "/api/webhooks", None).await.json();
    assert_eq!(hooks["webhooks"], json!([]));

    let deleted = site.call("DELETE", &one, None).await;
    assert_eq!(
        (deleted.status, deleted.json()),
        (200, json!({"success": true}))
    );
    for (method, path) in [
        ("GET", one.clone()),
        ("DELETE", one.clone()),
        ("GET", format!("{one}/run")),
    ] {
        assert_eq!(
            site.call(method, &path, None).await.status,
            404,
            "{method} {path}"
        );
    }
    site.workflow(storing()).await;
}

#[actix_web::test]
async fn the_description_holds_the_kinds_of_nodes() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let save = &document["paths"]["/api/workflows"]["post"];
    let text = save["description"].as_str().unwrap();
    for kind in ["upload", "branch", "strip_metadata", "resize", "webhook"] {
        assert!(text.contains(&format!("**{kind}**: ")), "{text}");
    }
    let schemas = &document["components"]["schemas"];
    for (schema, field) in [
        ("WorkflowRecord", "webhookSecret"),
        ("RunRecord", "gate"),
        ("LogEntry", "branch"),
        ("OutputRecord", "downloadUrl"),
        ("ProblemRecord", "nodeId"),
        ("Error", "version"),
    ] {
        assert!(
            schemas[schema]["properties"][field].is_object(),
            "{schema}.{field}"
        );
    }
}
