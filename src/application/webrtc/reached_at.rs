//! Addresses at which a client may reach the WebRTC gateway, found from its request (`Host`, `http.base_url`, the connection)
//! and the machine.
//!
//! `webrtc.public_addresses` come before them, where they are set.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Addresses that no packet is sent to: those for documentation (RFC 5737, RFC 3849), beyond every network of the machine.
const ELSEWHERE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
    IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
];

/// Facts of the request that an offer came by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach<'a> {
    /// Host under which the client reached the service: of `http.base_url`, `X-Forwarded-Host` or `Host`; IPv6 in brackets.
    pub host: &'a str,
    /// The service's own address of the connection.
    pub local: Option<IpAddr>,
    /// True when the connection is a trusted proxy's.
    pub is_proxied: bool,
}

/// Returns the addresses, best first. `interfaces` gives those of the machine, for requests that tell nothing.
pub(crate) fn addresses(reach: Reach<'_>, interfaces: impl FnOnce() -> Vec<IpAddr>) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let named = literal(reach.host);
    found.extend(named);
    let is_local = named.is_some_and(|address| address.is_loopback());
    // A proxy on this machine that is not listed as trusted tells nothing of where its clients are.
    let local = reach
        .local
        .filter(|address| !reach.is_proxied && (is_local || !address.to_canonical().is_loopback()));
    found.extend(local);
    if local.is_none() {
        found.extend(interfaces());
    }
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in found {
        let address = address.to_canonical();
        if is_usable(address) && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

/// The address that a host is: a literal, or that of `localhost`.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.eq_ignore_ascii_case("localhost") {
        true => Some(Ipv4Addr::LOCALHOST.into()),
        false => bare.parse().ok(),
    }
}

/// An address without a scope that packets of one client can come to.
fn is_usable(address: IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_unspecified() && !address.is_multicast() && !is_link_local
}

/// Returns the machine's own address of each family by which it reaches other networks. Nothing is sent.
pub(crate) fn own_addresses() -> Vec<IpAddr> {
    let source = |target: IpAddr| {
        let any: SocketAddr = match target {
            IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect((target, 9)).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    ELSEWHERE.into_iter().filter_map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_address_of_the_request_comes_before_that_of_the_connection() {
        let interfaces = ["10.1.2.3", "fe80::1", "169.254.9.9", "2001:db8:1::3"];
        // Host, local address, proxied; addresses.
        let cases: &[(&str, Option<&str>, bool, &[&str])] = &[
            (
                "192.0.2.7",
                Some("172.17.0.2"),
                false,
                &["192.0.2.7", "172.17.0.2"],
            ),
            ("192.168.1.5", Some("192.168.1.5"), false, &["192.168.1.5"]),
            (
                "192.168.1.5",
                Some("::ffff:192.168.1.5"),
                false,
                &["192.168.1.5"],
            ),
            (
                "[2001:db8::7]",
                Some("2001:db8::7"),
                false,
                &["2001:db8::7"],
            ),
            ("localhost", Some("127.0.0.1"), false, &["127.0.0.1"]),
            ("localhost", Some("::1"), false, &["127.0.0.1", "::1"]),
            (
                "LocalHost",
                Some("172.17.0.2"),
                false,
                &["127.0.0.1", "172.17.0.2"],
            ),
            (
                "media.example.org",
                Some("198.51.100.7"),
                false,
                &["198.51.100.7"],
            ),
            // A proxy that is trusted, and one that is not listed.
            (
                "media.example.org",
                Some("172.17.0.2"),
                true,
                &["10.1.2.3", "2001:db8:1::3"],
            ),
            (
                "media.example.org",
                Some("127.0.0.1"),
                false,
                &["10.1.2.3", "2001:db8:1::3"],
            ),
            (
                "192.0.2.7",
                Some("127.0.0.1"),
                true,
                &["192.0.2.7", "10.1.2.3", "2001:db8:1::3"],
            ),
            (
                "media.example.org",
                None,
                false,
                &["10.1.2.3", "2001:db8:1::3"],
            ),
            // What no client can reach.
            ("0.0.0.0", Some("fe80::7"), false, &[]),
            ("[::]", Some("224.0.0.1"), false, &[]),
            ("999.1.1.1", Some("198.51.100.7"), false, &["198.51.100.7"]),
            (
                "[fe80::1%eth0]",
                Some("198.51.100.7"),
                false,
                &["198.51.100.7"],
            ),
            ("", Some("198.51.100.7"), false, &["198.51.100.7"]),
        ];
        for (host, local, is_proxied, expected) in cases {
            let reach = Reach {
                host,
                local: local.map(ip),
                is_proxied: *is_proxied,
            };
            let found = addresses(reach, || interfaces.map(ip).to_vec());
            let expected: Vec<IpAddr> = expected.iter().map(|text| ip(text)).collect();
            assert_eq!(found, expected, "{reach:?}");
        }
    }

    #[test]
    fn own_addresses_are_of_this_machine() {
        for address in own_addresses() {
            UdpSocket::bind((address, 0)).unwrap();
        }
    }
}
