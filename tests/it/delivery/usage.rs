//! Usage of deliveries by day, and delivery tokens that are shown again.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Gallery, SOON};
use crate::support::{Failure, eventually, server::Form};

impl Gallery {
    async fn read(&self, path: &str) -> Result<Value, Failure> {
        self.api
            .expect(StatusCode::OK, Method::GET, path, None)
            .await
    }
}

/// The last day's count of a list of days, oldest first.
fn today(days: &Value) -> &Value {
    days.as_array()
        .and_then(|days| days.last())
        .unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_the_same_after_a_restart_and_an_alias_can_be_given_up() -> Result<(), Failure> {
    let mut gallery = Gallery::open().await?;
    let keys = gallery.read("/api/delivery-keys").await?;
    assert_eq!(keys["keys"][0]["token"], gallery.key.as_str());
    gallery.server.kill().await?;
    gallery.server.restart().await?;
    gallery.api = gallery.server.api();
    let again = gallery.read("/api/delivery-keys").await?;
    assert_eq!(again["keys"][0]["token"], gallery.key.as_str());
    let path = gallery.path("w=100");
    gallery.api.fetch(&path).await?.expect(200)?;

    let key = format!(
        "/api/delivery-keys/{}",
        again["keys"][0]["id"].as_str().unwrap_or_default()
    );
    let by_alias = format!("/cdn/v1/shop/{}?w=100", gallery.file);
    for (alias, status) in [(json!("shop"), 200), (json!(null), 404)] {
        let body = json!({"alias": alias});
        gallery
            .api
            .expect(StatusCode::OK, Method::PATCH, &key, Some(&body))
            .await?;
        gallery.api.fetch(&by_alias).await?.expect(status)?;
    }
    gallery.api.fetch(&path).await?.expect(200)?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_is_told_by_day_kind_and_key_and_survives_a_stop() -> Result<(), Failure> {
    let mut gallery = Gallery::open().await?;
    let other = gallery.api.delivery_key().await?;
    for _ in 0..3 {
        gallery
            .api
            .fetch(&gallery.path("w=100"))
            .await?
            .expect(200)?;
    }
    gallery
        .api
        .deliver(&other, &gallery.file, "w=100")
        .await?
        .expect(200)?;
    let bytes = gallery
        .api
        .fetch(&gallery.path("w=100"))
        .await?
        .expect(200)?
        .bytes
        .len();
    let photograph = super::photograph()?;
    let form = || Form::new().file("files", "a.jpg", &photograph);
    gallery
        .api
        .post_form("/api/convert", form().field("format", "webp"))
        .await?
        .expect(200)?;
    gallery
        .api
        .post_form("/api/media/thumbnail", form())
        .await?
        .expect(200)?;
    // Refused, and not counted.
    gallery
        .api
        .post_form("/api/convert", form().field("format", "exe"))
        .await?
        .expect(400)?;

    let history = eventually("five deliveries are counted", SOON, async || {
        let history = gallery.read("/api/usage/history?days=7").await.ok()?;
        (history["deliveries"]["total"] == 5).then_some(history)
    });
    let history = history.await?;
    let kinds = json!({"convert": 1, "thumbnail": 1});
    assert_eq!(
        today(&history["operations"]["days"])["kinds"],
        kinds,
        "{history}"
    );
    assert_eq!(history["operations"]["total"], 2);
    let keys = &history["deliveries"]["keys"];
    let count =
        |key: &Value| key["hits"].as_i64().unwrap_or(0) + key["misses"].as_i64().unwrap_or(0);
    assert_eq!((count(&keys[0]), count(&keys[1])), (4, 1), "{keys}");
    assert_eq!(keys[0]["bytes"], 4 * bytes);

    // A clean stop writes what was counted in the last second.
    gallery
        .api
        .fetch(&gallery.path("w=100"))
        .await?
        .expect(200)?;
    assert!(gallery.server.terminate().await?.success());
    gallery.server.restart().await?;
    gallery.server.wait_ready(Duration::from_secs(20)).await?;
    gallery.api = gallery.server.api();
    let after = gallery.read("/api/usage/history?days=1").await?;
    assert_eq!(
        (&after["deliveries"]["total"], &after["operations"]["total"]),
        (&json!(6), &json!(2))
    );
    let id = after["deliveries"]["keys"][0]["id"]
        .as_str()
        .unwrap_or_default();
    let stats = gallery.read(&format!("/api/cdn/stats?key={id}")).await?;
    assert_eq!(
        (&stats["bytes"], &stats["days"][0]["bytes"]),
        (&json!(5 * bytes), &json!(5 * bytes))
    );
    Ok(())
}
