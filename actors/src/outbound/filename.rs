//! Name of a fetched file (`sourceUrl`): `Content-Disposition` with `filename*`, percent-encoding and Latin-1, else the last
//! part of the path.

use std::borrow::Cow;

use hyper::header::{CONTENT_DISPOSITION, HeaderMap};
use percent_encoding::{percent_decode, percent_decode_str};

/// Returns the name that the server gives (RFC 6266: `filename*` before `filename`), else the last part of the path. It is
/// unchecked: for the caller to clean.
pub(crate) fn filename(headers: &HeaderMap, path: &str) -> Option<String> {
    let disposition = headers.get(CONTENT_DISPOSITION);
    let given = disposition.and_then(|value| of_disposition(value.as_bytes()));
    given.or_else(|| {
        let last = path.rsplit('/').next().unwrap_or_default();
        let name = text(&Cow::from(percent_decode_str(last)));
        (!name.is_empty()).then_some(name)
    })
}

fn of_disposition(value: &[u8]) -> Option<String> {
    let (mut plain, mut extended) = (None, None);
    for (name, value) in parameters(value) {
        if name.eq_ignore_ascii_case(b"filename*") {
            extended = extended.or_else(|| extended_value(&value));
        } else if name.eq_ignore_ascii_case(b"filename") && !value.is_empty() {
            plain = plain.or_else(|| Some(text(&value)));
        }
    }
    extended.or(plain)
}

/// Splits `name=value` and `name="quoted \"value\""` at semicolons; the first part is the disposition's type.
fn parameters(value: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut found = Vec::new();
    let (mut part, mut is_quoted, mut is_escaped) = (Vec::new(), false, false);
    let mut parts = Vec::new();
    for &byte in value {
        if is_escaped {
            part.push(byte);
            is_escaped = false;
            continue;
        }
        match byte {
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            b';' if !is_quoted => parts.push(std::mem::take(&mut part)),
            _ => part.push(byte),
        }
    }
    parts.push(part);
    for part in parts.iter().skip(1) {
        if let Some(equals) = part.iter().position(|&byte| byte == b'=') {
            let (name, value) = (&part[..equals], &part[equals + 1..]);
            found.push((name.trim_ascii().to_vec(), value.trim_ascii().to_vec()));
        }
    }
    found
}

/// `charset'language'percent-encoded` (RFC 8187 §3.2): UTF-8, and the ISO-8859-1 of old servers.
fn extended_value(value: &[u8]) -> Option<String> {
    let mut parts = value.splitn(3, |&byte| byte == b'\'');
    let (charset, _language, encoded) = (parts.next()?, parts.next()?, parts.next()?);
    let bytes: Vec<u8> = percent_decode(encoded).collect();
    let name = if charset.eq_ignore_ascii_case(b"utf-8") {
        String::from_utf8(bytes).ok()?
    } else if charset.eq_ignore_ascii_case(b"iso-8859-1") {
        latin1(&bytes)
    } else {
        return None;
    };
    (!name.is_empty()).then_some(name)
}

/// Reads UTF-8, as most servers send it, else ISO-8859-1 as in older HTTP.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => latin1(bytes),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn names_come_from_the_header_or_the_path() {
        for (disposition, path, expected) in [
            (&b""[..], "/", None),
            (b"", "/a/b/photo.jpg", Some("photo.jpg")),
            (b"", "/a/caf%C3%A9%20%zz%.png", Some("café %zz%.png")),
            (b"", "/a/%FF.png", Some("ÿ.png")),
            (b"", "/a/%2E%2E%2Fetc", Some("../etc")),
            (b"attachment", "/x.png", Some("x.png")),
            (b"attachment; filename=plain.png", "/x", Some("plain.png")),
            (
                b"inline;FILENAME = \"a;b\\\"c=d.png\" ; size=3",
                "/x",
                Some("a;b\"c=d.png"),
            ),
            (b"attachment; filename=\"\"", "/x.png", Some("x.png")),
            (
                b"attachment; filename=\"caf\xc3\xa9.png\"",
                "/x",
                Some("café.png"),
            ),
            (
                b"attachment; filename=\"caf\xe9.png\"",
                "/x",
                Some("café.png"),
            ),
            (
                b"attachment; filename=e.png; filename*=UTF-8''%e2%82%ac.png",
                "/x",
                Some("€.png"),
            ),
            (
                b"attachment; filename*=iso-8859-1'en'%A3.png; filename=e.png",
                "/x",
                Some("£.png"),
            ),
            (
                b"attachment; filename*=UTF-8''%ff; filename=e.png",
                "/x",
                Some("e.png"),
            ),
            (
                b"attachment; filename*=koi8-r''%ff; filename=e.png",
                "/x",
                Some("e.png"),
            ),
            (
                b"attachment; filename*=broken; filename=\"never closed",
                "/x",
                Some("never closed"),
            ),
            (b"filename=not-a-parameter.png", "/x.png", Some("x.png")),
            (b"attachment; filename=\"ends in \\", "/x", Some("ends in")),
        ] {
            let mut headers = HeaderMap::new();
            if !disposition.is_empty() {
                let value = HeaderValue::from_bytes(disposition).expect("a header's bytes");
                headers.insert(CONTENT_DISPOSITION, value);
            }
            let header = String::from_utf8_lossy(disposition);
            assert_eq!(
                filename(&headers, path).as_deref(),
                expected,
                "{header} {path}"
            );
        }
    }
}
