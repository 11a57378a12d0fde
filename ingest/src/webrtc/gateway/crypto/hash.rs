//! Hashes, HMACs and random numbers of STUN, SRTP, fingerprints and DTLS.

use dimpl::crypto::{Buf, HashContext, HashProvider, HmacProvider, SecureRandom};
use dimpl::{CryptoError, CryptoOperation, HashAlgorithm};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::{digest, hmac};
use str0m::crypto::{Sha1HmacProvider, Sha1Provider, Sha256Provider};

/// All hashes that the protocols ask for.
#[derive(Debug)]
pub(super) struct Hashes;

impl Sha1Provider for Hashes {
    fn sha1(&self, data: &[u8]) -> [u8; 20] {
        array(digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, data).as_ref())
    }
}

impl Sha256Provider for Hashes {
    fn sha256(&self, data: &[u8]) -> [u8; 32] {
        array(digest::digest(&digest::SHA256, data).as_ref())
    }
}

impl Sha1HmacProvider for Hashes {
    fn sha1_hmac(&self, key: &[u8], payloads: &[&[u8]]) -> [u8; 20] {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key);
        let mut context = hmac::Context::with_key(&key);
        for payload in payloads {
            context.update(payload);
        }
        array(context.sign().as_ref())
    }
}

fn array<const N: usize>(digest: &[u8]) -> [u8; N] {
    digest
        .try_into()
        .expect("each algorithm's digests have one length")
}

impl HashProvider for Hashes {
    fn create_hash(&self, algorithm: HashAlgorithm) -> Box<dyn HashContext> {
        // Only hashes of our cipher suites are asked for.
        let algorithm = match algorithm {
            HashAlgorithm::SHA384 => &digest::SHA384,
            _ => &digest::SHA256,
        };
        Box::new(Hash(digest::Context::new(algorithm)))
    }
}

struct Hash(digest::Context);

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl HashContext for Hash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn clone_and_finalize(&self, out: &mut Buf) {
        out.clear();
        out.extend_from_slice(self.0.clone().finish().as_ref());
    }
}

impl HmacProvider for Hashes {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let algorithm = match hash {
            HashAlgorithm::SHA256 => hmac::HMAC_SHA256,
            HashAlgorithm::SHA384 => hmac::HMAC_SHA384,
            other => return Err(CryptoError::UnsupportedHmacHash(other)),
        };
        let tag = hmac::sign(&hmac::Key::new(algorithm, key), data);
        let tag = tag.as_ref();
        out.get_mut(..tag.len())
            .ok_or(CryptoError::OperationFailed(CryptoOperation::ComputeHmac))?
            .copy_from_slice(tag);
        Ok(tag.len())
    }
}

/// Random numbers of the system.
#[derive(Debug)]
pub(super) struct Random;

impl SecureRandom for Random {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), CryptoError> {
        SystemRandom::new()
            .fill(buffer)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::FillRandom))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;

    #[test]
    fn hashes_of_the_standards() {
        // FIPS 180, "abc"; RFC 2202, case 2, in two pieces.
        assert_eq!(
            Hashes.sha1(b"abc").to_vec(),
            hex("a9993e364706816aba3e25717850c26c9cd0d89d")
        );
        assert_eq!(
            Hashes.sha256(b"abc").to_vec(),
            hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        );
        assert_eq!(
            Hashes
                .sha1_hmac(b"Jefe", &[b"what do ya want ", b"for nothing?"])
                .to_vec(),
            hex("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
        );
    }

    #[test]
    fn an_hmac_that_does_not_fit_is_an_error() {
        let mut out = [0; 47];
        assert!(
            Hashes
                .hmac(HashAlgorithm::SHA384, b"key", b"data", &mut out)
                .is_err()
        );
        assert_eq!(
            Hashes.hmac(HashAlgorithm::SHA256, b"key", b"data", &mut out),
            Ok(32)
        );
        assert!(
            Hashes
                .hmac(HashAlgorithm::MD5, b"key", b"data", &mut out)
                .is_err()
        );
    }
}
