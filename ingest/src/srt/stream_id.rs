//! Stream ids of SRT callers (`publish:{slug}:{key}`, `#!::r=…,m=publish,s=…`, `{slug}.{key}`) and rejection codes.
//!
//! Accepted are `publish:{slug}:{key}`, the access-control form of SRT's own guidelines
//! (`#!::r={slug},m=publish,s={key}`), RTMP's `{slug}.{key}`, the bare stream key, and each of them URL-encoded.

use std::borrow::Cow;

use crate::publish::{Rejection, Secret};

/// Longest stream id that SRT carries.
pub const MAX_BYTES: usize = 512;

/// Stream id of a caller that wants to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamId {
    /// Slug of the input, unless the id is the bare key.
    pub slug: Option<String>,
    pub key: Secret,
}

/// Reason why a caller is rejected in the handshake: the codes of SRT's access control, shown by OBS, ffmpeg and
/// srt-live-transmit. A wrong passphrase is rejected by libsrt itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Reject {
    /// The stream key is right, and the passphrase is wrong or missing. libsrt rejects it by itself, with its own
    /// code.
    BadSecret = 10,
    /// The stream id has none of the known forms.
    BadRequest = 1400,
    /// Unknown or rotated stream key, or no stream id.
    Unauthorized = 1401,
    /// All connections are taken.
    Overload = 1402,
    /// The input is disabled.
    Forbidden = 1403,
    /// No input has this slug.
    NotFound = 1404,
    /// The caller wants to play, not to publish.
    BadMode = 1405,
    /// Another encoder uses the key.
    Conflict = 1409,
    /// The service starts, drains or is busy.
    Down = 1503,
}

impl Reject {
    pub fn code(self) -> u16 {
        self as u16
    }

    pub fn from_code(code: u16) -> Option<Self> {
        [
            Self::BadSecret,
            Self::BadRequest,
            Self::Unauthorized,
            Self::Overload,
            Self::Forbidden,
            Self::NotFound,
            Self::BadMode,
            Self::Conflict,
            Self::Down,
        ]
        .into_iter()
        .find(|reject| reject.code() == code)
    }

    /// Returns the reason for the log of the service.
    pub fn reason(self) -> &'static str {
        match self {
            Self::BadSecret => "a wrong passphrase, or none",
            Self::BadRequest => "a stream id that is not understood",
            Self::Unauthorized => "an unknown stream key",
            Self::Overload => "srt.max_connections is reached",
            Self::Forbidden => "the live input is disabled",
            Self::NotFound => "no live input has this slug",
            Self::BadMode => "a caller that wants to play",
            Self::Conflict => "another encoder uses this key",
            Self::Down => "the service takes no stream now",
        }
    }
}

impl From<&Rejection> for Reject {
    fn from(rejection: &Rejection) -> Self {
        match rejection {
            Rejection::Unauthorized => Self::Unauthorized,
            Rejection::Disabled => Self::Forbidden,
            Rejection::Conflict => Self::Conflict,
            Rejection::Busy => Self::Down,
        }
    }
}

