//! DTLS by dimpl, with the algorithms of this module.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use dimpl::crypto::CryptoProvider;
use str0m::crypto::CryptoError;
use str0m::crypto::dtls::{
    DtlsCert, DtlsImplError, DtlsInstance, DtlsOutput, DtlsProvider, DtlsVersion, ProtocolVersion,
};

use super::{exchange, hash, signature, suite};

/// Factory of DTLS sessions.
#[derive(Debug)]
pub(super) struct Dtls;

impl DtlsProvider for Dtls {
    fn generate_certificate(&self) -> Option<DtlsCert> {
        Some(super::certificate())
    }

    fn new_dtls(
        &self,
        certificate: &DtlsCert,
        now: Instant,
        version: DtlsVersion,
        mtu: Option<usize>,
    ) -> Result<Box<dyn DtlsInstance>, CryptoError> {
        let config =
            config(mtu.unwrap_or(str0m::DATAGRAM_MTU_TARGET)).map_err(CryptoError::DtlsImpl)?;
        let certificate = certificate.clone();
        let session = match version {
            DtlsVersion::Dtls12 => dimpl::Dtls::new_12(config, certificate, now),
            DtlsVersion::Dtls13 => dimpl::Dtls::new_13(config, certificate, now),
            DtlsVersion::Auto => dimpl::Dtls::new_auto(config, certificate, now),
            other => return Err(CryptoError::Other(format!("{other} is not known"))),
        };
        Ok(Box::new(Session(session)))
    }
}

/// Configuration for datagrams of at most `mtu` bytes.
///
/// Kept, because making one proves the provider with a dozen key exchanges: milliseconds, many times what a session needs.
fn config(mtu: usize) -> Result<Arc<dimpl::Config>, DtlsImplError> {
    static KEPT: OnceLock<Arc<dimpl::Config>> = OnceLock::new();
    if let Some(kept) = KEPT.get()
        && kept.mtu() == mtu
    {
        return Ok(Arc::clone(kept));
    }
    let config = dimpl::Config::builder()
        .with_crypto_provider(CryptoProvider {
            kx_groups: exchange::GROUPS,
            signature_verification: &signature::Ecdsa,
            key_provider: &signature::Ecdsa,
            secure_random: &hash::Random,
            hash_provider: &hash::Hashes,
            hmac_provider: &hash::Hashes,
            cipher_suites: suite::SUITES_12,
            dtls13_cipher_suites: suite::SUITES_13,
        })
        .mtu(mtu)
        // ICE has proved the peer's address before DTLS begins.
        .use_server_cookie(false)
        .build()
        .map(Arc::new)?;
    KEPT.get_or_init(|| Arc::clone(&config));
    Ok(config)
}

/// One DTLS session.
struct Session(dimpl::Dtls);

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Session")
    }
}

impl DtlsInstance for Session {
    fn set_active(&mut self, active: bool) {
        self.0.set_active(active);
    }

    fn handle_packet(&mut self, packet: &[u8]) -> Result<(), DtlsImplError> {
        self.0.handle_packet(packet)
    }

    fn poll_output<'a>(&mut self, buffer: &'a mut [u8]) -> DtlsOutput<'a> {
        self.0.poll_output(buffer)
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), DtlsImplError> {
        self.0.handle_timeout(now)
    }

    fn send_application_data(&mut self, data: &[u8]) -> Result<usize, DtlsImplError> {
        self.0.send_application_data(data)
    }

    fn is_active(&self) -> bool {
        self.0.is_active()
    }

    fn protocol_version(&self) -> Option<ProtocolVersion> {
        self.0.protocol_version()
    }

    fn is_closing(&self) -> bool {
        self.0.is_closing()
    }

    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn close(&mut self) -> Result<(), DtlsImplError> {
        self.0.close()
    }
}
