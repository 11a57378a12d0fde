//! Secrets in lines of the log: keys (`svc_…`, `whsec_…`), bearer tokens, signed tokens, passwords of addresses, and values whose
//! names say that they are secrets, are replaced by `••••`.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

/// Text in place of a secret; a rule keeps what is before it, and the `rest` after it.
const REPLACED: &str = "${kept}••••${rest}";

/// Rules, each with a group `kept`. They run in this order.
static RULES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // Keys of this service: the prefix says which kind it was.
        r"(?P<kept>\b(?:svc_live_|svc_pub_|svc_|whsec_))[A-Za-z0-9]{4,}",
        // `scheme://user:password@host`
        r"(?P<kept>[A-Za-z][A-Za-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?P<rest>@)",
        // `Authorization: Bearer …`
        r"(?i)(?P<kept>\b(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{6,}",
        // Signed tokens of playback (RFC 7519).
        r"(?P<kept>\beyJ)[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+",
        // `"password":"…"`, with blanks in it.
        r#"(?i)(?P<kept>\b[a-z0-9_-]*(?:password|passphrase|passwd|secret|token|credential|cookie|signature|api_?key)"?\s*[=:]\s*(?:Some\()?\\?")[^"\\]+"#,
        // One-time links.
        r"(?P<kept>/app/(?:welcome|join)#)[A-Za-z0-9_-]+",
        // `?signature=…`, `passphrase: …`
        r#"(?i)(?P<kept>\b[a-z0-9_-]*(?:password|passphrase|passwd|secret|token|credential|cookie|signature|api_?key|streamid)\s*[=:]\s*)[^\s"\\&,;)}\]]+"#,
    ]
    .iter()
    .map(|rule| Regex::new(rule).expect("a rule is a pattern"))
    .collect()
});

/// Returns the text without secrets.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for rule in RULES.iter() {
        if let Cow::Owned(replaced) = rule.replace_all(&text, REPLACED) {
            text = Cow::Owned(replaced);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_their_kind_stays() {
        for (text, expected) in [
            (
                "publish of main.svc_live_Ab3dEf9hIj was rejected",
                "publish of main.svc_live_•••• was rejected",
            ),
            (
                "svc_0123456789 svc_pub_abcdef whsec_xyz123",
                "svc_•••• svc_pub_•••• whsec_••••",
            ),
            (
                "cannot reach rtsp://viewer:hunter2@10.0.0.7/cam: refused",
                "cannot reach rtsp://viewer:••••@10.0.0.7/cam: refused",
            ),
            (
                "Authorization: Bearer abc.def-123",
                "Authorization: Bearer ••••",
            ),
            (
                "token eyJhbGciOi.eyJzdWIi.c2ln of it",
                "token eyJ•••• of it",
            ),
            ("GET /x?token=abcdef&w=3", "GET /x?token=••••&w=3"),
            (
                r#"body={"password":"correct horse"}"#,
                r#"body={"password":"••••"}"#,
            ),
            ("csrf_token=\"abc\" kind=3", "csrf_token=\"••••\" kind=3"),
            ("passphrase: 1234567890", "passphrase: ••••"),
            (
                "token=Some(\"abc def\") kind=3",
                "token=••••\"••••\") kind=3",
            ),
            (
                "http://sluice.test/app/welcome#Ab3_x-9 was made",
                "http://sluice.test/app/welcome#•••• was made",
            ),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn ordinary_lines_stay_as_they_are() {
        for text in [
            "ready http=0.0.0.0:8080",
            "encoders can connect protocol=\"rtmp\" server=\"rtmp://localhost:1935/live\"",
            "the database takes no changes reason=\"the database is locked\"",
            "http://[::1]:8080/app/files at 20:14:07",
            "a key of the account is unknown",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}
