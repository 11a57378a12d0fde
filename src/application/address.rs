//! Public base URL (`http.base_url`), client address and trusted proxies: `X-Forwarded-For`, `-Proto`, `-Host`; RTMP, RTMPS and SRT
//! server addresses.
//!
//! Pure: [`Seen`] holds the facts of one request; `X-Forwarded-*` counts only when the peer is a trusted proxy.

use std::{borrow::Cow, net::IpAddr};

use url::Url;

use crate::config::Cidr;

/// Connection and headers of a request: how it reached the service.
#[derive(Clone, Debug, Default)]
pub struct Seen<'a> {
    pub peer: Option<IpAddr>,
    /// True when this connection is TLS.
    pub tls: bool,
    /// `Host`, or HTTP/2's `:authority`.
    pub host: Option<&'a str>,
    /// `X-Forwarded-For`, `-Proto` and `-Host`, each with all of its lines joined.
    pub forwarded_for: Option<Cow<'a, str>>,
    pub forwarded_proto: Option<Cow<'a, str>>,
    pub forwarded_host: Option<Cow<'a, str>>,
    /// Local port of this connection.
    pub local_port: u16,
}

impl Seen<'static> {
    /// Returns the facts of a request from this machine to the listener's own port.
    pub fn local(port: u16, tls: bool) -> Self {
        Self {
            tls,
            local_port: port,
            ..Self::default()
        }
    }
}

/// Address under which the requesting client reaches the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicAddress {
    /// Base URL without a trailing slash; may have a path when `http.base_url` has one.
    pub base: String,
    /// Host as it is written in an address: IPv6 in brackets, no port.
    pub host: String,
}

impl PublicAddress {
    /// Returns `base_url` when it is set, else the request's scheme and host as the trusted proxy or the request itself
    /// gives them.
    pub fn of(base_url: &str, seen: &Seen<'_>, trusted: &[Cidr]) -> Self {
        if let Some(configured) = parse(base_url.trim_end_matches('/')) {
            return configured;
        }
        let proxied = seen.peer.is_some_and(|peer| is_trusted(peer, trusted));
        let forwarded_proto = last_of(seen.forwarded_proto.as_deref())
            .filter(|proto| proxied && ["http", "https"].contains(proto));
        let forwarded_host = last_of(seen.forwarded_host.as_deref()).filter(|_| proxied);
        let scheme = forwarded_proto.unwrap_or(if seen.tls { "https" } else { "http" });
        [forwarded_host, seen.host]
            .into_iter()
            .flatten()
            .find_map(|host| from_authority(scheme, host))
            .unwrap_or_else(|| Self {
                base: format!("{scheme}://localhost:{}", seen.local_port),
                host: "localhost".to_owned(),
            })
    }

    pub fn is_https(&self) -> bool {
        self.base.starts_with("https://")
    }

    /// Scheme, host and port without a path, as a browser sends it in `Origin`.
    pub fn origin(&self) -> String {
        match Url::parse(&self.base) {
            Ok(url) => url.origin().ascii_serialization(),
            Err(_) => self.base.clone(),
        }
    }

    /// The server address to paste into an encoder: `rtmp://host:1935/live`, or `public_url` when it is set, with the
    /// application name `live` added where it has none.
    pub fn rtmp_server(&self, public_url: &str, port: u16) -> String {
        match public_url.trim_end_matches('/') {
            "" => with_application(format!("rtmp://{}:{port}", self.host)),
            configured => with_application(configured.to_owned()),
        }
    }

    /// The server address of RTMPS; a `public_url` of `rtmp` is not of this listener.
    pub fn rtmps_server(&self, public_url: &str, port: u16) -> String {
        match public_url.trim_end_matches('/') {
            configured if configured.starts_with("rtmps://") => {
                with_application(configured.to_owned())
            }
            _ => with_application(format!("rtmps://{}:{port}", self.host)),
        }
    }
}

fn with_application(server: String) -> String {
    let has_application = server
        .split_once("://")
        .is_some_and(|(_, rest)| rest.contains('/'));
    if has_application {
        server
    } else {
        format!("{server}/live")
    }
}

