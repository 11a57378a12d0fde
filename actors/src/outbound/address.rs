//! Addresses that requests of the service may not go to (SSRF): private, loopback, link-local, metadata and other special
//! networks; `outbound.allow`.
//!
//! By the IANA IPv4 and IPv6 special-purpose address registries (RFC 6890 and its successors). In IPv6 the rule is
//! the other way round: outside of 2000::/3 nothing is global but the NAT64 prefix, so that later assignments are
//! rejected. Two things exceed the registries: anycast addresses that lead to the nearest router (192.0.0.9 and .10,
//! 2001:1::1 and so on), and clouds' metadata services, one of which has a public address.
//!
//! An IPv6 address that embeds an IPv4 one has two faces, and each must be global or allowed: `outbound.allow` with
//! 10.0.0.0/8 lets 64:ff9b::10.0.0.1 through and never ::ffff:127.0.0.1. An IPv4-mapped address has one face: the system
//! dials its IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::Cidr;

/// Kind of a rejected address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("an unspecified address")]
    Unspecified,
    #[error("a loopback address")]
    Loopback,
    #[error("a private address")]
    Private,
    #[error("an address shared behind a provider's NAT")]
    Shared,
    #[error("a link-local address")]
    LinkLocal,
    #[error("a site-local address")]
    SiteLocal,
    #[error("a cloud's metadata service")]
    Metadata,
    #[error("an address for protocols' own use")]
    Protocol,
    #[error("an address for documentation")]
    Documentation,
    #[error("an address for benchmarks")]
    Benchmarking,
    #[error("an address of a 6to4 relay")]
    SixToFourRelay,
    #[error("a multicast address")]
    Multicast,
    #[error("a broadcast address")]
    Broadcast,
    #[error("a reserved address")]
    Reserved,
    #[error("an address whose packets are discarded")]
    Discarded,
    #[error("an IPv4-compatible address")]
    Compatible,
    #[error("an IPv4-translated address")]
    Translated,
    #[error("an address of a local NAT64 translator")]
    LocalNat64,
    #[error("a 6to4 address")]
    SixToFour,
    #[error("a Teredo address")]
    Teredo,
    #[error("a segment identifier")]
    Segment,
}

/// Reason why an address is rejected, and the setting that would allow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressVerdict {
    pub reason: Reason,
    /// The embedded IPv4 address that is rejected, where the dialled address is not.
    pub embedded: Option<Ipv4Addr>,
    /// The networks that `outbound.allow` lacks.
    pub needed: Vec<IpNet>,
}

/// Returns the reason why a request may not go to the address; `None` when it may.
pub fn rejection(address: IpAddr, allow: &[Cidr]) -> Option<AddressVerdict> {
    let rejected = |face: IpAddr| {
        let reason = special(face)?;
        let is_allowed = allow.iter().any(|network| network.contains(face));
        (!is_allowed).then_some((face, reason))
    };
    let dialled = address.to_canonical();
    let embedded = embedded(dialled).filter(|&v4| rejected(v4.into()).is_some());
    let faces = [
        rejected(dialled),
        embedded.and_then(|v4| rejected(v4.into())),
    ];
    let (_, reason) = faces.into_iter().flatten().next()?;
    Some(AddressVerdict {
        reason,
        embedded,
        needed: (faces.into_iter().flatten())
            .map(|(face, reason)| natural_network(face, reason))
            .collect(),
    })
}

/// Returns the kind of an address that is not global unicast. The address inside of an IPv6 one does not matter here.
fn special(address: IpAddr) -> Option<Reason> {
    match address {
        IpAddr::V4(v4) => special_v4(v4),
        IpAddr::V6(v6) => special_v6(v6),
    }
}

fn special_v4(address: Ipv4Addr) -> Option<Reason> {
    Some(match address.octets() {
        [0, 0, 0, 0] => Reason::Unspecified,
        // Amazon and most others; Amazon's for containers; Alibaba; Oracle; Azure's, on a public address.
        [169, 254, 169, 254]
        | [169, 254, 170, 2]
        | [100, 100, 100, 200]
        | [192, 0, 0, 192]
        | [168, 63, 129, 16] => Reason::Metadata,
        [0, ..] => Reason::Protocol,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reason::Private,
        [100, 64..=127, ..] => Reason::Shared,
        [127, ..] => Reason::Loopback,
        [169, 254, ..] => Reason::LinkLocal,
        [192, 0, 0, _] => Reason::Protocol,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Reason::Documentation,
        [192, 88, 99, _] => Reason::SixToFourRelay,
        [198, 18..=19, ..] => Reason::Benchmarking,
        [224..=239, ..] => Reason::Multicast,
        [255, 255, 255, 255] => Reason::Broadcast,
        [240..=255, ..] => Reason::Reserved,
        _ => return None,
    })
}

