//! Views and downloads of share links at a request: what counts, `downloadLimit` (410), downloads that may continue.

use sluice_actors::network::client_network;
use sluice_store::shares;
use uuid::Uuid;

use super::access::ShareAccess;
use crate::application::{context::ShareContext, error::ApiError, share::counts::locked};

impl ShareAccess {
    /// Admits a download of `what` (a file, or the folder of an archive) whose answer begins at `start`; `None`:
    /// nothing is sent (304). Every one that begins at 0 is counted, continued ones are not. HEAD is answered as GET
    /// would be, and never counted.
    ///
    /// 403 where the link is for looking only, 410 when as many downloads have begun as it allows. Under a link with a
    /// bound, only a client that has begun may continue: anything else counts as a beginning.
    pub(in crate::http) async fn admit_download(
        &self,
        context: &ShareContext,
        what: Uuid,
        start: Option<u64>,
    ) -> Result<(), ApiError> {
        if !self.share.allow_download {
            return Err(ApiError::NoShare {
                code: "downloads_off",
                message: "this link is for looking only: ask its owner for one that allows downloads",
            });
        }
        let (id, counts) = (self.share.id, &context.shares.counts);
        if self.share.download_limit.is_none() {
            if start == Some(0) && !self.is_head {
                counts.note_download(&context.store, id);
            }
            return Ok(());
        }
        let download = (id, what, self.client().map(client_network));
        let is_resumed = start != Some(0) && locked(&counts.begun).known.contains(&download);
        if is_resumed {
            return Ok(());
        }
        if self.share.is_used_up() {
            return Err(ApiError::ShareUsedUp);
        }
        if start.is_none() || self.is_head {
            return Ok(());
        }
        // Counted in the database before the bytes go out: neither concurrent requests nor a crash may exceed the
        // limit.
        let taken = context
            .store
            .write_beside(move |tx| Box::pin(async move { shares::take_download(tx, id).await }));
        if !taken.await? {
            return Err(ApiError::ShareUsedUp);
        }
        locked(&counts.begun).add(download);
        Ok(())
    }
}
