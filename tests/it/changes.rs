//! Stream of changes (`GET /api/changes`): every change of the account reaches every client, none waits for another
//! one, and none is left with a credential that has ended.

mod bounds;
mod live;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    accounts::Tenant,
    support::{
        Failure,
        changes::{ChangeStream, StreamEvent, request},
        http::client,
        images::svg,
        json::text,
        receiver::{Behaviour, Receiver},
        server::{ADMIN_PASSWORD, API_KEY, Form, Server},
    },
    webhooks::{settings, subscribe},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);
/// For conversions, on a machine with other work.
const CONVERTED: Duration = Duration::from_secs(120);

/// A browser that is signed in.
pub(super) struct Browser {
    pub(super) cookie: String,
    pub(super) csrf_token: String,
}

impl Browser {
    pub(super) async fn sign_in(server: &Server) -> Result<Self, Failure> {
        let url = format!("{}/api/session", server.base_url());
        let right = json!({"username": "admin", "password": ADMIN_PASSWORD});
        let answer = client().post(url).json(&right).send().await?;
        assert_eq!(answer.status(), StatusCode::CREATED);
        let cookie = answer.headers()["set-cookie"].to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        let signed_in: Value = answer.json().await?;
        Ok(Self {
            cookie,
            csrf_token: text(&signed_in["csrfToken"])?,
        })
    }

    pub(super) async fn follow(&self, server: &Server) -> Result<ChangeStream, Failure> {
        let asked = request(server, "").header("cookie", &self.cookie);
        ChangeStream::of(asked.send().await?).await
    }

    /// Any call without a body, as a page makes it.
    pub(super) async fn call(
        &self,
        server: &Server,
        method: Method,
        path: &str,
    ) -> Result<StatusCode, Failure> {
        let url = format!("{}{path}", server.base_url());
        let called = client()
            .request(method, url)
            .header("cookie", &self.cookie)
            .header("x-csrf-token", &self.csrf_token);
        Ok(called.send().await?.status())
    }
}

fn actions<'e>(seen: &'e [StreamEvent], kind: &str) -> Vec<&'e Value> {
    let of_kind = seen
        .iter()
        .filter(|event| event.name == "change" && event.data["kind"] == kind);
    of_kind.map(|event| &event.data["action"]).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_uploaded_by_key_reaches_the_page_of_a_session_and_no_other_account()
-> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let stranger = Tenant::on_plan(&server, "Stranger", "unlimited").await?;
    let mut page = Browser::sign_in(&server).await?.follow(&server).await?;
    let mut other = ChangeStream::open(&server, stranger.api.key(), "").await?;
    let file = api.upload_id("red.svg", &svg("red")).await?;
    let seen = page
        .until("the file", SOON, |it| it.is_change("file", &file))
        .await?;
    assert_eq!(actions(&seen, "file"), ["created"]);
    let (_, listed) = api.call(Method::GET, "/api/files?limit=1", None).await?;
    let newest = &listed["files"][0]["id"];
    assert_eq!(*newest, json!(file), "a nudge is of what can be read");

    let folder = json!({"name": "Spring"});
    let path = "/api/folders";
    let made = api.expect(StatusCode::CREATED, Method::POST, path, Some(&folder));
    let folder = text(&made.await?["folder"]["id"])?;
    let patch = json!({"folderId": folder});
    let path = format!("/api/files/{file}");
    api.expect(StatusCode::OK, Method::PATCH, &path, Some(&patch))
        .await?;
    api.expect(StatusCode::OK, Method::DELETE, &path, None)
        .await?;
    let mut seen = page
        .until("its end", SOON, |it| {
            it.is_change("file", &file) && it.data["action"] == "deleted"
        })
        .await?;
    // Changes of one thing are merged at the place of the newest: the sums of the folder have changed after the file.
    for kind in ["folder", "usage"] {
        if actions(&seen, kind).is_empty() {
            seen.extend(page.until(kind, SOON, |it| it.data["kind"] == kind).await?);
        }
    }
    // However much was merged, the first nudge about the folder says that it is new.
    let of_folder = seen.iter().find(|event| event.is_change("folder", &folder));
    let of_folder = of_folder.ok_or("no nudge about the folder")?;
    assert_eq!(of_folder.data["action"], "created", "{seen:?}");
    assert!(seen.iter().all(|event| event.name == "change"), "{seen:?}");

    // Of all that, the other account gets nothing before its own first change.
    let file = stranger.api.upload_id("blue.svg", &svg("blue")).await?;
    let seen = other
        .until("its own file", SOON, |it| it.is_change("file", &file))
        .await?;
    for event in &seen {
        let of_its_own = [
            "file", "upload", "usage", "event", "account", "api_key", "audit", "service",
        ];
        let kind = event.data["kind"].as_str().unwrap_or_default();
        assert!(of_its_own.contains(&kind), "{seen:?}");
    }
    assert_eq!(actions(&seen, "file"), ["created"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_of_a_job_comes_at_a_pace_and_ends_at_a_hundred() -> Result<(), Failure> {
    let server = Server::start().await?;
    let api = server.api();
    let mut stream = ChangeStream::open(&server, API_KEY, "").await?;
    let mut form = Form::new().field("format", "webp");
    for number in 0..40 {
        form = form.file("files", &format!("{number}.svg"), &svg("red"));
    }
    let begun = Instant::now();
    let id = api.submit(form).await?;
    let is_progress = |it: &StreamEvent| {
        it.name == "progress" && it.data["kind"] == "job" && it.data["id"] == *id
    };
    let seen = stream
        .until("all of it", CONVERTED, |it| {
            is_progress(it) && it.data["percent"] == 100
        })
        .await?;
    let reports: Vec<&StreamEvent> = seen.iter().filter(|it| is_progress(it)).collect();
    let percents: Vec<u64> = reports
        .iter()
        .filter_map(|event| event.data["percent"].as_u64())
        .collect();
    assert!(percents.is_sorted(), "{percents:?}");
    assert!(
        reports
            .iter()
            .all(|event| event.data.get("queuePlace").is_some())
    );
    // Four a second, and one that was there already; a reader that the machine held up finds several at once, the first
    // one among them.
    let last = reports.last().ok_or("no progress")?;
    let most = 2.0 + 4.0 * (last.at - begun).as_secs_f64();
    assert!(
        reports.len() as f64 <= most + 2.0,
        "{} in {most}",
        reports.len()
    );
    let is_job = |it: &StreamEvent| it.is_change("job", &id);
    assert!(seen.iter().any(is_job), "its status is a change: {seen:?}");
    let job = api.wait_job(&id, CONVERTED).await?;
    assert_eq!(job["status"], "completed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deliveries_move_in_the_stream_of_their_account() -> Result<(), Failure> {
    let receiver = Receiver::start(Behaviour::status(500)).await?;
    let server = settings().start().await?;
    let api = server.api();
    let mut stream = ChangeStream::open(&server, API_KEY, "").await?;
    let endpoint = subscribe(&api, &receiver.url("/"), &["file.uploaded"]).await?;
    stream
        .until("the endpoint", SOON, |it| {
            it.is_change("webhook", &endpoint.id)
        })
        .await?;
    api.upload_id("red.svg", &svg("red")).await?;
    let seen = stream
        .until("a delivery", SOON, |it| it.data["kind"] == "delivery")
        .await?;
    let last = seen.last().ok_or("no event")?;
    let id = text(&last.data["id"])?;
    assert!(!actions(&seen, "file").is_empty());

    // Whatever state a nudge was about, the one after the failed attempt is there to be read, and the last one too.
    let state = async || -> Result<Value, Failure> {
        let (record, _) = crate::webhooks::delivery(&api, &id).await?;
        Ok(record["status"].clone())
    };
    while state().await? != "retrying" {
        stream
            .until("its failure", SOON, |it| it.is_change("delivery", &id))
            .await?;
    }
    receiver.behave(Behaviour::status(200));
    while state().await? != "delivered" {
        stream
            .until("its success", SOON, |it| it.is_change("delivery", &id))
            .await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_shell_changes_beside_the_service_is_a_resync() -> Result<(), Failure> {
    let server = Server::start().await?;
    let tenant = Tenant::on_plan(&server, "Tenant", "unlimited").await?;
    let mut mine = ChangeStream::open(&server, API_KEY, "").await?;
    let mut theirs = ChangeStream::open(&server, tenant.api.key(), "").await?;
    tenant.command("suspend", &[]).await?;
    let is_of_all = |it: &StreamEvent| it.name == "resync" && it.data["kinds"] == Value::Null;
    let seen = mine.until("a resync", SOON, is_of_all).await?;
    assert_eq!(seen.last().ok_or("none")?.data["reason"], "lagged");
    theirs.rest(SOON).await?;
    Ok(())
}
