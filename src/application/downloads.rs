//! Signed download addresses `/api/downloads/{token}`: what a token grants, its expiry (`uploads.link_lifetime`).

use sluice_store::now_ms;
use uuid::Uuid;

use crate::application::{
    context::Platform,
    signing::{self, Purpose, SIGNATURE_BYTES, Signer},
};

/// Length of a token's message: kind, id and expiry.
pub(crate) const MESSAGE_BYTES: usize = 1 + 16 + 8;

/// A resource that can be downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Downloadable {
    /// A stored file.
    File(Uuid),
    /// The result of one operation of a job, by the item's id.
    Result(Uuid),
    /// Second file of a result, by the item's id.
    Attachment(Uuid),
    /// The archive of a job's results, by the job's id.
    Archive(Uuid),
    /// The last file of a workflow's run that stored none, by the run's id.
    Output(Uuid),
    /// The archive of chosen files and folders, by the selection's id.
    Selection(Uuid),
}

/// Right to download something until a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DownloadGrant {
    pub what: Downloadable,
    /// Milliseconds since 1970.
    pub expires_at: i64,
}

impl DownloadGrant {
    /// Grants a stored file for `uploads.link_lifetime`.
    pub(crate) fn for_file(id: Uuid, platform: &Platform) -> Self {
        let lifetime = platform.config.uploads.link_lifetime.as_millis();
        Self {
            what: Downloadable::File(id),
            expires_at: now_ms().saturating_add(i64::try_from(lifetime).unwrap_or(i64::MAX)),
        }
    }

    fn message(&self) -> [u8; MESSAGE_BYTES] {
        let (kind, id) = match self.what {
            Downloadable::File(id) => (1, id),
            Downloadable::Result(id) => (2, id),
            Downloadable::Archive(id) => (3, id),
            Downloadable::Output(id) => (4, id),
            Downloadable::Attachment(id) => (5, id),
            Downloadable::Selection(id) => (6, id),
        };
        let mut message = [0; MESSAGE_BYTES];
        message[0] = kind;
        message[1..17].copy_from_slice(id.as_bytes());
        message[17..].copy_from_slice(&self.expires_at.to_be_bytes());
        message
    }

    fn token(&self, signer: &Signer) -> String {
        let message = self.message();
        let signature = signer.sign(Purpose::Download, &message);
        signing::encode(&[&message[..], &signature].concat())
    }

    /// Reads a token, expired ones too; `None` for one that this service did not make.
    pub(crate) fn read(token: &str, signer: &Signer) -> Option<Self> {
        let bytes = signing::decode(token)?;
        let (message, signature) = bytes.split_at_checked(MESSAGE_BYTES)?;
        if signature.len() != SIGNATURE_BYTES
            || !signer.accepts(Purpose::Download, message, signature)
        {
            return None;
        }
        let id = Uuid::from_slice(&message[1..17]).ok()?;
        let what = match message[0] {
            1 => Downloadable::File(id),
            2 => Downloadable::Result(id),
            3 => Downloadable::Archive(id),
            4 => Downloadable::Output(id),
            5 => Downloadable::Attachment(id),
            6 => Downloadable::Selection(id),
            _ => return None,
        };
        let expires_at = i64::from_be_bytes(message[17..].try_into().ok()?);
        Some(Self { what, expires_at })
    }
}

/// The address below `base` (without a slash at its end) under which the grant is taken up.
pub(crate) fn download_url(signer: &Signer, base: &str, grant: DownloadGrant) -> String {
    format!("{base}/api/downloads/{}", grant.token(signer))
}