impl PublicAddress {
    /// The server address of SRT: `srt://host:8890`, or `public_url` when it is set.
    pub fn srt_server(&self, public_url: &str, port: u16) -> String {
        match public_url.trim_end_matches('/') {
            "" => format!("srt://{}:{port}", self.host),
            configured => configured.to_owned(),
        }
    }
}

/// Returns the client's own address: the right-most entry of `X-Forwarded-For` that no trusted proxy wrote about
/// itself.
pub fn client(seen: &Seen<'_>, trusted: &[Cidr]) -> Option<IpAddr> {
    let mut client = seen.peer?;
    for entry in seen
        .forwarded_for
        .as_deref()
        .unwrap_or_default()
        .rsplit(',')
    {
        if !is_trusted(client, trusted) {
            break;
        }
        let Some(address) = forwarded_entry(entry.trim()) else {
            break;
        };
        client = address;
    }
    Some(client.to_canonical())
}

/// The entry that the nearest proxy wrote; earlier entries may be the client's own.
fn last_of(list: Option<&str>) -> Option<&str> {
    list?.rsplit(',').next().map(str::trim)
}

/// Returns whether a proxy at this address is one of the operator's own.
pub fn is_trusted(address: IpAddr, trusted: &[Cidr]) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// Reads an entry. Proxies write `192.0.2.1`, some `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`.
fn forwarded_entry(entry: &str) -> Option<IpAddr> {
    entry
        .parse()
        .ok()
        .or_else(|| {
            entry
                .parse::<std::net::SocketAddr>()
                .ok()
                .map(|address| address.ip())
        })
        .or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok())
}

fn from_authority(scheme: &str, authority: &str) -> Option<PublicAddress> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    (!authority.is_empty() && authority.chars().all(is_plain))
        .then(|| parse(&format!("{scheme}://{authority}")))
        .flatten()
}

