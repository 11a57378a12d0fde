//! Errors of the API by what the caller can do: texts, `code`, JSON body; mapping of store, worker and actor errors.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::causes::WithCauses;

/// Makes an [`ApiError::Invalid`] whose text is formatted as by `format!`.
macro_rules! invalid {
    ($($text:tt)*) => {
        $crate::application::error::ApiError::Invalid(format!($($text)*))
    };
}

/// The body of every error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Error)]
pub struct ErrorBody {
    /// One sentence for a person: the expectation and the value that came.
    pub error: String,
    /// A stable word for programs, where the status alone does not say enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// All problems of a rejected definition, as lint answers them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<super::workflows::review::ProblemRecord>>)]
    pub detail: Option<Value>,
    /// Present version of a record that another save has changed (409).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Address at which a larger plan can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade_url: Option<String>,
}

/// `Retry-After` while the storage fails. An operator repairs a disk in minutes; a remounted one is usable at once.
pub(crate) const STORAGE_RETRY_AFTER_S: u64 = 10;

/// `Retry-After` of a change of which it is not known whether it was made: the database answers again, or will soon.
pub(crate) const UNKNOWN_RETRY_AFTER_S: u64 = 1;

pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Kinds of errors, by what the client can do about them.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// A field, parameter or body is wrong; the text names field, value and range.
    #[error("{0}")]
    Invalid(String),
    /// The session description breaks a rule (400); the text names it.
    #[error("{0}")]
    InvalidSdp(String),
    #[error("{0}")]
    Unauthenticated(&'static str),
    #[error("{0}")]
    Forbidden(&'static str),
    /// The role or the key's scope does not reach it (403).
    #[error("{0}")]
    InsufficientScope(&'static str),
    /// The signed-in user gave another password than their own (403).
    #[error("currentPassword is not your password")]
    WrongPassword,
    /// The operator suspended the account (403).
    #[error("this account is suspended: ask the operator of this service to resume it")]
    AccountSuspended,
    /// Playback needs a token that is missing or not valid (403).
    #[error("{message}")]
    NoPlayback {
        code: &'static str,
        message: &'static str,
    },
    /// The one answer to a link that is unknown, malformed, revoked or expired, or whose folder is deleted (404).
    #[error("This link is no longer available.")]
    ShareUnavailable,
    /// The link does not permit it, or not yet (403).
    #[error("{message}")]
    NoShare {
        code: &'static str,
        message: &'static str,
    },
    /// The link has served as many downloads as it allows (410).
    #[error("as many downloads have begun as this link allows: ask its owner for another one")]
    ShareUsedUp,
    #[error("{0} not found")]
    NotFound(&'static str),
    /// A field of a request for something else names no stored file (404).
    #[error("{field} names no stored file of yours: upload it first, and give its id")]
    NoSuchFile { field: String },
    /// The resource exists as soon as it has been made (404).
    #[error(
        "{what} is not there yet, the stream is still processing; try again in {retry_after_s} s"
    )]
    NotReady {
        what: &'static str,
        retry_after_s: u64,
    },
    #[error("{method} is not allowed here; allowed: {allow}")]
    MethodNotAllowed { method: String, allow: String },
    /// None of the forms that the client accepts can be answered (406); the text names what to accept.
    #[error("{0}")]
    NotAcceptable(&'static str),
    #[error("{0}")]
    Conflict(String),
    /// The resource is not in a state in which this can be done (409).
    #[error("{message}")]
    WrongState {
        code: &'static str,
        message: &'static str,
    },
    /// The save names another version than the present one.
    #[error(
        "another save came first, the present version is {version}: read it again, and save your change with that version"
    )]
    Crossed { version: i64 },
    /// The definition of a workflow has errors (400); the message is that of the first.
    #[error("{message}")]
    InvalidDefinition {
        message: String,
        /// All problems, with the warnings.
        problems: Value,
    },
    /// The client speaks another version of tus, or none (412).
    #[error("send `Tus-Resumable: {version}`, the version of tus that is spoken here")]
    OtherVersion { version: &'static str },
    /// The bytes are not those that the client computed a checksum of (460, of tus).
    #[error(
        "the bytes do not have the checksum of Upload-Checksum: none of them was kept, send them again"
    )]
    ChecksumMismatch,
    /// Another request works on it (423).
    #[error("{0}; try again")]
    Locked(&'static str),
    /// The resource existed and is not kept any longer (410).
    #[error("{0}")]
    Gone(&'static str),
    /// The events after a client's cursor are gone (410).
    #[error("the events after this cursor are no longer kept: begin again without a cursor")]
    CursorExpired,
    #[error("{0}")]
    TooLarge(String),
    #[error("{0}")]
    UnsupportedType(String),
    /// The bytes begin like the type and do not decode (415).
    #[error("{0}")]
    Undecodable(String),
    /// Unknown media tool (404); the text names the known ones.
    #[error("there is no tool `{asked}`: use one of {known}")]
    NoSuchTool { asked: String, known: &'static str },
    #[error("{message}; try again in {retry_after_s} s")]
    TooMany {
        message: &'static str,
        retry_after_s: u64,
    },
    /// The month's media operations are used up (402).
    #[error("the media operations of this month are used up: {used} of {limit}")]
    OperationsUsedUp {
        used: u64,
        limit: u64,
        upgrade_url: Option<String>,
    },
    /// The month's image deliveries are used up (429).
    #[error("the image deliveries of this month are used up ({limit})")]
    DeliveriesUsedUp {
        limit: u64,
        retry_after_s: u64,
        upgrade_url: Option<String>,
    },
    /// The bytes are of the type, but this cannot be done on them (422).
    #[error("{message}")]
    Unprocessable { code: &'static str, message: String },
    /// The plan's storage is used up (413).
    #[error(
        "this would exceed the storage of the plan: {used_bytes} of {limit_bytes} bytes are used"
    )]
    StorageUsedUp {
        used_bytes: u64,
        limit_bytes: u64,
        upgrade_url: Option<String>,
    },
    /// No byte of the requested range exists (416).
    #[error("the range is outside of the {total_bytes} bytes of this resource")]
    NoSuchRange { total_bytes: u64 },
    /// The client was too slow with its body.
    #[error("{0}")]
    Timeout(String),
    #[error("{what} cannot answer now; try again in {retry_after_s} s")]
    Unavailable {
        what: &'static str,
        retry_after_s: u64,
    },
    /// The database was lost during the commit (503): the client must look before it repeats the request.
    #[error("{0}")]
    OutcomeUnknown(String),
    /// All that the settings allow are in use, or another node has what is needed (503).
    #[error("{message}; try again in {retry_after_s} s")]
    Overloaded {
        code: &'static str,
        message: &'static str,
        retry_after_s: u64,
    },
    /// The operator turned WebRTC off (404).
    #[error(
        "WebRTC is turned off in this service (webrtc.enabled): play hlsUrl, publish to rtmpUrl"
    )]
    WebRtcOff,
    #[error("the disk of the service is full")]
    NoSpace,
    #[error("internal error")]
    Internal(#[source] Cause),
}

