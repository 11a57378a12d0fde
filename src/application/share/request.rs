//! Fields of a share link: `expiresIn`, `expiresAt`, `password`, `downloadLimit`, `allowDownload`; ranges and default lifetime.

use jiff::Timestamp;
use serde::Deserialize;
use sluice_store::{Secret, credentials::check_password};
use utoipa::ToSchema;

use crate::application::{
    error::ApiError,
    field::{self, given},
};

/// Range of `expiresIn`: an hour to ten years.
const LIFETIME_S: std::ops::RangeInclusive<u32> = 3_600..=315_360_000;
/// Default lifetime: seven days.
const DEFAULT_LIFETIME_S: u32 = 604_800;
/// Tolerance for the time that a request for the shortest lifetime takes to arrive.
const ON_THE_WAY_S: i64 = 60;
/// Range of `downloadLimit`.
const DOWNLOADS: std::ops::RangeInclusive<u32> = 1..=1_000_000_000;

/// Link to be made.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewShareRequest {
    /// Seconds, 3600 to 315360000; null: for ever. Without it and `expiresAt`: seven days.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_in: Option<Option<i64>>,
    /// Expiry in place of `expiresIn`; null: never.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<String>>,
    /// 1 to 1024 bytes that readers have to show; without it, or empty: none.
    password: Option<String>,
    /// Number of downloads that may begin, 1 to 1000000000; null: any number.
    download_limit: Option<i64>,
    /// True when originals may be downloaded (true).
    allow_download: Option<bool>,
}

/// The checked terms of a link.
pub(crate) struct ShareTerms {
    /// Milliseconds since 1970; `None`: never.
    pub expires_at: Option<i64>,
    pub password: Option<Secret>,
    pub download_limit: Option<u32>,
    pub allow_download: bool,
}

impl NewShareRequest {
    pub(crate) fn checked(self, now_ms: i64) -> Result<ShareTerms, ApiError> {
        let expires_at = match (self.expires_in, self.expires_at) {
            (Some(_), Some(_)) => {
                return Err(invalid!(
                    "expiresIn and expiresAt are two ways to say the same: send one of them"
                ));
            }
            (_, Some(None)) | (Some(None), None) => None,
            (None, Some(Some(text))) => Some(time(&text, now_ms)?),
            (seconds, None) => {
                let seconds = field::within("expiresIn", seconds.flatten(), LIFETIME_S)?;
                let seconds = seconds.unwrap_or(DEFAULT_LIFETIME_S);
                Some(now_ms + i64::from(seconds) * 1_000)
            }
        };
        let password = self.password.filter(|password| !password.is_empty());
        let password = password.map(Secret::new);
        if let Some(password) = &password {
            check_password(password)?;
        }
        Ok(ShareTerms {
            expires_at,
            password,
            download_limit: field::within("downloadLimit", self.download_limit, DOWNLOADS)?,
            allow_download: self.allow_download.unwrap_or(true),
        })
    }
}

fn time(text: &str, now_ms: i64) -> Result<i64, ApiError> {
    let expected =
        "a time such as 2026-12-24T18:00:00Z, an hour to ten years from now, or null for never";
    let wrong = || field::wrong("expiresAt", expected, text);
    let at: Timestamp = text.parse().map_err(|_| wrong())?;
    let (shortest, longest) = (i64::from(*LIFETIME_S.start()), i64::from(*LIFETIME_S.end()));
    let ahead_ms = at.as_millisecond() - now_ms;
    match ((shortest - ON_THE_WAY_S) * 1_000..=longest * 1_000).contains(&ahead_ms) {
        true => Ok(at.as_millisecond()),
        false => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_795_219_200_000;

    fn checked(body: serde_json::Value) -> Result<ShareTerms, ApiError> {
        serde_json::from_value::<NewShareRequest>(body)
            .unwrap()
            .checked(NOW)
    }

    #[test]
    fn a_link_lasts_as_long_as_was_asked() {
        let day = 24 * 3_600_000;
        for (body, expected) in [
            (json!({}), Some(NOW + 7 * day)),
            (json!({"expiresIn": 3600}), Some(NOW + 3_600_000)),
            (json!({"expiresIn": null}), None),
            (json!({"expiresAt": null}), None),
            (
                json!({"expiresAt": "2026-11-22T00:00:00Z"}),
                Some(NOW + day),
            ),
            (
                json!({"expiresAt": "2026-11-22T01:00:00+01:00"}),
                Some(NOW + day),
            ),
        ] {
            let text = body.to_string();
            assert_eq!(checked(body).unwrap().expires_at, expected, "{text}");
        }
    }

    #[test]
    fn wrong_values_are_named() {
        for (body, field) in [
            (json!({"expiresIn": 3599}), "expiresIn must be 3600"),
            (json!({"expiresIn": -1}), "expiresIn must be"),
            (json!({"expiresIn": i64::MAX}), "expiresIn must be"),
            (json!({"expiresAt": "tomorrow"}), "expiresAt must be a time"),
            (
                json!({"expiresAt": "2026-11-21T00:30:00Z"}),
                "expiresAt must be a time",
            ),
            (
                json!({"expiresAt": "2099-01-01T00:00:00Z"}),
                "expiresAt must be a time",
            ),
            (
                json!({"expiresIn": 3600, "expiresAt": null}),
                "expiresIn and expiresAt",
            ),
            (json!({"downloadLimit": 0}), "downloadLimit must be 1"),
            (json!({"password": "x".repeat(1_025)}), "password"),
        ] {
            let text = body.to_string();
            let error = checked(body).map(drop).unwrap_err().to_string();
            assert!(error.starts_with(field), "{text}: {error}");
        }
        let none = checked(json!({"password": "", "downloadLimit": null})).unwrap();
        assert!(none.password.is_none() && none.download_limit.is_none() && none.allow_download);
    }
}
