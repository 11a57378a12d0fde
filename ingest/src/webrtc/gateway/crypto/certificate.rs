//! Certificates of DTLS: our own, and the public key inside a peer's.
//!
//! A peer's certificate is read only as far as its key. Version 1, odd names and odd extensions are therefore no obstacle, and
//! the reader neither recurses nor allocates.

use std::time::{Duration, SystemTime};

use dimpl::{CryptoError, NamedGroup};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SerialNumber,
};
use ring::rand::{SecureRandom, SystemRandom};
use str0m::crypto::dtls::DtlsCert;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Bytes of a serial number: 120 random bits.
const SERIAL: usize = 15;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// Explicit tag of a certificate's version, absent in version 1.
const VERSION: u8 = 0xa0;

/// id-ecPublicKey, 1.2.840.10045.2.1 (RFC 5480).
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// secp256r1, 1.2.840.10045.3.1.7.
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// secp384r1, 1.3.132.0.34.
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];

/// Makes a key of P-256 and a certificate that it signs itself, valid from yesterday for a year.
///
/// One serves all sessions of a process: making one costs more than the rest of a session.
///
/// # Panics
///
/// When the system gives no random numbers; without them nothing else of the gateway works either.
pub fn certificate() -> DtlsCert {
    generate().expect("a key of P-256 and a certificate need only random numbers")
}

fn generate() -> Result<DtlsCert, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut serial = [0; SERIAL];
    SystemRandom::new()
        .fill(&mut serial)
        .map_err(|_| rcgen::Error::RingUnspecified)?;
    // A positive number of full length, so that its encoding has one form.
    serial[0] = serial[0] & 0x7f | 0x40;

    let mut params = CertificateParams::default();
    let yesterday = SystemTime::now() - DAY;
    params.not_before = yesterday.into();
    params.not_after = (yesterday + 366 * DAY).into();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "WebRTC");
    let certificate = params.self_signed(&key)?;
    Ok(DtlsCert {
        certificate: certificate.der().to_vec(),
        private_key: key.serialize_der(),
    })
}

/// Public key of a certificate: a point of an elliptic curve, as SEC 1 writes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PublicKey<'a> {
    pub(crate) curve: NamedGroup,
    pub(crate) point: &'a [u8],
}

/// Finds the public key in a certificate in DER (RFC 5280, section 4.1).
pub(crate) fn public_key(certificate: &[u8]) -> Result<PublicKey<'_>, CryptoError> {
    let info = public_key_info(certificate).ok_or(CryptoError::CertificateParseFailed)?;
    let mut info = Der(info);
    let mut algorithm = Der(info
        .expect(SEQUENCE)
        .ok_or(CryptoError::CertificateParseFailed)?);
    if algorithm.expect(OBJECT_IDENTIFIER) != Some(EC_PUBLIC_KEY) {
        return Err(CryptoError::UnsupportedPublicKeyAlgorithm);
    }
    let curve = match algorithm
        .next()
        .ok_or(CryptoError::MissingEcCurveParameter)?
    {
        (OBJECT_IDENTIFIER, P256) => NamedGroup::Secp256r1,
        (OBJECT_IDENTIFIER, P384) => NamedGroup::Secp384r1,
        (OBJECT_IDENTIFIER, _) => return Err(CryptoError::UnsupportedEcCurve),
        _ => return Err(CryptoError::InvalidEcCurveParameter),
    };
    // The first byte counts the unused bits of the last.
    match info.expect(BIT_STRING) {
        Some([0, point @ ..]) => Ok(PublicKey { curve, point }),
        _ => Err(CryptoError::InvalidSubjectPublicKey),
    }
}

/// Content of SubjectPublicKeyInfo.
fn public_key_info(certificate: &[u8]) -> Option<&[u8]> {
    let mut certificate = Der(Der(certificate).expect(SEQUENCE)?);
    let mut fields = Der(certificate.expect(SEQUENCE)?);
    let (mut tag, _) = fields.next()?;
    if tag == VERSION {
        (tag, _) = fields.next()?;
    }
    if tag != INTEGER {
        return None;
    }
    // Signature algorithm, issuer, validity, subject.
    for _ in 0..4 {
        fields.expect(SEQUENCE)?;
    }
    fields.expect(SEQUENCE)
}

/// Elements of one level of DER that are not read yet.
struct Der<'a>(&'a [u8]);

