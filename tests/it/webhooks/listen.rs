//! `sluice webhooks listen` with a running service, as a developer uses it while writing a receiver.

use std::time::SystemTime;

use serde_json::Value;
use sluice_actors::webhooks::signature;

use super::{SOON, events, get, text, upload};
use crate::support::{
    Failure,
    command::{Call, Running, sluice},
    receiver::{Behaviour, Receiver, Request},
    server::{API_KEY, Server, Settings},
};

/// A developer's machine: its settings are not those of the service.
fn listen(arguments: &[&str]) -> Call {
    let all = [&["webhooks", "listen"], arguments].concat();
    sluice(&all).env("SLUICE_API_KEY", API_KEY)
}

/// Starts one that follows when this returns.
async fn start(call: Call) -> Result<Running, Failure> {
    let running = call.start()?;
    running.wait_for("following").await?;
    Ok(running)
}

/// Verifies as a receiver does, with the secret that was shown.
fn verify(secret: &str, request: &Request) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now_s = now.expect("after 1970").as_secs().cast_signed();
    let header = request.header("service-signature");
    let verified = signature::verify(secret, header, &request.body, now_s, 300);
    assert_eq!(verified, Ok(()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_shown_signed_and_forwarded_as_deliveries_are() -> Result<(), Failure> {
    // The service itself may not reach this machine, and need not.
    let server = Server::start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(204)).await?;
    let url = receiver.url("/hook?a=b");
    // Found by the data folder.
    let call = listen(&["--forward", &url]).data_dir(server.data_dir());
    let running = start(call).await?;
    let greeting = running.stdout();
    let secret = greeting
        .lines()
        .find_map(|line| line.strip_prefix("the signing secret is "))
        .ok_or("no secret is shown")?;
    assert!(greeting.contains(&server.base_url()), "{greeting}");
    assert!(greeting.contains(&url), "{greeting}");

    let file = api.upload_id("caf\u{e9} 1.txt", b"x").await?;
    let requests = receiver.wait_for(1, SOON).await?;
    let request = &requests[0];
    verify(secret, request);
    assert_eq!(
        (request.method.as_str(), request.path.as_str()),
        ("POST", "/hook?a=b")
    );
    let envelope = request.json()?;
    for (name, value) in [
        ("content-type", "application/json"),
        ("user-agent", "Service-Webhooks/1.0"),
        ("service-event", "file.uploaded"),
        ("webhook-id", envelope["id"].as_str().unwrap_or_default()),
        ("webhook-timestamp", request.header("service-timestamp")),
    ] {
        assert_eq!(request.header(name), value, "{name}");
    }
    assert!(request.header("webhook-signature").starts_with("v1,"));
    assert_eq!(envelope["data"]["fileId"], file);
    let listed = server_feed(&server).await?;
    let body = std::str::from_utf8(&request.body)?;
    assert!(listed.contains(body), "{body} in {listed}");

    let said = running.wait_for("verified, answered 204").await?;
    for word in ["file.uploaded", &text(&envelope["id"])?, "caf\u{e9}", &file] {
        assert!(said.contains(word), "{word} in {said}");
    }
    assert_eq!(running.stderr(), "");
    Ok(())
}

/// The bytes of the feed's first page.
async fn server_feed(server: &Server) -> Result<String, Failure> {
    let authorization = format!("Bearer {API_KEY}");
    let headers = [("authorization", authorization.as_str())];
    let api = server.api();
    let page = api.fetch_with("/api/events", &headers).await?;
    Ok(String::from_utf8(page.expect(200)?.bytes.into())?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_fails_is_said_and_the_next_event_continues() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut receiver = Receiver::start(Behaviour::with_body(500, "no table")).await?;
    let elsewhere = Receiver::start(Behaviour::status(200)).await?;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let call = listen(&[
        "--forward",
        &receiver.url("/"),
        "--url",
        &server.base_url(),
        "--secret",
        secret,
    ]);
    let running = start(call).await?;
    upload(&api, 1).await?;
    running.wait_for("answered 500").await?;
    running.wait_for("no table").await?;
    receiver.behave(Behaviour::redirect(&elsewhere.url("/")));
    upload(&api, 2).await?;
    running.wait_for("redirects are not followed").await?;
    receiver.behave(Behaviour::status(410));
    upload(&api, 3).await?;
    running.wait_for("would pause its endpoint").await?;
    receiver.go_down().await;
    upload(&api, 4).await?;
    running.wait_for("no answer: ").await?;
    receiver.come_back().await?;
    receiver.behave(Behaviour::status(200));
    upload(&api, 5).await?;
    let said = running.wait_for("answered 200").await?;
    assert!(said.contains(secret), "{said}");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 4, "each event once, but the one meanwhile");
    for request in requests {
        verify(secret, &request);
    }
    assert_eq!(elsewhere.count(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_comes_back_is_followed_from_the_last_event_on() -> Result<(), Failure> {
    let mut server = Server::start().await?;
    let api = server.api();
    let receiver = Receiver::start(Behaviour::status(200)).await?;
    let url = server.base_url();
    let running = start(listen(&["--forward", &receiver.url("/"), "--url", &url])).await?;
    for number in 1..=2 {
        server.kill().await?;
        running.wait_for("the service is gone").await?;
        server.restart().await?;
        // Perhaps before it has found the service again.
        upload(&api, 2 * number).await?;
        running.wait_for("the service is back").await?;
        upload(&api, 2 * number + 1).await?;
        receiver.wait_for(2 * number, SOON).await?;
    }
    let forwarded: Vec<Value> = receiver
        .requests()
        .iter()
        .map(|request| request.json())
        .collect::<Result<_, _>>()?;
    assert_eq!(forwarded, events(&api).await?, "each once, in order");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_of_the_events_that_are_wanted_can_be_piped() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    upload(&api, 1).await?;
    let page = get(&api, "/api/events").await?;
    let cursor = text(&page["nextCursor"])?;
    let url = server.base_url();
    let common = ["--url", &url, "--since", &cursor, "--print-json"];
    let files = listen(&[&common[..], &["--events", "file.*"]].concat()).start()?;
    let others = listen(&[&common[..], &["--events", "workflow.*,conversion.failed"]].concat());
    let others = others.start()?;
    let second = upload(&api, 2).await?;
    let third = upload(&api, 3).await?;
    let said = files.wait_for(&third).await?;
    let bodies: Vec<Value> = said
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let shown: Vec<&Value> = bodies.iter().map(|body| &body["data"]["fileId"]).collect();
    assert_eq!(shown, [&second, &third]);
    assert!(files.stderr().contains("following"), "{}", files.stderr());
    assert!(
        !files.stderr().contains("signing secret"),
        "nothing is signed"
    );
    assert_eq!(others.stdout(), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mistakes_are_reported_in_plain_words() -> Result<(), Failure> {
    let server = Server::start().await?;
    let url = server.base_url();
    let stranger = Receiver::start(Behaviour::with_body(200, "<html>")).await?;
    let unknown = Receiver::start(Behaviour::status(404)).await?;
    let mut gone = Receiver::start(Behaviour::status(200)).await?;
    gone.go_down().await;
    let (stranger, unknown, gone) = (stranger.url(""), unknown.url(""), gone.url(""));
    for (arguments, words) in [
        (
            &["--url", &url, "--key", "svc_wrong"][..],
            "--key or SLUICE_API_KEY",
        ),
        (&["--url", &url, "--key", ""], "an API key is needed"),
        (&["--url", &gone], "--url where it is"),
        (&["--url", &stranger], "is --url the address of a Sluice"),
        (&["--url", &unknown], "is --url the address of a Sluice"),
        (&["--url", "localhost:8080"], "--url localhost:8080"),
        (
            &["--url", &url, "--forward", "127.0.0.1:9000"],
            "--forward 127.0.0.1:9000",
        ),
        (&["--url", &url, "--since", "yesterday"], "yesterday"),
        (&["--url", &url, "--since", "7fffffff"], "leave --since out"),
    ] {
        let rejection = listen(arguments).fail().await?;
        assert!(rejection.starts_with("sluice: "), "{rejection}");
        assert!(rejection.contains(words), "{arguments:?}: {rejection}");
        assert!(!rejection.contains(API_KEY), "{rejection}");
    }
    for (arguments, words) in [
        (["--events", "file.upload"], "file.uploaded"),
        (["--secret", "whsec_"], "base64"),
        (["--secret", "secret"], "whsec_"),
    ] {
        let outcome = listen(&arguments).run().await?;
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(words), "{outcome:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn https_is_followed_when_the_certificate_is_known() -> Result<(), Failure> {
    let server = Settings::new().tls().start().await?;
    let port = server.addresses().http.port();
    let url = format!("https://localhost:{port}/");
    let rejection = listen(&["--url", &url]).fail().await?;
    assert!(rejection.contains("no TLS with"), "{rejection}");
    let certificate = server.data_dir().with_file_name("cert.pem");
    let call = listen(&["--url", &url]);
    let call = call.env(
        "SLUICE_OUTBOUND__CA_FILE",
        &certificate.display().to_string(),
    );
    let running = start(call).await?;
    let file = upload(&server.api(), 1).await?;
    running.wait_for(&file).await?;
    Ok(())
}
