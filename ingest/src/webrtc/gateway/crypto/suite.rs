//! Cipher suites of DTLS: AES-GCM and ChaCha20-Poly1305, with ECDHE and ECDSA.

use aes::cipher::consts::U16;
use aes::cipher::{BlockEncrypt, BlockSizeUser, KeyInit};
use aes::{Aes128, Aes256};
use dimpl::crypto::{
    Aad, Buf, Cipher, Dtls12CipherSuite, Dtls13CipherSuite, Nonce, SupportedDtls12CipherSuite,
    SupportedDtls13CipherSuite, TmpBuf,
};
use dimpl::{CryptoError, CryptoOperation, HashAlgorithm};
use ring::aead::{
    self, AES_128_GCM, AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey, quic,
};

/// Bytes of a tag of each suite.
const TAG: usize = aead::MAX_TAG_LEN;

/// Suites of DTLS 1.2 (RFC 5289, RFC 7905), the preferred first.
pub(super) static SUITES_12: &[&dyn SupportedDtls12CipherSuite] = &[
    &Suite12 {
        suite: Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256,
        hash: HashAlgorithm::SHA256,
        algorithm: &AES_128_GCM,
        fixed_iv: 4,
    },
    &Suite12 {
        suite: Dtls12CipherSuite::ECDHE_ECDSA_AES256_GCM_SHA384,
        hash: HashAlgorithm::SHA384,
        algorithm: &AES_256_GCM,
        fixed_iv: 4,
    },
    &Suite12 {
        suite: Dtls12CipherSuite::ECDHE_ECDSA_CHACHA20_POLY1305_SHA256,
        hash: HashAlgorithm::SHA256,
        algorithm: &CHACHA20_POLY1305,
        fixed_iv: 12,
    },
];

/// Suites of DTLS 1.3 (RFC 9147), the preferred first. dimpl starts with no provider that lacks them.
pub(super) static SUITES_13: &[&dyn SupportedDtls13CipherSuite] = &[
    &Suite13 {
        suite: Dtls13CipherSuite::AES_128_GCM_SHA256,
        hash: HashAlgorithm::SHA256,
        algorithm: &AES_128_GCM,
        mask: mask::<Aes128>,
    },
    &Suite13 {
        suite: Dtls13CipherSuite::AES_256_GCM_SHA384,
        hash: HashAlgorithm::SHA384,
        algorithm: &AES_256_GCM,
        mask: mask::<Aes256>,
    },
    &Suite13 {
        suite: Dtls13CipherSuite::CHACHA20_POLY1305_SHA256,
        hash: HashAlgorithm::SHA256,
        algorithm: &CHACHA20_POLY1305,
        mask: chacha20_mask,
    },
];

#[derive(Debug)]
struct Suite12 {
    suite: Dtls12CipherSuite,
    hash: HashAlgorithm,
    algorithm: &'static aead::Algorithm,
    /// Bytes of the nonce that the handshake fixes; each record carries the others.
    fixed_iv: usize,
}

impl SupportedDtls12CipherSuite for Suite12 {
    fn suite(&self) -> Dtls12CipherSuite {
        self.suite
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn key_lengths(&self) -> (usize, usize, usize) {
        (0, self.algorithm.key_len(), self.fixed_iv)
    }

    fn explicit_nonce_len(&self) -> usize {
        aead::NONCE_LEN - self.fixed_iv
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Record::boxed(self.algorithm, key)
    }
}

#[derive(Debug)]
struct Suite13 {
    suite: Dtls13CipherSuite,
    hash: HashAlgorithm,
    algorithm: &'static aead::Algorithm,
    /// Mask of record numbers, of a key and a sample.
    mask: fn(&[u8], &[u8; 16]) -> [u8; 16],
}

impl SupportedDtls13CipherSuite for Suite13 {
    fn suite(&self) -> Dtls13CipherSuite {
        self.suite
    }

