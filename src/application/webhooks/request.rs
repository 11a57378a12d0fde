//! Fields of webhook endpoints and their checks: `url`, `eventTypes`, `description`; `since` of a recovery; list of event types.

use serde::Deserialize;
use sluice_actors::events::known_types;
use sluice_store::webhooks::{EndpointPatch, NewEndpoint};
use utoipa::ToSchema;

use crate::application::{
    error::ApiError,
    field::{self, given, shorten, time_of, unix_ms},
};

/// Longest `description`, in characters.
const MAX_DESCRIPTION: usize = 500;
/// Longest URL in bytes: the common bound of receivers and the proxies before them.
const MAX_URL: usize = 2_048;
/// Word for every event type of the specification but those that are sent by name only.
const EVERYTHING: &str = "*";
/// Event type without subscriptions, delivered all the same.
const TEST: &str = "webhook.test";

/// An endpoint to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewWebhookRequest {
    /// http or https, without user information; at most 2048 bytes. A host in a private network must be allowed by the
    /// operator (`outbound.allow`).
    #[schema(required, value_type = String, example = "https://example.org/hooks/media")]
    url: Option<String>,
    /// Names of event types, `["*"]` for all of the specification's; those that are sent by name only may be listed
    /// beside it.
    #[schema(required, value_type = Vec<String>, example = json!(["file.uploaded", "conversion.completed"]))]
    event_types: Option<Vec<String>>,
    /// At most 500 characters.
    description: Option<String>,
    /// `true` without one; `false`: paused, events are not kept for it.
    is_active: Option<bool>,
}

/// The fields to change; null empties the description.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeWebhook {
    /// The same form as at the creation.
    url: Option<String>,
    /// The same names as at the creation.
    event_types: Option<Vec<String>>,
    /// At most 500 characters.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    /// `false` pauses the endpoint; `true` resumes one that is paused or suspended.
    is_active: Option<bool>,
}

/// Time since which failed deliveries are to be sent again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RecoverRequest {
    /// ISO 8601 with an offset, or Unix seconds; a delivery counts by the time of its making.
    #[schema(required, value_type = String, example = "2026-11-20T12:00:00Z")]
    since: serde_json::Value,
}

impl NewWebhookRequest {
    pub(crate) fn checked(self) -> Result<NewEndpoint, ApiError> {
        let url = self.url.ok_or_else(|| {
            invalid!("url is missing: give the http or https address that is to receive the events")
        })?;
        let event_types = self.event_types.ok_or_else(|| {
            invalid!(
                "eventTypes is missing: give [\"*\"] for all, or names: {}",
                all_types()
            )
        })?;
        Ok(NewEndpoint {
            url: checked_url(url)?,
            event_types: checked_types(event_types)?,
            description: field::description(Some(self.description), MAX_DESCRIPTION)?.flatten(),
            is_active: self.is_active.unwrap_or(true),
        })
    }
}

impl ChangeWebhook {
    pub(crate) fn checked(self) -> Result<EndpointPatch, ApiError> {
        Ok(EndpointPatch {
            url: self.url.map(checked_url).transpose()?,
            event_types: self.event_types.map(checked_types).transpose()?,
            description: field::description(self.description, MAX_DESCRIPTION)?,
            is_active: self.is_active,
        })
    }
}

impl RecoverRequest {
    /// Returns the time in milliseconds since 1970. A future time is rejected: it is mostly milliseconds given as
    /// seconds.
    pub(crate) fn since_ms(&self, now_ms: i64) -> Result<i64, ApiError> {
        let rejection = |problem: &str| {
            invalid!("since {problem}: give ISO 8601 such as 2026-11-20T12:00:00Z, or Unix seconds")
        };
        let time_ms = match &self.since {
            serde_json::Value::Null => return Err(rejection("is missing")),
            serde_json::Value::Number(seconds) => seconds.as_i64().and_then(unix_ms),
            serde_json::Value::String(text) => time_of(text),
            _ => None,
        };
        let shown = || shorten(&self.since.to_string());
        match time_ms {
            None => Err(rejection(&format!("is no time, got {}", shown()))),
            Some(time_ms) if time_ms > now_ms => {
                Err(rejection(&format!("lies in the future, got {}", shown())))
            }
            Some(time_ms) => Ok(time_ms),
        }
    }
}

/// Checks the name of an event type by which lists are filtered.
pub(crate) fn checked_type(field: &str, name: &str) -> Result<String, ApiError> {
    match is_type(name) || name == TEST {
        true => Ok(name.to_owned()),
        false => Err(unknown(field, &[name])),
    }
}

fn is_type(name: &str) -> bool {
    known_types().iter().any(|known| known.name == name)
}

fn checked_url(url: String) -> Result<String, ApiError> {
    let url = url.trim();
    match url.len() {
        1..=MAX_URL => Ok(url.to_owned()),
        length => Err(invalid!("url must have 1 to {MAX_URL} bytes, got {length}")),
    }
}