fn special_v6(address: Ipv6Addr) -> Option<Reason> {
    Some(match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Reason::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Reason::Loopback,
        [0, 0, 0, 0, 0, 0, ..] => Reason::Compatible,
        [0, 0, 0, 0, 0xffff, 0, ..] => Reason::Translated,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => return None,
        [0x64, 0xff9b, 1, ..] => Reason::LocalNat64,
        [0x100, 0, 0, 0 | 1, ..] => Reason::Discarded,
        [0x2001, 0, ..] => Reason::Teredo,
        [0x2001, 2, 0, ..] => Reason::Benchmarking,
        [0x2001, 0..=0x1ff, ..] => Reason::Protocol,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Reason::Documentation,
        [0x2002, ..] => Reason::SixToFour,
        [0x2000..=0x3fff, ..] => return None,
        [0x5f00, ..] => Reason::Segment,
        // Amazon's and Google's.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Reason::Metadata
        }
        [0xfc00..=0xfdff, ..] => Reason::Private,
        [0xfe80..=0xfebf, ..] => Reason::LinkLocal,
        [0xfec0..=0xfeff, ..] => Reason::SiteLocal,
        [0xff00..=0xffff, ..] => Reason::Multicast,
        _ => Reason::Reserved,
    })
}

/// Returns the IPv4 address that packets to this one may end at: RFC 4291 §2.5.5.1 (compatible), RFC 2765 §2.1 (translated),
/// RFC 6052 §2.2 (NAT64; of the local prefix with its own length and with 96 bits), RFC 3056 §2 (6to4), RFC 4380 §4
/// (Teredo: the client, inverted), RFC 5214 §6.1 (ISATAP, in any prefix).
fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(v6) = address else {
        return None;
    };
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0 | 0xffff, 0, high, low] => Some(v4(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 1, 0, 0, 0, high, low] => {
            Some(v4(high, low))
        }
        [0x64, 0xff9b, 1, high, middle, low, ..] => Some(v4(high, (middle & 0xff) << 8 | low >> 8)),
        [0x2002, high, low, ..] => Some(v4(high, low)),
        [0x2001, 0, .., high, low] => Some(v4(!high, !low)),
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => Some(v4(high, low)),
        _ => None,
    }
}

