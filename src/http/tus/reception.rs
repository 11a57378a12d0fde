//! Reception of a resumable upload's bytes: saves (`uploads.checkpoint`, every 5 s), storage of the plan, checksum, take-over by a
//! newer request, the file at the end.
//!
//! - However a request ends, what came of it is on the disk, or in the object store, before the offset says so, and is kept; but
//!   not without its checksum where it has one, and not when it brings more than the upload has. What is not kept leaves the disk
//!   at once.
//! - No byte is written that has no room in the plan's storage, beside the files and all that uploads hold.
//! - It runs as a task of its own: a client that leaves at the end of its body has its file nevertheless.

use std::time::{Duration, Instant};

use actix_web::{
    dev::Payload,
    error::PayloadError,
    web::{self, Bytes},
};
use futures_util::{FutureExt as _, StreamExt as _};
use sluice_store::{
    Error as StoreError,
    blob::{LeftObjects, Partial, PartialState},
    blobs, duration_ms, file_facts, files, now_ms, storage,
    tus::{self, Claim, Completion, Step, TusUpload},
    write_tx,
};
use uuid::Uuid;

use super::headers::Chunk;
use crate::{
    application::{
        caller::{Caller, Write},
        context::FileContext,
        error::ApiError,
        files::{
            facts::{self, Inspection},
            kind::mime_type,
        },
        tus::{
            checksum::Running,
            turns::{Turn, taken_over},
        },
        workflows::trigger,
    },
    config::Plan,
    http::multipart::{next_piece, upload_permit},
};

/// Longest time between two saves, so that few bytes of a slow connection are flushed, too.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(5);

/// Most bytes that may remain in the buffers of a connection when its request is rejected.
const MAX_LEFTOVER_BYTES: usize = 128 * 1024;

/// State of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UploadState {
    pub(super) offset: u64,
    pub(super) expires_at: i64,
    /// Id of the file that it has become.
    pub(super) file_id: Option<Uuid>,
}

impl UploadState {
    pub(super) fn of(upload: &TusUpload) -> Self {
        Self {
            offset: upload.offset(),
            expires_at: upload.expires_at,
            file_id: upload.file_id,
        }
    }
}

/// Returns the time at which an upload expires whose bytes come now.
pub(super) fn expires_at(context: &FileContext) -> i64 {
    now_ms().saturating_add(duration_ms(context.config.uploads.keep_unfinished))
}

/// Receives the bytes of one request, in place of an earlier one that is still running.
pub(super) async fn receive(
    context: web::Data<FileContext>,
    caller: Caller<Write>,
    id: Uuid,
    chunk: Chunk,
    payload: Payload,
) -> Result<UploadState, ApiError> {
    let account_id = caller.account_id();
    // Checked before another request's turn is ended: the upload must be the caller's.
    tus::get(&mut context.store.read().await?, account_id, id, now_ms()).await?;
    // The turn comes before the permit: the earlier request must end, and return its permit, before this one needs one.
    let turn = context.turns.take(id).await?;
    let _permit = upload_permit(&context)?;
    let upload = claim(&context, &caller, id, &chunk).await?;
    if upload.is_completed() {
        return room(&context, &upload, &chunk).map(|_| UploadState::of(&upload));
    }
    let received = take_bytes(
        &context,
        caller.plan(&context),
        &turn,
        &upload,
        chunk,
        payload,
    )
    .await;
    let is_a_file = matches!(&received, Ok(state) if state.file_id.is_some());
    if !is_a_file && let Err(error) = settle(&context, &upload).await {
        tracing::warn!(%error, upload = %id, "bytes beyond the offset of an upload stay until its next request");
    }
    received
}

async fn take_bytes(
    context: &FileContext,
    plan: Plan,
    turn: &Turn,
    upload: &TusUpload,
    chunk: Chunk,
    payload: Payload,
) -> Result<UploadState, ApiError> {
    let room = room(context, upload, &chunk)?;
    // Hashing a long file again takes long, and would restart if it were cancelled: only the end of the service stops
    // it.
    let opened = tokio::select! {
        biased;
        () = context.closing.cancelled() => return Err(stopping()),
        opened = context.store.blobs().partial(upload.id, upload.progress()) => opened,
    };
    let partial = match opened {
        Err(StoreError::NotFound(_)) => return Err(lost(context, upload).await),
        opened => opened?,
    };
    let reception = Reception {
        context,
        turn,
        partial,
        saved_at: Instant::now(),
        state: UploadState::of(upload),
        upload,
        room,
        held: match plan.storage.as_u64() {
            0 => u64::MAX,
            _ => upload.held(),
        },
        plan,
        leftover: MAX_LEFTOVER_BYTES,
    };
    reception.run(chunk, payload).await
}

