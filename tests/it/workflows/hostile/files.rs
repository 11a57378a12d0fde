//! Files that fail in some step: the run says in which one and why, and concurrent runs are not affected.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    support::{
        Failure,
        images::{crafted, drawn, spoilt, svg},
        json::text,
        server::{Api, Server},
    },
    workflows::{
        ENDED, Workflow, begin, chain, create, entry, has_ended, impatient, node, nodes, output,
        run, run_to, wait_ended,
    },
};

/// Files of each kind at a time.
const CROWD: usize = 24;

/// Returns a JPEG that ends in the middle of its image data.
fn cut() -> Result<Vec<u8>, Failure> {
    let mut bytes = drawn("photograph.jpg")?;
    bytes.truncate(200);
    Ok(bytes)
}

fn steps() -> Value {
    chain(vec![
        node("named", "rename", json!({"pattern": "{original}-small"})),
        node("first", "storage", json!({})),
        node("small", "resize", json!({"resizeWidth": 100})),
        node("webp", "convert", json!({"format": "webp"})),
        node("second", "storage", json!({})),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_fails_in_a_step_fails_the_run_with_the_steps_error() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let workflow = create(&api, "steps", &steps()).await?;
    let pages = chain(vec![
        node("png", "convert", json!({"format": "png"})),
        node("small", "resize", json!({"resizeWidth": 30})),
        node("page", "pdf_preview", json!({"page": 1})),
    ]);
    let pages = create(&api, "pages", &pages).await?;
    let cases = [
        ("cut.jpg", cut()?, &workflow, "small"),
        ("text.jpg", b"this is no image".to_vec(), &workflow, "small"),
        ("giant.png", crafted("giant.png")?, &workflow, "small"),
        ("zeros.png", crafted("zeros.png")?, &workflow, "small"),
        ("fine.svg", svg("red"), &pages, "page"),
    ];
    for (name, bytes, workflow, step) in cases {
        let run = run_to(&api, workflow, name, &bytes, "failed").await?;
        assert_eq!(nodes(&run, "failed"), [step], "{name}: {run}");
        let (error, message) = (text(&run["error"])?, text(&entry(&run, step)?["message"])?);
        assert!(
            error.contains(step) && error.contains(&message),
            "{name}: {error} and {message}"
        );
        assert!(
            !error.contains("/scratch/") && !error.contains("panicked"),
            "{error}"
        );
        let done = nodes(&run, "completed");
        assert!(
            !done.iter().any(|it| it == step || it == "second"),
            "{name}: {run}"
        );
        // A file stored by an earlier step is kept.
        let stored = done.iter().any(|it| it == "first");
        assert_eq!(
            run["outputs"].as_array().map(Vec::len),
            Some(usize::from(stored)),
            "{run}"
        );
    }
    assert_eq!(api.operations_used().await?, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_beside_those_that_fail_do_not_notice() -> Result<(), Failure> {
    let server = impatient().start().await?;
    let api = server.api();
    let workflow = create(&api, "steps", &steps()).await?;
    let spoilt = spoilt()?;
    let every = (spoilt.len() / CROWD).max(1);
    let image = drawn("plain.jpg")?;
    let mut begun = JoinSet::new();
    for (name, bytes) in spoilt.into_iter().step_by(every).take(CROWD) {
        begun.spawn(begin_named(
            api.clone(),
            workflow.clone(),
            name,
            bytes,
            false,
        ));
        let fine = (format!("fine {}.jpg", begun.len()), image.clone());
        begun.spawn(begin_named(
            api.clone(),
            workflow.clone(),
            fine.0,
            fine.1,
            true,
        ));
    }
    let (mut completed, mut failed) = (0, 0);
    while let Some(answer) = begun.join_next().await {
        let (id, name, is_fine) = answer??;
        let run = wait_ended(&api, &id).await?;
        match run["status"].as_str() {
            Some("completed") => completed += 1,
            // Some of the spoilt ones can be read.
            Some("failed") if !is_fine => failed += 1,
            _ => return Err(format!("{name}: {run}").into()),
        }
        assert!(has_ended(&run) && run["completedAt"].is_string(), "{run}");
        if run["status"] == "failed" {
            assert_eq!(nodes(&run, "failed").len(), 1, "{name}: {run}");
        }
    }
    eprintln!("{completed} completed, {failed} failed");
    assert!(failed > 0, "nothing was spoilt enough");
    assert_eq!(api.operations_used().await?, completed);
    server.wait_ready(ENDED).await?;
    let last = run_to(&api, &workflow, "last.jpg", &image, "completed").await?;
    assert_eq!(run(&api, &text(&last["id"])?).await?["log"], last["log"]);
    assert!(output(&last).is_err(), "there are two");
    Ok(())
}

async fn begin_named(
    api: Api,
    workflow: Workflow,
    name: String,
    bytes: Vec<u8>,
    is_fine: bool,
) -> Result<(String, String, bool), Failure> {
    let id = begin(&api, &workflow, &name, &bytes).await?;
    Ok((id, name, is_fine))
}
