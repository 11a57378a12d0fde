//! `sluice doctor` on `http.base_url` and `rtmp.public_url`: reachable from other machines, scheme in agreement with TLS.

use url::{Host, Url};

use super::finding::Finding;
use crate::config::Config;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let http = &config.http;
    let mut findings = vec![judge_base_url(
        &http.base_url,
        http.tls().is_some(),
        !http.trusted_proxies.is_empty(),
    )];
    findings.extend(judge_rtmp_url(&config.rtmp.public_url));
    findings
}

fn judge_base_url(base_url: &str, has_tls: bool, has_proxies: bool) -> Finding {
    const CHECK: &str = "base address";
    let Ok(url) = Url::parse(base_url) else {
        // Settings reject what is neither empty nor an address.
        return Finding::ok(
            CHECK,
            "http.base_url is empty: addresses follow each request's own host",
        );
    };
    if only_this_machine(&url) {
        return Finding::warn(
            CHECK,
            format!("{base_url} reaches this machine only"),
            "set http.base_url to the address that viewers use",
        );
    }
    match (url.scheme(), has_tls, has_proxies) {
        ("https", false, false) => Finding::warn(
            CHECK,
            format!("{base_url} is https, but neither a certificate nor a proxy is configured"),
            "set http.tls_cert and http.tls_key, or put the proxy's network into http.trusted_proxies",
        ),
        ("http", true, _) => Finding::warn(
            CHECK,
            format!("{base_url} is http, but the service listens with a certificate"),
            "begin http.base_url with https",
        ),
        _ => Finding::ok(CHECK, base_url),
    }
}

fn judge_rtmp_url(public_url: &str) -> Option<Finding> {
    const CHECK: &str = "rtmp address";
    let url = Url::parse(public_url).ok()?;
    Some(if only_this_machine(&url) {
        Finding::warn(
            CHECK,
            format!("{public_url} reaches this machine only"),
            "set rtmp.public_url to the address that encoders use, or leave it empty",
        )
    } else {
        Finding::ok(CHECK, public_url)
    })
}

fn only_this_machine(url: &Url) -> bool {
    // Hosts of schemes that browsers do not know stay names, even when they are numbers.
    let host = url.host_str().and_then(|host| Host::parse(host).ok());
    match host {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Host::Ipv6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn addresses_that_no_one_reaches_are_named() {
        for (base_url, tls, proxies, level) in [
            ("", false, false, Level::Ok),
            ("http://localhost:8080", false, false, Level::Warn),
            ("http://127.0.0.1:8080", false, false, Level::Warn),
            ("http://[::1]:8080", false, false, Level::Warn),
            ("http://0.0.0.0:8080", false, false, Level::Warn),
            ("http://192.168.1.5:8080", false, false, Level::Ok),
            ("https://live.example.org", false, false, Level::Warn),
            ("https://live.example.org", true, false, Level::Ok),
            ("https://live.example.org", false, true, Level::Ok),
            ("http://live.example.org", true, false, Level::Warn),
        ] {
            let finding = judge_base_url(base_url, tls, proxies);
            assert_eq!(finding.level, level, "{finding:?}");
        }
        assert_eq!(judge_rtmp_url(""), None);
        assert_eq!(
            judge_rtmp_url("rtmp://127.0.0.1:1935").unwrap().level,
            Level::Warn
        );
        assert_eq!(
            judge_rtmp_url("rtmp://live.example.org:1935")
                .unwrap()
                .level,
            Level::Ok
        );
    }
}
