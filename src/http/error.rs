//! HTTP status and headers of every error (`Retry-After`, `Allow`, `WWW-Authenticate`); the only place that maps them.
//!
//! Handlers return [`ApiError`]; every path answers `{error, code?, detail?, version?, upgradeUrl?}` as JSON. A private cause is
//! logged here, once, and never shown.

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};

use crate::application::error::{ApiError, ErrorBody, UNKNOWN_RETRY_AFTER_S};

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Invalid(_) | Self::InvalidSdp(_) | Self::InvalidDefinition { .. } => {
                StatusCode::BAD_REQUEST
            }
            Self::Unauthenticated(_) => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_)
            | Self::InsufficientScope(_)
            | Self::WrongPassword
            | Self::AccountSuspended
            | Self::NoPlayback { .. }
            | Self::NoShare { .. } => StatusCode::FORBIDDEN,
            Self::NotFound(_)
            | Self::ShareUnavailable
            | Self::NoSuchFile { .. }
            | Self::NotReady { .. }
            | Self::WebRtcOff
            | Self::NoSuchTool { .. } => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::NoSuchRange { .. } => StatusCode::RANGE_NOT_SATISFIABLE,
            Self::Timeout(_) => StatusCode::REQUEST_TIMEOUT,
            Self::NotAcceptable(_) => StatusCode::NOT_ACCEPTABLE,
            Self::Conflict(_) | Self::WrongState { .. } | Self::Crossed { .. } => {
                StatusCode::CONFLICT
            }
            Self::CursorExpired | Self::Gone(_) | Self::ShareUsedUp => StatusCode::GONE,
            Self::Locked(_) => StatusCode::LOCKED,
            Self::OtherVersion { .. } => StatusCode::PRECONDITION_FAILED,
            Self::ChecksumMismatch => StatusCode::from_u16(460).expect("a status has three digits"),
            Self::TooLarge(_) | Self::StorageUsedUp { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedType(_) | Self::Undecodable(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooMany { .. } | Self::DeliveriesUsedUp { .. } => StatusCode::TOO_MANY_REQUESTS,
            Self::OperationsUsedUp { .. } => StatusCode::PAYMENT_REQUIRED,
            Self::Unprocessable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Unavailable { .. } | Self::Overloaded { .. } | Self::OutcomeUnknown(_) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::NoSpace => StatusCode::INSUFFICIENT_STORAGE,
        }
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.insert_header((header::CACHE_CONTROL, "no-store"));
        if let Some(header) = header(self) {
            response.insert_header(header);
        }
        response.json(self.to_body())
    }
}

