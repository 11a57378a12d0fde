//! `pullUrl`: syntax of `rtsp://` and `rtsps://` addresses, default ports 554 and 322, credentials, masking.

use percent_encoding::percent_decode_str;
use url::{Position, Url};

use crate::{
    live::address::{self, MASK, Malformed},
    outbound::{Outbound, Rejection, Target},
};

/// Default ports: RFC 2326 §3.2, and the port that is registered for RTSP in TLS.
const RTSP_PORT: u16 = 554;
const RTSPS_PORT: u16 = 322;

/// Error of an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullUrlError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("expected an address such as rtsp://camera.example.com/stream")]
    Syntax,
    #[error("it must begin with rtsp:// or rtsps://")]
    Scheme,
    #[error(transparent)]
    Refused(#[from] Rejection),
}

/// The address of a source.
#[derive(Clone, PartialEq, Eq)]
pub struct PullUrl {
    /// Without user information.
    pub(super) url: Url,
    /// User name and password.
    pub(super) credentials: Option<(String, String)>,
    pub(super) is_tls: bool,
    port: u16,
}

impl PullUrl {
    /// Reads an address; where it leads is not checked here.
    pub fn parse(text: &str) -> Result<Self, PullUrlError> {
        let mut url = address::read(text)?.ok_or(PullUrlError::Syntax)?;
        let is_tls = match url.scheme() {
            "rtsp" => false,
            "rtsps" => true,
            _ => return Err(PullUrlError::Scheme),
        };
        let default_port = if is_tls { RTSPS_PORT } else { RTSP_PORT };
        let port = url.port().unwrap_or(default_port);
        if url.host_str().is_none_or(str::is_empty) || port == 0 {
            return Err(PullUrlError::Syntax);
        }
        let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let password = url.password().unwrap_or_default();
            (decoded(url.username()), decoded(password))
        });
        let cleared = url.set_username("").and_then(|()| url.set_password(None));
        cleared.map_err(|()| PullUrlError::Syntax)?;
        url.set_fragment(None);
        Ok(Self {
            url,
            credentials,
            is_tls,
            port,
        })
    }

    /// Returns the host to dial; a rejection when its literal address is not allowed.
    pub fn target(&self, outbound: &Outbound) -> Result<Target, Rejection> {
        let host = self.url.host_str().unwrap_or_default();
        outbound.check_peer(host, self.port, self.is_tls)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }
}

/// Returns the address with user name, password and query hidden: cameras take logins in all of them.
pub fn masked(text: &str) -> String {
    let Ok(pull) = PullUrl::parse(text) else {
        return MASK.to_owned();
    };
    let url = &pull.url;
    let login = pull
        .credentials
        .as_ref()
        .map_or(String::new(), |_| format!("{MASK}@"));
    let query = url.query().map_or(String::new(), |_| format!("?{MASK}"));
    let place = &url[Position::BeforeHost..Position::AfterPath];
    format!("{}://{login}{place}{query}", url.scheme())
}

/// Decodes percent-encoding; invalid UTF-8 becomes the replacement character.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let login = |name: &str, word: &str| Some((name.to_owned(), word.to_owned()));
        for (text, url, credentials, port) in [
            ("rtsp://cam/live", "rtsp://cam/live", None, 554),
            ("rtsps://cam:9/a?b=c#d", "rtsps://cam:9/a?b=c", None, 9),
            ("rtsps://cam/a", "rtsps://cam/a", None, 322),
            (
                "rtsp://u:p%40s%zz@[::1]/x",
                "rtsp://[::1]/x",
                login("u", "p@s%zz"),
                554,
            ),
            ("rtsp://u@10.0.0.1", "rtsp://10.0.0.1", login("u", ""), 554),
        ] {
            let pull = PullUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let seen = (pull.url.as_str(), pull.credentials.clone(), pull.port());
            assert_eq!(seen, (url, credentials, port), "{text}");
        }
    }

    #[test]
    fn what_is_no_source_is_refused() {
        for (text, error) in [
            ("http://cam/live", PullUrlError::Scheme),
            ("rtsp:///live", PullUrlError::Syntax),
            ("rtsp://cam:0/", PullUrlError::Syntax),
            ("cam/live", PullUrlError::Syntax),
            (
                "rtsp://cam/a b",
                PullUrlError::Malformed(Malformed::Character),
            ),
        ] {
            assert_eq!(PullUrl::parse(text).err(), Some(error), "{text}");
        }
        let long = format!("rtsp://cam/{}", "x".repeat(address::MAX_BYTES));
        assert_eq!(
            PullUrl::parse(&long).err(),
            Some(PullUrlError::Malformed(Malformed::TooLong))
        );
    }

    #[test]
    fn secrets_are_hidden() {
        for (text, shown) in [
            ("rtsp://cam/live", "rtsp://cam/live"),
            (
                "rtsp://u:p@cam:8554/live?user=a&pwd=b",
                "rtsp://••••@cam:8554/live?••••",
            ),
            ("rtsp://u@cam/", "rtsp://••••@cam/"),
            ("nonsense secret", "••••"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }
}
