//! Calls that wait for a run: their progress, and their end when no caller waits any more.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::{Talk, called, last, line_of, text};
use crate::support::{
    Failure, eventually,
    images::photographs,
    server::{Server, Settings},
};

/// Two signs of life on a stream, and a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// A run of many minutes: no one waits for its end here.
fn endless() -> Value {
    let heavy = ("convert", json!({"format": "heif", "compression": 100}));
    let steps: Vec<_> = std::iter::repeat_n(heavy, 40).collect();
    line_of(&steps)
}

/// A service with one place for a call, which is taken: a run has begun that no one sees the end of.
struct Taken {
    server: Server,
    talk: Talk,
    run_id: String,
}

impl Taken {
    /// With the stream of the call, behind its first event.
    async fn begin() -> Result<(Self, Response), Failure> {
        let server = Settings::new()
            .env("SLUICE_MCP__MAX_CALLS", "1")
            .env("SLUICE_MCP__WAIT", "10m")
            .start()
            .await?;
        let talk = Talk::to(&server);
        let photograph = std::fs::read(photographs(1)?.pop().ok_or("no photograph")?)?;
        let upload = talk.upload("photo.jpg", photograph).await?;
        let arguments = json!({"workflow": {"definition": endless()}, "uploadUrl": upload});
        let mut message = called(77, "run_workflow", arguments);
        message["params"]["_meta"] = json!({"progressToken": "p"});
        let mut stream = talk.message(&message).send().await?;
        let first = first_event(&mut stream).await?;
        assert_eq!(first["params"]["progressToken"], "p", "{first}");
        let text = first["params"]["message"].as_str().unwrap_or_default();
        let run_id = text
            .strip_prefix("run ")
            .ok_or_else(|| format!("no run in {first}"))?;
        let taken = Self {
            run_id: run_id.to_owned(),
            server,
            talk,
        };
        Ok((taken, stream))
    }

    /// Checks that the place is free again while the run continues, and that the run ends, too.
    async fn is_left(&self) -> Result<(), Failure> {
        let arguments = json!({"runId": self.run_id});
        let shown = eventually("a place is free", SOON, async || {
            let result = self
                .talk
                .call("get_workflow_run", arguments.clone())
                .await
                .ok()?;
            (result["isError"] == false).then_some(result)
        });
        let status = shown.await?["structuredContent"]["status"].take();
        assert!(
            ["queued", "processing"].iter().any(|it| status == *it),
            "{status}"
        );
        let cancel = format!("/api/workflows/runs/{}/cancel", self.run_id);
        let api = self.server.api();
        api.expect(StatusCode::OK, Method::POST, &cancel, None)
            .await?;
        Ok(())
    }
}

async fn first_event(stream: &mut Response) -> Result<Value, Failure> {
    let mut received = String::new();
    loop {
        let chunk = stream.chunk().await?.ok_or("the stream has ended")?;
        received.push_str(std::str::from_utf8(&chunk)?);
        let whole = received.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
        let data = whole.lines().find_map(|line| line.strip_prefix("data:"));
        if let Some(data) = data {
            return Ok(serde_json::from_str(data.trim())?);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_leaves_its_run_and_nothing_else() -> Result<(), Failure> {
    let (taken, stream) = Taken::begin().await?;
    let busy = taken.talk.failure("list_files", json!({})).await?;
    assert!(busy.contains("mcp.max_calls"), "{busy}");
    drop(stream);
    taken.is_left().await?;
    // A client's going is no error of the service, and the transport has a line for each message.
    let log = taken.server.log();
    assert!(!log.contains("rmcp") && !log.contains("ERROR"), "{log}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_ends_and_its_run_continues() -> Result<(), Failure> {
    let (taken, mut stream) = Taken::begin().await?;
    let cancel = |id: Value| json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    for (id, is_meant) in [(json!(78), false), (json!("77"), false), (json!(77), true)] {
        let answer = taken.talk.message(&cancel(id)).send().await?;
        assert_eq!(answer.status(), 202);
        if !is_meant {
            taken.talk.failure("list_files", json!({})).await?;
        }
    }
    let mut rest = String::new();
    while let Some(chunk) = stream.chunk().await? {
        rest.push_str(std::str::from_utf8(&chunk)?);
    }
    assert!(rest.contains(&taken.run_id), "{rest}");
    taken.is_left().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_takes_long_is_handed_out() -> Result<(), Failure> {
    let server = Settings::new()
        .env("SLUICE_MCP__WAIT", "1ms")
        .start()
        .await?;
    let talk = Talk::to(&server);
    let photograph = std::fs::read(photographs(1)?.pop().ok_or("no photograph")?)?;
    let upload = talk.upload("photo.jpg", photograph).await?;
    let definition = line_of(&[("resize", json!({"resizeWidth": 64}))]);
    let arguments = json!({"workflow": {"definition": definition}, "uploadUrl": upload});
    let result = last(
        talk.message(&called(1, "run_workflow", arguments))
            .send()
            .await?,
    )
    .await?;
    let answer = &result["result"]["structuredContent"];
    let status = answer["status"].as_str().unwrap_or_default();
    assert!(["queued", "processing"].contains(&status), "{result}");
    assert!(
        answer["next"]
            .as_str()
            .is_some_and(|it| it.contains("get_workflow_run"))
    );
    assert!(text(&result["result"]).contains("get_workflow_run"));
    let arguments = json!({"runId": answer["runId"]});
    let ended = eventually("the run ends", SOON, async || {
        let shown = talk
            .answer("get_workflow_run", arguments.clone())
            .await
            .ok()?;
        (shown["status"] == "completed").then_some(shown)
    });
    let output = ended.await?["run"]["outputs"][0].take();
    assert!(output["downloadUrl"].is_string(), "{output}");
    Ok(())
}
