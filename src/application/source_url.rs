//! `sourceUrl` and `sourceUrls`: fetch of files by their addresses (`outbound.fetch_timeout`), 422 `source_failed`.
//!
//! They are fetched by the guarded connector into spools and checked as uploads are. A request none of whose files may
//! be kept stores nothing, and nothing is charged before all of its files are complete.

use std::io;

use bytes::Bytes;
use serde_json::Value;
use sluice_actors::outbound;
use sluice_media::format::Format;
use sluice_store::blob::{Blobs, Spool};

use crate::application::{
    context::FileContext,
    error::ApiError,
    filename,
    object::camel_case,
    part::{Part, SizeLimit, SizeLimits},
};

/// Field that names one file; a form may repeat it.
pub(crate) const ONE: &str = "sourceUrl";
/// The field that names several: a JSON array.
const MANY: &str = "sourceUrls";
/// `Retry-After` when too many files are being fetched.
const RETRY_AFTER_S: u64 = 5;

/// Returns the addresses among the fields of a form or of a JSON body, by either spelling, in their order. Empty text
/// and null mean "not given".
pub(crate) fn named<'f>(
    fields: impl IntoIterator<Item = (&'f str, Value)>,
) -> Result<Vec<String>, ApiError> {
    let mut addresses = Vec::new();
    for (name, value) in fields {
        match camel_case(name).as_str() {
            ONE => addresses.extend(address(&value)?),
            MANY => {
                for value in list(&value)? {
                    addresses.extend(address(&value)?);
                }
            }
            _ => {}
        }
    }
    Ok(addresses)
}

fn address(value: &Value) -> Result<Option<String>, ApiError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        _ => Err(invalid!("{ONE} must be text, the address of a file")),
    }
}

/// Reads an array, or text that holds one.
fn list(value: &Value) -> Result<Vec<Value>, ApiError> {
    let values = match value {
        Value::Null => Some(Vec::new()),
        Value::Array(values) => Some(values.clone()),
        Value::String(text) if text.trim().is_empty() => Some(Vec::new()),
        Value::String(text) => serde_json::from_str(text).ok(),
        _ => None,
    };
    values.ok_or_else(|| invalid!("{MANY} must be a JSON array with the addresses of files"))
}

/// Fetches the files one after the other, all of them within `outbound.fetch_timeout`. None is kept when one fails or
/// when this is dropped, as it is when the client's connection breaks. (HTTP/1.1 notices a connection that was merely
/// closed at the answer: the request is carried out, like one that came with its files.) Rejections name `field`, which
/// held the addresses.
///
/// 400 for a malformed or rejected address, 413 for a file beyond its limit, 422 `source_failed` for an error of the
/// other side, 503 when too many files are being fetched or the service stops, 507 for a full disk.
pub(crate) async fn fetch(
    context: &FileContext,
    field: &str,
    addresses: &[String],
    limits: impl Into<SizeLimits>,
) -> Result<Vec<Part>, ApiError> {
    let limits = limits.into();
    let longest = context.config.outbound.fetch_timeout;
    tokio::select! {
        fetched = tokio::time::timeout(longest, fetch_all(context, field, addresses, limits)) => {
            fetched.unwrap_or_else(|_| {
                Err(source_failed(format!(
                    "{field}: fetching all of it took longer than {} s (outbound.fetch_timeout)",
                    longest.as_secs()
                )))
            })
        }
        () = context.closing.cancelled() => Err(busy()),
    }
}

async fn fetch_all(
    context: &FileContext,
    field: &str,
    addresses: &[String],
    limits: SizeLimits,
) -> Result<Vec<Part>, ApiError> {
    let mut parts = Vec::with_capacity(addresses.len());
    for (index, address) in addresses.iter().enumerate() {
        let which = match addresses.len() {
            1 => field.to_owned(),
            count => format!("{field} {} of {count}", index + 1),
        };
        parts.push(fetch_one(context, address, &which, limits).await?);
    }
    Ok(parts)
}

async fn fetch_one(
    context: &FileContext,
    address: &str,
    which: &str,
    limits: SizeLimits,
) -> Result<Part, ApiError> {
    let mut sink = Spooling {
        blobs: context.store.blobs(),
        name: format!("the file of {which}"),
        limits,
        spool: None,
        failure: None,
    };
    let largest = limits.largest();
    let fetched = context
        .outbound
        .fetch(address, &mut sink, largest.bytes)
        .await;
    let fetched = fetched.map_err(|error| match sink.failure.take() {
        Some(failure) => failure,
        None => rejection(error, which, largest),
    })?;
    let spool = match sink.spool {
        Some(spool) => spool,
        // The file is empty.
        None => sink.blobs.spool().await?,
    };
    Ok(Part {
        field: ONE.to_owned(),
        filename: named_by_bytes(fetched.filename.as_deref(), spool.head()),
        spool,
    })
}

/// Target of a fetch.
struct Spooling<'s> {
    blobs: &'s Blobs,
    /// Name of the file in a rejection.
    name: String,
    limits: SizeLimits,
    /// Spool, made for the first bytes: a fetch that waits for a permit or is rejected needs none.
    spool: Option<Spool>,
    /// Reason why nothing more is taken: the connector only knows that it stopped.
    failure: Option<ApiError>,
}

impl Spooling<'_> {
    async fn keep(&mut self, piece: Bytes) -> Result<(), ApiError> {
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => self.spool.insert(self.blobs.spool().await?),
        };
        spool.write(piece).await?;
        self.limits.check(&self.name, spool)
    }
}

