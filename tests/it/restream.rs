//! Outputs: media of an input is forwarded to other servers, over each protocol, and no target affects the input.

mod changes;
mod faults;
mod independent;
mod listening;
mod relay;
mod servers;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::support::{
    Failure, eventually,
    media::{check_contiguous, check_contiguous_to_a_cut},
    server::{Api, Server, Settings},
    viewer::Collection,
};

const SOON: Duration = Duration::from_secs(15);
/// Longer than any clip here plays.
const PLAYED: Duration = Duration::from_secs(60);
/// Frames from key frame to key frame.
const GROUP: u32 = 60;

/// A service whose outputs may lead to this machine, and are tried again soon.
fn sender() -> Settings {
    Settings::new()
        .reaching_this_machine()
        .env("SLUICE_RESTREAM__RETRY_FIRST", "200ms")
        .env("SLUICE_RESTREAM__RETRY_LONGEST", "1s")
}

fn outputs_of(input_id: &str) -> String {
    format!("/api/live/inputs/{input_id}/outputs")
}

/// An output by REST.
#[derive(Clone, Debug)]
struct Output {
    api: Api,
    path: String,
}

impl Output {
    async fn add(server: &Server, input_id: &str, url: &str) -> Result<Self, Failure> {
        let (api, path) = (server.api(), outputs_of(input_id));
        let body = json!({"url": url});
        let made = api
            .expect(StatusCode::CREATED, Method::POST, &path, Some(&body))
            .await?;
        assert_eq!(made["output"]["url"], url);
        let id = made["output"]["id"].as_str().ok_or("no id")?;
        Ok(Self {
            api,
            path: format!("{path}/{id}"),
        })
    }

    async fn get(&self) -> Result<Value, Failure> {
        let answer = self
            .api
            .expect(StatusCode::OK, Method::GET, &self.path, None)
            .await?;
        Ok(answer["output"].clone())
    }

    async fn patch(&self, body: Value) -> Result<Value, Failure> {
        let answer = self
            .api
            .expect(StatusCode::OK, Method::PATCH, &self.path, Some(&body))
            .await?;
        Ok(answer["output"].clone())
    }

    async fn delete(&self) -> Result<(), Failure> {
        let deleted = self
            .api
            .expect(StatusCode::OK, Method::DELETE, &self.path, None)
            .await?;
        assert_eq!(deleted, json!({"success": true}));
        Ok(())
    }

    async fn wait(&self, what: &str, met: impl Fn(&Value) -> bool) -> Result<Value, Failure> {
        eventually(what, PLAYED, async || {
            self.get().await.ok().filter(|output| met(output))
        })
        .await
    }

    async fn wait_status(&self, status: &str) -> Result<Value, Failure> {
        let what = format!("the output is {status}");
        self.wait(&what, |output| output["status"] == status).await
    }
}

/// The one range of a target that took the stream in its middle: from a key frame on without a hole.
fn check_taken(seen: &Collection) -> Result<Vec<u32>, Failure> {
    let mut ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "{}", seen.summary());
    let range = ranges.remove(0);
    check_from_key_frame(&range)?;
    Ok(range)
}

/// The same for one that was ended anywhere.
fn check_cut(seen: &Collection) -> Result<(), Failure> {
    let ranges = seen.numbers()?;
    assert_eq!(ranges.len(), 1, "{}", seen.summary());
    check_from_key_frame_to_a_cut(&ranges[0])
}

fn check_from_key_frame_to_a_cut(range: &[u32]) -> Result<(), Failure> {
    let first = *range.first().ok_or("no frames")?;
    assert_eq!(first % GROUP, 0, "frame {first} is no key frame");
    check_contiguous_to_a_cut(range, first)
}

fn check_from_key_frame(range: &[u32]) -> Result<(), Failure> {
    let first = *range.first().ok_or("no frames")?;
    assert_eq!(first % GROUP, 0, "frame {first} is no key frame");
    check_contiguous(range, first)
}
