//! Captions of video streams: from an upload, a stored file or an address to WebVTT; `vod.max_caption`.

use std::io::Read as _;

use sluice_media::captions::{language_tag, to_webvtt};
use sluice_store::{
    blob::{Sealed, Spool},
    files,
    video::{self, NewCaption},
};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use super::request::{CaptionFacts, CaptionOrigin, CaptionSpec};
use crate::{
    application::{context::VideoContext, error::ApiError, part::SizeLimit, source_url},
    config::Plan,
};

/// Captions that were read, checked and flushed to the disk.
pub(crate) struct Made {
    said: CaptionFacts,
    content: Sealed,
}

impl Made {
    /// Converts into the store's type.
    pub(crate) fn into_new(self, context: &VideoContext, plan: &Plan) -> (NewCaption, Sealed) {
        let CaptionFacts {
            language,
            label,
            is_default,
        } = self.said;
        let new = NewCaption {
            language,
            label,
            is_default,
            most: context.config.vod.max_captions,
            storage_bytes: plan.storage.as_u64(),
        };
        (new, self.content)
    }
}

/// Reads and checks what a request names. `field` as in [`CaptionRequest::checked`].
pub(crate) async fn make(
    context: &VideoContext,
    account_id: Uuid,
    wanted: CaptionSpec,
    field: &str,
) -> Result<Made, ApiError> {
    let text = match wanted.origin {
        CaptionOrigin::Stored(id) => stored(context, account_id, id)
            .await
            .map_err(|error| error.of_file_in(format!("{field}fileId")))?,
        CaptionOrigin::Named(address) => {
            let url = format!("{field}url");
            let fetched =
                source_url::fetch(&context.files, &url, &[address], size_limit(context)).await?;
            let part = fetched.into_iter().next();
            read(part.expect("an address gives a file or an error").spool).await?
        }
        CaptionOrigin::Sent(text) => {
            size_limit(context).check(&format!("{field}content"), text.len() as u64)?;
            text.into_bytes()
        }
    };
    seal(context, wanted.said, text, field).await
}

/// Removes the captions in a language from a stream.
pub(crate) async fn remove(
    context: &VideoContext,
    account_id: Uuid,
    stream_id: Uuid,
    language: &str,
) -> Result<(), ApiError> {
    let mut db = context.store.read().await?;
    video::get(&mut db, account_id, stream_id).await?;
    let captions = video::captions(&mut db, stream_id).await?;
    drop(db);
    let language = language_tag(language);
    let id = captions
        .iter()
        .find(|caption| Some(&caption.language) == language.as_ref())
        .ok_or(ApiError::NotFound("captions in this language"))?
        .id;
    context
        .streams
        .remove_caption(account_id, stream_id, id)
        .await?;
    Ok(())
}

async fn stored(context: &VideoContext, account_id: Uuid, id: Uuid) -> Result<Vec<u8>, ApiError> {
    let file = files::get(&mut context.store.read().await?, account_id, id).await?;
    size_limit(context).check(&file.filename, file.size_bytes.unsigned_abs())?;
    all_of(context.store.blobs().open(&file.blob).await?).await
}

/// Reads a spool that is within the limit.
pub(crate) async fn read(mut spool: Spool) -> Result<Vec<u8>, ApiError> {
    all_of(spool.reader().await?).await
}

async fn all_of(mut file: std::fs::File) -> Result<Vec<u8>, ApiError> {
    let reading = spawn_blocking(move || {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    });
    let bytes = reading.await.map_err(ApiError::internal)?;
    bytes.map_err(ApiError::of_disk)
}

pub(crate) async fn seal(
    context: &VideoContext,
    said: CaptionFacts,
    bytes: Vec<u8>,
    field: &str,
) -> Result<Made, ApiError> {
    let converted = spawn_blocking(move || to_webvtt(&bytes)).await;
    let text = converted.map_err(ApiError::internal)?.map_err(|problem| {
        let which = match field {
            "" => "captions",
            entry => entry.trim_end_matches('.'),
        };
        invalid!("{which}, {problem}")
    })?;
    let mut spool = context.store.blobs().spool().await?;
    spool.write(text.into()).await?;
    Ok(Made {
        said,
        content: spool.seal().await?,
    })
}

pub(crate) fn size_limit(context: &VideoContext) -> SizeLimit {
    SizeLimit {
        bytes: context.config.vod.max_caption.as_u64(),
        named: "vod.max_caption",
    }
}
