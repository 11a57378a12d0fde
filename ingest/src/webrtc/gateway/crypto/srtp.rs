//! Ciphers of SRTP: AES in counter mode (RFC 3711) and AES-GCM (RFC 7714).
//!
//! The hot path of the gateway: one call for each packet and viewer. Keys are expanded once, the text is copied once, from
//! the caller's input to its output, and sealed there.

use aes::cipher::consts::U16;
use aes::cipher::{
    BlockEncrypt, BlockSizeUser, InnerIvInit, KeyInit, StreamCipher, StreamCipherCoreWrapper,
};
use aes::{Aes128, Aes256};
use ctr::CtrCore;
use ctr::flavors::Ctr128BE;
use ring::aead::{self, AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use str0m::crypto::{
    AeadAes128GcmCipher, AeadAes256GcmCipher, Aes128CmSha1_80Cipher, CryptoError, SrtpProvider,
    SupportedAeadAes128Gcm, SupportedAeadAes256Gcm, SupportedAes128CmSha1_80,
};

/// Most bytes that RTCP authenticates without encrypting them: header, sender and index.
const RTCP_AAD: usize = 16;
const BLOCK: usize = 16;

/// Factory of all ciphers.
#[derive(Debug)]
pub(super) struct Srtp;

impl SrtpProvider for Srtp {
    fn aes_128_cm_sha1_80(&self) -> &'static dyn SupportedAes128CmSha1_80 {
        &Srtp
    }

    fn aead_aes_128_gcm(&self) -> &'static dyn SupportedAeadAes128Gcm {
        &Srtp
    }

    fn aead_aes_256_gcm(&self) -> &'static dyn SupportedAeadAes256Gcm {
        &Srtp
    }

    fn srtp_aes_128_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        encrypt_blocks::<Aes128>(key, input, output);
    }

    fn srtp_aes_256_ecb_round(&self, key: &[u8], input: &[u8], output: &mut [u8]) {
        encrypt_blocks::<Aes256>(key, input, output);
    }
}

impl SupportedAes128CmSha1_80 for Srtp {
    fn create_cipher(&self, key: [u8; 16], _encrypt: bool) -> Box<dyn Aes128CmSha1_80Cipher> {
        Box::new(CounterMode(Aes128::new(&key.into())))
    }
}

impl SupportedAeadAes128Gcm for Srtp {
    fn create_cipher(&self, key: [u8; 16], _encrypt: bool) -> Box<dyn AeadAes128GcmCipher> {
        Box::new(Gcm::new(&AES_128_GCM, &key))
    }
}

impl SupportedAeadAes256Gcm for Srtp {
    fn create_cipher(&self, key: [u8; 32], _encrypt: bool) -> Box<dyn AeadAes256GcmCipher> {
        Box::new(Gcm::new(&AES_256_GCM, &key))
    }
}

/// Encrypts each whole block for itself, as key derivation does (RFC 3711, section 4.3.3).
fn encrypt_blocks<C>(key: &[u8], input: &[u8], output: &mut [u8])
where
    C: BlockEncrypt + BlockSizeUser<BlockSize = U16> + KeyInit,
{
    let cipher = C::new_from_slice(key).expect("a profile's master key has its cipher's length");
    for (input, output) in input
        .as_chunks::<BLOCK>()
        .0
        .iter()
        .zip(output.as_chunks_mut::<BLOCK>().0)
    {
        *output = *input;
        cipher.encrypt_block(output.into());
    }
}

/// AES-128 in counter mode; the caller appends and checks the HMAC.
struct CounterMode(Aes128);

impl std::fmt::Debug for CounterMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CounterMode")
    }
}

impl CounterMode {
    fn apply(&self, iv: &[u8; 16], input: &[u8], output: &mut [u8]) -> Result<(), CryptoError> {
        let output = output.get_mut(..input.len()).ok_or_else(too_short)?;
        let core = CtrCore::<&Aes128, Ctr128BE>::inner_iv_init(&self.0, iv.into());
        StreamCipherCoreWrapper::from_core(core)
            .apply_keystream_b2b(input, output)
            .map_err(|_| too_short())
    }
}

impl Aes128CmSha1_80Cipher for CounterMode {
    fn encrypt(
        &mut self,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.apply(iv, input, output)
    }

    fn decrypt(
        &mut self,
        iv: &[u8; 16],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.apply(iv, input, output)
    }
}

/// AES-GCM with its key expanded.
#[derive(Debug)]
struct Gcm(LessSafeKey);