impl ApiError {
    /// A defect or a failed dependency that the client cannot mend.
    pub fn internal(cause: impl Into<Cause>) -> Self {
        Self::Internal(cause.into())
    }

    /// Maps an I/O error on a file of the service's disk: 507 when the disk is full, else 503, since it may work again
    /// once the operator has repaired it.
    pub fn of_disk(cause: std::io::Error) -> Self {
        if is_full(&cause) {
            return Self::NoSpace;
        }
        Self::storage_failed(&cause)
    }

    fn storage_failed(cause: &(dyn std::error::Error + 'static)) -> Self {
        tracing::error!(error = %WithCauses(cause), "the storage of the service failed");
        Self::Unavailable {
            what: "the storage of the service",
            retry_after_s: STORAGE_RETRY_AFTER_S,
        }
    }

    /// Adds the address of larger plans, if one would help.
    pub fn offering(mut self, plans: impl FnOnce() -> String) -> Self {
        if let Self::OperationsUsedUp { upgrade_url, .. }
        | Self::DeliveriesUsedUp { upgrade_url, .. }
        | Self::StorageUsedUp { upgrade_url, .. } = &mut self
        {
            *upgrade_url = Some(plans());
        }
        self
    }

    /// Names the field of a stored file that is missing.
    pub(crate) fn of_file_in(self, field: impl Into<String>) -> Self {
        match self {
            Self::NotFound(_) => Self::NoSuchFile {
                field: field.into(),
            },
            other => other,
        }
    }

    /// The stable word for programs, where the status alone does not say enough.
    pub(crate) fn code(&self) -> Option<&'static str> {
        match self {
            Self::TooMany { .. } => Some("rate_limited"),
            Self::InsufficientScope(_) => Some("insufficient_scope"),
            Self::WrongPassword => Some("wrong_password"),
            Self::AccountSuspended => Some("account_suspended"),
            Self::NotFound(_) | Self::NoSuchFile { .. } | Self::NoSuchTool { .. } => {
                Some("not_found")
            }
            Self::NotReady { .. } => Some("not_ready"),
            Self::NoPlayback { code, .. }
            | Self::NoShare { code, .. }
            | Self::Overloaded { code, .. }
            | Self::WrongState { code, .. } => Some(code),
            Self::ShareUsedUp => Some("download_limit_reached"),
            Self::OutcomeUnknown(_) => Some("outcome_unknown"),
            Self::TooLarge(_) => Some("too_large"),
            Self::UnsupportedType(_) => Some("unsupported_type"),
            Self::Undecodable(_) => Some("undecodable"),
            Self::OperationsUsedUp { .. } => Some("operations_used_up"),
            Self::DeliveriesUsedUp { .. } => Some("deliveries_used_up"),
            Self::Unprocessable { code, .. } => Some(code),
            Self::StorageUsedUp { .. } => Some("storage_used_up"),
            Self::ChecksumMismatch => Some("checksum_mismatch"),
            Self::Locked(_) => Some("locked"),
            Self::Gone(_) => Some("gone"),
            Self::CursorExpired => Some("cursor_expired"),
            Self::InvalidDefinition { .. } => Some("invalid_definition"),
            Self::InvalidSdp(_) => Some("sdp_invalid"),
            Self::WebRtcOff => Some("webrtc_off"),
            _ => None,
        }
    }

