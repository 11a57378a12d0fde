//! Signatures of DTLS: ECDSA with P-256 and P-384.

use dimpl::crypto::{Buf, KeyProvider, SignatureVerifier, SigningKey, check_verify_scheme};
use dimpl::{CryptoError, CryptoOperation, HashAlgorithm, NamedGroup, SignatureAlgorithm};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA384_ASN1,
    ECDSA_P384_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaVerificationAlgorithm, UnparsedPublicKey,
};

use super::certificate::{PublicKey, public_key};

/// Reads keys and checks signatures.
#[derive(Debug)]
pub(super) struct Ecdsa;

impl KeyProvider for Ecdsa {
    /// Takes PKCS #8, which is what [`super::certificate()`] makes.
    fn load_private_key(&self, key: &[u8]) -> Result<Box<dyn SigningKey>, CryptoError> {
        let random = SystemRandom::new();
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key, &random) {
            return Ok(Box::new(Key {
                key,
                hash: HashAlgorithm::SHA256,
            }));
        }
        EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_ASN1_SIGNING, key, &random)
            .map(|key| {
                Box::new(Key {
                    key,
                    hash: HashAlgorithm::SHA384,
                }) as Box<dyn SigningKey>
            })
            .map_err(|_| CryptoError::InvalidPrivateKey)
    }
}

/// Private key and the one hash that it signs with.
#[derive(Debug)]
struct Key {
    key: EcdsaKeyPair,
    hash: HashAlgorithm,
}

impl SigningKey for Key {
    fn sign(&mut self, data: &[u8], hash: HashAlgorithm, out: &mut Buf) -> Result<(), CryptoError> {
        if hash != self.hash {
            return Err(CryptoError::SigningKeyHashMismatch {
                key_hash: self.hash,
                requested: hash,
            });
        }
        let signature = self
            .key
            .sign(&SystemRandom::new(), data)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::Sign))?;
        out.clear();
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        SignatureAlgorithm::ECDSA
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn supported_hash_algorithms(&self) -> &[HashAlgorithm] {
        std::slice::from_ref(&self.hash)
    }
}

impl SignatureVerifier for Ecdsa {
    fn verify_signature(
        &self,
        certificate: &[u8],
        data: &[u8],
        signature: &[u8],
        hash: HashAlgorithm,
        algorithm: SignatureAlgorithm,
    ) -> Result<(), CryptoError> {
        if algorithm != SignatureAlgorithm::ECDSA {
            return Err(CryptoError::UnsupportedSignatureAlgorithm(algorithm));
        }
        let PublicKey { curve, point } = public_key(certificate)?;
        check_verify_scheme(algorithm, hash, curve)?;
        let verification: &EcdsaVerificationAlgorithm = match (curve, hash) {
            (NamedGroup::Secp256r1, HashAlgorithm::SHA256) => &ECDSA_P256_SHA256_ASN1,
            (NamedGroup::Secp256r1, HashAlgorithm::SHA384) => &ECDSA_P256_SHA384_ASN1,
            (NamedGroup::Secp384r1, HashAlgorithm::SHA256) => &ECDSA_P384_SHA256_ASN1,
            (NamedGroup::Secp384r1, HashAlgorithm::SHA384) => &ECDSA_P384_SHA384_ASN1,
            _ => {
                return Err(CryptoError::UnsupportedSignaturePair {
                    signature: algorithm,
                    hash,
                });
            }
        };
        UnparsedPublicKey::new(verification, point)
            .verify(data, signature)
            .map_err(|_| CryptoError::SignatureVerificationFailed {
                signature: algorithm,
                hash,
                group: curve,
            })
    }
}

/// True when the certificate's key has signed `data`, with SHA-256; for the fuzz target.
pub(crate) fn has_signed(certificate: &[u8], data: &[u8], signature: &[u8]) -> bool {
    let (hash, algorithm) = (HashAlgorithm::SHA256, SignatureAlgorithm::ECDSA);
    Ecdsa
        .verify_signature(certificate, data, signature, hash, algorithm)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384};

    use super::*;

    const DATA: &[u8] = b"what a handshake signs";

    fn verify(
        certificate: &[u8],
        signature: &[u8],
        hash: HashAlgorithm,
    ) -> Result<(), CryptoError> {
        Ecdsa.verify_signature(
            certificate,
            DATA,
            signature,
            hash,
            SignatureAlgorithm::ECDSA,
        )
    }

    #[test]
    fn signatures_of_both_curves_are_verified_and_corrupt_ones_rejected() {
        for (algorithm, hash) in [
            (&PKCS_ECDSA_P256_SHA256, HashAlgorithm::SHA256),
            (&PKCS_ECDSA_P384_SHA384, HashAlgorithm::SHA384),
        ] {
            let pair = KeyPair::generate_for(algorithm).unwrap();
            let certificate = CertificateParams::default().self_signed(&pair).unwrap();
            let mut key = Ecdsa.load_private_key(&pair.serialize_der()).unwrap();
            let mut signature = Buf::new();
            key.sign(DATA, hash, &mut signature).unwrap();
            assert_eq!(verify(certificate.der(), &signature, hash), Ok(()));

            for position in 0..signature.len() {
                let mut corrupt = signature.to_vec();
                corrupt[position] ^= 0x10;
                assert!(
                    verify(certificate.der(), &corrupt, hash).is_err(),
                    "byte {position}"
                );
                assert!(
                    verify(certificate.der(), &signature[..position], hash).is_err(),
                    "cut at {position}"
                );
            }
            for length in 0..100 {
                assert!(verify(&certificate.der()[..length], &signature, hash).is_err());
            }
            assert!(key.sign(DATA, HashAlgorithm::SHA1, &mut signature).is_err());
            let rsa = Ecdsa.verify_signature(
                certificate.der(),
                DATA,
                &signature,
                hash,
                SignatureAlgorithm::RSA,
            );
            assert_eq!(
                rsa,
                Err(CryptoError::UnsupportedSignatureAlgorithm(
                    SignatureAlgorithm::RSA
                ))
            );
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_an_error() {
        for key in [
            &b""[..],
            b"-----BEGIN PRIVATE KEY-----",
            &[0x30, 0x82, 0xff, 0xff],
        ] {
            assert_eq!(
                Ecdsa.load_private_key(key).unwrap_err(),
                CryptoError::InvalidPrivateKey
            );
        }
    }
}
