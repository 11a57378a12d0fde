//! Files of this machine: an agent names one, and it is run without passing through the conversation; nothing else of
//! the machine is reached.

use std::os::unix::fs::symlink;

use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Talk, bridge, bridge_to, call, failure, initialize, request};
use crate::support::{
    Failure,
    images::photographs,
    json::{list, text},
    server::{Server, Settings},
};

/// A folder with a photograph in it, and what may not be reached from there.
fn folder() -> Result<TempDir, Failure> {
    let folder = TempDir::new()?;
    let photograph = photographs(1)?.pop().ok_or("no photograph")?;
    std::fs::create_dir(folder.path().join("allowed"))?;
    std::fs::copy(photograph, folder.path().join("allowed/photo.jpg"))?;
    std::fs::write(folder.path().join("secret.jpg"), "secret")?;
    symlink("../secret.jpg", folder.path().join("allowed/link.jpg"))?;
    Ok(folder)
}

/// A workflow that is made and run in one call.
fn to_webp(path: &str) -> Value {
    json!({
        "workflow": {"name": "Web photo", "outputFormat": "webp"},
        "filePath": path,
    })
}

async fn handshake(talk: &mut Talk) -> Result<Value, Failure> {
    let answer = talk.ask(&initialize(0)).await?;
    talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_local_photograph_is_run_in_one_call() -> Result<(), Failure> {
    // Its public address is one that this machine does not reach.
    let settings = Settings::new().env("SLUICE_HTTP__BASE_URL", "https://media.example.org");
    let server = settings.start().await?;
    let folder = folder()?;
    let root = folder.path().join("allowed");
    let mut talk = Talk::start(bridge_to(&server.base_url(), &root))?;
    let hello = handshake(&mut talk).await?;
    assert_eq!(hello["result"]["serverInfo"]["name"], "sluice", "{hello}");

    let listed = talk.ask(&request(1, "tools/list", json!({}))).await?;
    let tools = list(&listed["result"]["tools"])?;
    let run = tools.iter().find(|tool| tool["name"] == "run_workflow");
    let offered = run.ok_or("no run_workflow")?["inputSchema"]["properties"]["filePath"].clone();
    let offered = text(&offered["description"])?;
    assert!(offered.contains(&root.display().to_string()), "{offered}");

    let mut run = call(2, "run_workflow", to_webp("photo.jpg"));
    run["params"]["_meta"] = json!({"progressToken": "p"});
    let mut heard = talk.ask_all(&run).await?;
    let answer = heard.pop().ok_or("no answer")?;
    let result = &answer["result"]["structuredContent"];
    assert_eq!(result["status"], "completed", "{answer}");
    let output = &result["run"]["outputs"][0];
    assert_eq!(output["filename"], "photo.webp", "{answer}");
    let link = text(&output["downloadUrl"])?;
    let path = link.replace("https://media.example.org", "");
    let bytes = server.api().fetch(&path).await?.expect(200)?.bytes;
    assert!(bytes.starts_with(b"RIFF") && bytes[8..].starts_with(b"WEBP"));

    let steps = heard.iter().map(|message| {
        assert_eq!(message["method"], "notifications/progress", "{message}");
        assert_eq!(message["params"]["progressToken"], "p", "{message}");
        message["params"]["progress"].as_f64().unwrap_or(-1.0)
    });
    let steps: Vec<f64> = steps.collect();
    assert!(
        steps.is_sorted_by(|before, after| before < after),
        "{steps:?}"
    );
    assert!(
        steps.iter().any(|step| (0.0..1.0).contains(step)),
        "{steps:?}"
    );
    assert!(steps.iter().any(|step| *step >= 1.0), "{steps:?}");
    assert_eq!(talk.end().await?, (Vec::new(), Some(0), String::new()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_not_be_sent_is_refused_before_the_service_is_asked() -> Result<(), Failure> {
    let server = Server::start().await?;
    let folder = folder()?;
    let root = folder.path().join("allowed");
    let outside = folder.path().join("secret.jpg").display().to_string();
    let around = root.join("../secret.jpg").display().to_string();
    let through_proc = format!("/proc/self/root{}", root.join("photo.jpg").display());
    let mut talk = Talk::start(bridge_to(&server.base_url(), &root))?;
    for (path, words) in [
        ("../secret.jpg", "`..`"),
        (around.as_str(), "`..`"),
        (&outside, "in none of the folders"),
        (&through_proc, "in none of the folders"),
        ("/etc/passwd", "in none of the folders"),
        ("/dev/zero", "in none of the folders"),
        ("link.jpg", "symbolic link"),
        ("photo\0.jpg", "zero byte"),
        ("gone.jpg", "does not exist"),
        (".", "a folder"),
    ] {
        let refused = talk.ask(&call("r", "run_workflow", to_webp(path))).await?;
        assert!(failure(&refused).contains(words), "{path}: {refused}");
    }
    let mut none = Talk::start(bridge(&["--url", &server.base_url()]))?;
    let refused = none
        .ask(&call("r", "run_workflow", to_webp("/etc/passwd")))
        .await?;
    assert!(failure(&refused).contains("--root FOLDER"), "{refused}");
    let listed = none.ask(&request(1, "tools/list", json!({}))).await?;
    assert!(listed.to_string().contains("No folder is allowed yet"));
    // By the settings it is another matter.
    let root = root.display().to_string();
    let call_by_settings = bridge(&["--url", &server.base_url()]).env("SLUICE_MCP__ROOTS", &root);
    let mut by_settings = Talk::start(call_by_settings)?;
    let both = json!({"workflowId": "w", "filePath": "photo.jpg", "fileId": "f"});
    let refused = by_settings.ask(&call(1, "run_workflow", both)).await?;
    assert!(
        failure(&refused).contains("filePath or fileId"),
        "{refused}"
    );

    let api = server.api();
    let answer = api
        .expect(reqwest::StatusCode::OK, Method::GET, "/api/workflows", None)
        .await?;
    assert_eq!(answer["workflows"], json!([]), "nothing came so far");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_service_refuses_of_a_file_is_reported_as_it_says_it() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_UPLOADS__MAX_FILE", "1 KiB");
    let server = settings.start().await?;
    let folder = folder()?;
    let root = folder.path().join("allowed");
    std::fs::write(root.join("small.jpg"), "no image")?;
    let mut talk = Talk::start(bridge_to(&server.base_url(), &root))?;
    let refused = talk
        .ask(&call(1, "run_workflow", to_webp("photo.jpg")))
        .await?;
    assert!(failure(&refused).contains("uploads.max_file"), "{refused}");
    // A file that is accepted and cannot be converted is a failed run, as over the API.
    let failed = talk
        .ask(&call(2, "run_workflow", to_webp("small.jpg")))
        .await?;
    assert_eq!(
        failed["result"]["structuredContent"]["status"], "failed",
        "{failed}"
    );
    Ok(())
}