/// Returns the header that goes with the status, such as `Retry-After` or `Allow`.
fn header(error: &ApiError) -> Option<(HeaderName, HeaderValue)> {
    match error {
        ApiError::Unauthenticated(_) => {
            Some((header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
        }
        ApiError::NoSuchRange { total_bytes } => {
            HeaderValue::try_from(format!("bytes */{total_bytes}"))
                .ok()
                .map(|range| (header::CONTENT_RANGE, range))
        }
        ApiError::OtherVersion { version } => Some((
            HeaderName::from_static("tus-version"),
            HeaderValue::from_static(version),
        )),
        ApiError::MethodNotAllowed { allow, .. } => HeaderValue::from_str(allow)
            .ok()
            .map(|allow| (header::ALLOW, allow)),
        ApiError::TooMany { retry_after_s, .. }
        | ApiError::NotReady { retry_after_s, .. }
        | ApiError::DeliveriesUsedUp { retry_after_s, .. }
        | ApiError::Overloaded { retry_after_s, .. }
        | ApiError::Unavailable { retry_after_s, .. } => {
            Some((header::RETRY_AFTER, HeaderValue::from(*retry_after_s)))
        }
        ApiError::OutcomeUnknown(_) => Some((
            header::RETRY_AFTER,
            HeaderValue::from(UNKNOWN_RETRY_AFTER_S),
        )),
        _ => None,
    }
}

/// The body for a status that the framework gave without one of ours.
pub(crate) fn body_for(status: StatusCode) -> ErrorBody {
    let error = match status {
        StatusCode::NOT_FOUND => "no such path".to_owned(),
        StatusCode::INTERNAL_SERVER_ERROR => "internal error".to_owned(),
        _ => status
            .canonical_reason()
            .unwrap_or("error")
            .to_ascii_lowercase(),
    };
    ErrorBody {
        error,
        code: None,
        detail: None,
        version: None,
        upgrade_url: None,
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{body::MessageBody as _, http::header::HeaderMap};

    use serde_json::Value;

    use super::*;

    fn answer(error: ApiError) -> (u16, HeaderMap, serde_json::Value) {
        let response = error.error_response();
        let headers = response.headers().clone();
        let status = response.status().as_u16();
        let Ok(body) = response.into_body().try_into_bytes() else {
            panic!("an error's body is in memory");
        };
        (status, headers, serde_json::from_slice(&body).unwrap())
    }

    #[test]
    fn each_kind_has_its_status() {
        let cases = [
            (ApiError::Invalid("x".into()), 400),
            (ApiError::Unauthenticated("x"), 401),
            (ApiError::Forbidden("x"), 403),
            (ApiError::InsufficientScope("x"), 403),
            (ApiError::WrongPassword, 403),
            (ApiError::NotFound("live input"), 404),
            (
                ApiError::MethodNotAllowed {
                    method: "PUT".into(),
                    allow: "GET, HEAD".into(),
                },
                405,
            ),
            (ApiError::NotAcceptable("x"), 406),
            (ApiError::Timeout("x".into()), 408),
            (ApiError::Conflict("x".into()), 409),
            (
                ApiError::WrongState {
                    code: "not_live",
                    message: "x",
                },
                409,
            ),
            (ApiError::Crossed { version: 3 }, 409),
            (
                ApiError::InvalidDefinition {
                    message: "x".into(),
                    problems: Value::Null,
                },
                400,
            ),
            (ApiError::CursorExpired, 410),
            (ApiError::TooLarge("x".into()), 413),
            (ApiError::UnsupportedType("x".into()), 415),
            (ApiError::Undecodable("x".into()), 415),
            (
                ApiError::NoSuchTool {
                    asked: "x".into(),
                    known: "resize",
                },
                404,
            ),
            (
                ApiError::TooMany {
                    message: "slow down",
                    retry_after_s: 3,
                },
                429,
            ),
            (ApiError::internal("x"), 500),
            (
                ApiError::Unavailable {
                    what: "the database",
                    retry_after_s: 1,
                },
                503,
            ),
            (ApiError::OutcomeUnknown("x".into()), 503),
            (ApiError::InvalidSdp("x".into()), 400),
            (ApiError::WebRtcOff, 404),
            (
                ApiError::Overloaded {
                    code: "webrtc_full",
                    message: "x",
                    retry_after_s: 1,
                },
                503,
            ),
            (ApiError::NoSpace, 507),
        ];
        for (error, expected) in cases {
            let (status, headers, body) = answer(error);
            assert_eq!(status, expected);
            assert_eq!(headers.get("content-type").unwrap(), "application/json");
            assert!(body["error"].is_string(), "{body}");
            assert_eq!(
                headers.contains_key("retry-after"),
                [429, 503].contains(&status),
                "{status}"
            );
            assert_eq!(headers.contains_key("www-authenticate"), status == 401);
            assert_eq!(headers.contains_key("allow"), status == 405);
        }
    }

    #[test]
    fn a_failing_disk_is_503_and_a_full_one_507() {
        use rustix::io::Errno;
        use sluice_store::Error as Store;
        let file = |errno: Errno| Store::File {
            action: "cannot read",
            path: "/data/blobs/ab".into(),
            source: errno.into(),
        };
        let of_actors = || sluice_actors::Error::Io {
            what: "reading the live folder".into(),
            source: Errno::IO.into(),
        };
        let lost = Store::Objects("the object /data/b/0 is missing".into());
        let cases: [(ApiError, u16); 10] = [
            (file(Errno::IO).into(), 503),
            (lost.into(), 503),
            (file(Errno::ROFS).into(), 503),
            (file(Errno::ACCESS).into(), 503),
            (file(Errno::NOSPC).into(), 507),
            (file(Errno::DQUOT).into(), 507),
            (Store::Full.into(), 507),
            (ApiError::of_disk(Errno::IO.into()), 503),
            (ApiError::of_disk(Errno::NOSPC.into()), 507),
            (of_actors().into(), 503),
        ];
        for (error, expected) in cases {
            let (status, headers, body) = answer(error);
            assert_eq!(status, expected, "{body}");
            assert_eq!(headers.contains_key("retry-after"), status == 503);
            assert!(!body.to_string().contains("/data"), "{body}");
        }
    }

    /// A client that repeats every request after 503 would make a change twice: the code names this one.
    #[test]
    fn a_change_of_unknown_outcome_has_its_code() {
        let (status, headers, body) = answer(sluice_store::Error::Unknown.into());
        assert_eq!(status, 503);
        assert_eq!(body["code"], "outcome_unknown");
        assert_eq!(headers.get("retry-after").unwrap(), "1");
        assert!(
            body["error"].as_str().unwrap().contains("look before"),
            "{body}"
        );
        let (_, _, busy) = answer(sluice_store::Error::Busy("x".into()).into());
        assert_eq!(busy["code"], Value::Null);
    }

    /// The code is that of the errors of a batch, so that one table serves a client for both.
    #[test]
    fn a_failed_file_has_its_code() {
        use sluice_media::task::{Failure, FailureCode as Code};
        let codes = [
            Code::UnsupportedType,
            Code::Undecodable,
            Code::TooLarge,
            Code::Impossible,
            Code::DecodeFailed,
            Code::TimedOut,
        ];
        for code in codes {
            let (_, _, body) = answer(Failure::new(code, "x").into());
            assert_eq!(body["code"], serde_json::to_value(code).unwrap());
        }
    }

    #[test]
    fn a_private_cause_is_not_shown() {
        let (_, _, body) = answer(ApiError::internal("password of the database is swordfish"));
        assert_eq!(body, serde_json::json!({"error": "internal error"}));
    }
}
