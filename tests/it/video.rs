//! Video and audio through the whole service.

mod beside_live;
mod conversions;
mod five_minutes;
mod frames;
mod hostile;
mod resume_jobs;
pub(crate) mod streams;
mod tools;
mod tools_audio;

use std::time::Duration;

use crate::{
    support::{
        Failure, eventually,
        server::{Server, Settings},
    },
    worker::{OF_CLIPS, workers},
};

/// Starts a service that answers with the result however long that takes: work on clips has the lowest priority on the
/// machine.
async fn patient() -> Result<Server, Failure> {
    let wait = "80s";
    Settings::new()
        .env("SLUICE_CONVERT__INLINE_WAIT", wait)
        .start()
        .await
}

/// Processes of this service that work on clips.
fn processes_of_clips(server: &Server) -> Result<Vec<u32>, Failure> {
    let service = server.process_id().ok_or("the service does not run")?;
    let parent = format!("--parent {service} ");
    workers(|command| command.contains(&parent) && command.contains(OF_CLIPS))
}

/// No process, no temporary file.
async fn nothing_is_left(server: &Server, deadline: Duration) -> Result<(), Failure> {
    eventually("no process works on clips", deadline, async || {
        processes_of_clips(server).ok()?.is_empty().then_some(())
    })
    .await?;
    server.nothing_temporary_is_left(deadline).await
}
