//! Fields of live inputs and their ranges: `reconnectWindowSeconds`, `latency`, `recordMode`, `pullUrl`, `requireSignedPlayback`.
//!
//! A field of the API that this version does not support yet is rejected rather than silently accepted.

use serde::Deserialize;
use sluice_actors::{live::pull::PullUrl, outbound::Outbound};
use sluice_store::live_inputs::{Latency, LiveInputPatch, NewLiveInput, RecordMode};
use utoipa::ToSchema;

use crate::application::{error::ApiError, field};

/// Range of `reconnectWindowSeconds`.
const RECONNECT_WINDOW_S: std::ops::RangeInclusive<u32> = 0..=1800;

/// Live input to be made; every field may be left out.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewLiveInputRequest {
    /// 1 to 120 characters; `Live input` without one.
    name: Option<String>,
    /// `off` (without one), or `automatic`: every broadcast becomes a stored file and a video stream.
    record_mode: Option<String>,
    /// 0 to 1800, 60 without one: how long a broadcast waits for its encoder after a drop.
    reconnect_window_seconds: Option<i64>,
    /// True when viewers need a playback token (false).
    require_signed_playback: Option<bool>,
    /// At most 25 hosts, exact or `*.example.org`, whose pages may play; empty: every page.
    allowed_domains: Option<Vec<String>>,
    /// `low` (without one) or `standard`.
    latency: Option<String>,
    /// RTSP source that the service fetches, `rtsp://` or `rtsps://`, with a user name and password where it needs
    /// them.
    pull_url: Option<String>,
}

/// The fields to change.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeLiveInput {
    /// 1 to 120 characters.
    name: Option<String>,
    /// `false` rejects encoders and ends a running publish.
    enabled: Option<bool>,
    /// `off` or `automatic`; from the next broadcast on.
    record_mode: Option<String>,
    /// 0 to 1800.
    reconnect_window_seconds: Option<i64>,
    /// True when viewers need a playback token. From the answer on it holds for present viewers too.
    require_signed_playback: Option<bool>,
    /// At most 25 hosts, exact or `*.example.org`; empty: every page.
    allowed_domains: Option<Vec<String>>,
    /// `low` or `standard`; from the next broadcast on.
    latency: Option<String>,
    /// An RTSP source that the service fetches; null ends that.
    #[serde(deserialize_with = "field::given")]
    #[schema(value_type = Option<String>)]
    pull_url: Option<Option<String>>,
}

impl NewLiveInputRequest {
    pub(crate) fn checked(self) -> Result<NewLiveInput, ApiError> {
        let default = NewLiveInput::default();
        Ok(NewLiveInput {
            name: field::name(self.name)?.unwrap_or(default.name),
            record_mode: record_mode(self.record_mode.as_deref())?.unwrap_or(default.record_mode),
            reconnect_window_s: window(self.reconnect_window_seconds)?
                .unwrap_or(default.reconnect_window_s),
            require_signed_playback: self.require_signed_playback.unwrap_or(false),
            allowed_domains: field::allowed_domains(self.allowed_domains)?.unwrap_or_default(),
            latency: latency(self.latency.as_deref())?.unwrap_or(default.latency),
            pull_url: pull_url(self.pull_url)?,
        })
    }
}

impl ChangeLiveInput {
    pub(crate) fn checked(self) -> Result<LiveInputPatch, ApiError> {
        Ok(LiveInputPatch {
            name: field::name(self.name)?,
            enabled: self.enabled,
            reconnect_window_s: window(self.reconnect_window_seconds)?,
            require_signed_playback: self.require_signed_playback,
            allowed_domains: field::allowed_domains(self.allowed_domains)?,
            record_mode: record_mode(self.record_mode.as_deref())?,
            latency: latency(self.latency.as_deref())?,
            pull_url: self.pull_url.map(pull_url).transpose()?,
        })
    }
}

fn window(given: Option<i64>) -> Result<Option<u32>, ApiError> {
    field::within("reconnectWindowSeconds", given, RECONNECT_WINDOW_S)
}

fn latency(given: Option<&str>) -> Result<Option<Latency>, ApiError> {
    field::choice("latency", given, &["standard", "low"], Latency::parse)
}

fn record_mode(given: Option<&str>) -> Result<Option<RecordMode>, ApiError> {
    field::choice(
        "recordMode",
        given,
        &["off", "automatic"],
        RecordMode::parse,
    )
}

/// Checks the form of a pull address; [`reject_unreachable`] checks its target.
fn pull_url(given: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(text) = given else {
        return Ok(None);
    };
    match PullUrl::parse(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(invalid!("pullUrl: {error}")),
    }
}

/// Answers 400 for a source whose host is or now resolves to a rejected address.
pub(crate) async fn reject_unreachable(
    outbound: &Outbound,
    pull_url: Option<&str>,
) -> Result<(), ApiError> {
    let Some(pull_url) = pull_url.and_then(|text| PullUrl::parse(text).ok()) else {
        return Ok(());
    };
    let checked = match pull_url.target(outbound) {
        Ok(target) => outbound.probe_peer(&target).await,
        Err(rejection) => Err(rejection),
    };
    checked.map_err(|rejection| invalid!("pullUrl: {rejection}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejection(body: serde_json::Value) -> String {
        let new: NewLiveInputRequest = serde_json::from_value(body.clone()).unwrap();
        let change: ChangeLiveInput = serde_json::from_value(body).unwrap();
        let message = new.checked().unwrap_err().to_string();
        assert_eq!(change.checked().unwrap_err().to_string(), message);
        message
    }

    #[test]
    fn values_out_of_range_are_named() {
        let cases = [
            (
                json!({"name": ""}),
                "name must have 1 to 120 characters, got 0",
            ),
            (
                json!({"reconnectWindowSeconds": 1801}),
                "reconnectWindowSeconds must be 0 to 1800, got 1801",
            ),
            (
                json!({"reconnectWindowSeconds": -1}),
                "reconnectWindowSeconds must be 0 to 1800, got -1",
            ),
            (
                json!({"latency": "ultra"}),
                "latency must be standard or low, got `ultra`",
            ),
            (
                json!({"recordMode": "always"}),
                "recordMode must be off or automatic, got `always`",
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(rejection(body), expected);
        }
        let rejected = rejection(json!({"pullUrl": "http://camera"}));
        assert!(rejected.starts_with("pullUrl: "), "{rejected}");
    }

    #[test]
    fn a_source_is_set_and_taken_away() {
        let change = |body: serde_json::Value| {
            let change: ChangeLiveInput = serde_json::from_value(body).unwrap();
            change.checked().unwrap().pull_url
        };
        assert_eq!(change(json!({})), None);
        assert_eq!(change(json!({"pullUrl": null})), Some(None));
        let url = "rtsp://cam/1".to_owned();
        assert_eq!(change(json!({"pullUrl": url})), Some(Some(url)));
    }

    #[test]
    fn nothing_given_means_the_defaults() {
        let new = NewLiveInputRequest::default().checked().unwrap();
        assert_eq!(
            (new.name.as_str(), new.reconnect_window_s, new.latency),
            ("Live input", 60, Latency::Low)
        );
        let change = ChangeLiveInput::default().checked().unwrap();
        assert!(
            change.name.is_none() && change.enabled.is_none() && change.allowed_domains.is_none()
        );
    }
}
