//! Faults of the service, the client or the line between them: every request is answered in words that help, and the
//! process lives until its input ends.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{Talk, bridge, bridge_to, call, failure, initialize, request};
use crate::support::{
    Failure,
    command::Call,
    receiver::{Behaviour, Receiver, Reply, Request},
    server::{API_KEY, Server},
};

const SOON: Duration = Duration::from_secs(30);

/// Returns the behaviour of a service that gives this answer to every request.
fn reply(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Behaviour {
    Behaviour::Reply(Reply {
        status,
        headers: vec![("Content-Type".to_owned(), media_type.to_owned())],
        body: body.into(),
    })
}

/// A service that gives every request this result.
fn result(result: Value) -> Behaviour {
    Behaviour::script(move |request| {
        let id = request.json().unwrap_or_default()["id"].clone();
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        reply(200, "application/json", body)
    })
}

fn bridge_for(receiver: &Receiver) -> Call {
    bridge(&["--url", &receiver.url("")])
}

fn error(answer: &Value) -> &str {
    answer["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_rejection_is_an_answer_that_says_what_to_do() -> Result<(), Failure> {
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let mut talk = Talk::start(bridge_for(&receiver))?;
    let json = "application/json";
    let events = "text/event-stream";
    let rejection = |status| reply(status, json, r#"{"error":"said so"}"#);
    for (behaviour, words) in [
        (Behaviour::status(200), "has no agent tools"),
        (reply(200, "text/html", "<html>"), "is --url the address"),
        (rejection(401), "SLUICE_API_KEY"),
        (rejection(404), "mcp.enabled"),
        (rejection(403), "403: said so"),
        (rejection(413), "413: said so"),
        (rejection(429), "429: said so"),
        (rejection(503), "503: said so"),
        (Behaviour::status(502), "answers 502"),
        (
            Behaviour::redirect("http://127.0.0.1:1/mcp"),
            "has no agent tools",
        ),
        (reply(200, json, "{"), "it is not JSON"),
        (reply(200, json, "[]"), "it is not a message"),
        (reply(200, events, ""), "ended before the answer"),
        (
            reply(200, events, ": alive\n\ndata: \n\n"),
            "ended before the answer",
        ),
        (reply(200, events, "data: {\n\n"), "it is not JSON"),
        (Behaviour::CutShort(200), "has no agent tools"),
        (Behaviour::Reset, "no service answers"),
        (Behaviour::Garbage, "cannot be read as HTTP"),
        (Behaviour::HugeHead(200), "no service answers"),
    ] {
        receiver.behave(behaviour.clone());
        let list = talk.ask(&request(1, "tools/list", json!({}))).await?;
        assert!(error(&list).contains(words), "{behaviour:?}: {list}");
        let tool = talk.ask(&call("x", "list_files", json!({}))).await?;
        assert!(failure(&tool).contains(words), "{behaviour:?}: {tool}");
        assert!(!tool.to_string().contains(API_KEY), "{tool}");
    }
    receiver.behave(result(json!({})));
    let pong = talk.ask(&request(2, "ping", json!({}))).await?;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
    let (heard, code, _) = talk.end().await?;
    assert_eq!((heard, code), (Vec::new(), Some(0)));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bridge_that_is_not_set_up_says_so_at_each_request() -> Result<(), Failure> {
    let mut gone = Receiver::start(Behaviour::status(200)).await?;
    gone.go_down().await;
    let gone = gone.url("");
    let server = Server::start().await?;
    let url = server.base_url();
    for (call, words) in [
        (bridge(&["--url", &gone]), "say with --url where it is"),
        (bridge(&["--url", "127.0.0.1"]), "--url 127.0.0.1"),
        (bridge(&["--url", &gone, "--key", ""]), "SLUICE_API_KEY"),
        (
            bridge(&["--url", &url, "--key", "svc_wrong"]),
            "does not know this API key",
        ),
        (
            bridge(&[]).env("SLUICE_MCP__STDIO_CALLS", "0"),
            "mcp.stdio_calls",
        ),
    ] {
        let mut talk = Talk::start(call)?;
        let answer = talk.ask(&initialize(0)).await?;
        assert!(error(&answer).contains(words), "{answer}");
        let (heard, code, _) = talk.end().await?;
        assert_eq!((heard, code), (Vec::new(), Some(0)), "{words}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_refused_and_the_next_is_heard() -> Result<(), Failure> {
    let receiver = Receiver::start(result(json!({}))).await?;
    let call = bridge_for(&receiver).env("SLUICE_MCP__STDIO_MESSAGE", "64 KiB");
    let mut talk = Talk::start(call)?;
    let long = format!(r#"{{"id":1,"method":"{}"}}"#, "m".repeat(70_000));
    let deep = format!("{}{}", "[".repeat(20_000), "]".repeat(20_000));
    for (line, code, words) in [
        (long.as_str(), -32600, "65536 bytes"),
        (&deep, -32700, "not JSON"),
        ("no json", -32700, "not JSON"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            "no batches",
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            "whole number",
        ),
    ] {
        talk.write(format!("\n  \r\n{line}\r\n").as_bytes()).await?;
        let refused = talk.hear().await?;
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert_eq!(refused["id"], Value::Null, "{refused}");
        assert!(error(&refused).contains(words), "{refused}");
        let pong = talk.ask(&request("p", "ping", json!({}))).await?;
        assert_eq!(pong["result"], json!({}));
    }
    // An answer that is too long for the bound is no end either.
    for behaviour in [
        reply(200, "application/json", "x".repeat(70_000)),
        reply(
            200,
            "text/event-stream",
            format!("data: {}\n\n", "x".repeat(70_000)),
        ),
    ] {
        receiver.behave(behaviour);
        let refused = talk.ask(&request(3, "ping", json!({}))).await?;
        assert!(error(&refused).contains("65536 bytes"), "{refused}");
    }
    assert_eq!(talk.end().await?.1, Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_go_through_as_they_are_with_the_headers_of_their_version() -> Result<(), Failure>
{
    let receiver = Receiver::start(result(json!({"protocolVersion": "2025-06-18"}))).await?;
    let mut talk = Talk::start(bridge_for(&receiver))?;
    talk.ask(&initialize(0)).await?;
    talk.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await?;
    receiver.wait_for(2, SOON).await?;
    let odd = json!({"a": "line\nline", "b": [1, -2.5, null, true], "\u{1f600}": {}});
    talk.ask(&request("r", "some/method", odd.clone())).await?;
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let modern = request(9, "tools/call", json!({"name": "t", "_meta": meta}));
    talk.ask(&modern).await?;
    let requests = receiver.requests();
    let headers = |request: &Request| {
        ["mcp-protocol-version", "mcp-method", "mcp-name"]
            .map(|name| request.header(name).to_owned())
    };
    assert_eq!(headers(&requests[0]), ["", "", ""]);
    assert_eq!(headers(&requests[1]), ["2025-06-18", "", ""]);
    assert_eq!(headers(&requests[2]), ["2025-06-18", "", ""]);
    assert_eq!(headers(&requests[3]), ["2026-07-28", "tools/call", "t"]);
    assert_eq!(requests[2].json()?, request("r", "some/method", odd));
    for request in &requests {
        assert_eq!(
            (request.method.as_str(), request.path.as_str()),
            ("POST", "/mcp")
        );
        assert_eq!(request.header("authorization"), format!("Bearer {API_KEY}"));
        assert_eq!(
            request.header("accept"),
            "application/json, text/event-stream"
        );
    }
    // An answer as events, on several lines, with other events before it.
    let events = ": alive\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"progress\":1}}\n\n\
        id: 3\ndata: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"x\":12345678901234567890123,\"y\":\"a\"}}\n\ndata: {\"never\":\"seen\"}\n\n";
    receiver.behave(reply(200, "text/event-stream; charset=utf-8", events));
    let heard = talk.ask_all(&request(5, "m", json!({}))).await?;
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert_eq!(heard[0]["params"], json!({"progress": 1}));
    assert_eq!(heard[1]["result"]["y"], "a");
    // A rejection by the protocol is passed on as an answer, with any HTTP status.
    receiver.behave(reply(
        400,
        "application/json",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"headers"}}"#,
    ));
    let refused = talk.ask(&request(6, "m", json!({}))).await?;
    assert_eq!(
        refused["error"],
        json!({"code": -32020, "message": "headers"})
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_run_side_by_side_within_the_bound() -> Result<(), Failure> {
    let receiver = Receiver::start(Behaviour::Hang).await?;
    let call = bridge_for(&receiver).env("SLUICE_MCP__STDIO_CALLS", "2");
    let mut talk = Talk::start(call)?;
    talk.say(&request(1, "tools/list", json!({}))).await?;
    talk.say(&request("1", "tools/list", json!({}))).await?;
    receiver.wait_for(2, SOON).await?;
    let same = talk.ask(&request(1, "ping", json!({}))).await?;
    assert!(error(&same).contains("with this id"), "{same}");
    let busy = talk.ask(&request(2, "ping", json!({}))).await?;
    assert!(error(&busy).contains("mcp.stdio_calls"), "{busy}");
    let busy = talk.ask(&super::call(3, "list_files", json!({}))).await?;
    assert!(failure(&busy).contains("mcp.stdio_calls"), "{busy}");
    receiver.behave(result(json!({})));
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    talk.say(&cancelled).await?;
    // The place is free when its task has ended, which nothing announces.
    let answer = crate::support::eventually("a free place", SOON, async || {
        let answer = talk.ask(&request(4, "ping", json!({}))).await.ok()?;
        answer.get("result").cloned()
    });
    assert_eq!(answer.await?, json!({}));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn giving_up_a_request_ends_it_at_the_service() -> Result<(), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut talk = Talk::start(bridge(&["--url", &url]))?;
    talk.say(&request(7, "tools/list", json!({}))).await?;
    let (mut stream, _) = timeout(SOON, listener.accept()).await??;
    read_head(&mut stream).await?;
    for other in [json!(8), json!("7"), Value::Null] {
        talk.say(&json!({"method": "notifications/cancelled", "params": {"requestId": other}}))
            .await?;
    }
    talk.say(&json!({"method": "notifications/cancelled", "params": {"requestId": 7}}))
        .await?;
    let mut rest = Vec::new();
    timeout(SOON, stream.read_to_end(&mut rest)).await??;
    // Nor is it answered, and the notification stays here.
    let (heard, code, _) = talk.end().await?;
    assert_eq!((heard, code), (Vec::new(), Some(0)));
    let more = timeout(Duration::from_millis(10), listener.accept()).await;
    assert!(more.is_err(), "the notification went to the service");
    Ok(())
}

async fn read_head(stream: &mut TcpStream) -> Result<(), Failure> {
    let mut read = Vec::new();
    while !read.ends_with(b"}") {
        if timeout(SOON, stream.read_buf(&mut read)).await?? == 0 {
            return Err("the request broke off".into());
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_input_waits_for_answers_but_not_for_ever() -> Result<(), Failure> {
    let slow = Behaviour::script(|request| {
        let id = request.json().unwrap_or_default()["id"].clone();
        let body = json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string();
        let answer = reply(200, "application/json", body);
        Behaviour::after(Duration::from_millis(300), answer)
    });
    let receiver = Receiver::start(slow).await?;
    let mut talk = Talk::start(bridge_for(&receiver))?;
    talk.say(&request(1, "a", json!({}))).await?;
    talk.say(&request(2, "b", json!({}))).await?;
    let (heard, code, words) = talk.end().await?;
    assert_eq!(
        (heard.len(), code, words.as_str()),
        (2, Some(0), ""),
        "{heard:?}"
    );
    receiver.behave(Behaviour::Hang);
    let call = bridge_for(&receiver).env("SLUICE_MCP__STDIO_LINGER", "200ms");
    let mut talk = Talk::start(call)?;
    talk.say(&request(1, "a", json!({}))).await?;
    let (heard, code, words) = talk.end().await?;
    assert_eq!((heard.len(), code), (0, Some(0)), "{heard:?}");
    assert!(words.contains("given up"), "{words}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_no_more_ends_it() -> Result<(), Failure> {
    let receiver = Receiver::start(result(json!({}))).await?;
    let talk = Talk::start(bridge_for(&receiver))?;
    let code = talk.leave(&request(1, "ping", json!({}))).await?;
    assert_eq!(code, Some(0));
    Ok(())
}

/// A service whose upload addresses lead elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_goes_to_no_other_host() -> Result<(), Failure> {
    let folder = TempDir::new()?;
    std::fs::write(folder.path().join("a.jpg"), b"bytes")?;
    let elsewhere = Receiver::start(Behaviour::status(200)).await?;
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let mut talk = Talk::start(bridge_to(&receiver.url(""), folder.path()))?;
    let run = call(
        1,
        "run_workflow",
        json!({"workflowId": "w", "filePath": "a.jpg"}),
    );
    for (path, words) in [
        (
            "/api/uploads/7/content?signature=x",
            "the upload of `a.jpg` failed: no room",
        ),
        ("/put/7", "none of its uploads"),
    ] {
        let address = elsewhere.url(path);
        receiver.behave(Behaviour::script(move |request| {
            match request.method.as_str() {
                "PUT" => reply(507, "application/json", r#"{"error":"no room"}"#),
                _ => {
                    let result = json!({"structuredContent": {"uploadUrl": address}});
                    let body = json!({"jsonrpc": "2.0", "id": 1, "result": result});
                    reply(200, "application/json", body.to_string())
                }
            }
        }));
        let answer = talk.ask(&run).await?;
        assert!(failure(&answer).contains(words), "{answer}");
    }
    let requests = receiver.requests();
    let put: Vec<_> = requests.iter().filter(|it| it.method == "PUT").collect();
    assert_eq!(put.len(), 1);
    assert_eq!(put[0].path, "/api/uploads/7/content?signature=x");
    assert_eq!(put[0].body, "bytes");
    assert_eq!(put[0].header("authorization"), "");
    assert_eq!(elsewhere.count(), 0);
    Ok(())
}
