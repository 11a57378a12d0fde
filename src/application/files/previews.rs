//! Previews of stored files: which files have one, widths (`w`), images rendered at a time for an account
//! (`files.previews_per_account`).

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use sluice_media::format::{Class, Format};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::application::{error::ApiError, field};

/// Widths of previews; each is rendered once for every file.
pub(crate) const WIDTHS: [u32; 4] = [320, 640, 1280, 2560];
/// Width when the query has none.
pub(crate) const DEFAULT_WIDTH: u32 = 640;
/// Longest wait of a preview for a permit.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// `Retry-After` when there is no permit in time.
const RETRY_AFTER_S: u64 = 5;

/// Returns whether image delivery makes an image of it, without a look at its bytes.
pub(crate) fn has_preview(mime_type: &str) -> bool {
    matches!(
        class_of(mime_type),
        Some(Class::Raster | Class::Vector | Class::Document | Class::Video)
    )
}

/// Returns whether there may be an image of it: as [`has_preview`], and of audio, which may have a cover.
pub(crate) fn may_have_preview(mime_type: &str) -> bool {
    has_preview(mime_type) || class_of(mime_type) == Some(Class::Audio)
}

pub(crate) fn class_of(mime_type: &str) -> Option<Class> {
    Format::from_mime(mime_type).map(Format::class)
}

/// Returns the delivery query of a preview: the file fits into a square of that width; of a video, its beginning.
pub(crate) fn delivery_query(width: u32) -> String {
    format!("w={width}&h={width}&fit=inside&t=0")
}

/// Reads a width, and rounds it up to one of [`WIDTHS`].
pub(crate) fn rounded_width(text: &str) -> Result<u32, ApiError> {
    let [.., largest] = WIDTHS;
    let wanted = text.parse().ok().filter(|width| *width >= 1);
    let rounded = wanted.and_then(|wanted: u32| WIDTHS.into_iter().find(|it| *it >= wanted));
    rounded.ok_or_else(|| field::wrong("w", format_args!("a width of 1 to {largest} pixels"), text))
}

/// Permits to render previews, so many for each account; more wait.
#[derive(Debug)]
pub(crate) struct Previews {
    per_account: usize,
    accounts: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

/// Permit for one preview, until it is dropped.
#[derive(Debug)]
pub(crate) struct PreviewPermit {
    _permit: OwnedSemaphorePermit,
}

impl Previews {
    pub(crate) fn new(per_account: usize) -> Self {
        Self {
            per_account,
            accounts: Mutex::default(),
        }
    }

    /// Waits for a permit of the account: a page of thumbnails asks for fifty at once. 503 after [`LONGEST_WAIT`].
    pub(crate) async fn turn(&self, account_id: Uuid) -> Result<PreviewPermit, ApiError> {
        let semaphore = self.semaphore(account_id);
        match tokio::time::timeout(LONGEST_WAIT, semaphore.acquire_owned()).await {
            Ok(Ok(permit)) => Ok(PreviewPermit { _permit: permit }),
            _ => Err(ApiError::Unavailable {
                what: "the previews of this account",
                retry_after_s: RETRY_AFTER_S,
            }),
        }
    }

    /// The account's permits. Accounts for which nothing is rendered or waits are forgotten.
    fn semaphore(&self, account_id: Uuid) -> Arc<Semaphore> {
        let mut accounts = self.accounts.lock();
        if let Some(known) = accounts.get(&account_id).and_then(Weak::upgrade) {
            return known;
        }
        accounts.retain(|_, semaphore| semaphore.strong_count() > 0);
        let made = Arc::new(Semaphore::new(self.per_account));
        accounts.insert(account_id, Arc::downgrade(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn images_pages_videos_and_songs_have_previews() {
        for (mime_type, has, may_have) in [
            ("image/jpeg", true, true),
            ("image/svg+xml", true, true),
            ("application/pdf", true, true),
            ("video/mp4", true, true),
            ("audio/mpeg", false, true),
            ("application/zip", false, false),
            ("text/html", false, false),
        ] {
            assert_eq!(has_preview(mime_type), has, "{mime_type}");
            assert_eq!(may_have_preview(mime_type), may_have, "{mime_type}");
        }
    }

    #[test]
    fn widths_are_rounded_up() {
        for (text, width) in [("1", 320), ("320", 320), ("321", 640), ("2560", 2560)] {
            assert_eq!(rounded_width(text).unwrap(), width);
        }
        for odd in ["0", "2561", "-1", "x", "", "640px", "99999999999"] {
            let error = rounded_width(odd).unwrap_err().to_string();
            assert!(
                error.starts_with("w must be a width of 1 to 2560"),
                "{error}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_waits_for_its_own_previews_only() {
        let previews = Previews::new(2);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = previews.turn(one).await.unwrap();
        let _second = previews.turn(one).await.unwrap();
        assert!(previews.turn(one).now_or_never().is_none());
        drop(previews.turn(other).await.unwrap());
        let rejected = previews.turn(one).await.unwrap_err();
        assert!(rejected.to_string().contains("previews"), "{rejected}");
        drop(first);
        drop(previews.turn(one).await.unwrap());
        drop(previews.turn(other).await.unwrap());
        assert!(previews.accounts.lock().len() <= 2);
    }
}