fn parse(base: &str) -> Option<PublicAddress> {
    let url = Url::parse(base).ok()?;
    Some(PublicAddress {
        base: url.as_str().trim_end_matches('/').to_owned(),
        host: url.host_str()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trusted() -> Vec<Cidr> {
        ["10.0.0.0/8", "::1"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect()
    }

    const PROXY: &str = "10.0.0.7";
    const STRANGER: &str = "203.0.113.9";

    fn seen<'a>(peer: &str, host: &'a str) -> Seen<'a> {
        Seen {
            peer: peer.parse().ok(),
            host: Some(host),
            local_port: 8080,
            ..Seen::default()
        }
    }

    #[test]
    fn the_public_base_follows_setting_then_proxy_then_request() {
        let proxied = |peer| Seen {
            forwarded_proto: Some("https".into()),
            forwarded_host: Some("media.example.org".into()),
            ..seen(peer, "127.0.0.1:8080")
        };
        let cases: Vec<(&str, Seen<'_>, &str, &str)> = vec![
            (
                "",
                seen(STRANGER, "media.test:8080"),
                "http://media.test:8080",
                "media.test",
            ),
            (
                "",
                Seen {
                    tls: true,
                    ..seen(STRANGER, "media.test")
                },
                "https://media.test",
                "media.test",
            ),
            (
                "",
                seen(STRANGER, "[2001:db8::1]:8080"),
                "http://[2001:db8::1]:8080",
                "[2001:db8::1]",
            ),
            ("", seen(STRANGER, "[::1]"), "http://[::1]", "[::1]"),
            (
                "",
                proxied(PROXY),
                "https://media.example.org",
                "media.example.org",
            ),
            (
                "",
                proxied("::ffff:10.0.0.7"),
                "https://media.example.org",
                "media.example.org",
            ),
            ("", proxied(STRANGER), "http://127.0.0.1:8080", "127.0.0.1"),
            (
                "https://cdn.example/x/",
                proxied(PROXY),
                "https://cdn.example/x",
                "cdn.example",
            ),
            (
                "https://[2001:db8::2]",
                seen(STRANGER, "a"),
                "https://[2001:db8::2]",
                "[2001:db8::2]",
            ),
            (
                "",
                seen(STRANGER, "evil/path"),
                "http://localhost:8080",
                "localhost",
            ),
            (
                "",
                seen(STRANGER, "user@evil"),
                "http://localhost:8080",
                "localhost",
            ),
            ("", seen(STRANGER, ""), "http://localhost:8080", "localhost"),
            (
                "",
                Seen {
                    host: None,
                    ..seen(STRANGER, "")
                },
                "http://localhost:8080",
                "localhost",
            ),
            (
                "",
                Seen {
                    forwarded_proto: Some("javascript".into()),
                    forwarded_host: Some("a b".into()),
                    ..seen(PROXY, "ok.test")
                },
                "http://ok.test",
                "ok.test",
            ),
            (
                "",
                Seen {
                    forwarded_proto: Some("http, https".into()),
                    forwarded_host: Some("spoof, real.test".into()),
                    ..seen(PROXY, "a")
                },
                "https://real.test",
                "real.test",
            ),
        ];
        for (base_url, seen, base, host) in cases {
            let address = PublicAddress::of(base_url, &seen, &trusted());
            assert_eq!(
                (address.base.as_str(), address.host.as_str()),
                (base, host),
                "{base_url:?} {seen:?}"
            );
        }
    }

    #[test]
    fn the_rtmp_server_follows_the_host_unless_overridden() {
        let cases = [
            (
                "http://media.test:8080",
                "",
                1935,
                "rtmp://media.test:1935/live",
            ),
            (
                "https://[2001:db8::1]",
                "",
                40001,
                "rtmp://[2001:db8::1]:40001/live",
            ),
            (
                "http://media.test",
                "rtmp://live.test:1935",
                40001,
                "rtmp://live.test:1935/live",
            ),
            (
                "http://media.test",
                "rtmps://live.test/",
                1935,
                "rtmps://live.test/live",
            ),
            (
                "http://media.test",
                "rtmp://live.test/app",
                1935,
                "rtmp://live.test/app",
            ),
        ];
        for (base, public_url, port, expected) in cases {
            let address = PublicAddress::of(base, &Seen::default(), &[]);
            assert_eq!(address.rtmp_server(public_url, port), expected);
        }
        let address = PublicAddress::of("https://media.test", &Seen::default(), &[]);
        for (public_url, expected) in [
            ("", "rtmps://media.test:1936/live"),
            ("rtmp://live.test", "rtmps://media.test:1936/live"),
            ("rtmps://live.test/app", "rtmps://live.test/app"),
        ] {
            assert_eq!(address.rtmps_server(public_url, 1936), expected);
        }
    }

    #[test]
    fn the_client_is_the_last_hop_that_no_trusted_proxy_is() {
        let cases = [
            (STRANGER, None, STRANGER),
            (STRANGER, Some("1.1.1.1"), STRANGER),
            (PROXY, None, PROXY),
            (PROXY, Some("198.51.100.4"), "198.51.100.4"),
            (PROXY, Some("6.6.6.6, 198.51.100.4"), "198.51.100.4"),
            (PROXY, Some("198.51.100.4, 10.9.9.9"), "198.51.100.4"),
            (PROXY, Some("198.51.100.4:5555"), "198.51.100.4"),
            (PROXY, Some("[2001:db8::9]:5555"), "2001:db8::9"),
            (PROXY, Some("unknown"), PROXY),
            ("::1", Some("::ffff:198.51.100.4"), "198.51.100.4"),
        ];
        for (peer, forwarded_for, expected) in cases {
            let seen = Seen {
                forwarded_for: forwarded_for.map(Cow::Borrowed),
                ..seen(peer, "x")
            };
            assert_eq!(
                client(&seen, &trusted()),
                expected.parse().ok(),
                "{peer} {forwarded_for:?}"
            );
        }
    }

    #[test]
    fn the_origin_has_no_path_and_no_default_port() {
        let origin = |base| PublicAddress::of(base, &Seen::default(), &[]).origin();
        assert_eq!(origin("https://media.test:443/x"), "https://media.test");
        assert_eq!(origin("http://media.test:8080"), "http://media.test:8080");
    }
}