/// Returns the network to allow for such an address: all of loopback; of private addresses the /16 that
/// Docker gives a bridge in 172.16.0.0/12, else the /24; of IPv6 a /64. Of all others the address itself.
fn natural_network(address: IpAddr, reason: Reason) -> IpNet {
    let bits = match (address, reason) {
        (IpAddr::V4(_), Reason::Loopback) => 8,
        (IpAddr::V4(v4), Reason::Private) if v4.octets()[0] == 172 => 16,
        (IpAddr::V4(_), Reason::Private) => 24,
        (IpAddr::V4(_), _) => 32,
        (IpAddr::V6(_), Reason::Private | Reason::LocalNat64) => 64,
        (IpAddr::V6(_), _) => 128,
    };
    match address {
        IpAddr::V4(v4) => Ipv4Net::new_assert(v4, bits).trunc().into(),
        IpAddr::V6(v6) => Ipv6Net::new_assert(v6, bits).trunc().into(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn networks(texts: &[&str]) -> Vec<Cidr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn needed(address: &str, allow: &[&str]) -> Option<Vec<String>> {
        let verdict = rejection(address.parse().unwrap(), &networks(allow))?;
        Some(verdict.needed.iter().map(IpNet::to_string).collect())
    }

    #[test]
    fn global_addresses_pass() {
        for address in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "::ffff:1.1.1.1",
            "64:ff9b::1.1.1.1",
            "2000::1",
            "2001:200::1",
            "2001:db7::1",
            "2003::1",
            "2600::5efe:1.1.1.1",
            "2606:4700::1111",
            "3fff:1000::1",
        ] {
            assert_eq!(rejection(address.parse().unwrap(), &[]), None, "{address}");
        }
    }

    #[test]
    fn a_rejection_says_what_would_allow_it() {
        for (address, allow, expected) in [
            ("127.0.0.1", &[][..], &["127.0.0.0/8"][..]),
            ("172.18.3.4", &[], &["172.18.0.0/16"]),
            ("10.1.2.3", &[], &["10.1.2.0/24"]),
            ("192.168.1.2", &[], &["192.168.1.0/24"]),
            ("100.64.1.2", &[], &["100.64.1.2/32"]),
            ("169.254.169.254", &[], &["169.254.169.254/32"]),
            ("::1", &[], &["::1/128"]),
            ("fd12:3456::7", &[], &["fd12:3456::/64"]),
            ("::ffff:10.1.2.3", &[], &["10.1.2.0/24"]),
            ("64:ff9b::10.1.2.3", &[], &["10.1.2.0/24"]),
            ("64:ff9b::10.1.2.3", &["64:ff9b::/96"], &["10.1.2.0/24"]),
            (
                "2002:a01:203::1",
                &[],
                &["2002:a01:203::1/128", "10.1.2.0/24"],
            ),
            ("2002:a01:203::1", &["2002::/16"], &["10.1.2.0/24"]),
            ("2002:a01:203::1", &["10.0.0.0/8"], &["2002:a01:203::1/128"]),
            ("::ffff:127.0.0.1", &["10.0.0.0/8"], &["127.0.0.0/8"]),
            ("::ffff:127.0.0.1", &["::/0"], &["127.0.0.0/8"]),
            ("64:ff9b::127.0.0.1", &["::/0"], &["127.0.0.0/8"]),
            ("fd00::5efe:127.0.0.1", &["fd00::/8"], &["127.0.0.0/8"]),
            ("0.0.0.0", &["127.0.0.0/8"], &["0.0.0.0/32"]),
        ] {
            let needed = needed(address, allow).unwrap_or_else(|| panic!("{address} passes"));
            assert_eq!(needed, expected, "{address} {allow:?}");
            let enough: Vec<&str> = allow
                .iter()
                .copied()
                .chain(needed.iter().map(String::as_str))
                .collect();
            let refused = rejection(address.parse().unwrap(), &networks(&enough));
            assert_eq!(refused, None, "{address} {enough:?}");
        }
    }

    /// Every way to write an IPv4 address into an IPv6 one.
    fn embeddings(v4: Ipv4Addr) -> Vec<Ipv6Addr> {
        let bits = u128::from(u32::from(v4));
        let (high, low) = ((bits >> 16) as u16, bits as u16);
        let with = |prefix: &str| {
            let prefix: Ipv6Addr = prefix.parse().unwrap();
            Ipv6Addr::from(u128::from(prefix) | bits)
        };
        vec![
            v4.to_ipv6_mapped(),
            with("::"),
            with("::ffff:0:0:0"),
            with("64:ff9b::"),
            with("64:ff9b:1::"),
            Ipv6Addr::new(0x64, 0xff9b, 1, high, low >> 8, low << 8, 0, 0),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            Ipv6Addr::new(0x2001, 0, 0x101, 0x101, 0, 0xffff, !high, !low),
            with("fe80::5efe:0:0"),
            with("2600::5efe:0:0"),
            with("2600:1:2:3:200:5efe::"),
            with("fd00::200:5efe:0:0"),
        ]
    }

    fn special_address() -> impl Strategy<Value = Ipv4Addr> {
        let any = any::<u32>().prop_map(Ipv4Addr::from);
        any.prop_filter("special", |&v4| special_v4(v4).is_some())
    }

    proptest! {
        #[test]
        fn a_refused_address_stays_refused_in_every_embedding(v4 in special_address()) {
            prop_assert!(rejection(v4.into(), &[]).is_some());
            // Neither what is allowed in IPv6 nor another network in IPv4 lets it through.
            let other = if v4.octets()[0] == 10 { "127.0.0.0/8" } else { "10.0.0.0/8" };
            for address in embeddings(v4) {
                for allow in [&[][..], &["::/0"], &["::/0", other]] {
                    let refused = rejection(address.into(), &networks(allow));
                    prop_assert!(refused.is_some(), "{address} {allow:?}");
                }
            }
        }

        #[test]
        fn what_is_needed_is_enough(v4 in any::<u32>(), which in 0..12_usize, v6 in any::<u128>()) {
            let embedding = embeddings(v4.into())[which];
            for address in [IpAddr::from(Ipv4Addr::from(v4)), embedding.into(), Ipv6Addr::from(v6).into()] {
                if let Some(verdict) = rejection(address, &[]) {
                    let needed: Vec<String> = verdict.needed.iter().map(IpNet::to_string).collect();
                    let needed: Vec<&str> = needed.iter().map(String::as_str).collect();
                    prop_assert_eq!(rejection(address, &networks(&needed)), None);
                }
            }
        }
    }
}
