//! Facts that a worker finds about an upload before it becomes a file: its size in pixels and its duration.

use std::{fs::File, sync::Arc, time::Duration};

use sluice_actors::compute::{Assignment, Follow, Lane, Output};
use sluice_media::{
    format::Format,
    operation::{Inspect, Operation, OperationInput},
};
use sluice_store::files::Facts;
use uuid::Uuid;

use crate::application::context::FileContext;

/// Facts are optional: an upload does not wait longer for them.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the facts of a file of that media type; none when it is neither image, video nor audio, or when no worker
/// answers in time.
pub(crate) async fn find(
    context: &FileContext,
    account_id: Uuid,
    mime_type: &str,
    file: File,
) -> Facts {
    let is_measured = |format: &Format| format.is_image() || format.class().is_timed();
    let Some(format) = Format::from_mime(mime_type).filter(is_measured) else {
        return Facts::default();
    };
    let Ok(task) = Operation::Inspect(Inspect).task(&[OperationInput::new(format, "")]) else {
        return Facts::default();
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
    let Ok(Ok(finished)) = tokio::time::timeout(PATIENCE, inspection).await else {
        return Facts::default();
    };
    let (width, height) = finished.done.shown_size().unzip();
    Facts {
        width,
        height,
        duration_ms: finished
            .done
            .duration_ms()
            .and_then(|ms| i64::try_from(ms).ok()),
    }
}
