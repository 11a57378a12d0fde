//! Fuzz targets of HTTP requests: ranges, tus headers, forms, playback tokens, forwarded headers, queries, file names. See
//! [`sluice_media::fuzzing`].

use std::net::{IpAddr, Ipv4Addr};

use actix_multipart::Multipart;
use actix_web::{
    error::PayloadError,
    http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
    web::Bytes,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use sluice_media::fuzzing::Target;
use uuid::Uuid;

use super::{
    events::Query,
    range::{self, RangeRequest},
    tus::{ChunkHeaders, CreationHeaders},
};
use crate::{
    application::{
        address::{self, PublicAddress, Seen},
        filename, page,
        playback_token::TokenKeys,
        signing::{self, Signer},
    },
    http::content_disposition::content_disposition,
};

/// The targets of this module.
pub(crate) const TARGETS: &[Target] = &[
    Target::new("range_header", range_header),
    Target::new("tus_headers", tus_headers),
    Target::new("multipart_form", multipart_form),
    Target::new("playback_token", playback_token),
    Target::new("forwarded_headers", forwarded_headers),
    Target::new("page_query", page_query),
    Target::new("filename", file_name),
];

/// Reads a `Range` header; the first two bytes are the size of the resource.
fn range_header(bytes: &[u8]) {
    let Some((size, header)) = bytes.split_first_chunk::<2>() else {
        return;
    };
    let total = u64::from(u16::from_be_bytes(*size));
    let Ok(header) = std::str::from_utf8(header) else {
        return;
    };
    if let RangeRequest::Range { start, len } = range::parse(header, total) {
        assert!(len > 0 && start + len <= total);
    }
}

/// The header lines `name: value` of the bytes.
fn header_lines(bytes: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in bytes.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    headers
}

/// Reads the headers of resumable uploads.
fn tus_headers(bytes: &[u8]) {
    let headers = header_lines(bytes);
    if let Ok(creation) = CreationHeaders::parse(&headers) {
        assert!((1..=255).contains(&creation.filename.len()));
    }
    let _ = ChunkHeaders::parse(&headers);
}

/// Reads a multipart body; its first line is the boundary.
fn multipart_form(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == b'\n');
    let (boundary, body) = (parts.next(), parts.next().unwrap_or_default());
    let mut content_type = b"multipart/form-data; boundary=".to_vec();
    content_type.extend(boundary.unwrap_or_default().trim_ascii());
    let Ok(content_type) = HeaderValue::from_bytes(&content_type) else {
        return;
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, content_type);
    let pieces: Vec<Result<Bytes, PayloadError>> = body
        .chunks(509)
        .map(|piece| Ok(Bytes::copy_from_slice(piece)))
        .collect();
    let mut form = Multipart::new(&headers, stream::iter(pieces));
    let read = async {
        let mut taken = 0;
        while let Some(Ok(mut field)) = form.next().await {
            while let Some(Ok(piece)) = field.next().await {
                taken += piece.len();
            }
        }
        taken
    };
    // Everything is there, so that it is never waited for; a form that asks to be polled again later is left.
    if let Some(taken) = read.now_or_never() {
        assert!(taken <= body.len());
    }
}

/// Reads a playback token: the bytes as the token, and as the claims of one with a valid signature.
fn playback_token(bytes: &[u8]) {
    const NOW_S: i64 = 1_800_000_000;
    let keys = TokenKeys::new(Signer::new(b"fuzzing"));
    let (key_id, account_id) = (Uuid::from_u128(1), Uuid::from_u128(2));
    keys.made(key_id, account_id);
    if let Ok(token) = std::str::from_utf8(bytes) {
        assert!(keys.read(token, NOW_S).is_err(), "nothing signed it");
    }
    let header = format!(r#"{{"alg":"HS256","kid":"{key_id}","typ":"JWT"}}"#);
    let signed = format!(
        "{}.{}",
        signing::encode(header.as_bytes()),
        signing::encode(bytes)
    );
    let _ = keys.read(&keys.signed(key_id, &signed), NOW_S);
}

/// Reads what proxies say of a request.
fn forwarded_headers(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let mut line = || lines.next();
    let seen = Seen {
        peer: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        host: line(),
        forwarded_for: line().map(Into::into),
        forwarded_proto: line().map(Into::into),
        forwarded_host: line().map(Into::into),
        ..Seen::local(80, false)
    };
    let trusted = ["127.0.0.0/8".parse().expect("a network")];
    let public = PublicAddress::of("", &seen, &trusted);
    assert!(public.base.starts_with("http"));
    let origin = public.origin();
    assert!(!origin.contains(['\r', ' ', '"', '<']), "{origin}");
    let _ = address::client(&seen, &trusted);
}

/// Reads the queries of lists and of the event feed; a cursor is written as it was read.
fn page_query(bytes: &[u8]) {
    let query = String::from_utf8_lossy(bytes);
    if let Ok(page) = page::page(&query, 50)
        && let Some(cursor) = page.after
    {
        let text = page::cursor_text(cursor);
        assert!(page::page(&format!("cursor={text}"), 50).is_ok());
    }
    let _ = Query::parse(&query);
}

/// Cleans a file's name; a clean name is valid, stays as it is, and fits into a header.
fn file_name(bytes: &[u8]) {
    let given = String::from_utf8_lossy(bytes);
    let clean = filename::clean(&given);
    assert_eq!(filename::clean(&clean), clean);
    assert_eq!(filename::checked("name", &clean).ok(), Some(clean.clone()));
    let header = content_disposition("attachment", &clean);
    assert!(header.to_str().is_ok());
}