    /// Returns the body of the answer; logs the private cause of an internal error.
    pub(crate) fn to_body(&self) -> ErrorBody {
        if let Self::Internal(cause) = self {
            tracing::error!(error = %WithCauses(cause.as_ref()), "request failed");
        }
        ErrorBody {
            error: self.to_string(),
            code: self.code().map(str::to_owned),
            detail: match self {
                Self::InvalidDefinition { problems, .. } => Some(problems.clone()),
                _ => None,
            },
            version: match self {
                Self::Crossed { version } => Some(*version),
                _ => None,
            },
            upgrade_url: self.upgrade_url(),
        }
    }

    fn upgrade_url(&self) -> Option<String> {
        match self {
            Self::OperationsUsedUp { upgrade_url, .. }
            | Self::DeliveriesUsedUp { upgrade_url, .. }
            | Self::StorageUsedUp { upgrade_url, .. } => upgrade_url.clone(),
            _ => None,
        }
    }
}

impl From<sluice_store::Error> for ApiError {
    fn from(error: sluice_store::Error) -> Self {
        use sluice_store::Error as Store;
        match error {
            Store::NotFound(what) => Self::NotFound(what),
            Store::Invalid(message) => Self::Invalid(message),
            Store::Conflict(message) => Self::Conflict(message),
            Store::Gone(message) => Self::Gone(message),
            Store::Full => Self::NoSpace,
            Store::OverQuota {
                used_bytes,
                limit_bytes,
            } => Self::StorageUsedUp {
                used_bytes,
                limit_bytes,
                upgrade_url: None,
            },
            Store::File { ref source, .. } if is_full(source) => Self::NoSpace,
            Store::File { .. } | Store::Failing(_) => Self::storage_failed(&error),
            // Logged where it was found.
            Store::Objects(_) | Store::Lost(_) => Self::Unavailable {
                what: "the object store",
                retry_after_s: STORAGE_RETRY_AFTER_S,
            },
            Store::Busy(reason) => {
                tracing::warn!(reason, "the database is busy");
                Self::Unavailable {
                    what: "the database",
                    retry_after_s: 1,
                }
            }
            Store::Unknown => {
                tracing::warn!(
                    "the outcome of a change is not known: the database was lost during its commit"
                );
                Self::OutcomeUnknown(error.to_string())
            }
            other => Self::internal(other),
        }
    }
}

impl From<sluice_media::task::Failure> for ApiError {
    fn from(failure: sluice_media::task::Failure) -> Self {
        use sluice_media::task::FailureCode as Code;
        match failure.code {
            Code::Invalid => Self::Invalid(failure.message),
            Code::UnsupportedType => Self::UnsupportedType(failure.message),
            Code::Undecodable => Self::Undecodable(failure.message),
            Code::TooLarge => Self::TooLarge(failure.message),
            Code::Impossible => Self::Unprocessable {
                code: "impossible",
                message: failure.message,
            },
            Code::DecodeFailed => Self::Unprocessable {
                code: "decode_failed",
                message: failure.message,
            },
            Code::TimedOut => Self::Unprocessable {
                code: "timed_out",
                message: failure.message,
            },
            Code::NoSpace => Self::NoSpace,
            Code::Internal => Self::internal(failure),
        }
    }
}

impl From<sluice_actors::Error> for ApiError {
    fn from(error: sluice_actors::Error) -> Self {
        use sluice_actors::Error as Actors;
        match error {
            Actors::Busy(what) => Self::Unavailable {
                what,
                retry_after_s: 1,
            },
            Actors::Gone(what) => Self::Unavailable {
                what,
                retry_after_s: 5,
            },
            Actors::Store(error) => error.into(),
            Actors::Io { ref source, .. } if is_full(source) => Self::NoSpace,
            Actors::Io { .. } => Self::storage_failed(&error),
        }
    }
}

pub(crate) fn is_full(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}