impl Gcm {
    fn new(algorithm: &'static aead::Algorithm, key: &[u8]) -> Self {
        let key =
            UnboundKey::new(algorithm, key).expect("the key is an array of the algorithm's length");
        Self(LessSafeKey::new(key))
    }

    /// Writes ciphertext and tag to the start of `output`.
    fn seal(
        &self,
        iv: &[u8; 12],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        let (text, rest) = output
            .split_at_mut_checked(input.len())
            .ok_or_else(too_short)?;
        let tag = rest
            .first_chunk_mut::<{ aead::MAX_TAG_LEN }>()
            .ok_or_else(too_short)?;
        text.copy_from_slice(input);
        let made = self
            .0
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(*iv), Aad::from(aad), text)
            .map_err(|_| CryptoError::Other("a packet is too long for AES-GCM".into()))?;
        tag.copy_from_slice(made.as_ref());
        Ok(())
    }

    /// Writes the plain text to the start of `output` and returns its length.
    fn open(
        &self,
        iv: &[u8; 12],
        aads: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let (input, tag) = input
            .split_last_chunk::<{ aead::MAX_TAG_LEN }>()
            .ok_or_else(too_short)?;
        let text = output.get_mut(..input.len()).ok_or_else(too_short)?;
        text.copy_from_slice(input);
        let mut joined = [0; RTCP_AAD];
        let aad = match aads {
            [aad] => aad,
            _ => join(aads, &mut joined).ok_or_else(too_short)?,
        };
        self.0
            .open_in_place_separate_tag(
                Nonce::assume_unique_for_key(*iv),
                Aad::from(aad),
                Tag::from(*tag),
                text,
                0..,
            )
            .map_err(|_| CryptoError::Other("a packet's tag of AES-GCM does not fit".into()))?;
        Ok(input.len())
    }
}

/// Copies the pieces one after the other into `buffer`.
fn join<'a>(pieces: &[&[u8]], buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    let mut length = 0;
    for piece in pieces {
        buffer
            .get_mut(length..)?
            .get_mut(..piece.len())?
            .copy_from_slice(piece);
        length += piece.len();
    }
    Some(&buffer[..length])
}

fn too_short() -> CryptoError {
    CryptoError::Other("a buffer of SRTP is too short".into())
}

impl AeadAes128GcmCipher for Gcm {
    fn encrypt(
        &mut self,
        iv: &[u8; 12],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.seal(iv, aad, input, output)
    }

    fn decrypt(
        &mut self,
        iv: &[u8; 12],
        aads: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        self.open(iv, aads, input, output)
    }
}

impl AeadAes256GcmCipher for Gcm {
    fn encrypt(
        &mut self,
        iv: &[u8; 12],
        aad: &[u8],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), CryptoError> {
        self.seal(iv, aad, input, output)
    }

