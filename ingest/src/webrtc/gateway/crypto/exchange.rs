//! Key exchange of DTLS: ECDHE on P-256, P-384 and X25519.

use dimpl::crypto::{ActiveKeyExchange, Buf, SupportedKxGroup};
use dimpl::{CryptoError, CryptoOperation, NamedGroup};
use ring::agreement::{
    Algorithm, ECDH_P256, ECDH_P384, EphemeralPrivateKey, UnparsedPublicKey, X25519,
    agree_ephemeral,
};
use ring::rand::SystemRandom;

/// Groups, the preferred first.
pub(super) static GROUPS: &[&dyn SupportedKxGroup] = &[
    &Group {
        name: NamedGroup::X25519,
        algorithm: &X25519,
    },
    &Group {
        name: NamedGroup::Secp256r1,
        algorithm: &ECDH_P256,
    },
    &Group {
        name: NamedGroup::Secp384r1,
        algorithm: &ECDH_P384,
    },
];

#[derive(Debug)]
struct Group {
    name: NamedGroup,
    algorithm: &'static Algorithm,
}

impl SupportedKxGroup for Group {
    fn name(&self) -> NamedGroup {
        self.name
    }

    fn start_exchange(
        &self,
        mut public_key: Buf,
    ) -> Result<Box<dyn ActiveKeyExchange>, CryptoError> {
        let private_key = EphemeralPrivateKey::generate(self.algorithm, &SystemRandom::new())
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::GenerateEphemeralKey))?;
        let computed = private_key
            .compute_public_key()
            .map_err(|_| CryptoError::OperationFailed(CryptoOperation::ComputePublicKey))?;
        public_key.clear();
        public_key.extend_from_slice(computed.as_ref());
        Ok(Box::new(Exchange {
            group: self.name,
            private_key,
            public_key,
        }))
    }
}

/// One side of an exchange that waits for the other's public key.
#[derive(Debug)]
struct Exchange {
    group: NamedGroup,
    private_key: EphemeralPrivateKey,
    public_key: Buf,
}

impl ActiveKeyExchange for Exchange {
    fn pub_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Points off the curve and, for X25519, keys that yield zero are errors (RFC 7748, section 6.1).
    fn complete(self: Box<Self>, peer: &[u8], secret: &mut Buf) -> Result<(), CryptoError> {
        let peer = UnparsedPublicKey::new(self.private_key.algorithm(), peer);
        agree_ephemeral(self.private_key, &peer, |agreed| {
            secret.clear();
            secret.extend_from_slice(agreed);
        })
        .map_err(|_| CryptoError::InvalidPublicKey(self.group))
    }

    fn group(&self) -> NamedGroup {
        self.group
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_keys_that_are_no_points_are_rejected() {
        for group in GROUPS {
            for length in [0, 1, 31, 32, 33, 65, 97, 200] {
                let exchange = group.start_exchange(Buf::new()).unwrap();
                let mut secret = Buf::new();
                let result = exchange.complete(&vec![0; length], &mut secret);
                assert_eq!(
                    result,
                    Err(CryptoError::InvalidPublicKey(group.name())),
                    "{length} zeros"
                );
                assert!(secret.is_empty());
            }
        }
    }

    #[test]
    fn points_off_the_curve_are_rejected() {
        for group in &GROUPS[1..] {
            let mut point = group.start_exchange(Buf::new()).unwrap().pub_key().to_vec();
            *point.last_mut().unwrap() ^= 1;
            let exchange = group.start_exchange(Buf::new()).unwrap();
            assert!(exchange.complete(&point, &mut Buf::new()).is_err());
        }
    }
}
