//! Headers of resumable uploads: `Upload-Length`, `Upload-Offset`, `Upload-Metadata` (keys, length), `Upload-Defer-Length`,
//! `Tus-Resumable`. (tus 1.0, <https://tus.io/protocols/resumable-upload>)

use actix_web::http::header::{self, HeaderMap};
use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use uuid::Uuid;

use crate::application::{
    error::ApiError, field, filename, files::request::id_or_top, tus::checksum::Checksum,
};

/// The one version of tus that is supported.
pub(super) const VERSION: &str = "1.0.0";
/// Media type that a body must declare.
pub(super) const CONTENT_TYPE: &str = "application/offset+octet-stream";

pub(super) const RESUMABLE: &str = "tus-resumable";
pub(super) const OFFSET: &str = "upload-offset";
pub(super) const LENGTH: &str = "upload-length";
pub(super) const DEFER_LENGTH: &str = "upload-defer-length";
pub(super) const METADATA: &str = "upload-metadata";
pub(super) const CHECKSUM: &str = "upload-checksum";
pub(super) const CONCAT: &str = "upload-concat";
pub(super) const METHOD_OVERRIDE: &str = "x-http-method-override";

/// Longest `Upload-Metadata`, in bytes: a row keeps it.
const MAX_METADATA: usize = 4096;

/// Base64 with optional padding, which some clients omit.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Answers 412 to another version of tus, or none.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), ApiError> {
    match text(headers, RESUMABLE)? {
        Some(VERSION) => Ok(()),
        _ => Err(ApiError::OtherVersion { version: VERSION }),
    }
}

/// A new upload.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct Creation {
    /// `None`: to be declared by a later request.
    pub(super) length: Option<u64>,
    /// Metadata as the client wrote it.
    pub(super) metadata: String,
    /// Safe, see [`filename::clean`].
    pub(in crate::http) filename: String,
    pub(super) folder_id: Option<Uuid>,
    /// Chunk in the request's body.
    pub(super) chunk: Option<Chunk>,
}

impl Creation {
    pub(in crate::http) fn parse(headers: &HeaderMap) -> Result<Self, ApiError> {
        if headers.contains_key(CONCAT) {
            return Err(invalid!(
                "Upload-Concat is not supported: send one upload for each file"
            ));
        }
        let metadata = text(headers, METADATA)?.unwrap_or_default();
        let known = Metadata::parse(metadata)?;
        let folder_id = known.text(&["folderId", "folder_id"])?;
        let slug = known.text(&["cdnSlug", "cdn_slug"])?;
        field::reject_unsupported("cdnSlug", slug.is_some_and(|text| !text.is_empty()))?;
        Ok(Self {
            length: length_of_new(headers)?,
            metadata: metadata.to_owned(),
            filename: filename::clean(&known.text(&["filename", "name"])?.unwrap_or_default()),
            folder_id: id_or_top("folderId", &folder_id.unwrap_or_default())?,
            chunk: match has_type(headers) {
                true => Some(Chunk::at(0, headers)?),
                false => reject_other_body(headers).map(|()| None)?,
            },
        })
    }
}

fn length_of_new(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let deferred = text(headers, DEFER_LENGTH)?;
    match (number(headers, LENGTH)?, deferred) {
        (Some(length), None) => Ok(Some(length)),
        (None, Some("1")) => Ok(None),
        (_, Some(other)) if other != "1" => Err(field::wrong("Upload-Defer-Length", "1", other)),
        _ => Err(invalid!(
            "send Upload-Length, in bytes, or Upload-Defer-Length: 1"
        )),
    }
}

/// The bytes that a request brings.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct Chunk {
    pub(super) offset: u64,
    /// Declares the length of an upload that was made without one.
    pub(super) length: Option<u64>,
    pub(super) checksum: Option<Checksum>,
    /// `None` for a body in chunks of HTTP.
    pub(super) content_length: Option<u64>,
}

impl Chunk {
    /// Parses the headers of a PATCH.
    pub(in crate::http) fn parse(headers: &HeaderMap) -> Result<Self, ApiError> {
        if !has_type(headers) {
            return Err(other_type());
        }
        let offset = number(headers, OFFSET)?
            .ok_or_else(|| invalid!("Upload-Offset is missing: ask for it with HEAD"))?;
        Self::at(offset, headers)
    }

