//! The running service that `sluice webhooks` and `sluice mcp` call: `--url`, `--key` (`SLUICE_API_KEY`), default address, its
//! error texts.
//!
//! The connector's guard is off here, and may be: it keeps a *service* from addresses that its users name. This process
//! goes to the addresses that its own user typed, and follows no redirect from them.

use std::{fs, net::SocketAddr, path::Path};

use serde::Deserialize;
use sluice_actors::outbound::{HeaderValue, Outbound, OutboundSettings, Stream};
use sluice_store::Secret;

use super::{Error, shown};
use crate::{app, config::Config};

/// Default address of a service.
const DEFAULT_URL: &str = "http://127.0.0.1:8080";
/// Most bytes that are read of a rejection.
const MAX_REJECTION_BYTES: usize = 64 << 10;
/// Most characters of a rejection's message that are shown.
const MAX_SENTENCE_CHARS: usize = 1_000;

/// The options by which a command finds its service.
#[derive(Debug, clap::Args)]
pub(super) struct Access {
    /// The service [default: the one of this machine's data folder, else http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// An API key of the service
    #[arg(long, env = "SLUICE_API_KEY", hide_env_values = true)]
    key: Option<Secret>,
}

impl Access {
    /// Certificates are checked as the service checks them (`outbound.ca_file`). Nothing is asked of the service yet.
    pub(super) fn open(self, config: &Config) -> Result<Service, Error> {
        let key = self.key.filter(|key| !key.expose().is_empty());
        let key = key.ok_or_else(|| {
            let what = "an API key is needed: set SLUICE_API_KEY, or give one with --key";
            Error::Rejected(what.to_owned())
        })?;
        let outbound = unguarded(&config.outbound)?;
        let url = self.url.unwrap_or_else(|| local_url(config));
        check_url(&outbound, "--url", &url)?;
        Ok(Service {
            url: url.trim_end_matches('/').to_owned(),
            key,
            outbound,
        })
    }
}

/// A service, its key, and the connector.
#[derive(Debug)]
pub(super) struct Service {
    /// Without a slash at its end.
    pub(super) url: String,
    pub(super) key: Secret,
    pub(super) outbound: Outbound,
}

/// Error for a key that cannot be a header.
#[derive(Debug, thiserror::Error)]
#[error("the API key has characters that cannot be sent")]
pub(super) struct UnusableKey;

impl Service {
    pub(super) fn authorization(&self) -> Result<HeaderValue, UnusableKey> {
        let mut value = HeaderValue::try_from(format!("Bearer {}", self.key.expose()))
            .map_err(|_| UnusableKey)?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The service's own sentence in a rejection, when it is one of a service.
pub(super) async fn error_message(answer: &mut Stream) -> Option<String> {
    let mut body = Vec::new();
    // A rejection that breaks off is one all the same.
    while let Ok(Some(piece)) = answer.next().await {
        let room = MAX_REJECTION_BYTES - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if body.len() == MAX_REJECTION_BYTES {
            break;
        }
    }
    sentence(&body)
}

/// Returns the message of an error body of the service.
pub(super) fn sentence(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Rejection {
        error: String,
    }
    let Rejection { error } = serde_json::from_slice(body).ok()?;
    Some(shown(&error, MAX_SENTENCE_CHARS))
}

/// A connector that may reach every address. Certificates are checked as the service checks them.
fn unguarded(settings: &OutboundSettings) -> Result<Outbound, Error> {
    let everything = ["0.0.0.0/0", "::/0"].map(|network| network.parse());
    let allow = everything
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("both are networks");
    let settings = OutboundSettings {
        allow,
        ..settings.clone()
    };
    Outbound::new(&settings).map_err(|error| Error::Rejected(error.to_string()))
}

pub(super) fn check_url(outbound: &Outbound, option: &str, url: &str) -> Result<(), Error> {
    match outbound.check_url(url) {
        Ok(_) => Ok(()),
        Err(rejection) => Err(Error::Rejected(format!("{option} {url}: {rejection}"))),
    }
}

/// The address of the service that uses this machine's data folder; without one, where a service usually is.
fn local_url(config: &Config) -> String {
    announced(&config.store.data_dir)
        .map(|addresses| addresses.url(&config.http.base_url))
        .unwrap_or_else(|| DEFAULT_URL.to_owned())
}

/// Returns where a browser on this machine finds the service of the data folder, or where a service usually is.
pub(super) fn browser_url(config: &Config) -> String {
    let usual = Announced {
        http: config.http.listen,
        https: config.http.tls().is_some(),
    };
    let Announced { http, https } = announced(&config.store.data_dir).unwrap_or(usual);
    app::browser_url(&config.http.base_url, http, https)
}

/// The addresses that a service writes at its start.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Announced {
    http: SocketAddr,
    https: bool,
}

fn announced(data_dir: &Path) -> Option<Announced> {
    let json = fs::read(data_dir.join("addresses.json")).ok()?;
    serde_json::from_slice(&json).ok()
}

impl Announced {
    /// Returns its URL. Over HTTPS the name in the certificate counts, which only `http.base_url` knows.
    fn url(mut self, base_url: &str) -> String {
        if self.https && base_url.starts_with("https://") {
            return base_url.to_owned();
        }
        if self.http.ip().is_unspecified() {
            let loopback = match self.http {
                SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
            };
            self.http.set_ip(loopback);
        }
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}", self.http)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_and_other_schemes_are_not() {
        let outbound = unguarded(&OutboundSettings::default()).unwrap();
        for (url, is_allowed) in [
            ("http://127.0.0.1:9000/hook", true),
            ("http://[::1]:9000/", true),
            ("http://10.0.0.1/", true),
            ("https://shop.example.com/", true),
            ("127.0.0.1:9000", false),
            ("ftp://127.0.0.1/", false),
            ("http://user:password@127.0.0.1/", false),
        ] {
            let checked = check_url(&outbound, "--forward", url);
            assert_eq!(checked.is_ok(), is_allowed, "{url}: {checked:?}");
        }
    }

    #[test]
    fn the_service_of_the_data_folder_is_found() {
        for (http, https, base_url, url) in [
            ("127.0.0.1:8080", false, "", "http://127.0.0.1:8080"),
            ("0.0.0.0:81", false, "", "http://127.0.0.1:81"),
            ("[::]:81", false, "", "http://[::1]:81"),
            (
                "192.0.2.1:81",
                false,
                "http://a.example",
                "http://192.0.2.1:81",
            ),
            (
                "0.0.0.0:443",
                true,
                "https://a.example",
                "https://a.example",
            ),
            ("0.0.0.0:443", true, "", "https://127.0.0.1:443"),
        ] {
            let json =
                serde_json::json!({"http": http, "https": https, "rtmp": "x", "rtmps": null});
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("addresses.json"), json.to_string()).unwrap();
            let announced = announced(folder.path()).unwrap();
            assert_eq!(announced.url(base_url), url);
        }
        let empty = tempfile::tempdir().unwrap();
        assert!(announced(empty.path()).is_none());
        fs::write(empty.path().join("addresses.json"), "{").unwrap();
        assert!(announced(empty.path()).is_none());
    }
}