impl StreamId {
    /// Parses a caller's stream id, which may be any bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, Reject> {
        if bytes.is_empty() {
            return Err(Reject::Unauthorized);
        }
        if bytes.len() > MAX_BYTES {
            return Err(Reject::BadRequest);
        }
        let text = decoded(bytes).ok_or(Reject::BadRequest)?;
        let text = text.trim();
        match text.strip_prefix("#!::") {
            Some(pairs) => Self::from_pairs(pairs),
            None => Self::from_plain(text),
        }
    }

    /// Returns the stream name in the authorizer's form, which is RTMP's.
    pub fn stream_name(&self) -> String {
        match &self.slug {
            Some(slug) => format!("{slug}.{}", &*self.key),
            None => self.key.to_string(),
        }
    }

    fn from_pairs(pairs: &str) -> Result<Self, Reject> {
        let (mut slug, mut key) = (None, None);
        for pair in pairs.split(',') {
            let (name, value) = pair.split_once('=').ok_or(Reject::BadRequest)?;
            match name {
                "r" => slug = Some(value),
                "s" => key = Some(value),
                "m" if value != "publish" => return Err(Reject::BadMode),
                _ => {}
            }
        }
        Self::of(slug, key.ok_or(Reject::Unauthorized)?)
    }

    fn from_plain(text: &str) -> Result<Self, Reject> {
        if let Some((mode, rest)) = text.split_once(':') {
            return match mode {
                "publish" => match rest.split_once(':') {
                    Some((slug, key)) => Self::of(Some(slug), key),
                    None => Self::from_plain_key(rest),
                },
                "read" | "request" | "play" | "subscribe" => Err(Reject::BadMode),
                _ => Err(Reject::BadRequest),
            };
        }
        Self::from_plain_key(text)
    }

    fn from_plain_key(text: &str) -> Result<Self, Reject> {
        match text.split_once('.') {
            Some((slug, key)) => Self::of(Some(slug), key),
            None => Self::of(None, text),
        }
    }

    fn of(slug: Option<&str>, key: &str) -> Result<Self, Reject> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        };
        let slug = slug.filter(|slug| !slug.is_empty());
        if !is_word(key) || slug.is_some_and(|slug| !is_word(slug)) {
            return Err(Reject::BadRequest);
        }
        Ok(Self {
            slug: slug.map(str::to_owned),
            key: key.into(),
        })
    }
}

/// Returns the bytes as text, percent-decoded once if they contain `%`.
fn decoded(bytes: &[u8]) -> Option<Cow<'_, str>> {
    if !bytes.contains(&b'%') {
        return std::str::from_utf8(bytes).ok().map(Cow::Borrowed);
    }
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let digits = rest.get(..2)?;
        plain.push(hex(digits[0])? << 4 | hex(digits[1])?);
        rest = &rest[2..];
    }
    String::from_utf8(plain).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "svc_live_0123456789abcdefghijklmnopqrstuv";

    #[test]
    fn every_form_names_the_same_stream() {
        for (text, slug) in [
            (format!("publish:studio:{KEY}"), Some("studio")),
            (format!("#!::r=studio,m=publish,s={KEY}"), Some("studio")),
            (
                format!("#!::s={KEY},u=me,t=stream,r=studio"),
                Some("studio"),
            ),
            (format!("#!::m=publish,s={KEY}"), None),
            (format!("studio.{KEY}"), Some("studio")),
            (KEY.to_owned(), None),
            (format!("publish:{KEY}"), None),
            (format!("publish%3Astudio%3A{KEY}"), Some("studio")),
            (
                format!("%23!%3A%3Ar%3dstudio,m%3Dpublish%2cs={KEY}"),
                Some("studio"),
            ),
            (format!(" {KEY}\n"), None),
        ] {
            let id = StreamId::parse(text.as_bytes()).unwrap_or_else(|it| panic!("{text}: {it:?}"));
            assert_eq!((id.slug.as_deref(), &*id.key), (slug, KEY), "{text}");
        }
    }

    #[test]
    fn what_is_no_publish_is_refused_with_its_code() {
        let long = "x".repeat(MAX_BYTES + 1);
        for (text, code) in [
            ("", 1401),
            (" ", 1400),
            ("#!::r=studio,m=publish", 1401),
            ("#!::r=studio,m=request,s=key", 1405),
            ("#!::r=studio,m=bidirectional,s=key", 1405),
            ("#!::nonsense", 1400),
            ("read:studio:key", 1405),
            ("other:studio:key", 1400),
            ("publish:studio:", 1400),
            ("publish:stu dio:key", 1400),
            ("publish:studio:key:more", 1400),
            ("%", 1400),
            ("%4", 1400),
            ("%zz", 1400),
            ("%ff", 1400),
            (long.as_str(), 1400),
        ] {
            let refused = StreamId::parse(text.as_bytes()).unwrap_err();
            assert_eq!(refused.code(), code, "{text:?}");
            assert_eq!(Reject::from_code(code), Some(refused));
        }
        assert!(StreamId::parse(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn debug_hides_the_key() {
        let id = StreamId::parse(KEY.as_bytes()).unwrap();
        assert!(!format!("{id:?}").contains(KEY));
        assert_eq!(id.stream_name(), KEY);
    }
}