impl<'a> Der<'a> {
    /// The next element's content, if it has this tag.
    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .and_then(|(found, content)| (found == tag).then_some(content))
    }

    /// The next element: its tag of one byte and its content.
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            ..=0x7f => (usize::from(first), rest),
            // Lengths of one to three bytes; a certificate in a DTLS handshake is shorter than 16 MiB.
            0x81..=0x83 => {
                let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
                (
                    length
                        .iter()
                        .fold(0, |sum, &byte| sum << 8 | usize::from(byte)),
                    rest,
                )
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    fn self_signed(key: &KeyPair) -> Vec<u8> {
        CertificateParams::new(vec!["a.example".to_owned()])
            .unwrap()
            .self_signed(key)
            .unwrap()
            .der()
            .to_vec()
    }

    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut element = vec![tag];
        match u8::try_from(content.len()) {
            Ok(length @ 0..0x80) => element.push(length),
            Ok(length) => element.extend([0x81, length]),
            Err(_) => element.extend([0x82, (content.len() >> 8) as u8, content.len() as u8]),
        }
        element.extend(content);
        element
    }

    /// A certificate without version, names or extensions, with this SubjectPublicKeyInfo.
    fn version_1(info: &[u8]) -> Vec<u8> {
        let empty = element(SEQUENCE, &[]);
        let fields = [
            &element(INTEGER, &[1]),
            &empty,
            &empty,
            &empty,
            &empty,
            info,
        ]
        .map(<[u8]>::to_vec)
        .concat();
        element(SEQUENCE, &element(SEQUENCE, &fields))
    }

    fn info(algorithm: &[u8], point: &[u8]) -> Vec<u8> {
        let bits = [&[0], point].concat();
        element(
            SEQUENCE,
            &[element(SEQUENCE, algorithm), element(BIT_STRING, &bits)].concat(),
        )
    }

    #[test]
    fn the_key_of_a_certificate_is_found() {
        for (algorithm, curve) in [
            (&PKCS_ECDSA_P256_SHA256, NamedGroup::Secp256r1),
            (&PKCS_ECDSA_P384_SHA384, NamedGroup::Secp384r1),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let certificate = self_signed(&key);
            assert_eq!(
                public_key(&certificate),
                Ok(PublicKey {
                    curve,
                    point: key.public_key_raw()
                })
            );
        }
        let ours = certificate();
        assert_eq!(public_key(&ours.certificate).unwrap().point.len(), 65);
    }

    #[test]
    fn certificates_of_version_1_are_read() {
        let algorithm = [
            element(OBJECT_IDENTIFIER, EC_PUBLIC_KEY),
            element(OBJECT_IDENTIFIER, P384),
        ]
        .concat();
        let certificate = version_1(&info(&algorithm, &[4; 97]));
        assert_eq!(
            public_key(&certificate),
            Ok(PublicKey {
                curve: NamedGroup::Secp384r1,
                point: &[4; 97]
            })
        );
    }

    #[test]
    fn certificates_of_openssl_are_read_or_named_in_the_error() {
        for (name, expected) in [
            ("p256", Ok(NamedGroup::Secp256r1)),
            ("p384", Ok(NamedGroup::Secp384r1)),
            ("version_1", Ok(NamedGroup::Secp256r1)),
            ("explicit_curve", Err(CryptoError::InvalidEcCurveParameter)),
            ("rsa", Err(CryptoError::UnsupportedPublicKeyAlgorithm)),
        ] {
            let seeds = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../fuzz/seeds/peer_certificate"
            );
            let certificate = std::fs::read(format!("{seeds}/{name}")).unwrap();
            assert_eq!(
                public_key(&certificate).map(|key| key.curve),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn other_keys_are_named_in_the_error() {
        let ed25519 = self_signed(&KeyPair::generate_for(&PKCS_ED25519).unwrap());
        assert_eq!(
            public_key(&ed25519),
            Err(CryptoError::UnsupportedPublicKeyAlgorithm)
        );

        let ec = element(OBJECT_IDENTIFIER, EC_PUBLIC_KEY);
        let secp256k1 = element(OBJECT_IDENTIFIER, &[0x2b, 0x81, 0x04, 0x00, 0x0a]);
        let explicit = element(SEQUENCE, &[]);
        for (parameters, error) in [
            (secp256k1, CryptoError::UnsupportedEcCurve),
            (explicit, CryptoError::InvalidEcCurveParameter),
            (Vec::new(), CryptoError::MissingEcCurveParameter),
        ] {
            let certificate = version_1(&info(&[ec.clone(), parameters].concat(), &[4; 65]));
            assert_eq!(public_key(&certificate), Err(error));
        }
    }

    #[test]
    fn a_certificate_that_is_cut_within_its_key_is_rejected() {
        let certificate = certificate().certificate;
        let key = public_key(&certificate).unwrap();
        let end = key.point.as_ptr_range().end as usize - certificate.as_ptr() as usize;
        for length in 0..end {
            assert!(
                public_key(&certificate[..length]).is_err(),
                "the first {length} bytes"
            );
        }
    }

    #[test]
    fn changed_bytes_never_panic() {
        let certificate = certificate().certificate;
        for position in 0..certificate.len() {
            for value in [0, 1, 0x30, 0x7f, 0x80, 0x81, 0x82, 0x84, 0xff] {
                let mut changed = certificate.clone();
                changed[position] = value;
                let _ = public_key(&changed);
            }
        }
    }

    #[test]
    fn two_certificates_share_neither_key_nor_serial_number() {
        let (one, other) = (certificate(), certificate());
        assert_ne!(one.private_key, other.private_key);
        assert_ne!(one.certificate[..40], other.certificate[..40]);
    }
}
