//! Time until a page follows changes again after the service is killed and started.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use sluice_testkit::Failure;
use tokio::{task::JoinHandle, time::sleep};

use super::follow::Stream;
use crate::{
    report,
    service::{API_KEY, Service},
};

/// Outages that are timed.
const TIMES: usize = 5;
/// Pauses of a page between two tries to connect.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Times at which a page noticed the outage, and when it followed again.
struct Noticed {
    lost_at: Instant,
    healed_at: Instant,
}

/// Kills and starts the service some times, and prints how long a page was without it.
pub(super) async fn measure(
    mut service: Service,
    program: &Path,
    folder: &Path,
    settings: &[(&str, &str)],
) -> Result<(), Failure> {
    let (mut noticed_after, mut ready, mut healed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let page = page(service.address()).await?;
        let killed_at = Instant::now();
        let ports = service.kill();
        service = Service::start_at(ports, program, folder, settings).await?;
        let ready_at = Instant::now();
        let noticed = page.await??;
        noticed_after.push(noticed.lost_at - killed_at);
        ready.push(ready_at - killed_at);
        healed.push(noticed.healed_at.saturating_duration_since(ready_at));
    }
    println!("killed and started (bar: noticed 2 s, healed 5 s after ready)");
    report::percentiles("killed → the page has noticed", &mut noticed_after);
    report::percentiles("killed → ready", &mut ready);
    report::percentiles("ready → the page follows again", &mut healed);
    Ok(())
}

/// A page that follows; it connects again as pages do.
async fn page(address: &str) -> Result<JoinHandle<Result<Noticed, Failure>>, Failure> {
    let mut stream = Stream::open(address, API_KEY).await?;
    let address = address.to_owned();
    Ok(tokio::spawn(async move {
        stream.end().await;
        let lost_at = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            sleep(pause).await;
            if Stream::open(&address, API_KEY).await.is_ok() {
                return Ok(Noticed {
                    lost_at,
                    healed_at: Instant::now(),
                });
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }))
}
