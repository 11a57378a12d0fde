//! `POST /api/video/streams`: check of the source file and captions before the charge, `Idempotency-Key`.

use serde_json::json;
use sha2::{Digest as _, Sha256};
use sluice_media::format::{Class, Format};
use sluice_store::{
    blob::Sealed,
    files::File,
    idempotency::Idempotency,
    video::{NewCaption, NewStream, Stream, StreamSource, Submitted},
};
use uuid::Uuid;

use super::{
    captions,
    request::{NewStreamRequest, StreamRequest},
};
use crate::application::{
    caller::{Caller, Write},
    context::VideoContext,
    error::ApiError,
    jobs::material::Material,
    part::SizeLimit,
    reached::Reached,
};

/// Makes a stream, or finds the one that a request with the same idempotency key made.
pub(crate) async fn create(
    context: &VideoContext,
    caller: &Caller<Write>,
    reached: &Reached,
    request: NewStreamRequest,
    idempotency_key: Option<String>,
) -> Result<Stream, ApiError> {
    let wanted = request.checked(&context.config.vod)?;
    let (account_id, plan) = (caller.account_id(), caller.plan(context));
    let file = source(context, account_id, wanted.source_file_id).await?;
    SizeLimit::of_videos(&plan).check(&file.filename, file.size_bytes.unsigned_abs())?;
    if context.store.disk_space()?.is_low() {
        return Err(ApiError::NoSpace);
    }
    let mut made = Vec::with_capacity(wanted.captions.len());
    let (specs, wanted) = wanted.without_captions();
    for (index, caption) in specs.into_iter().enumerate() {
        let field = format!("captions[{index}].");
        let caption = captions::make(context, account_id, caption, &field).await?;
        made.push(caption.into_new(context, &plan));
    }
    let mut new = new_stream(account_id, wanted, file, plan.allowance());
    new.idempotency = idempotency_key.map(|key| Idempotency {
        key,
        fingerprint: fingerprint(&new, &made),
    });
    match context.streams.create(new, made).await? {
        Submitted::New(stream) | Submitted::Known(stream) => Ok(*stream),
        Submitted::UsedUp { used } => Err(ApiError::OperationsUsedUp {
            used,
            limit: plan.operations_per_month,
            upgrade_url: Some(reached.upgrade_url(context)),
        }),
    }
}

/// A stored file of the account that begins as audio or video does.
async fn source(context: &VideoContext, account_id: Uuid, id: Uuid) -> Result<File, ApiError> {
    let found = Material::stored(context, account_id, id).await;
    let found = found.map_err(|error| error.of_file_in("sourceFileId"))?;
    let Material::Stored { file, head } = found else {
        return Err(ApiError::NotFound("file"));
    };
    let class = Format::recognise(&head, &file.filename).map(Format::class);
    match class {
        Some(Class::Video | Class::Audio) => Ok(file),
        Some(other) => Err(ApiError::UnsupportedType(format!(
            "{} is {}: sourceFileId must name a video or audio file",
            file.filename,
            other.noun()
        ))),
        None => Err(ApiError::UnsupportedType(format!(
            "the bytes of {} are of no type that is known: sourceFileId must name a video or audio file",
            file.filename
        ))),
    }
}

fn new_stream(
    account_id: Uuid,
    wanted: StreamRequest,
    file: File,
    allowance: sluice_store::jobs::Allowance,
) -> NewStream {
    NewStream {
        account_id,
        title: wanted.title.unwrap_or_else(|| file.filename.clone()),
        source: StreamSource {
            blob: file.blob,
            filename: file.filename,
            file_id: Some(file.id),
        },
        profile: wanted.profile,
        custom_renditions: wanted.custom_renditions,
        segment_duration_s: wanted.segment_duration_s,
        access: wanted.access,
        token_ttl_s: wanted.token_ttl_s,
        allowed_domains: wanted.allowed_domains,
        allowance,
        idempotency: None,
    }
}

/// Hashes everything that shapes the stream, including the bytes of its source and of its captions.
fn fingerprint(new: &NewStream, captions: &[(NewCaption, Sealed)]) -> [u8; 32] {
    let captions: Vec<_> = captions
        .iter()
        .map(|(said, content)| {
            let content = content.blob().hash.to_string();
            json!([said.language, said.label, said.is_default, content])
        })
        .collect();
    let all = json!([
        "stream",
        new.source.blob.to_string(),
        new.source.file_id,
        new.title,
        new.profile,
        new.custom_renditions,
        new.segment_duration_s,
        new.access.as_str(),
        new.token_ttl_s,
        new.allowed_domains,
        captions
    ]);
    Sha256::digest(all.to_string().as_bytes()).into()
}
