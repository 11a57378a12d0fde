//! Width, height, duration and codecs of files, found by a worker; longest wait of an upload for them. Uploads are inspected before
//! they become files, other files when their facts are first asked for.

use std::{fs::File, sync::Arc, time::Duration};

use serde_json::Value;
use sluice_actors::compute::{Assignment, Error, Follow, Lane, Output};
use sluice_media::{
    format::Format,
    operation::{Inspect, Operation, OperationInput},
    task::{Done, FailureCode},
};
use sluice_store::{
    file_facts::{self, FileFacts},
    files::{self, Facts},
    write_tx,
};
use uuid::Uuid;

use crate::application::{context::FileContext, error::ApiError};

/// Longest wait of an upload for its facts, which are optional.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Result of an inspection.
#[derive(Debug, Default)]
pub(crate) struct Inspection {
    /// Facts of the file's row.
    pub facts: Facts,
    /// Facts that are kept beside it; `None`: not known, as when no worker answered in time.
    pub found: Option<FileFacts>,
}

/// Inspects a file of that media type; finds nothing when it is neither image, video nor audio, or when no worker answers in
/// time.
pub(crate) async fn find(
    context: &FileContext,
    account_id: Uuid,
    mime_type: &str,
    file: File,
) -> Inspection {
    let Some(format) = measured(mime_type) else {
        return Inspection::default();
    };
    let Ok(task) = Operation::Inspect(Inspect).task(&[OperationInput::new(format, "")]) else {
        return Inspection::default();
    };
    let assignment = Assignment {
        account_id,
        task,
        inputs: vec![Arc::new(file)],
        output: Output::Memory,
        limits: context.compute.limits(),
        follow: Follow::default(),
        pixels: None,
    };
    let inspection = context.compute.run(Lane::Interactive, assignment);
    match tokio::time::timeout(LONGEST_WAIT, inspection).await {
        Ok(Ok(finished)) => Inspection::of(&finished.done),
        Ok(Err(Error::Failed(failure))) if is_lasting(failure.code) => Inspection {
            facts: Facts::default(),
            found: Some(FileFacts {
                facts: None,
                has_picture: false,
            }),
        },
        _ => Inspection::default(),
    }
}

impl Inspection {
    fn of(done: &Done) -> Self {
        let (width, height) = done.shown_size().unzip();
        let has_picture = match &done.media {
            Some(media) => !media.video.is_empty(),
            None => done.image.is_some(),
        };
        Self {
            facts: Facts {
                width,
                height,
                duration_ms: done.duration_ms().and_then(|ms| i64::try_from(ms).ok()),
            },
            found: Some(FileFacts {
                facts: Some(done.facts()),
                has_picture,
            }),
        }
    }
}

fn measured(mime_type: &str) -> Option<Format> {
    Format::from_mime(mime_type).filter(|format| format.is_image() || format.class().is_timed())
}

/// Returns whether another inspection of the same bytes would fail alike.
fn is_lasting(code: FailureCode) -> bool {
    !matches!(
        code,
        FailureCode::TimedOut | FailureCode::NoSpace | FailureCode::Internal
    )
}

/// Returns the facts of a stored file. Those of a file that was not inspected when it was stored are found now and kept.
pub(crate) async fn of_file(
    context: &FileContext,
    file: &files::File,
) -> Result<Option<Value>, ApiError> {
    let known = file_facts::of(&mut context.store.read().await?, file.id).await?;
    if let Some(known) = known {
        return Ok(known.facts);
    }
    if measured(&file.mime_type).is_none() {
        return Ok(None);
    }
    let bytes = context.store.blobs().open(&file.blob).await?;
    let inspection = find(context, file.account_id, &file.mime_type, bytes).await;
    let Some(found) = inspection.found else {
        return Ok(None);
    };
    let (file_id, facts) = (file.id, found.facts.clone());
    let kept = write_tx!(context.store, file.account_id, |tx| {
        file_facts::record(tx, file_id, &found).await
    });
    if let Err(error) = kept {
        tracing::warn!(%error, file = %file_id, "the facts of a file are found again at the next request");
    }
    Ok(facts)
}