/// Truncates the bytes that a request left beyond the offset, and returns the room that it held. Its turn is not over
/// yet: no other request works on the upload.
async fn settle(context: &FileContext, upload: &TusUpload) -> Result<(), StoreError> {
    let (account_id, id) = (upload.account_id, upload.id);
    let mut db = context.store.read().await?;
    let now = match tus::get(&mut db, account_id, id, now_ms()).await {
        // Another request has it by now, or the sweep removed it.
        Err(StoreError::NotFound(_) | StoreError::Gone(_)) => return Ok(()),
        found => found?,
    };
    drop(db);
    if now.attempt != upload.attempt || now.is_completed() {
        return Ok(());
    }
    context.store.blobs().cut_partial(id, now.offset()).await?;
    if now.held() == now.offset() {
        return Ok(());
    }
    write_tx!(context.store, account_id, |tx| {
        tus::release(tx, &now).await
    })
}

async fn claim(
    context: &FileContext,
    caller: &Caller<Write>,
    id: Uuid,
    chunk: &Chunk,
) -> Result<TusUpload, ApiError> {
    let max_file = context.config.uploads.max_file.as_u64();
    if chunk.length.is_some_and(|length| length > max_file) {
        return Err(too_large(max_file));
    }
    let account_id = caller.account_id();
    let wanted = Claim {
        offset: chunk.offset,
        brings_bytes: chunk.content_length,
        length_bytes: chunk.length,
        most_bytes: max_file,
        expires_at: expires_at(context),
        storage_bytes: caller.plan(context).storage.as_u64(),
        owner: context.store.owner(),
    };
    Ok(write_tx!(context.store, account_id, |tx| {
        tus::claim(tx, account_id, id, wanted, now_ms()).await
    })?)
}

/// Returns the length that the upload may have; 413 when the request declares more.
fn room(context: &FileContext, upload: &TusUpload, chunk: &Chunk) -> Result<u64, ApiError> {
    let room = match upload.length().or(chunk.length) {
        Some(length) => length,
        None => context.config.uploads.max_file.as_u64(),
    };
    let brings = chunk.content_length.unwrap_or_default();
    match upload.offset().saturating_add(brings) > room {
        true => Err(too_much(room)),
        false => Ok(room),
    }
}

/// Removes an upload whose row exists and whose bytes do not, as after a restore. One that is a file stays in a cluster: the data
/// folder of any other node, also of one that is away, may have it.
pub(super) async fn lost(context: &FileContext, upload: &TusUpload) -> ApiError {
    if !upload.has_objects() && !context.store.cluster().is_solo() {
        return elsewhere();
    }
    match forget_lost(context, upload).await {
        Ok(()) => ApiError::Gone("the bytes of this upload are lost: make a new one"),
        Err(error) => error,
    }
}

/// The answer for an upload that is a file of another node.
fn elsewhere() -> ApiError {
    ApiError::Overloaded {
        code: "upload_elsewhere",
        message: "this upload began without an object store (store.objects_url), and its bytes are in the data folder of \
                  the node that began it, not of the one that answers: repeat the request, which may reach that node, or \
                  delete the upload and make a new one",
        retry_after_s: 1,
    }
}

/// Removes an upload, unless a later request has it by now: that has replaced the objects which this one did not find.
async fn forget_lost(context: &FileContext, upload: &TusUpload) -> Result<(), ApiError> {
    let (account_id, id) = (upload.account_id, upload.id);
    let mut db = context.store.read().await?;
    let now = tus::get(&mut db, account_id, id, now_ms()).await?;
    drop(db);
    match now.attempt == upload.attempt {
        true => forget(context, account_id, id).await,
        false => Err(taken_over()),
    }
}

/// Removes an upload with its bytes; a file that it has become stays.
pub(super) async fn forget(
    context: &FileContext,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    let left = write_tx!(context.store, account_id, |tx| {
        tus::delete(tx, account_id, id).await
    })?;
    let blobs = context.store.blobs();
    blobs.remove_objects(left);
    Ok(blobs.remove_partial(id).await?)
}

/// A request that receives bytes.
struct Reception<'a> {
    context: &'a FileContext,
    plan: Plan,
    turn: &'a Turn,
    upload: &'a TusUpload,
    partial: Partial,
    /// State as other requests see it.
    state: UploadState,
    saved_at: Instant,
    /// Length that the upload may have.
    room: u64,
    /// Length with room reserved in the plan's storage.
    held: u64,
    /// Bytes that are still accepted once the request is cancelled.
    leftover: usize,
}

