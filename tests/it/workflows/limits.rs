//! Limits of runs: their number, their cost, and how they are stopped, tried again and saved over.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    ENDED, Workflow, begin, chain, create, entry, file, get, has_ended, impatient, node, nodes,
    output, run, run_path, run_to, runs, save, set_active, wait_ended,
};
use crate::support::{
    Failure, eventually,
    images::{drawn, svg},
    json::{each, number, text},
    server::{Api, Server},
};

/// Returns a definition that renders a large image at each of a few steps: some seconds of work in a debug build.
fn slow() -> Value {
    let wide = node(
        "wide",
        "convert",
        json!({"format": "png", "resizeWidth": 3000}),
    );
    let shrunk = node("shrunk", "resize", json!({"resizeWidth": 2000}));
    let avif = node("avif", "convert", json!({"format": "avif"}));
    chain(vec![wide, shrunk, avif])
}

/// A step that works, and one that cannot work on what it is given.
fn failing() -> Value {
    chain(vec![
        node("small", "resize", json!({"resizeWidth": 100})),
        node("page", "pdf_preview", json!({})),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workflow_has_so_many_runs_at_a_time_and_others_their_own() -> Result<(), Failure> {
    const RUNS: usize = 4;
    let settings = impatient().env("SLUICE_WORKFLOWS__MAX_ACTIVE_PER_WORKFLOW", "1");
    let server = settings.start().await?;
    let api = server.api();
    let crowded = create(&api, "crowded", &slow()).await?;
    let quick = chain(vec![node("png", "convert", json!({"format": "png"}))]);
    let other = create(&api, "other", &quick).await?;
    for number in 0..RUNS {
        begin(&api, &crowded, &format!("{number}.svg"), &svg("red")).await?;
    }
    let ended = run_to(&api, &other, "quick.svg", &svg("red"), "completed").await?;
    let waiting = runs(&api, &crowded).await?;
    assert!(
        !waiting.iter().all(has_ended),
        "it waited for another's: {ended}"
    );

    let count =
        |runs: &[Value], status: &str| runs.iter().filter(|it| it["status"] == status).count();
    eventually("all have ended", ENDED, async || {
        let runs = runs(&api, &crowded).await.ok()?;
        assert!(count(&runs, "processing") <= 1, "{runs:?}");
        runs.iter().all(has_ended).then_some(())
    })
    .await?;
    let runs = runs(&api, &crowded).await?;
    assert_eq!(count(&runs, "completed"), RUNS, "{runs:?}");
    // First come, first served.
    let mut by_start = runs.clone();
    by_start.sort_by_key(|it| text(&it["startedAt"]).unwrap_or_default());
    let names: Vec<_> = by_start
        .iter()
        .map(|it| it["inputFilename"].clone())
        .collect();
    assert_eq!(names, ["0.svg", "1.svg", "2.svg", "3.svg"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_says_when_to_come_again() -> Result<(), Failure> {
    let server = impatient()
        .env("SLUICE_WORKFLOWS__MAX_ACTIVE_PER_WORKFLOW", "1")
        .env("SLUICE_WORKFLOWS__MAX_QUEUED", "2")
        .start()
        .await?;
    let api = server.api();
    let workflow = create(&api, "crowded", &slow()).await?;
    let mut accepted = Vec::new();
    for number in 0..3 {
        accepted.push(begin(&api, &workflow, &format!("{number}.svg"), &svg("red")).await?);
    }
    let refused = api
        .post_form(&run_path(&workflow), file("late.svg", &svg("red")))
        .await?;
    let refused = refused.expect(503)?;
    assert!(refused.header("retry-after").parse::<u32>()? > 0);
    assert!(refused.json()?["error"].is_string());
    for id in &accepted {
        assert_eq!(wait_ended(&api, id).await?["status"], "completed");
    }
    begin(&api, &workflow, "again.svg", &svg("red")).await?;
    assert_eq!(runs(&api, &workflow).await?.len(), 4);
    assert_eq!(
        api.operations_used().await?,
        4,
        "a refused one costs nothing"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_up_month_is_said_and_failures_are_given_back() -> Result<(), Failure> {
    let settings = super::impatient().env("SLUICE_PLANS__UNLIMITED__OPERATIONS_PER_MONTH", "2");
    let server = settings.start().await?;
    let api = server.api();
    let works = create(
        &api,
        "works",
        &chain(vec![node("png", "convert", json!({"format": "png"}))]),
    )
    .await?;
    let fails = create(&api, "fails", &failing()).await?;
    for _ in 0..3 {
        run_to(&api, &fails, "a.svg", &svg("red"), "failed").await?;
        assert_eq!(api.operations_used().await?, 0, "given back");
    }
    for used in [1, 2] {
        run_to(&api, &works, "a.svg", &svg("red"), "completed").await?;
        assert_eq!(api.operations_used().await?, used);
    }
    let refused = api
        .post_form(&run_path(&works), file("a.svg", &svg("red")))
        .await?;
    let refused = refused.expect(402)?.json()?;
    assert_eq!(refused["code"], "operations_used_up");
    assert!(refused["upgradeUrl"].is_string(), "{refused}");
    assert_eq!(
        (
            runs(&api, &works).await?.len(),
            api.operations_used().await?
        ),
        (2, 2)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_of_two_saves_that_cross_is_reported() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let workflow = create(&api, "shared", &failing()).await?;
    assert_eq!(workflow.record["version"], 1);
    let body = |version: Value, width: u32| {
        let definition = chain(vec![node("small", "resize", json!({"resizeWidth": width}))]);
        json!({"id": workflow.id, "name": "shared", "definition": definition, "version": version})
    };
    let save = async |body: Value| api.call(Method::POST, "/api/workflows", Some(&body)).await;
    let (status, saved) = save(body(json!(1), 100)).await?;
    assert_eq!(
        (status, &saved["workflow"]["version"]),
        (StatusCode::OK, &json!(2)),
        "{saved}"
    );
    let (status, refused) = save(body(json!(1), 200)).await?;
    assert_eq!(
        (status, &refused["version"]),
        (StatusCode::CONFLICT, &json!(2)),
        "{refused}"
    );
    assert!(refused["error"].is_string(), "{refused}");
    let (status, saved) = save(body(Value::Null, 300)).await?;
    assert_eq!(
        (status, &saved["workflow"]["version"]),
        (StatusCode::OK, &json!(3)),
        "{saved}"
    );

    let path = format!("/api/workflows/{}/versions", workflow.id);
    let versions = each(&get(&api, &path).await?["versions"], "version")?;
    assert_eq!(versions, [json!(3), json!(2), json!(1)]);
    let second = get(&api, &format!("{path}/2")).await?;
    assert!(
        second.to_string().contains("\"resizeWidth\":100"),
        "{second}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_run_ends_and_is_given_back() -> Result<(), Failure> {
    let settings = impatient().env("SLUICE_WORKFLOWS__MAX_ACTIVE_PER_WORKFLOW", "1");
    let server = settings.start().await?;
    let api = server.api();
    let workflow = create(&api, "slow", &slow()).await?;
    let under_way = begin(&api, &workflow, "a.svg", &svg("red")).await?;
    let waiting = begin(&api, &workflow, "b.svg", &svg("red")).await?;
    eventually("it is worked on", ENDED, async || {
        let run = run(&api, &under_way).await.ok()?;
        (run["status"] == "processing").then_some(())
    })
    .await?;
    assert_eq!(run(&api, &waiting).await?["status"], "queued");
    for id in [&waiting, &under_way] {
        let path = format!("/api/workflows/runs/{id}/cancel");
        let (status, answer) = api.call(Method::POST, &path, None).await?;
        assert_eq!(
            (status, &answer["run"]["status"]),
            (StatusCode::OK, &json!("cancelled")),
            "{answer}"
        );
        let (status, _) = api.call(Method::POST, &path, None).await?;
        assert_eq!(status, StatusCode::CONFLICT, "it has ended");
    }
    assert_eq!(api.operations_used().await?, 0);
    let events = crate::webhooks::events(&api).await?;
    let mut events: Vec<_> = events
        .iter()
        .filter(|it| it["type"] == "workflow.failed")
        .map(|it| (text(&it["data"]["runId"]), it["data"]["status"].clone()))
        .map(|(id, status)| (id.unwrap_or_default(), status))
        .collect();
    events.sort_by_key(|(id, _)| *id != waiting);
    assert_eq!(
        events,
        [
            (waiting, json!("cancelled")),
            (under_way.clone(), json!("cancelled"))
        ]
    );

    // Its place is free, and it stays what it is.
    let after = begin(&api, &workflow, "c.svg", &svg("red")).await?;
    assert_eq!(wait_ended(&api, &after).await?["status"], "completed");
    assert_eq!(run(&api, &under_way).await?["status"], "cancelled");
    Ok(())
}

async fn retry(api: &Api, id: &str, body: Value) -> Result<(StatusCode, Value), Failure> {
    let path = format!("/api/workflows/runs/{id}/retry");
    api.call(Method::POST, &path, Some(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_run_is_tried_again_from_the_step_that_failed() -> Result<(), Failure> {
    let server = impatient().start().await?;
    let api = server.api();
    let workflow = create(&api, "mended", &failing()).await?;
    let image = drawn("plain.jpg")?;
    let failed = run_to(&api, &workflow, "a.jpg", &image, "failed").await?;
    assert_eq!(nodes(&failed, "failed"), ["page"]);
    assert_eq!(nodes(&failed, "completed"), ["upload", "small"]);
    let message = text(&failed["error"])?;
    assert!(message.contains("page"), "{message}");
    let id = text(&failed["id"])?;

    let (status, answer) = retry(&api, &id, json!({"version": "newest"})).await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    // The version that it ran fails again, and does not resize again.
    let (status, answer) = retry(&api, &id, json!({})).await?;
    assert!(status.is_success(), "{answer}");
    assert_eq!(answer["runId"], json!(id));
    let again = wait_ended(&api, &id).await?;
    assert_eq!(
        (&again["status"], &again["workflowVersion"]),
        (&json!("failed"), &json!(1))
    );
    assert_eq!(entry(&again, "small")?, entry(&failed, "small")?);

    let mended = chain(vec![
        node("small", "resize", json!({"resizeWidth": 100})),
        node("page", "convert", json!({"format": "webp"})),
        node("keep", "storage", json!({})),
    ]);
    assert_eq!(save(&api, &workflow, &mended).await?["version"], 2);
    let (status, answer) = retry(&api, &id, json!({"version": "current"})).await?;
    assert!(status.is_success(), "{answer}");
    let done = wait_ended(&api, &id).await?;
    assert_eq!(
        (&done["status"], &done["workflowVersion"], &done["error"]),
        (&json!("completed"), &json!(2), &Value::Null),
        "{done}"
    );
    assert_eq!(
        nodes(&done, "completed"),
        ["upload", "small", "page", "keep"]
    );
    assert_eq!(entry(&done, "small")?, entry(&failed, "small")?, "kept");
    assert_eq!(output(&done)?["mimeType"], "image/webp");
    assert_eq!(api.operations_used().await?, 1);
    let (status, _) = retry(&api, &id, json!({})).await?;
    assert_eq!(status, StatusCode::CONFLICT, "it has completed");
    Ok(())
}

/// With another first step, the current version has nothing in common with what was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_step_is_done_again() -> Result<(), Failure> {
    let server = impatient().start().await?;
    let api = server.api();
    let workflow = create(&api, "changed", &failing()).await?;
    let failed = run_to(&api, &workflow, "a.jpg", &drawn("plain.jpg")?, "failed").await?;
    let id = text(&failed["id"])?;
    let narrower = chain(vec![node("small", "resize", json!({"resizeWidth": 50}))]);
    save(&api, &workflow, &narrower).await?;
    let (status, answer) = retry(&api, &id, json!({"version": "current"})).await?;
    assert!(status.is_success(), "{answer}");
    let done = wait_ended(&api, &id).await?;
    assert_eq!(done["status"], "completed", "{done}");
    let (before, after) = (entry(&failed, "small")?, entry(&done, "small")?);
    assert!(
        number(&after["bytesOut"])? < number(&before["bytesOut"])?,
        "{after}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_workflow_takes_nothing_and_ends_what_it_began() -> Result<(), Failure> {
    let settings = impatient().env("SLUICE_WORKFLOWS__MAX_ACTIVE_PER_WORKFLOW", "1");
    let server = settings.start().await?;
    let api = server.api();
    let workflow = create(&api, "paused", &slow()).await?;
    let begun = [
        begin(&api, &workflow, "a.svg", &svg("red")).await?,
        begin(&api, &workflow, "b.svg", &svg("red")).await?,
    ];
    set_active(&api, &workflow, false).await?;
    let refused = api
        .post_form(&run_path(&workflow), file("c.svg", &svg("red")))
        .await?;
    assert!(refused.expect(409)?.json()?["error"].is_string());
    for id in &begun {
        assert_eq!(wait_ended(&api, id).await?["status"], "completed");
    }
    assert_eq!(api.operations_used().await?, 2);
    set_active(&api, &workflow, true).await?;
    begin(&api, &workflow, "d.svg", &svg("red")).await?;
    Ok(())
}

/// A run keeps the copy of the definition with which it began; a deleted workflow takes its runs with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_keeps_its_definition_until_the_workflow_is_deleted() -> Result<(), Failure> {
    let server = impatient().start().await?;
    let api = server.api();
    let workflow = create(&api, "replaced", &slow()).await?;
    let id = begin(&api, &workflow, "a.svg", &svg("red")).await?;
    let quick = chain(vec![node("png", "convert", json!({"format": "png"}))]);
    assert_eq!(save(&api, &workflow, &quick).await?["version"], 2);
    let ended = wait_ended(&api, &id).await?;
    assert_eq!(
        (&ended["workflowVersion"], &output(&ended)?["mimeType"]),
        (&json!(1), &json!("image/avif"))
    );

    save(&api, &workflow, &slow()).await?;
    let unfinished = begin(&api, &workflow, "b.svg", &svg("red")).await?;
    let path = format!("/api/workflows/{}", workflow.id);
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    for path in [
        path,
        format!("/api/workflows/runs/{unfinished}"),
        run_path(&workflow),
    ] {
        let (status, _) = api.call(Method::GET, &path, None).await?;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(
        api.operations_used().await?,
        1,
        "the unfinished one is given back"
    );
    expect_listed(&api, &[]).await
}

/// The names of all workflows.
async fn expect_listed(api: &Api, names: &[&str]) -> Result<(), Failure> {
    let listed = get(api, "/api/workflows").await?;
    assert_eq!(each(&listed["workflows"], "name")?, names);
    Ok(())
}

/// A refused run costs nothing and leaves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_takes_exactly_one_file() -> Result<(), Failure> {
    let server = impatient().start().await?;
    let api = server.api();
    let workflow: Workflow = create(&api, "one", &failing()).await?;
    let image = svg("red");
    let path = run_path(&workflow);
    let cases = [
        (
            "no file",
            path.clone(),
            super::Form::new().field("file", ""),
            400,
        ),
        ("an empty file", path.clone(), file("empty.svg", b""), 400),
        (
            "two files",
            path.clone(),
            file("a.svg", &image).file("file", "b.svg", &image),
            400,
        ),
        (
            "two names",
            path.clone(),
            file("a.svg", &image).file("files", "b.svg", &image),
            400,
        ),
        (
            "no such workflow",
            path.replace(&workflow.id, &uuid()),
            file("a.svg", &image),
            404,
        ),
        (
            "no id",
            "/api/workflows/photos/run".into(),
            file("a.svg", &image),
            404,
        ),
    ];
    for (case, path, form, status) in cases {
        let answer = api.post_form(&path, form).await?;
        let body = answer.json()?;
        assert_eq!(answer.status, status, "{case}: {body}");
        assert!(!text(&body["error"])?.is_empty(), "{case}");
    }
    let (status, _) = api
        .call(Method::POST, &path, Some(&json!({"file": "a.svg"})))
        .await?;
    assert_eq!(status, StatusCode::BAD_REQUEST, "JSON");
    let url = format!("{}{path}", server.base_url());
    let stranger = crate::support::http::client().post(url).send().await?;
    assert_eq!(stranger.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(runs(&api, &workflow).await?, [Value::Null; 0]);
    assert_eq!(api.operations_used().await?, 0);
    Ok(())
}

/// Returns an id of nothing.
fn uuid() -> String {
    "00000000-0000-4000-8000-000000000000".to_owned()
}
