//! Messages that no client of the protocol would send, and their answers.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::{Talk, called, last};
use crate::support::{
    Failure,
    http::exchange,
    server::{API_KEY, Server, Settings},
};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// A request that is right but for what a case spoils.
fn right(talk: &Talk) -> RequestBuilder {
    talk.client
        .post(&talk.url)
        .bearer_auth(&talk.key)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(LIST)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_message_is_refused_in_json() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let bare = |method: Method| {
        let request = talk.client.request(method, &talk.url);
        request.bearer_auth(&talk.key)
    };
    let with = |name: &str, value: &str| {
        let mut headers = reqwest::header::HeaderMap::new();
        let name: reqwest::header::HeaderName = name.parse().expect("a name");
        headers.insert(name, value.parse().expect("a value"));
        right(&talk).headers(headers)
    };
    let body = |body: &str| right(&talk).body(body.to_owned());
    let huge = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#,
        "a".repeat(2 << 20)
    );
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}}"#,
        "[".repeat(1000)
    );
    let cases = [
        ("no credential", talk.client.post(&talk.url), 401),
        ("no credential in GET", talk.client.get(&talk.url), 401),
        (
            "an unknown key",
            with("authorization", "Bearer svc_no"),
            401,
        ),
        (
            "a delivery key",
            with(
                "authorization",
                &format!("Bearer svc_pub_{}", "0".repeat(32)),
            ),
            401,
        ),
        (
            "a session's cookie",
            talk.client
                .post(&talk.url)
                .header("cookie", "sluice_session=x"),
            401,
        ),
        (
            "a foreign page",
            with("origin", "https://evil.example"),
            403,
        ),
        ("no page at all", with("origin", "null"), 403),
        ("GET", bare(Method::GET), 405),
        ("DELETE", bare(Method::DELETE), 405),
        ("PUT", bare(Method::PUT), 405),
        ("OPTIONS without a page", bare(Method::OPTIONS), 405),
        ("events alone", with("accept", "text/event-stream"), 406),
        ("JSON alone", with("accept", "application/json"), 406),
        ("text", with("content-type", "text/plain"), 415),
        ("an encoding", with("content-encoding", "gzip"), 415),
        (
            "an unknown revision",
            with("mcp-protocol-version", "1999-01-01"),
            400,
        ),
        ("nothing", body(""), 400),
        ("no JSON", body("{"), 400),
        ("a batch", body(&format!("[{LIST}]")), 400),
        (
            "null as id",
            body(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
            400,
        ),
        (
            "an answer",
            body(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            400,
        ),
        (
            "another JSON-RPC",
            body(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#),
            400,
        ),
        ("deep nesting", body(&deep), 400),
        ("a huge body", body(&huge), 413),
        (
            "a path below",
            talk.client
                .post(format!("{}/x", talk.url))
                .bearer_auth(&talk.key),
            415,
        ),
    ];
    for (name, request, status) in cases {
        let answer = request.send().await?;
        assert_eq!(answer.status(), status, "{name}");
        let header = |name: &str| answer.headers().get(name).cloned();
        assert_eq!(
            header("content-type").ok_or(name)?,
            "application/json",
            "{name}"
        );
        assert_eq!(
            header("www-authenticate").is_some(),
            status == 401,
            "{name}"
        );
        assert_eq!(header("allow").is_some(), status == 405, "{name}");
        let error = last(answer).await?["error"].take();
        let said = error.as_str().or(error["message"].as_str());
        assert!(said.is_some_and(|said| !said.is_empty()), "{name}: {error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_odd_and_allowed_is_answered() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    let own = server.base_url();
    for (name, request, status) in [
        ("any type", right(&talk).header("accept", "*/*"), 200),
        ("the service's own page", right(&talk).header("origin", &own), 200),
        ("a notification", right(&talk).body(r#"{"jsonrpc":"2.0","method":"tools/list"}"#), 202),
        (
            "a cancellation of nothing",
            right(&talk).body(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"x"}}"#),
            202,
        ),
    ] {
        assert_eq!(request.send().await?.status(), status, "{name}");
    }
    let other_header = talk.client.post(&talk.url).header("x-api-key", API_KEY);
    let answer = other_header
        .header("accept", "application/json, text/event-stream")
        .json(&called(1, "list_files", json!({})))
        .send()
        .await?;
    assert!(answer.headers().contains_key("x-ratelimit-limit"));
    assert_eq!(last(answer).await?["result"]["isError"], false);
    Ok(())
}

/// In the protocol's own words, since the transport took them for requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_requests_have_the_codes_of_the_protocol() -> Result<(), Failure> {
    let server = Server::start().await?;
    let talk = Talk::to(&server);
    for (method, params, code, words) in [
        ("foo/bar", json!({}), -32601, "foo/bar"),
        ("tools/call", json!({}), -32602, "name"),
        ("tools/call", json!({"name": 7}), -32602, "name"),
        (
            "tools/call",
            json!({"name": "list_files", "arguments": []}),
            -32602,
            "arguments",
        ),
        (
            "tools/call",
            json!({"name": "nothing"}),
            -32602,
            "run_workflow",
        ),
        ("initialize", json!({}), -32602, "protocolVersion"),
    ] {
        let error = talk.request(method, params).await?["error"].take();
        assert_eq!(error["code"], code, "{method}: {error}");
        let said = error["message"].as_str().unwrap_or_default();
        assert!(said.contains(words), "{method}: {said}");
    }
    // Since 2025-11-25 wrong arguments are an error of the tool, for the model; before, one of the protocol, for the
    // client.
    let wrong = called(1, "get_job", json!({"jobId": 7}));
    let result = talk.ask(&wrong).await?["result"].take();
    assert_eq!(result["isError"], true, "{result}");
    let older = talk
        .client
        .post(&talk.url)
        .bearer_auth(API_KEY)
        .header("accept", "*/*")
        .header("mcp-protocol-version", "2025-06-18");
    let error = last(older.json(&wrong).send().await?).await?["error"].take();
    assert_eq!(error["code"], -32602, "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_names_of_the_service_are_answered() -> Result<(), Failure> {
    let settings = Settings::new()
        .env("SLUICE_HTTP__BASE_URL", "https://media.example.org")
        .env("SLUICE_MCP__ALLOWED_HOSTS", "inside.example:8443");
    let server = settings.start().await?;
    for (host, status) in [
        ("127.0.0.1", 200),
        ("[::1]:80", 200),
        ("localhost:1234", 200),
        ("media.example.org", 200),
        ("inside.example:8443", 200),
        ("inside.example", 403),
        ("evil.example", 403),
        ("", 403),
    ] {
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {API_KEY}\r\nAccept: */*\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{LIST}",
            LIST.len()
        );
        let (found, answer) = exchange(server.addresses().http, request).await?;
        assert_eq!(found, status, "{host:?}: {answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_are_named_may_call() -> Result<(), Failure> {
    let page = "https://agents.example";
    let settings = Settings::new().env("SLUICE_MCP__ALLOWED_ORIGINS", page);
    let server = settings.start().await?;
    let talk = Talk::to(&server);
    let asked = talk.client.request(Method::OPTIONS, &talk.url);
    let asked = asked.header("origin", page).send().await?;
    assert_eq!(asked.status(), 204);
    for answer in [asked, right(&talk).header("origin", page).send().await?] {
        assert!(answer.status().is_success());
        assert_eq!(answer.headers()["access-control-allow-origin"], page);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_there_when_agents_are_not_wanted() -> Result<(), Failure> {
    let settings = Settings::new().env("SLUICE_MCP__ENABLED", "false");
    let server = settings.start().await?;
    let talk = Talk::to(&server);
    for request in [right(&talk), talk.client.get(&talk.url)] {
        let answer = request.send().await?;
        assert_eq!(answer.status(), 404);
        assert_eq!(answer.json::<Value>().await?["code"], "not_found");
    }
    Ok(())
}
