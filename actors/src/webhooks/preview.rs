//! Preview of a receiver's answer (`responsePreview`): first characters of a text, secrets concealed, control characters
//! replaced. Pure.

use sluice_store::webhooks::MOST_PREVIEW_CHARACTERS;

use super::signature::SECRET_PREFIX;
use crate::outbound::{Answer, HeaderMap};

/// Text in place of a secret.
const CONCEALED: &str = "••••";

/// Returns the beginning of an answer's text; `None` of an empty body and of one that is no text.
pub fn of(answer: &Answer, secrets: &[&str]) -> Option<String> {
    if answer.body.is_empty() || is_encoded(&answer.headers) {
        return None;
    }
    let text = match media_type(&answer.headers) {
        Some(media_type) if !is_text(&media_type) => return None,
        Some(_) => String::from_utf8_lossy(&answer.body),
        None => untyped_text(&answer.body)?,
    };
    Some(clean(&text, secrets)).filter(|text| !text.is_empty())
}

/// Returns a text that may be shown and stored: no secrets, no control characters but line ends and tabs, at most
/// [`MOST_PREVIEW_CHARACTERS`].
pub fn clean(text: &str, secrets: &[&str]) -> String {
    let mut text = text.to_owned();
    for secret in secrets {
        // Receivers that use Standard Webhooks may know it without its prefix.
        let key = secret.strip_prefix(SECRET_PREFIX).unwrap_or_default();
        for known in [secret, key].into_iter().filter(|known| !known.is_empty()) {
            text = text.replace(known, CONCEALED);
        }
    }
    text.chars()
        .filter(|character| *character != '\r')
        .map(|character| match character {
            '\n' | '\t' => character,
            control if control.is_control() => char::REPLACEMENT_CHARACTER,
            shown => shown,
        })
        .take(MOST_PREVIEW_CHARACTERS)
        .collect()
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let encoding = headers.get("content-encoding");
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Returns the media type in lower case and without parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get("content-type")?.as_bytes()).into_owned();
    let essence = value.split(';').next().unwrap_or_default();
    Some(essence.trim().to_ascii_lowercase())
}

fn is_text(media_type: &str) -> bool {
    let Some((kind, subtype)) = media_type.split_once('/') else {
        return false;
    };
    kind == "text"
        || subtype.ends_with("+json")
        || subtype.ends_with("+xml")
        || matches!(
            (kind, subtype),
            (
                "application",
                "json" | "xml" | "javascript" | "x-www-form-urlencoded"
            )
        )
}

/// Returns a body without a type if all of it is UTF-8; its last character may be incomplete.
fn untyped_text(body: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let whole = match std::str::from_utf8(body) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    (!whole.contains('\0')).then(|| whole.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbound::HeaderValue;

    fn answer(headers: &[(&'static str, &[u8])], body: &[u8]) -> Answer {
        let headers = headers.iter().map(|(name, value)| {
            let value = HeaderValue::from_bytes(value).unwrap();
            (name.parse().unwrap(), value)
        });
        Answer {
            status: 500,
            headers: headers.collect(),
            body: body.to_vec(),
        }
    }

    #[test]
    fn only_text_is_shown() {
        let shown = |text: &str| Some(text.to_owned());
        let typed = |value: &'static [u8], body: &[u8]| answer(&[("content-type", value)], body);
        let cases = [
            (answer(&[], b""), None),
            (answer(&[], b"no type"), shown("no type")),
            (answer(&[], b"cut \xe2\x82"), shown("cut ")),
            (answer(&[], b"\xff\xd8\xff\xe0 picture"), None),
            (answer(&[], b"\0asm"), None),
            (typed(b"image/png", b"text after all"), None),
            (typed(b"application/octet-stream", b"x"), None),
            (typed(b"nonsense", b"x"), None),
            (typed(b"\xff\xfe", b"x"), None),
            (typed(b"Text/HTML; charset=utf-8", b"<p>"), shown("<p>")),
            (typed(b"application/json", b"{}"), shown("{}")),
            (typed(b"application/problem+json", b"{}"), shown("{}")),
            (typed(b"text/plain", b"a\xffb"), shown("a\u{fffd}b")),
            (typed(b"text/plain", b"\0"), shown("\u{fffd}")),
            (typed(b"text/plain", b"\r"), None),
            (
                typed(b"text/plain", b"one\r\n\ttwo\x1b[31m\x07\xc2\x85"),
                shown("one\n\ttwo\u{fffd}[31m\u{fffd}\u{fffd}"),
            ),
            (answer(&[("content-encoding", b"gzip")], b"text?"), None),
            (
                answer(&[("content-encoding", b"Identity")], b"text"),
                shown("text"),
            ),
        ];
        for (answer, preview) in cases {
            assert_eq!(of(&answer, &[]), preview, "{answer:?}");
        }
    }

    #[test]
    fn a_preview_is_bounded_in_characters_and_without_secrets() {
        let long = answer(&[], "ß".repeat(4_000).as_bytes());
        assert_eq!(of(&long, &[]), Some("ß".repeat(1_000)));
        let telling = answer(&[], b"expected whsec_new, or whsec_old; whsec_new");
        let preview = of(&telling, &["whsec_new", "whsec_old", ""]);
        assert_eq!(preview.unwrap(), "expected ••••, or ••••; ••••");
        let decoding = answer(&[], b"cannot decode MfKQ9r8GKYqrTwjU");
        let preview = of(&decoding, &["whsec_MfKQ9r8GKYqrTwjU", "whsec_"]);
        assert_eq!(preview.unwrap(), "cannot decode ••••");
    }
}
