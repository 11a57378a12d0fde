//! Forms with files (`multipart/form-data`): bounds of parts, names, text (`uploads.max_text`, `max_fields`), silence
//! (`uploads.idle_timeout`). (RFC 7578.) Files are streamed to temporary files, never held in memory.
//!
//! Everything that a client may repeat or stretch has a bound: parts, names, headers (64 KiB, by the parser), text, the
//! bytes of each file, the silence between two pieces, and the forms read at a time. Leaving at any point removes what
//! was spooled.

use std::time::Duration;

use actix_multipart::{Field, Multipart, MultipartError};
use actix_web::{
    HttpRequest,
    dev::Payload,
    error::PayloadError,
    http::header::{self, ContentDisposition, DispositionParam, ExtendedValue},
    web::Bytes,
};
use futures_util::{Stream, StreamExt as _};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::application::{
    context::FileContext,
    error::ApiError,
    field, filename,
    object::camel_case,
    part::{Part, SizeLimits},
    source_url,
};

/// The longest name of a field, in bytes.
const MAX_FIELD_NAME: usize = 128;
/// `Retry-After` when too many requests receive files.
const RETRY_AFTER_S: u64 = 5;

/// Limits of a form.
#[derive(Clone, Copy, Debug)]
pub struct FormLimits {
    /// Files at most.
    pub files: usize,
    /// Limits of each file.
    pub size: SizeLimits,
}

/// Form that was read to its end.
#[derive(Debug, Default)]
pub struct Form {
    /// In the order they came. A file field that a browser sent empty and nameless is not there.
    pub files: Vec<Part>,
    /// Text fields in the order they came, names as the client wrote them.
    pub fields: Vec<(String, String)>,
}

impl Form {
    /// Reads the whole form. 400 for what is no form, is cut short or has too many or too long parts, 408 for a client
    /// that fell silent, 413 for a file beyond its limit, 503 when too many forms are being read, 507 for a full disk.
    pub async fn read(
        request: &HttpRequest,
        payload: Payload,
        context: &FileContext,
        limits: FormLimits,
    ) -> Result<Self, ApiError> {
        if !is_form(request) {
            return Err(invalid!(
                "send the file as multipart/form-data, for instance with `curl -F file=@photo.jpg`"
            ));
        }
        let _permit = upload_permit(context)?;
        let reader = Reader { context, limits };
        reader
            .read(Multipart::new(request.headers(), payload))
            .await
    }

    /// The text of a field, by either spelling of its name; `None` when it is missing or empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(given, text)| camel_case(given) == name && !text.is_empty())
            .map(|(_, text)| text.as_str())
    }

    /// Returns the addresses that were given in place of files, see [`source_url::named`].
    pub fn sources(&self) -> Result<Vec<String>, ApiError> {
        let fields = self.fields.iter();
        source_url::named(fields.map(|(name, text)| (name.as_str(), Value::from(text.as_str()))))
    }

    /// Takes out the files that the form is about (`files`, `files[]`, `files[N]`, `file`), those with a number in its
    /// order and before the others; extras such as `watermarkFile` stay.
    pub fn take_files(&mut self) -> Vec<Part> {
        let (mut files, others) = std::mem::take(&mut self.files)
            .into_iter()
            .partition::<Vec<_>, _>(|part| position(&part.field).is_some());
        self.files = others;
        files.sort_by_key(|part| position(&part.field));
        files
    }
}

/// The position of a main file among its like; `None` for a field that is none.
fn position(field: &str) -> Option<usize> {
    match field {
        "file" | "files" | "files[]" => Some(usize::MAX),
        _ => field
            .strip_prefix("files[")?
            .strip_suffix(']')?
            .parse()
            .ok(),
    }
}

/// Takes a permit to receive the bytes of files (`uploads.max_active`); 503 when there is none.
pub(super) fn upload_permit(context: &FileContext) -> Result<OwnedSemaphorePermit, ApiError> {
    let busy = |_| ApiError::Unavailable {
        what: "the reception of files",
        retry_after_s: RETRY_AFTER_S,
    };
    context.uploading.clone().try_acquire_owned().map_err(busy)
}

/// The next piece of a body; 408 after `uploads.idle_timeout` of silence.
pub(super) async fn next_piece<T>(
    body: &mut (impl Stream<Item = T> + Unpin),
    timeout: Duration,
) -> Result<Option<T>, ApiError> {
    tokio::time::timeout(timeout, body.next())
        .await
        .map_err(|_| {
            let seconds = timeout.as_secs();
            ApiError::Timeout(format!(
                "nothing of the body arrived for {seconds} s (uploads.idle_timeout)"
            ))
        })
}

fn is_form(request: &HttpRequest) -> bool {
    let content_type = request.headers().get(header::CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .is_some_and(|essence| essence.trim().eq_ignore_ascii_case("multipart/form-data"))
}

/// A form that is read.
struct Reader<'a> {
    context: &'a FileContext,
    limits: FormLimits,
}