    fn at(offset: u64, headers: &HeaderMap) -> Result<Self, ApiError> {
        Ok(Self {
            offset,
            length: number(headers, LENGTH)?,
            checksum: text(headers, CHECKSUM)?.map(Checksum::parse).transpose()?,
            content_length: number(headers, header::CONTENT_LENGTH.as_str())?,
        })
    }

    /// Returns the chunk of an upload of no bytes.
    pub(super) fn empty() -> Self {
        Self {
            offset: 0,
            length: None,
            checksum: None,
            content_length: Some(0),
        }
    }
}

fn has_type(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type.is_some_and(|given| {
        given
            .as_bytes()
            .trim_ascii()
            .eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
    })
}

/// Rejects a body of another type; a request without a body is accepted with any type.
fn reject_other_body(headers: &HeaderMap) -> Result<(), ApiError> {
    match number(headers, header::CONTENT_LENGTH.as_str())? {
        None | Some(0) => Ok(()),
        Some(_) => Err(other_type()),
    }
}

fn other_type() -> ApiError {
    ApiError::UnsupportedType(format!(
        "send the bytes with `Content-Type: {CONTENT_TYPE}`"
    ))
}

/// Returns the method in `X-HTTP-Method-Override`, for clients that can only POST.
pub(super) fn overriding(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    text(headers, METHOD_OVERRIDE)
}

/// Returns the value of a header, in ASCII.
fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name);
    let (first, second) = (values.next(), values.next());
    if second.is_some() {
        return Err(invalid!("{name} was sent twice"));
    }
    let in_ascii = |_| invalid!("{name} must be visible ASCII");
    first
        .map(|value| value.to_str().map_err(in_ascii))
        .transpose()
}

/// Parses a number of digits only.
fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, ApiError> {
    let Some(given) = text(headers, name)? else {
        return Ok(None);
    };
    let is_plain = !given.is_empty() && given.bytes().all(|byte| byte.is_ascii_digit());
    let number = is_plain.then(|| given.parse().ok()).flatten();
    number.map(Some).ok_or_else(|| {
        let most = u64::MAX;
        field::wrong(name, format_args!("a whole number from 0 to {most}"), given)
    })
}

/// Upload-Metadata: `key base64,key base64,…`, a value may be missing.
#[derive(Debug)]
struct Metadata<'a>(Vec<(&'a str, Vec<u8>)>);

impl<'a> Metadata<'a> {
    fn parse(given: &'a str) -> Result<Self, ApiError> {
        if given.len() > MAX_METADATA {
            return Err(invalid!(
                "Upload-Metadata must have at most {MAX_METADATA} bytes, got {}",
                given.len()
            ));
        }
        let mut pairs: Vec<(&str, Vec<u8>)> = Vec::new();
        for pair in given.split(',').filter(|_| !given.trim().is_empty()) {
            let (key, value) = pair.trim().split_once(' ').unwrap_or((pair.trim(), ""));
            let rejection = |what: &str| {
                let shown = field::shorten(pair);
                invalid!("Upload-Metadata: {what} in `{shown}`")
            };
            if key.is_empty() {
                return Err(rejection("a key is missing"));
            }
            if pairs.iter().any(|(known, _)| *known == key) {
                return Err(rejection("a key occurs twice"));
            }
            let value = BASE64
                .decode(value.trim())
                .map_err(|_| rejection("the value is not Base64"))?;
            pairs.push((key, value));
        }
        Ok(Self(pairs))
    }

    /// Returns the text under the first of these keys that is present.
    fn text(&self, keys: &[&str]) -> Result<Option<String>, ApiError> {
        let find = |key: &&str| self.0.iter().find(|(known, _)| known == key);
        let Some((key, value)) = keys.iter().find_map(find) else {
            return Ok(None);
        };
        let text = String::from_utf8(value.clone());
        text.map(Some)
            .map_err(|_| invalid!("Upload-Metadata: {key} must be UTF-8"))
    }
}

#[cfg(test)]
mod tests;
