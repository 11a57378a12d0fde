//! Cryptography of the gateway by `ring`: what str0m (STUN, SRTP) and dimpl (DTLS) ask of a library, and the certificate.
//!
//! TLS of the service is `ring`'s too, so the program has one implementation of each algorithm. AES in counter mode and single
//! AES blocks, which `ring` does not offer, are of the `aes` crate.
//!
//! DTLS 1.2 with ECDSA certificates of P-256 and P-384; a peer with an RSA certificate is not served. A certificate is
//! trusted by its fingerprint alone (RFC 8827, section 6.5), so names, dates and chains are not read.

mod certificate;
mod dtls;
mod exchange;
mod hash;
mod signature;
mod srtp;
mod suite;
#[cfg(test)]
mod tests;

use std::sync::{Arc, LazyLock};

use str0m::crypto::CryptoProvider;

pub use certificate::certificate;
pub(crate) use certificate::public_key;
pub(crate) use signature::has_signed;

/// The provider for `RtcConfig::set_crypto_provider`; one for the whole process.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        Arc::new(CryptoProvider {
            srtp_provider: &srtp::Srtp,
            sha1_hmac_provider: &hash::Hashes,
            sha1_provider: &hash::Hashes,
            sha256_provider: &hash::Hashes,
            dtls_provider: &dtls::Dtls,
        })
    });
    Arc::clone(&PROVIDER)
}
