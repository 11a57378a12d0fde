//! WebRTC as viewers and publishers meet it: Chromium and ffmpeg with the whole service, and clients that misbehave.

mod chromium;
mod embed;
mod gateway;
mod hostile;
mod loss;
pub(crate) mod offers;
mod play;
mod publish;
mod reach;
mod sessions;

use std::time::Duration;

use serde_json::Value;
use sluice_testkit::process;

use crate::{
    support::{
        Failure, eventually,
        server::{Api, Server},
    },
    worker::{OF_CLIPS, workers},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);
const PLAYED: Duration = Duration::from_secs(60);

/// Processes that re-encode for the service's WebRTC viewers.
fn branches(server: &Server) -> Result<Vec<u32>, Failure> {
    let service = server.process_id().ok_or("the service does not run")?;
    let parent = format!("--parent {service} ");
    workers(|command| command.contains(&parent) && command.contains(OF_CLIPS))
}

async fn until_branches(server: &Server, count: usize) -> Result<(), Failure> {
    let what = format!("{count} processes re-encode");
    eventually(&what, PLAYED, async || {
        (branches(server).ok()?.len() == count).then_some(())
    })
    .await
}

/// Waits until health counts so many WebRTC viewers and says what they are sent, which is measured each second only.
async fn until_viewers(api: &Api, id: &str, count: u64) -> Result<Value, Failure> {
    let what = format!("{count} WebRTC viewers");
    api.wait_health(id, &what, SOON, |health| {
        let webrtc = &health["webrtc"];
        webrtc["viewers"] == count && (count == 0 || webrtc["branch"]["video"].is_string())
    })
    .await
}

/// The process that the service speaks WebRTC by.
fn gateway_of(server: &Server) -> Option<u32> {
    process::descendant(server.process_id()?, "rtc-gateway")
}

async fn wait_gateway(server: &Server, other_than: Option<u32>) -> Result<u32, Failure> {
    eventually("the gateway runs", SOON, async || {
        gateway_of(server).filter(|gateway| Some(*gateway) != other_than)
    })
    .await
}
