//! URLs of receivers and `sourceUrl`: longest URL, forbidden characters, host names, no user name, spellings of IP
//! addresses.
//!
//! One parser (WHATWG) reads an address; nothing reads it again. Spellings that other parsers read otherwise (spaces,
//! control characters, backslashes) are rejected. Every spelling of an IP address is stored as the address that it means,
//! and that one is checked.

use std::{fmt, net::IpAddr};

use hyper::{Uri, header::HeaderValue};
use url::{Host, Position, Url};

/// Longest address.
pub const MAX_URL_BYTES: usize = 8 << 10;
/// Longest host name and longest label in it: RFC 1035 §2.3.4.
const MAX_NAME_BYTES: usize = 253;
const MAX_LABEL_BYTES: usize = 63;

/// Error of an address; shows nothing of its path, query or user information.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("a URL must have at most {MAX_URL_BYTES} bytes")]
    TooLong,
    #[error("a URL must not hold spaces, control characters or backslashes; encode them")]
    Character,
    #[error("expected a URL such as https://example.com/hook: {0}")]
    Syntax(#[from] url::ParseError),
    #[error("a URL must begin with http:// or https://, not with {0}:")]
    Scheme(String),
    #[error("a URL must not hold a user name or password")]
    UserInformation,
    #[error("a URL must name a host")]
    NoHost,
    #[error("`{0}` is not a host name")]
    Name(String),
    #[error("port 0 cannot be reached")]
    Port,
    #[error("the path of a URL must hold visible ASCII characters; encode others")]
    Path,
}

/// Target of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: Url,
    host: Host<String>,
    port: u16,
    is_tls: bool,
    /// Path and query.
    origin_form: Uri,
}

impl Target {
    /// Reads an address; the addresses behind it are not checked here.
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        check_characters(text)?;
        Self::of(Url::parse(text)?)
    }

    /// Returns the target of a redirect from here (RFC 9110 §10.2.2).
    pub(crate) fn join(&self, location: &str) -> Result<Self, UrlError> {
        check_characters(location)?;
        Self::of(self.url.join(location)?)
    }

    fn of(mut url: Url) -> Result<Self, UrlError> {
        let is_tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(UrlError::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlError::UserInformation);
        }
        let host = url.host().ok_or(UrlError::NoHost)?.to_owned();
        if let Host::Domain(name) = &host {
            check_name(name)?;
        }
        let port = url.port().unwrap_or(if is_tls { 443 } else { 80 });
        if port == 0 {
            return Err(UrlError::Port);
        }
        url.set_fragment(None);
        if url.as_str().len() > MAX_URL_BYTES {
            return Err(UrlError::TooLong);
        }
        let origin_form = url[Position::BeforePath..].parse();
        Ok(Self {
            origin_form: origin_form.map_err(|_| UrlError::Path)?,
            url,
            host,
            port,
            is_tls,
        })
    }

    /// Returns the whole address, its secrets included: for storing and for requests, not for logs.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    pub fn path(&self) -> &str {
        self.url.path()
    }

    pub fn host(&self) -> &Host<String> {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns the address that is written in place of a name; an IPv4-mapped one as the IPv4 address that the system dials.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(v4) => Some(v4.into()),
            Host::Ipv6(v6) => Some(v6.to_canonical()),
        }
    }

    /// Returns path and query, as the request line has them.
    pub(super) fn origin_form(&self) -> &Uri {
        &self.origin_form
    }

    /// Returns the `Host` header: without the port where it is the scheme's own.
    pub(super) fn authority(&self) -> HeaderValue {
        let authority = &self.url[Position::BeforeHost..Position::AfterPort];
        HeaderValue::from_str(authority).expect("a parsed host is visible ASCII")
    }
}

/// Shows scheme, host and port, which are no secrets.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url[..Position::BeforePath])
    }
}

fn check_characters(text: &str) -> Result<(), UrlError> {
    if text.len() > MAX_URL_BYTES {
        return Err(UrlError::TooLong);
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(UrlError::Character);
    }
    Ok(())
}

/// Checks a name, which may end in a dot: no label is empty or too long.
fn check_name(name: &str) -> Result<(), UrlError> {
    let labels = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| (1..=MAX_LABEL_BYTES).contains(&label.len());
    if labels.len() > MAX_NAME_BYTES || !labels.split('.').all(is_label) {
        let shown = name.chars().take(MAX_NAME_BYTES).collect();
        return Err(UrlError::Name(shown));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_tells_its_parts_and_keeps_its_secrets() {
        for (text, shown, authority, origin_form) in [
            ("http://a.test", "http://a.test", "a.test", "/"),
            ("HTTP://A.Test:80/x", "http://a.test", "a.test", "/x"),
            (
                "https://a.test:443?k=s",
                "https://a.test",
                "a.test",
                "/?k=s",
            ),
            (
                "https://a.test:80/s/../t#f",
                "https://a.test:80",
                "a.test:80",
                "/t",
            ),
            ("http://@a.test/", "http://a.test", "a.test", "/"),
            (
                "http://:@a.test:8080/",
                "http://a.test:8080",
                "a.test:8080",
                "/",
            ),
            (
                "http://münich.test/ü",
                "http://xn--mnich-kva.test",
                "xn--mnich-kva.test",
                "/%C3%BC",
            ),
            ("http://0x7f.1/", "http://127.0.0.1", "127.0.0.1", "/"),
            ("http://[0::1]:81/", "http://[::1]:81", "[::1]:81", "/"),
        ] {
            let target = Target::parse(text).expect(text);
            assert_eq!(target.to_string(), shown, "{text}");
            assert_eq!(target.authority(), authority, "{text}");
            assert_eq!(target.origin_form(), origin_form, "{text}");
            assert_eq!(target.is_tls(), text.starts_with("https"), "{text}");
            assert!(!target.as_str().contains('#'), "{text}");
        }
    }

    #[test]
    fn any_character_of_a_path_or_query_is_sent_or_refused() {
        for character in ('\0'..'\u{250}').chain(['\u{2028}', '\u{FFFD}', '\u{10FFFF}']) {
            for text in [
                format!("http://a.test/{character}"),
                format!("http://a.test/?{character}"),
            ] {
                if let Ok(target) = Target::parse(&text) {
                    assert!(target.origin_form().to_string().is_ascii(), "{text:?}");
                }
            }
        }
    }

    #[test]
    fn lengths_have_bounds() {
        let label = "a".repeat(63);
        let name = [&*label; 4].join(".");
        let path = |bytes: usize| format!("http://a.test/{}", "x".repeat(bytes - 14));
        for (text, expected) in [
            (path(MAX_URL_BYTES), None),
            (path(MAX_URL_BYTES + 1), Some(UrlError::TooLong)),
            (
                format!("http://a.test/{}", "é".repeat(3000)),
                Some(UrlError::TooLong),
            ),
            (format!("http://{label}.test/"), None),
            (
                format!("http://{label}a.test/"),
                Some(UrlError::Name(format!("{label}a.test"))),
            ),
            (format!("http://{}/", &name[..MAX_NAME_BYTES]), None),
            (format!("http://{}./", &name[..MAX_NAME_BYTES]), None),
            (
                format!("http://{name}/"),
                Some(UrlError::Name(name[..MAX_NAME_BYTES].to_owned())),
            ),
        ] {
            let error = Target::parse(&text).err();
            assert_eq!(error, expected, "{} bytes", text.len());
        }
    }
}
