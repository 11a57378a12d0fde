//! Memory and catching up of webhooks when endpoints are dead for a while and come back.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    LOOK_AGAIN, Options, Site,
    receivers::{Receivers, Temper},
    start,
    uploads::{Pace, upload_all},
};
use sluice_testkit::{Failure, process::Figures};

use crate::report::{self, Drain};

/// Without a new delivery for so long, nothing more is expected.
const STALLED: Duration = Duration::from_secs(60);

pub(super) async fn run(options: &Options) -> Result<(), Failure> {
    let mut receivers = Receivers::start(|_| Temper::Dead, options.endpoints)?;
    let site = start(options, &receivers).await?;
    let idle = site.figures()?;

    let uploads = options.backlog.div_ceil(options.endpoints.into()) as usize;
    let expected = uploads * usize::from(options.endpoints);
    let pace = Pace {
        per_second: f64::INFINITY,
        count: uploads,
    };
    let started = Instant::now();
    let mut uploading = tokio::spawn(upload_all(site.addresses(), pace));
    let mut building = idle;
    while !uploading.is_finished() {
        keep_larger(&mut building, &site)?;
        sleep(LOOK_AGAIN).await;
    }
    (&mut uploading).await??;
    let built_in = started.elapsed();
    let waiting = site.figures()?;

    receivers.revive()?;
    let (began, mut draining) = (Instant::now(), waiting);
    let (mut arrived, mut progress) = (0, Instant::now());
    while arrived < expected && progress.elapsed() < STALLED {
        sleep(LOOK_AGAIN).await;
        keep_larger(&mut draining, &site)?;
        if receivers.count() > arrived {
            (arrived, progress) = (receivers.count(), Instant::now());
        }
    }
    let after = site.figures()?;
    let arrivals = receivers.arrivals();
    let different: HashSet<_> = arrivals.iter().map(|it| (it.endpoint, it.file)).collect();
    report::drain(&Drain {
        expected,
        different: different.len(),
        arrived: arrivals.len(),
        built_in,
        drained_in: progress - began,
        cpu: after.cpu.saturating_sub(waiting.cpu),
        idle,
        building,
        waiting,
        draining,
    });
    Ok(())
}

fn keep_larger(most: &mut Figures, site: &Site) -> Result<(), Failure> {
    let now = site.figures()?;
    if now.resident_kib > most.resident_kib {
        *most = now;
    }
    Ok(())
}