/// Checks event types: at least one, all of them known.
fn checked_types(given: Vec<String>) -> Result<Vec<String>, ApiError> {
    if given.is_empty() {
        return Err(invalid!(
            "eventTypes must not be empty: give [\"*\"] for all, or names: {}",
            all_types()
        ));
    }
    let strange: Vec<&str> = given
        .iter()
        .map(String::as_str)
        .filter(|name| *name != EVERYTHING && !is_type(name))
        .collect();
    if !strange.is_empty() {
        return Err(unknown("eventTypes", &strange));
    }
    Ok(given)
}

/// Names at most five of the unknown types: a body may hold thousands.
fn unknown(field: &str, strange: &[&str]) -> ApiError {
    /// Most unknown types that a message names.
    const NAMED: usize = 5;
    let mut named: Vec<String> = strange
        .iter()
        .take(NAMED)
        .map(|name| format!("`{}`", shorten(name)))
        .collect();
    if strange.len() > NAMED {
        named.push(format!("{} more", strange.len() - NAMED));
    }
    invalid!(
        "{field} has unknown names: {}; known are {}",
        named.join(", "),
        all_types()
    )
}

/// The event types in Markdown, a line each.
pub(crate) fn described_types() -> String {
    known_types()
        .iter()
        .map(|known| {
            let by_name = match known.is_opt_in {
                true => "; only to webhooks that name it",
                false => "",
            };
            format!("- `{}`: {}{by_name}\n", known.name, known.summary)
        })
        .collect()
}

fn all_types() -> String {
    let names: Vec<&str> = known_types().iter().map(|known| known.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rejection(body: serde_json::Value) -> String {
        let new: NewWebhookRequest = serde_json::from_value(body).unwrap();
        new.checked().unwrap_err().to_string()
    }

    #[test]
    fn values_out_of_range_are_named() {
        let all = json!(["*"]);
        let url = "https://example.org/";
        let cases = [
            (json!({"eventTypes": all}), "url is missing: "),
            (
                json!({"url": "  ", "eventTypes": all}),
                "url must have 1 to 2048 bytes, got 0",
            ),
            (
                json!({"url": "h".repeat(2049), "eventTypes": all}),
                "url must have 1 to 2048 bytes, got 2049",
            ),
            (json!({"url": url}), "eventTypes is missing: "),
            (
                json!({"url": url, "eventTypes": []}),
                "eventTypes must not be empty: ",
            ),
            (
                json!({"url": url, "eventTypes": ["file.uploaded", "file.*", "", "File.Uploaded"]}),
                "eventTypes has unknown names: `file.*`, ``, `File.Uploaded`; known are ",
            ),
            (
                json!({"url": url, "eventTypes": ["a", "b", "c", "d", "e", "f", "g"]}),
                "`d`, `e`, 2 more; known are ",
            ),
            (
                json!({"url": url, "eventTypes": all, "description": "ü".repeat(501)}),
                "description must have at most 500 characters, got 501",
            ),
        ];
        for (body, expected) in cases {
            let message = rejection(body);
            assert!(message.contains(expected), "{message}");
            if expected.starts_with("eventTypes") {
                assert!(message.contains("conversion.completed"), "{message}");
            }
        }
    }

    #[test]
    fn types_may_be_beside_the_star() {
        for given in [
            json!(["*"]),
            json!(["*", "live.input.connected"]),
            json!(["file.uploaded", "conversion.failed"]),
        ] {
            let change: ChangeWebhook =
                serde_json::from_value(json!({"eventTypes": given})).unwrap();
            assert_eq!(json!(change.checked().unwrap().event_types), given);
        }
    }

    #[test]
    fn a_change_distinguishes_null_from_nothing() {
        let read = |body| {
            let change: ChangeWebhook = serde_json::from_value(body).unwrap();
            change.checked().unwrap()
        };
        let nothing = read(json!({}));
        assert!(nothing.url.is_none() && nothing.is_active.is_none());
        assert_eq!(nothing.description, None);
        assert_eq!(read(json!({"description": null})).description, Some(None));
    }

    #[test]
    fn times_are_read_in_both_forms() {
        let now_ms = 1_795_000_000_000;
        let since = |since: serde_json::Value| {
            let request = RecoverRequest { since };
            request.since_ms(now_ms).map_err(|error| error.to_string())
        };
        let noon = Ok(1_794_312_000_000);
        for given in [
            json!("2026-11-10T12:00:00Z"),
            json!(" 2026-11-10T13:00:00.000+01:00 "),
            json!(1_794_312_000),
            json!("1794312000"),
        ] {
            assert_eq!(since(given), noon);
        }
        assert_eq!(since(json!(0)), Ok(0));
        for (given, problem) in [
            (json!(null), "since is missing: "),
            (json!(""), "is no time, got \"\""),
            (json!("yesterday"), "is no time, got \"yesterday\""),
            (json!("2026-11-10T12:00:00"), "is no time"),
            (json!(-1), "is no time, got -1"),
            (json!(1.5), "is no time"),
            (json!([1]), "is no time"),
            (json!(i64::MAX), "is no time"),
            (json!(u64::MAX), "is no time"),
            (json!(1_794_312_000_000_i64), "lies in the future"),
            (json!("2126-01-01T00:00:00Z"), "lies in the future"),
        ] {
            let message = since(given).unwrap_err();
            assert!(message.contains(problem), "{message}");
            assert!(message.ends_with("or Unix seconds"), "{message}");
        }
    }
}