impl Reader<'_> {
    async fn read(&self, mut parts: Multipart) -> Result<Form, ApiError> {
        let settings = &self.context.config.uploads;
        let mut form = Form::default();
        let mut text_left = settings.max_text.as_u64() as usize;
        while let Some(part) = next_piece(&mut parts, settings.idle_timeout).await? {
            let mut part = part.map_err(rejection)?;
            let name = field_name(&part)?;
            match part.content_disposition().and_then(given_filename) {
                Some(filename) => self.file(&mut form, name, filename, part).await?,
                None if form.fields.len() == settings.max_fields => {
                    return Err(invalid!(
                        "a form has at most {} text fields (uploads.max_fields)",
                        settings.max_fields
                    ));
                }
                None => {
                    let text = self.text(&name, &mut part, &mut text_left).await?;
                    field::reject_unsupported(&name, !text.is_empty())?;
                    form.fields.push((name, text));
                }
            }
        }
        Ok(form)
    }

    async fn file(
        &self,
        form: &mut Form,
        field: String,
        given_name: String,
        mut part: Field,
    ) -> Result<(), ApiError> {
        let first = self.piece(&mut part).await?;
        // Browsers send this for a file field in which nothing was chosen.
        if first.is_none() && given_name.is_empty() {
            return Ok(());
        }
        self.check_room(form)?;
        let filename = filename::clean(&given_name);
        let mut spool = self.context.store.blobs().spool().await?;
        let mut next = first;
        while let Some(piece) = next {
            spool.write(piece).await?;
            self.limits.size.check(&filename, &spool)?;
            next = self.piece(&mut part).await?;
        }
        form.files.push(Part {
            field,
            filename,
            spool,
        });
        Ok(())
    }

    fn check_room(&self, form: &Form) -> Result<(), ApiError> {
        match form.files.len() < self.limits.files {
            true => Ok(()),
            false => Err(invalid!(
                "too many files: at most {} may be sent here",
                self.limits.files
            )),
        }
    }

    async fn text(
        &self,
        name: &str,
        part: &mut Field,
        left: &mut usize,
    ) -> Result<String, ApiError> {
        let mut text = Vec::new();
        while let Some(piece) = self.piece(part).await? {
            *left = left.checked_sub(piece.len()).ok_or_else(|| {
                ApiError::TooLarge(format!(
                    "the text fields of a form have at most {} bytes together (uploads.max_text)",
                    self.context.config.uploads.max_text.as_u64()
                ))
            })?;
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).map_err(|_| invalid!("{name} must be UTF-8 text"))
    }

    async fn piece(&self, part: &mut Field) -> Result<Option<Bytes>, ApiError> {
        let piece = next_piece(part, self.context.config.uploads.idle_timeout).await?;
        piece.transpose().map_err(rejection)
    }
}

fn field_name(part: &Field) -> Result<String, ApiError> {
    let name = part.name().unwrap_or_default();
    match name.len() {
        1..=MAX_FIELD_NAME => Ok(name.to_owned()),
        length => Err(invalid!(
            "the name of a part must have 1 to {MAX_FIELD_NAME} bytes, got {length}"
        )),
    }
}

/// The name that the client gave to the file; `filename*` counts before `filename`.
fn given_filename(disposition: &ContentDisposition) -> Option<String> {
    let extended = disposition
        .parameters
        .iter()
        .find_map(|parameter| match parameter {
            DispositionParam::FilenameExt(value) => Some(in_unicode(value)),
            _ => None,
        });
    extended.or_else(|| disposition.get_filename().map(unescaped))
}

fn in_unicode(value: &ExtendedValue) -> String {
    match std::str::from_utf8(&value.value) {
        Ok(text) => text.to_owned(),
        // The other charset of RFC 8187's ancestors: ISO 8859-1, whose bytes are code points.
        Err(_) => value.value.iter().copied().map(char::from).collect(),
    }
}

/// Clients write quotes and line ends as these three escapes and nothing else (WHATWG HTML, "multipart/form-data").
fn unescaped(name: &str) -> String {
    name.replace("%22", "\"")
        .replace("%0D", "\r")
        .replace("%0A", "\n")
}

/// Maps an error of the form parser to one that the client can act on.
fn rejection(error: MultipartError) -> ApiError {
    let message = match &error {
        MultipartError::Incomplete | MultipartError::Payload(PayloadError::Incomplete(_)) => {
            "the body ended before its last part".to_owned()
        }
        MultipartError::Payload(PayloadError::Overflow) => {
            "the headers of a part are too long".to_owned()
        }
        MultipartError::Parse(_) => {
            "the headers of a part could not be read: names are UTF-8 without control characters"
                .to_owned()
        }
        other => format!("the form could not be read: {other}"),
    };
    ApiError::Invalid(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_files_come_in_their_order() {
        let cases = [
            ("file", Some(usize::MAX)),
            ("files", Some(usize::MAX)),
            ("files[]", Some(usize::MAX)),
            ("files[0]", Some(0)),
            ("files[12]", Some(12)),
            ("files[-1]", None),
            ("files[x]", None),
            ("watermarkFile", None),
            ("", None),
        ];
        for (field, expected) in cases {
            assert_eq!(position(field), expected, "{field}");
        }
    }

    #[test]
    fn names_are_read_in_every_form_that_clients_write() {
        let cases = [
            ("form-data; name=\"file\"", None),
            ("form-data; name=\"file\"; filename=\"\"", Some("")),
            (
                "form-data; name=\"file\"; filename=\"a%22b%0D%0A.png\"",
                Some("a\"b\r\n.png"),
            ),
            (
                "form-data; name=\"file\"; filename=\"100%.png\"",
                Some("100%.png"),
            ),
            (
                "form-data; name=\"file\"; filename=\"写真.png\"",
                Some("写真.png"),
            ),
            (
                "form-data; name=\"file\"; filename=\"x\"; filename*=UTF-8''%E5%86%99.png",
                Some("写.png"),
            ),
            (
                "form-data; name=\"file\"; filename*=ISO-8859-1''na%EFve",
                Some("naïve"),
            ),
        ];
        for (text, expected) in cases {
            let value = header::HeaderValue::from_bytes(text.as_bytes()).unwrap();
            let disposition = ContentDisposition::from_raw(&value).unwrap();
            assert_eq!(given_filename(&disposition).as_deref(), expected, "{text}");
        }
    }
}
