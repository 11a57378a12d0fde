//! `sluice doctor` on `outbound.allow` (metadata services, this machine) and certificate authorities (`outbound.ca_file`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use sluice_actors::outbound::{self, Cidr, OutboundSettings, SetupError};

use super::finding::Finding;

/// Addresses of the metadata services that give credentials to a cloud's machines: most clouds, Amazon's containers,
/// Alibaba, Oracle, Azure, and Amazon and Google over IPv6.
const METADATA: [IpAddr; 7] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];
const THIS_MACHINE: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

pub(super) fn check(settings: &OutboundSettings) -> Vec<Finding> {
    vec![
        judge_networks(&settings.allow),
        judge_authorities(outbound::count_authorities(settings)),
    ]
}

fn judge_networks(allow: &[Cidr]) -> Finding {
    const CHECK: &str = "outbound";
    let named: Vec<String> = allow.iter().map(Cidr::to_string).collect();
    let named = named.join(", ");
    let reached = |addresses: &[IpAddr]| {
        let mut addresses = addresses.iter().copied();
        addresses.find(|&address| allow.iter().any(|network| network.contains(address)))
    };
    if allow.is_empty() {
        Finding::ok(
            CHECK,
            "webhooks and sourceUrl reach public addresses only (outbound.allow is empty)",
        )
    } else if let Some(metadata) = reached(&METADATA) {
        Finding::warn(
            CHECK,
            format!("outbound.allow has {named}: users can fetch a cloud's metadata at {metadata}"),
            "name only the networks that your receivers are in",
        )
    } else if let Some(here) = reached(&THIS_MACHINE) {
        Finding::warn(
            CHECK,
            format!("outbound.allow has {named}: users can reach what listens on this machine"),
            format!("take out what {here} is in, unless every user may do that"),
        )
    } else {
        Finding::ok(
            CHECK,
            format!("webhooks and sourceUrl reach public addresses and {named} (outbound.allow)"),
        )
    }
}

fn judge_authorities(count: Result<usize, SetupError>) -> Finding {
    const CHECK: &str = "authorities";
    match count {
        Ok(0) => Finding::warn(
            CHECK,
            "no certificate authorities were found: no https receiver can be reached",
            "install the package ca-certificates, or name a PEM file in outbound.ca_file",
        ),
        Ok(count) => Finding::ok(CHECK, format!("{count} are known for https receivers")),
        Err(error) => Finding::fail(
            CHECK,
            error.to_string(),
            "outbound.ca_file must be empty or name a readable PEM file with certificates",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    #[test]
    fn networks_that_lead_to_secrets_are_reported() {
        for (allow, level, says) in [
            (&[][..], Level::Ok, "public addresses only"),
            (
                &["10.0.0.0/8", "172.18.0.5"],
                Level::Ok,
                "10.0.0.0/8, 172.18.0.5",
            ),
            (&["10.0.0.0/8", "127.0.0.1"], Level::Warn, "this machine"),
            (&["169.254.0.0/16"], Level::Warn, "metadata"),
            (&["0.0.0.0/0"], Level::Warn, "metadata"),
            (&["100.100.0.0/16"], Level::Warn, "at 100.100.100.200"),
            (&["::/0"], Level::Warn, "at fd00:ec2::254"),
            (&["::1"], Level::Warn, "this machine"),
            (&["fd12:3456::/64"], Level::Ok, "fd12:3456::/64"),
        ] {
            let networks: Vec<Cidr> = allow.iter().map(|text| text.parse().unwrap()).collect();
            let finding = judge_networks(&networks);
            assert_eq!(finding.level, level, "{allow:?}");
            assert!(finding.message.contains(says), "{}", finding.message);
        }
    }

    #[test]
    fn without_authorities_there_is_no_https() {
        let broken = SetupError::CaFile {
            path: "/ca.pem".into(),
            reason: "it has no certificate in PEM".into(),
        };
        for (count, level) in [
            (Ok(0), Level::Warn),
            (Ok(140), Level::Ok),
            (Err(broken), Level::Fail),
        ] {
            assert_eq!(judge_authorities(count).level, level);
        }
    }
}