impl outbound::Sink for Spooling<'_> {
    async fn write(&mut self, piece: Bytes) -> io::Result<()> {
        self.keep(piece).await.map_err(|failure| {
            let io_error = io::Error::other(failure.to_string());
            self.failure = Some(failure);
            io_error
        })
    }
}

/// Returns a safe name; one without an extension gets that of its bytes, where they are known.
fn named_by_bytes(given: Option<&str>, head: &[u8]) -> String {
    let name = filename::clean(given.unwrap_or_default());
    if has_extension(&name) {
        return name;
    }
    match Format::sniff(head) {
        Some(format) => filename::clean(&format!("{name}.{}", format.extension())),
        None => name,
    }
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && !extension.is_empty())
}

/// Maps an error of the connector to one that the client can act on. Messages name hosts and states, never paths and
/// queries.
fn rejection(error: outbound::Error, which: &str, limit: SizeLimit) -> ApiError {
    use outbound::Error as Outbound;
    match error {
        Outbound::Unfinished { cause, .. } if matches!(*cause, Outbound::TooLarge(_)) => {
            rejection(*cause, which, limit)
        }
        Outbound::Refused(rejected) => invalid!("{which}: {rejected}"),
        Outbound::TooLarge(_) => limit.rejection(&format!("the file of {which}")),
        Outbound::Busy(_) => busy(),
        other => source_failed(format!("{which}: {other}")),
    }
}

fn busy() -> ApiError {
    ApiError::Unavailable {
        what: "the fetching of files",
        retry_after_s: RETRY_AFTER_S,
    }
}

fn source_failed(message: String) -> ApiError {
    ApiError::Unprocessable {
        code: "source_failed",
        message,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_are_found_in_every_form_that_a_client_may_write() {
        let cases = [
            (json!({}), Some(vec![])),
            (json!({"sourceUrl": null, "sourceUrls": null}), Some(vec![])),
            (json!({"sourceUrl": " ", "sourceUrls": ""}), Some(vec![])),
            (json!({"sourceUrl": " http://a/ "}), Some(vec!["http://a/"])),
            (json!({"source_url": "http://a/"}), Some(vec!["http://a/"])),
            (
                json!({"sourceUrls": ["http://b/", "", null, "http://c/"]}),
                Some(vec!["http://b/", "http://c/"]),
            ),
            (
                json!({"source_urls": "[\"http://b/\"]", "sourceURL": "http://x/", "url": "http://x/"}),
                Some(vec!["http://b/"]),
            ),
            (json!({"sourceUrl": 7}), None),
            (json!({"sourceUrl": ["http://a/"]}), None),
            (json!({"sourceUrls": "http://a/"}), None),
            (json!({"sourceUrls": {"a": "b"}}), None),
            (json!({"sourceUrls": [7]}), None),
        ];
        for (fields, expected) in cases {
            let fields_of = fields.as_object().unwrap();
            let fields_of = fields_of
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()));
            let found = named(fields_of);
            match expected {
                Some(expected) => assert_eq!(found.unwrap(), expected, "{fields}"),
                None => {
                    let error = found.unwrap_err().to_string();
                    assert!(error.starts_with("sourceUrl"), "{fields}: {error}");
                }
            }
        }
    }

    #[test]
    fn a_name_without_an_extension_gets_that_of_its_bytes() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        let long = "n".repeat(300);
        let cases: [(Option<&str>, &[u8], &str); 8] = [
            (None, PNG, "file.png"),
            (None, b"hello", "file"),
            (Some("photo"), PNG, "photo.png"),
            (Some("photo."), PNG, "photo..png"),
            (Some(".png"), PNG, ".png.png"),
            (Some("photo.php"), PNG, "photo.php"),
            (Some("../../etc/passwd"), b"", "passwd"),
            (Some("a\r\nb\u{202E}"), PNG, "ab.png"),
        ];
        for (given, head, expected) in cases {
            assert_eq!(named_by_bytes(given, head), expected, "{given:?}");
        }
        let cut = named_by_bytes(Some(&long), PNG);
        assert!(cut.len() == 255 && cut.ends_with("n.png"), "{cut}");
    }

    #[test]
    fn each_failure_names_its_cause() {
        use outbound::Error as Outbound;
        let limit = SizeLimit {
            bytes: 10,
            named: "image_upload of the plan",
        };
        let unfinished = |cause| Outbound::Unfinished {
            status: 200,
            cause: Box::new(cause),
        };
        let cases = [
            (Outbound::Status(404), "status 404", Some("source_failed")),
            (
                Outbound::Redirect("too often".into()),
                "too often",
                Some("source_failed"),
            ),
            (
                Outbound::Encoded("gzip".into()),
                "gzip",
                Some("source_failed"),
            ),
            (
                unfinished(Outbound::Closed("early".into())),
                "early",
                Some("source_failed"),
            ),
            (
                Outbound::TooLarge(9),
                "10 bytes (image_upload of the plan)",
                None,
            ),
            (unfinished(Outbound::TooLarge(9)), "10 bytes", None),
            (Outbound::Busy("fetches"), "try again in 5 s", None),
        ];
        for (error, says, expected) in cases {
            let shown = error.to_string();
            let rejected = rejection(error, "sourceUrl 2 of 3", limit);
            let code = match &rejected {
                ApiError::Unprocessable { code, .. } => Some(*code),
                _ => None,
            };
            assert_eq!(code, expected, "{shown}");
            assert!(rejected.to_string().contains(says), "{rejected}");
        }
    }
}
