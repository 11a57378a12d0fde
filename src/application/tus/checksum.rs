//! `Upload-Checksum` of resumable uploads (tus): sha1, sha256, crc32.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

use crate::application::{error::ApiError, field};

/// Algorithms by their names in tus; every tus server supports the first.
pub(crate) const ALGORITHMS: &str = "sha1,sha256,crc32";

/// The checksum that the client computed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checksum {
    algorithm: Algorithm,
    expected: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha1,
    Sha256,
    /// CRC-32 as in ZIP, four bytes, the highest first.
    Crc32,
}

impl Checksum {
    /// `algorithm base64`.
    pub(crate) fn parse(given: &str) -> Result<Self, ApiError> {
        let (name, value) = given.trim().split_once(' ').unwrap_or((given.trim(), ""));
        let (algorithm, length) = match name {
            "sha1" => (Algorithm::Sha1, 20),
            "sha256" => (Algorithm::Sha256, 32),
            "crc32" => (Algorithm::Crc32, 4),
            _ => {
                let shown = field::shorten(name);
                return Err(invalid!(
                    "Upload-Checksum: `{shown}` is none of {ALGORITHMS}"
                ));
            }
        };
        let expected = STANDARD.decode(value.trim()).ok();
        match expected.filter(|bytes| bytes.len() == length) {
            Some(expected) => Ok(Self {
                algorithm,
                expected,
            }),
            None => Err(invalid!(
                "Upload-Checksum: expected {length} bytes in Base64 after {name}"
            )),
        }
    }

    pub(crate) fn begin(&self) -> Running {
        match self.algorithm {
            Algorithm::Sha1 => Running::Sha1(Sha1::new()),
            Algorithm::Sha256 => Running::Sha256(Sha256::new()),
            Algorithm::Crc32 => Running::Crc32(crc32fast::Hasher::new()),
        }
    }

    pub(crate) fn accepts(&self, digest: Running) -> bool {
        self.expected == digest.finish()
    }
}

/// A digest in the midst of its work.
pub(crate) enum Running {
    Sha1(Sha1),
    Sha256(Sha256),
    Crc32(crc32fast::Hasher),
}

impl Running {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(digest) => digest.update(bytes),
            Self::Sha256(digest) => digest.update(bytes),
            Self::Crc32(digest) => digest.update(bytes),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Sha1(digest) => digest.finalize().to_vec(),
            Self::Sha256(digest) => digest.finalize().to_vec(),
            Self::Crc32(digest) => digest.finalize().to_be_bytes().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_digests_are_accepted_and_no_others() {
        // Published values for `123456789`.
        let known = [
            "sha1 98O8HYCOBHMq32eZZczDTKeuNEE=",
            "sha256 FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
            "crc32 y/Q5Jg==",
        ];
        for given in known {
            let accepts = |bytes: &[u8]| {
                let checksum = Checksum::parse(given).unwrap_or_else(|e| panic!("{given}: {e}"));
                let mut digest = checksum.begin();
                digest.update(&bytes[..4]);
                digest.update(&bytes[4..]);
                checksum.accepts(digest)
            };
            assert!(accepts(b"123456789"), "{given}");
            assert!(!accepts(b"123456788"), "{given}");
        }
    }

    #[test]
    fn odd_checksums_are_rejected() {
        for odd in [
            "",
            "sha1",
            "md5 AAAA",
            "sha1 AAAA",
            "sha1 ~",
            "SHA1 98O8HYCOBHMq32eZZczDTKeuNEE=",
            "crc32 y/Q5JgA=",
        ] {
            assert!(Checksum::parse(odd).is_err(), "{odd:?}");
        }
    }
}