/// Reason why no more bytes come.
enum ReceptionEnd {
    /// The body is at its end.
    Whole,
    /// The bytes received so far are kept.
    Stopped(ApiError),
}

impl Reception<'_> {
    async fn run(mut self, chunk: Chunk, payload: Payload) -> Result<UploadState, ApiError> {
        if self.partial.is_hashed_again() {
            self.save(false).await?;
        }
        let ending = self.fill(payload, chunk.checksum.is_none()).await?;
        if let Some(checksum) = chunk.checksum {
            if let ReceptionEnd::Stopped(error) = ending {
                return Err(error);
            }
            let digest = self
                .partial
                .digest(chunk.offset, checksum.begin(), Running::update)
                .await?;
            if !checksum.accepts(digest) {
                return Err(ApiError::ChecksumMismatch);
            }
        }
        let length = self.upload.length().or(chunk.length);
        if length == Some(self.partial.len()) {
            return self.complete().await;
        }
        self.save(true).await?;
        match ending {
            ReceptionEnd::Whole => Ok(self.state),
            ReceptionEnd::Stopped(error) => Err(error),
        }
    }

    /// Appends the body. On an error the bytes received since the last save are dropped.
    async fn fill(&mut self, mut payload: Payload, saves: bool) -> Result<ReceptionEnd, ApiError> {
        let most_unsaved = self.context.config.uploads.checkpoint.as_u64();
        loop {
            let bytes = match self.next(&mut payload).await {
                Ok(Some(bytes)) => bytes,
                Ok(None) => return Ok(ReceptionEnd::Whole),
                Err(error) => return Ok(ReceptionEnd::Stopped(error)),
            };
            // Checked before the write, so that no byte beyond the declared length or the reserved storage reaches the
            // disk.
            let length = self.partial.len() + bytes.len() as u64;
            if length > self.room {
                return Err(too_much(self.room));
            }
            if length > self.held
                && let Err(error) = self.hold(length).await
            {
                return Ok(ReceptionEnd::Stopped(error));
            }
            self.partial.write(&bytes).await?;
            // Bytes with a checksum may be rejected as a whole: they go to an object store after it was compared.
            if saves && let Err(error) = self.partial.upload().await {
                return Err(self.keep_pieces(error).await);
            }
            let unsaved = self.partial.len() - self.state.offset;
            let is_due = unsaved >= most_unsaved || self.saved_at.elapsed() >= CHECKPOINT_EVERY;
            // The last bytes are saved with the file.
            if saves && is_due && self.partial.len() < self.room {
                self.save(false).await?;
            }
        }
    }

    /// Reserves storage for a body of undeclared length, some more than needed.
    async fn hold(&mut self, needed: u64) -> Result<(), ApiError> {
        let more = self.context.config.uploads.checkpoint.as_u64();
        let wanted = needed.saturating_add(more).min(self.room);
        let (upload, limit) = (self.upload.clone(), self.plan.storage.as_u64());
        self.held = write_tx!(self.context.store, upload.account_id, |tx| {
            tus::hold(tx, &upload, needed, wanted, limit, now_ms()).await
        })?;
        Ok(())
    }

    /// Returns the next bytes. Once the request is cancelled, only bytes that have already arrived, up to `leftover`.
    async fn next(&mut self, payload: &mut Payload) -> Result<Option<Bytes>, ApiError> {
        let timeout = self.context.config.uploads.idle_timeout;
        let mut body = payload.by_ref();
        let waited = tokio::select! {
            biased;
            () = self.turn.ended() => Err(taken_over()),
            () = self.context.closing.cancelled() => Err(stopping()),
            piece = next_piece(&mut body, timeout) => Ok(piece),
        };
        let ended = match waited {
            Ok(piece) => return piece_of(piece, timeout),
            Err(error) => error,
        };
        let arrived = body.next().now_or_never().flatten();
        match arrived {
            Some(Ok(bytes)) if bytes.len() <= self.leftover => {
                self.leftover -= bytes.len();
                Ok(Some(bytes))
            }
            _ => Err(ended),
        }
    }

    /// Flushes the bytes to the disk, or the object store, and then saves their offset.
    async fn save(&mut self, is_last: bool) -> Result<(), ApiError> {
        self.saved_at = Instant::now();
        let is_saved = self.partial.len() == self.state.offset;
        if is_saved && !self.partial.is_hashed_again() {
            return Ok(());
        }
        // The sync comes before the row: a saved offset must never exceed the bytes that are safe.
        match self.partial.sync().await {
            Ok(progress) => self.advance(progress, is_last).await,
            Err(error) => Err(self.keep_pieces(error).await),
        }
    }

    /// Saves the offset behind the pieces that are in the object store although the upload of a later one failed; returns that
    /// failure.
    async fn keep_pieces(&mut self, failure: StoreError) -> ApiError {
        let kept = match self.partial.salvage().await {
            Ok(Some(progress)) => self.advance(progress, true).await,
            Ok(None) => Ok(()),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = kept {
            tracing::debug!(%error, upload = %self.upload.id, "stored pieces of an upload do not count");
        }
        failure.into()
    }

    /// Saves the offset of bytes that are safe.
    async fn advance(&mut self, progress: PartialState, is_last: bool) -> Result<(), ApiError> {
        let (offset, upload) = (progress.length, self.upload.clone());
        let step = Step {
            is_last,
            expires_at: expires_at(self.context),
            storage_bytes: self.plan.storage.as_u64(),
        };
        let saved = write_tx!(self.context.store, upload.account_id, |tx| {
            tus::advance(tx, &upload, &progress, step, now_ms()).await
        });
        self.partial.settle(&saved);
        saved?;
        self.state.offset = offset;
        self.state.expires_at = step.expires_at;
        Ok(())
    }

    /// Makes the file, as other uploads do.
    async fn complete(mut self) -> Result<UploadState, ApiError> {
        let (context, upload) = (self.context, self.upload.clone());
        let (id, offset) = (upload.id, self.partial.len());
        let limit = self.plan.storage.as_u64();
        // Checked before the work for a file that cannot be stored.
        let mut db = context.store.read().await?;
        storage::check(&mut db, upload.account_id, offset, limit).await?;
        drop(db);
        let is_whole = self.partial.make_whole().await?;
        let reader = self.partial.reader().await?;
        let sealed = match self.partial.seal().await {
            Ok(sealed) => sealed,
            Err(error) => return Err(self.keep_pieces(error).await),
        };
        let mime_type = mime_type(sealed.head(), &upload.filename);
        let inspection = match is_whole {
            true => facts::find(context, upload.account_id, mime_type, reader).await,
            // Other nodes received most of it: its facts are found when they are first asked for.
            false => Inspection::default(),
        };
        let arrived = Completion {
            blob: sealed.blob().hash,
            size_bytes: sealed.blob().size,
            mime_type: mime_type.to_owned(),
            facts: inspection.facts,
        };
        let engine = context.workflows.clone();
        let (account_id, plan) = (upload.account_id, self.plan);
        let (file, left, begins_runs): (files::File, LeftObjects, bool) =
            write_tx!(context.store, account_id, |tx| {
                let now = now_ms();
                blobs::record(tx, &sealed, now).await?;
                let (file, left) = tus::complete(tx, &upload, arrived, limit, now).await?;
                if let Some(found) = &inspection.found {
                    file_facts::record(tx, file.id, found).await?;
                }
                let begins_runs = trigger::file_stored(tx, &engine, &plan, &file, now).await?;
                Ok((file, left, begins_runs))
            })?;
        if begins_runs {
            context.workflows.announce();
        }
        context.store.blobs().remove_objects(left);
        // The file is stored even if removing the partial's name fails; a sweep removes that, too.
        if let Err(error) = context.store.blobs().remove_partial(id).await {
            tracing::warn!(%error, upload = %id, "the bytes of a finished upload are removed by the next sweep");
        }
        Ok(UploadState {
            offset,
            file_id: Some(file.id),
            ..self.state
        })
    }
}

/// Maps a silence to the error that clients of tus continue after: those that give up on 408 ask for the offset and
/// continue after 409.
fn piece_of(
    piece: Result<Option<Result<Bytes, PayloadError>>, ApiError>,
    timeout: Duration,
) -> Result<Option<Bytes>, ApiError> {
    match piece {
        Ok(piece) => piece
            .transpose()
            .map_err(|error| invalid!("the body could not be read: {error}")),
        Err(ApiError::Timeout(_)) => Err(ApiError::Conflict(format!(
            "nothing of the body arrived for {} s (uploads.idle_timeout): ask for the offset with HEAD, and continue",
            timeout.as_secs()
        ))),
        Err(error) => Err(error),
    }
}

pub(super) fn too_large(max_file: u64) -> ApiError {
    ApiError::TooLarge(format!(
        "Upload-Length must be at most {max_file} (uploads.max_file)"
    ))
}

fn too_much(room: u64) -> ApiError {
    ApiError::TooLarge(format!(
        "the body has more than the {room} bytes of this upload"
    ))
}

fn stopping() -> ApiError {
    ApiError::Unavailable {
        what: "the service, which is being stopped,",
        retry_after_s: 5,
    }
}
