//! Crate of the parts that scenarios (`tests/it`, `tests/cluster`) and the load harness (`benches/load`) share; `eventually` waits for a
//! condition.
//!
//! It shares no code with the service, so that an error of the service is not repeated in what checks it; of its WebRTC, ciphers and
//! hashes alone.

pub mod attributes;
pub mod flv;
pub mod playlist;
pub mod process;
pub mod publisher;
pub mod relay;
pub mod rtmp;
mod status;
pub mod webrtc;

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Error as a text, since every failure ends the scenario or the run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Pause between two checks of a condition that nothing announces.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Looks until `condition` gives a value; fails with `what` after `deadline`.
pub async fn eventually<T>(
    what: &str,
    deadline: Duration,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> Result<T, Failure> {
    let started = Instant::now();
    loop {
        if let Some(value) = condition().await {
            return Ok(value);
        }
        if started.elapsed() > deadline {
            return Err(format!("not within {deadline:?}: {what}").into());
        }
        sleep(LOOK_AGAIN).await;
    }
}