    fn decrypt(
        &mut self,
        iv: &[u8; 12],
        aads: &[&[u8]],
        input: &[u8],
        output: &mut [u8],
    ) -> Result<usize, CryptoError> {
        self.open(iv, aads, input, output)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::hex;
    use super::*;

    const HEADER: &str = "8040f17b8041f8d35501a0b2";
    const PAYLOAD: &str =
        "47616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573";
    const IV: &str = "51753c6580c2726f20718414";

    fn array<const N: usize>(text: &str) -> [u8; N] {
        hex(text).try_into().unwrap()
    }

    #[test]
    fn gcm_of_128_bits_as_rfc_7714_16_1_1() {
        let sealed = hex(
            "f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833899d7f27beb16a9152cf765ee4390cce",
        );
        let key = array("000102030405060708090a0b0c0d0e0f");
        let mut cipher = SupportedAeadAes128Gcm::create_cipher(&Srtp, key, true);
        let mut output = vec![0; sealed.len()];
        cipher
            .encrypt(&array(IV), &hex(HEADER), &hex(PAYLOAD), &mut output)
            .unwrap();
        assert_eq!(output, sealed);

        let mut opened = vec![0; sealed.len()];
        let length = cipher
            .decrypt(&array(IV), &[&hex(HEADER)], &sealed, &mut opened)
            .unwrap();
        assert_eq!(opened[..length], hex(PAYLOAD));
        // RTCP gives what is authenticated in two pieces.
        let header = hex(HEADER);
        let length = cipher
            .decrypt(
                &array(IV),
                &[&header[..8], &header[8..]],
                &sealed,
                &mut opened,
            )
            .unwrap();
        assert_eq!(opened[..length], hex(PAYLOAD));
    }

    #[test]
    fn gcm_of_256_bits_as_rfc_7714_16_2_1() {
        let sealed = hex(
            "32b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b7aa3db36dfffd6b0f9bb7878d7a76c13",
        );
        let key = array("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
        let mut cipher = SupportedAeadAes256Gcm::create_cipher(&Srtp, key, true);
        let mut output = vec![0; sealed.len()];
        cipher
            .encrypt(&array(IV), &hex(HEADER), &hex(PAYLOAD), &mut output)
            .unwrap();
        assert_eq!(output, sealed);
        let length = cipher
            .decrypt(&array(IV), &[&hex(HEADER)], &sealed, &mut output.clone())
            .unwrap();
        assert_eq!(length, hex(PAYLOAD).len());
    }

    #[test]
    fn gcm_rejects_changed_packets_and_short_buffers() {
        let mut cipher = SupportedAeadAes128Gcm::create_cipher(&Srtp, [7; 16], true);
        let (iv, aad) = ([1; 12], [2; 12]);
        let mut sealed = [0; 36];
        cipher.encrypt(&iv, &aad, &[3; 20], &mut sealed).unwrap();
        for position in 0..sealed.len() {
            let mut changed = sealed;
            changed[position] ^= 1;
            assert!(
                cipher
                    .decrypt(&iv, &[&aad], &changed, &mut [0; 36])
                    .is_err(),
                "byte {position}"
            );
        }
        assert!(
            cipher
                .decrypt(&iv, &[&[2; 11]], &sealed, &mut [0; 36])
                .is_err()
        );
        assert!(
            cipher
                .decrypt(&iv, &[&[2; 12], &[0; 8]], &sealed, &mut [0; 36])
                .is_err()
        );
        assert!(cipher.decrypt(&iv, &[&aad], &sealed, &mut [0; 19]).is_err());
        for length in 0..16 {
            assert!(
                cipher
                    .decrypt(&iv, &[&aad], &sealed[..length], &mut [0; 36])
                    .is_err()
            );
        }
        assert!(cipher.encrypt(&iv, &aad, &[3; 20], &mut [0; 35]).is_err());
        assert!(cipher.encrypt(&iv, &aad, &[3; 20], &mut [0; 19]).is_err());
    }

    #[test]
    fn counter_mode_as_rfc_3711_b_2() {
        let mut cipher = SupportedAes128CmSha1_80::create_cipher(
            &Srtp,
            array("2b7e151628aed2a6abf7158809cf4f3c"),
            true,
        );
        let iv = array("f0f1f2f3f4f5f6f7f8f9fafbfcfd0000");
        let stream = hex(
            "e03ead0935c95e80e166b16dd92b4eb4d23513162b02d0f72a43a2fe4a5f97ab41e95b3bb0a2e8dd477901e4fca894c0",
        );
        // Not a whole number of blocks, and an output with room to spare, as callers give it.
        let mut output = [0xee; 60];
        cipher.encrypt(&iv, &[0; 45], &mut output).unwrap();
        assert_eq!(output[..45], stream[..45]);
        assert_eq!(output[45..], [0xee; 15]);
        cipher.decrypt(&iv, &stream, &mut output).unwrap();
        assert_eq!(output[..48], [0; 48]);
        assert!(cipher.encrypt(&iv, &[0; 45], &mut [0; 44]).is_err());
    }

    #[test]
    fn blocks_of_fips_197_and_rfc_3711_b_3() {
        let text = hex("00112233445566778899aabbccddeeff");
        let mut output = [0; 32];
        Srtp.srtp_aes_128_ecb_round(&hex("000102030405060708090a0b0c0d0e0f"), &text, &mut output);
        assert_eq!(output[..16], hex("69c4e0d86a7b0430d8cdb78070b4c55a"));
        Srtp.srtp_aes_256_ecb_round(
            &hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"),
            &text,
            &mut output,
        );
        assert_eq!(output[..16], hex("8ea2b7ca516745bfeafc49904b496089"));
        Srtp.srtp_aes_128_ecb_round(
            &hex("e1f97a0d3e018be0d64fa32c06de4139"),
            &hex("0ec675ad498afeebb6960b3aabe60000"),
            &mut output,
        );
        assert_eq!(output[..16], hex("c61e7a93744f39ee10734afe3ff7a087"));
    }
}