    fn hash_algorithm(&self) -> HashAlgorithm {
        self.hash
    }

    fn key_len(&self) -> usize {
        self.algorithm.key_len()
    }

    fn iv_len(&self) -> usize {
        aead::NONCE_LEN
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn create_cipher(&self, key: &[u8]) -> Result<Box<dyn Cipher>, CryptoError> {
        Record::boxed(self.algorithm, key)
    }

    fn encrypt_sn(&self, key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
        (self.mask)(key, sample)
    }
}

fn mask<C>(key: &[u8], sample: &[u8; 16]) -> [u8; 16]
where
    C: BlockEncrypt + BlockSizeUser<BlockSize = U16> + KeyInit,
{
    let cipher = C::new_from_slice(key).expect("the key schedule makes keys of the suite's length");
    let mut mask = *sample;
    cipher.encrypt_block((&mut mask).into());
    mask
}

/// Gives the first five bytes of the mask; record numbers have two.
fn chacha20_mask(key: &[u8], sample: &[u8; 16]) -> [u8; 16] {
    let key = quic::HeaderProtectionKey::new(&quic::CHACHA20, key)
        .expect("the key schedule makes keys of the suite's length");
    let mut mask = [0; 16];
    mask[..5].copy_from_slice(&key.new_mask(sample).expect("a sample has 16 bytes"));
    mask
}

/// Cipher of the records of one direction.
#[derive(Debug)]
struct Record(LessSafeKey);

impl Record {
    fn boxed(
        algorithm: &'static aead::Algorithm,
        key: &[u8],
    ) -> Result<Box<dyn Cipher>, CryptoError> {
        let key = UnboundKey::new(algorithm, key)
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::CreateCipher))?;
        Ok(Box::new(Self(LessSafeKey::new(key))))
    }
}

impl Cipher for Record {
    fn encrypt(&mut self, text: &mut Buf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        self.0
            .seal_in_place_append_tag(
                aead::Nonce::assume_unique_for_key(nonce.0),
                aead::Aad::from(&aad[..]),
                text,
            )
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::Encrypt))
    }

    fn decrypt(&mut self, text: &mut TmpBuf, aad: Aad, nonce: Nonce) -> Result<(), CryptoError> {
        let length = self
            .0
            .open_in_place(
                aead::Nonce::assume_unique_for_key(nonce.0),
                aead::Aad::from(&aad[..]),
                text.as_mut(),
            )
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::Decrypt))?
            .len();
        text.truncate(length);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_that_are_short_or_changed_are_rejected() {
        for suite in SUITES_12 {
            let (_, key, fixed_iv) = suite.key_lengths();
            assert_eq!(fixed_iv + suite.explicit_nonce_len(), 12);
            assert!(suite.create_cipher(&vec![1; key - 1]).is_err());
            let mut cipher = suite.create_cipher(&vec![1; key]).unwrap();
            let aad = || Aad([9; 13].into());
            let mut sealed = Buf::new();
            sealed.extend_from_slice(b"record");
            cipher.encrypt(&mut sealed, aad(), Nonce([2; 12])).unwrap();
            assert_eq!(sealed.len(), 6 + suite.tag_len());

            for length in 0..sealed.len() {
                let mut cut = sealed[..length].to_vec();
                assert!(
                    cipher
                        .decrypt(&mut TmpBuf::new(&mut cut), aad(), Nonce([2; 12]))
                        .is_err()
                );
            }
            let mut other_number = sealed.to_vec();
            assert!(
                cipher
                    .decrypt(&mut TmpBuf::new(&mut other_number), aad(), Nonce([3; 12]))
                    .is_err()
            );
            let mut whole = sealed.to_vec();
            let mut text = TmpBuf::new(&mut whole);
            cipher.decrypt(&mut text, aad(), Nonce([2; 12])).unwrap();
            assert_eq!(text.as_ref(), b"record");
        }
    }
}
