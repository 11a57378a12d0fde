//! Targets of the service's own requests: seen at listeners that may not be reached.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure,
    command::sluice,
    eventually,
    receiver::{Behaviour, Receiver},
    server::{Api, Form, Server, Settings},
};

const SOON: Duration = Duration::from_secs(20);

/// Ways to write this machine's address, `PORT` for the receiver's port.
const THIS_MACHINE: &[&str] = &[
    "http://127.0.0.1:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://0177.0.0.01:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://１２７。0｡0．1:PORT/",
    "http://%31%32%37.0.0.1:PORT/",
    "http:/127.0.0.1:PORT/",
    "HTTP://LocalHost:PORT/",
    "http://0.0.0.0:PORT/",
    "http://0:PORT/",
    "http://[::1]:PORT/",
    "http://[::]:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::127.0.0.1]:PORT/",
    "http://[64:ff9b:1::127.0.0.1]:PORT/",
    "http://[2002:7f00:1::]:PORT/",
];

/// Not taken at all.
const NO_URLS: &[&str] = &[
    "http://me:secret@127.0.0.1:PORT/",
    "http://public.test@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@public.test/",
    "http://127.0.0.1\t:PORT/",
    "http://[fe80::1%25eth0]:PORT/",
    "http://127.0.0.1:0/",
    "ftp://127.0.0.1:PORT/",
    "file:///etc/passwd",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT/",
];

fn at(spelling: &str, receiver: &Receiver) -> String {
    spelling.replace("PORT", &receiver.address().port().to_string())
}

fn error_of(answer: &Value) -> &str {
    answer["error"].as_str().unwrap_or_default()
}

/// Makes an endpoint; the answer's record.
async fn subscribe(api: &Api, url: &str) -> Result<Value, Failure> {
    let body = json!({"url": url, "eventTypes": ["*"]});
    let path = "/api/webhooks";
    let made = api.expect(StatusCode::CREATED, Method::POST, path, Some(&body));
    Ok(made.await?["webhook"].clone())
}

/// Sends a test event to the endpoint and waits for the first attempt's end.
async fn attempted(api: &Api, endpoint: &Value) -> Result<Value, Failure> {
    let id = endpoint["id"].as_str().unwrap_or_default();
    let (_, sent) = api
        .call(Method::POST, &format!("/api/webhooks/{id}/test"), None)
        .await?;
    let path = format!(
        "/api/webhooks/deliveries/{}",
        sent["delivery"]["id"].as_str().unwrap_or_default()
    );
    eventually("the test event was sent", SOON, async || {
        let (_, answer) = api.call(Method::GET, &path, None).await.ok()?;
        let attempt = answer["attempts"].as_array()?.first()?.clone();
        (attempt["status"] != "running").then_some(attempt)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_this_machine_is_reached() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    // A name that no one resolves is accepted, so there is something to change.
    let endpoint = subscribe(&api, "http://hooks.invalid/").await?;
    let path = format!(
        "/api/webhooks/{}",
        endpoint["id"].as_str().unwrap_or_default()
    );
    for (spelling, has_setting) in THIS_MACHINE
        .iter()
        .map(|spelling| (spelling, true))
        .chain(NO_URLS.iter().map(|spelling| (spelling, false)))
    {
        let url = at(spelling, &receiver);
        let made = json!({"url": url, "eventTypes": ["*"]});
        let changed = json!({"url": url});
        for (method, path, body) in [
            (Method::POST, "/api/webhooks", &made),
            (Method::PATCH, &path, &changed),
        ] {
            let (status, answer) = api.call(method, path, Some(body)).await?;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{url}: {answer}");
            let message = error_of(&answer);
            assert_eq!(
                message.contains("outbound.allow = [\""),
                has_setting,
                "{url}: {message}"
            );
            assert!(!message.contains("secret"), "{url}: {message}");
        }
        let form = Form::new().field("sourceUrl", &url);
        let answer = api
            .post_form("/api/files", form)
            .await?
            .expect(400)?
            .json()?;
        let message = error_of(&answer);
        assert_eq!(
            message.contains("outbound.allow = [\""),
            has_setting,
            "{url}: {message}"
        );
    }
    assert_eq!(receiver.connections(), 0);
    Ok(())
}

/// A stored address was checked once; every attempt checks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leave_that_is_taken_back_holds_from_the_next_attempt_on() -> Result<(), Failure> {
    let data = tempfile::tempdir()?;
    let settings = || Settings::new().data_dir(data.path());
    let receiver = Receiver::start(Behaviour::status(200)).await?;

    let mut server = settings()
        .env("SLUICE_OUTBOUND__ALLOW", "127.0.0.1")
        .start()
        .await?;
    let by_address = subscribe(&server.api(), &receiver.url("/address")).await?;
    let attempt = attempted(&server.api(), &by_address).await?;
    assert_eq!(attempt["httpStatus"], 200, "{attempt}");
    let reached = receiver.connections();
    assert!(server.terminate().await?.success());

    // Another network's leave is none for this one.
    let server = settings()
        .env("SLUICE_OUTBOUND__ALLOW", "10.0.0.0/8,127.0.0.2")
        .start()
        .await?;
    let attempt = attempted(&server.api(), &by_address).await?;
    assert_eq!(attempt["status"], "failed", "{attempt}");
    let message = error_of(&attempt);
    for part in [
        "127.0.0.1",
        "loopback",
        "outbound.allow = [\"127.0.0.0/8\"]",
    ] {
        assert!(message.contains(part), "{attempt}");
    }
    assert_eq!(receiver.connections(), reached);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_proxy_of_the_environment_is_asked() -> Result<(), Failure> {
    let proxy = Receiver::start(Behaviour::status(502)).await?;
    let receiver = Receiver::start(Behaviour::with_body(200, "contents")).await?;
    let mut settings = Settings::new().reaching_this_machine();
    for name in [
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ] {
        settings = settings.env(name, &proxy.url("/"));
    }
    let server = settings.env("no_proxy", "").start().await?;
    let api = server.api();
    let endpoint = subscribe(&api, &receiver.url("/hook")).await?;
    let attempt = attempted(&api, &endpoint).await?;
    assert_eq!(attempt["httpStatus"], 200, "{attempt}");
    let form = Form::new().field("sourceUrl", &receiver.url("/a.txt"));
    api.post_form("/api/files", form).await?.expect(201)?;
    assert_eq!(proxy.connections(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_that_cannot_be_read_stop_the_start() -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let (missing, empty) = (
        folder.path().join("missing.pem"),
        folder.path().join("empty.pem"),
    );
    std::fs::write(&empty, "")?;
    for file in [missing, empty] {
        let file = file.display().to_string();
        let rejection = sluice(&["serve"])
            .data_dir(&folder.path().join("data"))
            .env("SLUICE_HTTP__LISTEN", "127.0.0.1:0")
            .env("SLUICE_RTMP__LISTEN", "127.0.0.1:0")
            .env("SLUICE_SRT__LISTEN", "127.0.0.1:0")
            .env("SLUICE_OUTBOUND__CA_FILE", &file);
        let message = rejection.fail().await?;
        assert!(
            message.contains(&format!("outbound.ca_file {file}")),
            "{message}"
        );
    }
    Ok(())
}
