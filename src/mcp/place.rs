//! Hosts and origins that may call `/mcp` (`mcp.allowed_hosts`, `mcp.allowed_origins`), against DNS rebinding. (MCP, Streamable
//! HTTP, "Security Warning".)
//!
//! Pure. A program sends no `Origin`, a page always does.

use url::{Host, Url};

use crate::application::error::ApiError;

/// The names of a service.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// `http.base_url`, may be empty.
    pub base_url: &'a str,
    /// `mcp.allowed_hosts`: names, each perhaps with a port.
    pub allowed_hosts: &'a [String],
    /// `mcp.allowed_origins`.
    pub allowed_origins: &'a [String],
}

impl Names<'_> {
    /// Answers 403 unless `host` (the value of `Host`, or `:authority`) is an IP address, `localhost`, or a name of the service.
    pub fn check_host(&self, host: Option<&str>) -> Result<(), ApiError> {
        let asked = host.and_then(|host| Url::parse(&format!("http://{host}/")).ok());
        let is_ours = asked.is_some_and(|asked| match asked.host() {
            Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
            Some(Host::Domain(name)) => self.is_named(name, asked.port()),
            None => false,
        });
        match is_ours {
            true => Ok(()),
            false => Err(ApiError::Forbidden(
                "this service does not go by the name in Host: use its IP address or localhost, or set http.base_url or mcp.allowed_hosts",
            )),
        }
    }

    fn is_named(&self, name: &str, port: Option<u16>) -> bool {
        let name = name.trim_end_matches('.');
        if name == "localhost" {
            return true;
        }
        if Url::parse(self.base_url).is_ok_and(|base| base.host_str() == Some(name)) {
            return true;
        }
        self.allowed_hosts.iter().any(|allowed| {
            Url::parse(&format!("http://{allowed}/")).is_ok_and(|allowed| {
                allowed.host_str() == Some(name)
                    && (allowed.port().is_none() || allowed.port() == port)
            })
        })
    }

    /// Answers 403 unless the page is the service's own (`own`, or under the very `Host` of the request), or allowed by
    /// name.
    pub fn check_origin(
        &self,
        origin: &str,
        own: &str,
        host: Option<&str>,
    ) -> Result<(), ApiError> {
        let is_same_host = || {
            let (_, asking) = origin.split_once("://")?;
            host.map(|host| host.eq_ignore_ascii_case(asking))
        };
        match origin == own || is_same_host() == Some(true) || self.lists(origin) {
            true => Ok(()),
            false => Err(ApiError::Forbidden(
                "pages of this Origin may not call /mcp: mcp.allowed_origins lists those that may",
            )),
        }
    }

    /// Returns whether the page's origin may call.
    pub fn lists(&self, origin: &str) -> bool {
        self.allowed_origins
            .iter()
            .any(|allowed| allowed.trim_end_matches('/').eq_ignore_ascii_case(origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'a>(hosts: &'a [String], origins: &'a [String]) -> Names<'a> {
        Names {
            base_url: "https://media.example.org/sluice",
            allowed_hosts: hosts,
            allowed_origins: origins,
        }
    }

    #[test]
    fn a_name_that_is_not_the_services_own_is_rejected() {
        let hosts = ["agents".to_owned(), "inside.example:8443".to_owned()];
        let cases = [
            ("127.0.0.1:8080", true),
            ("[::1]:8080", true),
            ("192.0.2.7", true),
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("localhost.", true),
            ("media.example.org", true),
            ("media.example.org:8443", true),
            ("agents", true),
            ("agents:1234", true),
            ("inside.example:8443", true),
            ("inside.example:8080", false),
            ("inside.example", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("media.example.org@evil.example", false),
            ("", false),
            ("a b", false),
            ("[::1", false),
        ];
        for (host, expected) in cases {
            let found = names(&hosts, &[]).check_host(Some(host)).is_ok();
            assert_eq!(found, expected, "{host}");
        }
        assert!(names(&hosts, &[]).check_host(None).is_err());
    }

    #[test]
    fn a_foreign_page_is_rejected() {
        let origins = ["https://agents.example/".to_owned()];
        let own = "https://media.example.org";
        let cases = [
            ("https://media.example.org", true),
            ("http://127.0.0.1:8080", true),
            ("https://agents.example", true),
            ("https://agents.example:8443", false),
            ("http://agents.example", false),
            ("https://evil.example", false),
            ("http://127.0.0.1:8081", false),
            ("null", false),
            ("", false),
        ];
        for (origin, expected) in cases {
            let found = names(&[], &origins).check_origin(origin, own, Some("127.0.0.1:8080"));
            assert_eq!(found.is_ok(), expected, "{origin}");
        }
    }
}
