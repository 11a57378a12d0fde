//! `sluice doctor` on `http.tls_cert` and `http.tls_key`: readable, matching, mode of the key, days before the end of validity.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::TimeZone};
use rustls::{ServerConfig, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};

use super::finding::Finding;
use crate::config::Http;

const CHECK: &str = "certificate";
/// Time before the end of validity from which on it is a warning: renewals happen a month before the end.
const WARNED_BEFORE_END: SignedDuration = SignedDuration::from_hours(14 * 24);

const SEQUENCE: u8 = 0x30;
const EXPLICIT_VERSION: u8 = 0xA0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

pub(super) fn check(http: &Http) -> Vec<Finding> {
    let Some((certificate, key)) = http.tls() else {
        return vec![Finding::ok(CHECK, "none configured: plain HTTP, no RTMPS")];
    };
    let mut findings = vec![match load(certificate, key) {
        Ok(expires) => judge_expiry(expires, Timestamp::now()),
        Err(finding) => finding,
    }];
    let mode = fs::metadata(key).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o007 != 0 {
        findings.push(Finding::warn(
            CHECK,
            format!(
                "every user of this machine can use the key {}",
                key.display()
            ),
            format!("chmod 640 {}", key.display()),
        ));
    }
    findings
}

/// Reads both files as the service does; gives the end of the certificate's validity.
fn load(certificate: &Path, key: &Path) -> Result<Option<Timestamp>, Finding> {
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable("http.tls_cert", certificate, &error.to_string()))?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|error| unusable("http.tls_key", key, &error.to_string()))?;
    let first = chain
        .first()
        .ok_or_else(|| unusable("http.tls_cert", certificate, "it holds no certificate"))?;
    let expires = not_after(first);
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, secret)
        })
        .map_err(|error| {
            unusable(
                "http.tls_key",
                key,
                &format!("it does not serve the certificate: {error}"),
            )
        })?;
    Ok(expires)
}

fn unusable(key: &str, path: &Path, reason: &str) -> Finding {
    Finding::fail(
        CHECK,
        format!("{}: {reason}", path.display()),
        format!("{key} must name a readable PEM file; certificate and key must belong together"),
    )
}

fn judge_expiry(expires: Option<Timestamp>, now: Timestamp) -> Finding {
    let renew = "renew it, then send the service SIGHUP (systemctl reload sluice)";
    match expires {
        None => Finding::warn(
            CHECK,
            "loads, but its end of validity cannot be read",
            "look with openssl x509 -enddate",
        ),
        Some(end) if end <= now => Finding::fail(CHECK, format!("expired on {}", day(end)), renew),
        Some(end) if end.duration_since(now) < WARNED_BEFORE_END => {
            Finding::warn(CHECK, format!("expires on {}", day(end)), renew)
        }
        Some(end) => Finding::ok(CHECK, format!("loads, valid until {}", day(end))),
    }
}

fn day(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d").to_string()
}

/// Returns the end of validity of an X.509 certificate (RFC 5280, section 4.1): Certificate, TBSCertificate, then
/// version, serial number, signature algorithm and issuer come before the validity.
fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate, _) = element(certificate).filter(|(tag, ..)| *tag == SEQUENCE)?;
    let (_, mut fields, _) = element(certificate)?;
    if *fields.first()? == EXPLICIT_VERSION {
        fields = element(fields)?.2;
    }
    for _serial_algorithm_issuer in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields)?;
    let (_, _, end) = element(validity)?;
    let (tag, text, _) = element(end)?;
    time(tag, std::str::from_utf8(text).ok()?)
}

/// The first DER element: its tag, its content, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7F => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7F))?;
            (
                bytes
                    .iter()
                    .fold(0, |length, &byte| length << 8 | usize::from(byte)),
                rest,
            )
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((tag, content, rest))
}

/// Reads a time. Times in certificates end in Z and have no fractions (RFC 5280, section 4.1.2.5). Two-digit years are 1950 to 2049.
fn time(tag: u8, text: &str) -> Option<Timestamp> {
    let four_digits = match tag {
        GENERALIZED_TIME => text.to_owned(),
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        _ => return None,
    };
    let at = DateTime::strptime("%Y%m%d%H%M%SZ", four_digits).ok()?;
    Some(at.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::{super::finding::Level, *};

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn expiry_is_judged_against_now() {
        let now = at("2026-11-21T00:00:00Z");
        for (expires, level) in [
            (None, Level::Warn),
            (Some("2026-11-20T23:59:59Z"), Level::Fail),
            (Some("2026-11-30T00:00:00Z"), Level::Warn),
            (Some("2027-02-01T00:00:00Z"), Level::Ok),
        ] {
            assert_eq!(
                judge_expiry(expires.map(at), now).level,
                level,
                "{expires:?}"
            );
        }
    }

    #[test]
    fn the_end_of_validity_is_read_in_both_forms_of_time() {
        for (year, expected) in [
            (2031, "2031-02-03T00:00:00Z"),
            (2055, "2055-02-03T00:00:00Z"),
        ] {
            let mut parameters = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
            parameters.not_after = rcgen::date_time_ymd(year, 2, 3);
            let key = rcgen::KeyPair::generate().unwrap();
            let certificate = parameters.self_signed(&key).unwrap();
            assert_eq!(not_after(certificate.der()), Some(at(expected)));
        }
    }

    #[test]
    fn damaged_certificates_are_no_time_and_no_panic() {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["localhost".into()]).unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        let der = certificate.der();
        for length in 0..der.len() {
            assert_eq!(not_after(&der[..length]), None, "cut to {length}");
        }
        assert_eq!(not_after(&[0x30, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0]), None);
    }

    #[test]
    fn files_must_exist_and_belong_together() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key, other] =
            ["cert.pem", "key.pem", "other.pem"].map(|name| folder.path().join(name));
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        fs::write(&certificate, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::write(&other, rcgen::KeyPair::generate().unwrap().serialize_pem()).unwrap();
        assert!(load(&certificate, &key).unwrap().is_some());
        for (certificate, key) in [
            (&certificate, &other),
            (&key, &key),
            (&certificate, &folder.path().join("none")),
        ] {
            assert_eq!(load(certificate, key).unwrap_err().level, Level::Fail);
        }
    }
}
