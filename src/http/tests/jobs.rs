//! Jobs (`/api/jobs`) without workers: accepted jobs stay pending.

use std::{sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use sluice_actors::{
    compute::{Assignment, ComputeSettings, Error, Finished, Lane},
    convert::{Conversions, Workers},
};
use sluice_media::task::Limits;
use sluice_store::api_keys::Scope;

use super::{Answer, Site, eventually, handles, request};
use crate::{application::context::MediaHandles, config::Config};

const SVG: &[u8] = b"<svg xmlns='http://www.w3.org/2000/svg' width='4' height='3'/>";

/// A form with `files` images and some fields.
pub(super) fn form(files: usize, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::new();
    for _ in 0..files {
        body.extend_from_slice(
            b"--edge\r\nContent-Disposition: form-data; name=\"files\"; filename=\"a.svg\"\r\n\r\n",
        );
        body.extend_from_slice(SVG);
        body.extend_from_slice(b"\r\n");
    }
    for (name, text) in fields {
        let part =
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

/// Workers that are there and never done.
struct Slow;

impl Workers for Slow {
    fn run(&self, _: Lane, _: Assignment) -> BoxFuture<'_, Result<Finished, Error>> {
        std::future::pending().boxed()
    }

    fn limits(&self) -> Limits {
        ComputeSettings::default().limits()
    }

    fn width(&self) -> usize {
        1
    }

    fn signs(&self) -> u64 {
        0
    }

    fn refused(&self) -> Option<String> {
        None
    }
}

impl Site {
    pub(super) async fn with_slow_workers(adjust: impl FnOnce(&mut Config)) -> Self {
        Self::open_over(adjust, |config, store| {
            let conversions = Conversions::over(
                config.convert.clone(),
                store.clone(),
                Arc::new(Slow),
                str::to_owned,
            );
            MediaHandles {
                conversions,
                ..handles(config, store)
            }
        })
        .await
    }

    pub(super) async fn send_form(&self, key: &str, path: &str, body: Vec<u8>) -> Answer {
        let request = request("POST", path)
            .insert_header(("authorization", format!("Bearer {key}")))
            .insert_header(("content-type", "multipart/form-data; boundary=edge"))
            .set_payload(body);
        self.send(request).await
    }

    pub(super) async fn pending_job(&self) -> String {
        let body = form(2, &[("format", "png")]);
        let answer = self
            .send_form(self.first.api_key.expose(), "/api/jobs", body)
            .await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let answer = answer.json();
        assert_eq!(
            (&answer["status"], &answer["totalFiles"], &answer["tool"]),
            (&json!("pending"), &json!(2), &Value::Null)
        );
        answer["jobId"].as_str().unwrap().to_owned()
    }

    pub(super) async fn used(&self) -> Value {
        self.call("GET", "/api/usage", None).await.json()["operations"]["used"].clone()
    }
}

#[actix_web::test]
async fn a_job_is_shown_to_its_owner_only_and_ends_once() {
    let site = Site::open().await;
    let id = site.pending_job().await;
    let path = format!("/api/jobs/{id}");
    let record = site.call("GET", &path, None).await.json();
    assert_eq!(
        (
            &record["id"],
            &record["jobType"],
            &record["progress"],
            &record["results"]
        ),
        (&json!(id), &json!("convert"), &json!(0), &json!([]))
    );
    for null in [
        "tool",
        "archive",
        "errorMessage",
        "startedAt",
        "completedAt",
    ] {
        assert!(
            record.get(null).is_some_and(Value::is_null),
            "{null}: {record}"
        );
    }
    let (reader, stranger) = (site.key(Scope::Read).await, site.stranger().await);
    let cases = [
        (&reader, "GET", path.clone(), 200),
        (&reader, "DELETE", path.clone(), 403),
        (&stranger, "GET", path.clone(), 404),
        (&stranger, "DELETE", path.clone(), 404),
        (&stranger, "GET", format!("{path}/events"), 404),
    ];
    for (key, method, path, status) in cases {
        let answer = site.call_as(key, method, &path, None).await;
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
    }
    let rejected = site.send_form(&reader, "/api/jobs", form(1, &[])).await;
    assert_eq!(rejected.status, 403);
    let theirs = site
        .call_as(&stranger, "GET", "/api/jobs", None)
        .await
        .json();
    assert_eq!(theirs["jobs"], json!([]));

    assert_eq!(site.used().await, 2);
    let cancelled = site.call("DELETE", &path, None).await;
    assert_eq!(
        (cancelled.status, &cancelled.json()["status"]),
        (200, &json!("cancelled"))
    );
    assert_eq!(site.used().await, 0);
    let again = site.call("DELETE", &path, None).await;
    assert_eq!(
        (again.status, again.error().contains("cancelled")),
        (409, true)
    );

    let events = site.call("GET", &format!("{path}/events"), None).await;
    assert_eq!(events.header("content-type"), "text/event-stream");
    let text = String::from_utf8(events.body).unwrap();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["progress", "end"], "{text}");
}

#[actix_web::test]
async fn what_takes_long_is_answered_and_continues() {
    let site = Site::with_slow_workers(|config| {
        config.convert.inline_wait = Duration::from_millis(1);
    })
    .await;
    let key = site.first.api_key.expose();
    for (path, fields, tool) in [
        ("/api/convert", &[("format", "png")][..], Value::Null),
        ("/api/media/thumbnail", &[], json!("thumbnail")),
        (
            "/api/media/thumbnail",
            &[("async", "true")],
            json!("thumbnail"),
        ),
    ] {
        let answer = site.send_form(key, path, form(1, fields)).await;
        assert_eq!(answer.status, 202, "{path}: {answer:?}");
        assert_eq!(answer.json()["tool"], tool, "{path}");
    }
    let list = site.call("GET", "/api/jobs?limit=2", None).await.json();
    assert_eq!(list["jobs"].as_array().unwrap().len(), 2);
    assert_eq!(
        list["pagination"],
        json!({"limit": 2, "offset": 0, "total": 3, "hasMore": true})
    );
    let cursor = list["nextCursor"].as_str().unwrap();
    let rest = site
        .call("GET", &format!("/api/jobs?limit=2&cursor={cursor}"), None)
        .await
        .json();
    let skipped = site
        .call("GET", "/api/jobs?limit=2&offset=2", None)
        .await
        .json();
    assert_eq!(rest["jobs"], skipped["jobs"]);
    assert_eq!(
        (&rest["nextCursor"], &rest["jobs"][0]["results"]),
        (&Value::Null, &Value::Null)
    );
}

#[actix_web::test]
async fn without_workers_no_one_waits_in_vain() {
    let site = Site::open().await;
    let key = site.first.api_key.expose();
    let is_known = async || site.app.jobs.conversions.refused().is_some();
    eventually(
        "the pool does not know that its program is missing",
        is_known,
    )
    .await;
    let rejected = site
        .send_form(key, "/api/convert", form(1, &[("format", "png")]))
        .await;
    assert_eq!(
        (rejected.status, rejected.header("retry-after")),
        (503, "10")
    );
    assert_eq!(site.used().await, 0);
    site.pending_job().await;
}

#[actix_web::test]
async fn followers_are_bounded() {
    let site = Site::open_with(|config| config.convert.max_followers = 0).await;
    let id = site.pending_job().await;
    let rejected = site
        .call("GET", &format!("/api/jobs/{id}/events"), None)
        .await;
    assert_eq!(rejected.status, 503);
    assert_eq!(rejected.header("retry-after"), "1");
}

#[actix_web::test]
async fn usage_shows_meters_and_limits() {
    let site = Site::open_with(|config| {
        let plan = config.plans.get_mut("unlimited").unwrap();
        plan.operations_per_month = 9;
    })
    .await;
    site.pending_job().await;
    let usage = site.call("GET", "/api/usage", None).await.json();
    assert_eq!(usage["plan"], "unlimited");
    assert_eq!(
        (
            &usage["operations"]["limit"],
            &usage["operations"]["remaining"]
        ),
        (&json!(9), &json!(7))
    );
    assert_eq!(
        (&usage["deliveries"]["used"], &usage["deliveries"]["limit"]),
        (&json!(0), &Value::Null)
    );
    assert_eq!(
        (
            &usage["storage"]["usedBytes"],
            &usage["storage"]["limitBytes"]
        ),
        (&json!(0), &Value::Null)
    );
    assert!(
        usage["operations"]["resetsAt"]
            .as_str()
            .unwrap()
            .ends_with("-01T00:00:00.000Z")
    );
}

#[actix_web::test]
async fn the_description_holds_the_operation_table() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let tools = &document["paths"]["/api/media/{tool}"]["post"]["description"];
    assert!(
        tools.as_str().unwrap().contains("**strip-metadata**: "),
        "{tools}"
    );
}

#[actix_web::test]
async fn the_description_lists_the_plans() {
    let site = Site::open().await;
    let document = site.call("GET", "/openapi.json", None).await.json();
    let plans = document["paths"]["/api/usage"]["get"]["description"]
        .as_str()
        .unwrap();
    for line in [
        "- `free`: 500 media operations and 5000 image deliveries a month, 30 requests a minute, 5 files at once; \
         images up to 50.0 MB, videos up to 500.0 MB; 1.0 GB storage",
        "- `unlimited`: any number of media operations",
    ] {
        assert!(plans.contains(line), "{plans}");
    }
}
