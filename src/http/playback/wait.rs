//! Waiting of viewers: blocking reload (`_HLS_msn`, `_HLS_part`), hinted parts, state; deadlines, 503 beyond
//! `live.max_waiting_viewers`.

use std::{sync::Arc, time::Duration};

use sluice_actors::live::{Body, Phase, Published, View};

use super::{access::Access, listed};
use crate::application::error::ApiError;

/// Position that a blocking reload waits for (RFC 8216bis §6.2.5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reload {
    msn: u64,
    part: Option<u32>,
}

/// Segments beyond the playlist's end that a client may request.
const MSN_AHEAD: u64 = 2;
/// `Retry-After` when too many viewers wait.
const RETRY_AFTER_S: u64 = 1;

impl Reload {
    /// Reads the directives; `None` without a sequence number, 400 for a part without one.
    pub fn parse(msn: Option<u64>, part: Option<u32>) -> Result<Option<Self>, ApiError> {
        match (msn, part) {
            (None, Some(_)) => Err(invalid!("_HLS_part needs _HLS_msn beside it")),
            (None, None) => Ok(None),
            (Some(msn), part) => Ok(Some(Self { msn, part })),
        }
    }

    fn is_met(self, now: &Published) -> bool {
        let met = |view: &Arc<View>| view.window.is_ended() || view.window.has(self.msn, self.part);
        listed(now).is_ok_and(|view| met(&view))
    }

    fn check(self, view: &View) -> Result<(), ApiError> {
        let (next, _) = view.window.next();
        if self.msn > next.saturating_add(MSN_AHEAD) && !view.window.is_ended() {
            return Err(invalid!(
                "_HLS_msn {} is too far ahead: the playlist ends before {next}",
                self.msn
            ));
        }
        Ok(())
    }
}

/// Returns the playlist once it holds the requested position. When that takes too long, the playlist as it is: while an
/// encoder reconnects, players must continue to ask.
pub(super) async fn for_playlist(access: &Access, reload: Reload) -> Result<Arc<View>, ApiError> {
    let playback = access.playback();
    let view = listed(&playback.now())?;
    reload.check(&view)?;
    if !reload.is_met(&playback.now()) {
        until(access, longest(&view), |now| {
            reload.is_met(now) || now.phase == Phase::Idle
        })
        .await?;
    }
    listed(&playback.now())
}

/// The bytes of a part; waits for the one that the playlist hints at.
pub(super) async fn for_part(
    access: &Access,
    view: &View,
    (msn, part): (u64, u32),
) -> Result<Option<Body>, ApiError> {
    let found = view.segment_store.part(msn, part);
    let (next_msn, next_part) = view.window.next();
    let hinted = (msn, part) == (next_msn, next_part) || (msn, part) == (next_msn + 1, 0);
    if found.is_some() || !hinted || view.window.is_ended() {
        return Ok(found);
    }
    let broadcast = &view.window.header().broadcast;
    let other = |now: &Published| {
        now.view
            .as_ref()
            .is_none_or(|view| view.window.header().broadcast != *broadcast)
    };
    let moved_on = |now: &Published| {
        now.view
            .as_ref()
            .is_some_and(|view| view.window.is_ended() || view.window.has(msn, Some(part)))
    };
    until(access, longest(view), |now| other(now) || moved_on(now)).await?;
    Ok(view.segment_store.part(msn, part))
}

/// Returns the published state once it differs from the page's, or after `wait_s` seconds.
pub(super) async fn for_change(
    access: &Access,
    wait_s: u64,
    same: impl Fn(&Published) -> bool,
) -> Result<Arc<Published>, ApiError> {
    if wait_s > 0 && same(&access.playback().now()) {
        until(access, Duration::from_secs(wait_s), |now| !same(now)).await?;
    }
    Ok(access.playback().now())
}

/// Returns three target durations (RFC 8216bis §6.2.5.2).
fn longest(view: &View) -> Duration {
    Duration::from_secs(3 * u64::from(view.window.header().target_duration_s))
}

/// Waits at most `longest`, or until the service closes. 503 when `live.max_waiting_viewers` wait already: an immediate
/// answer would make every player ask again at once.
async fn until(
    access: &Access,
    longest: Duration,
    met: impl Fn(&Published) -> bool,
) -> Result<(), ApiError> {
    let _permit = access.permit().ok_or(ApiError::Unavailable {
        what: "live.max_waiting_viewers is reached: playback",
        retry_after_s: RETRY_AFTER_S,
    })?;
    let mut states = access.playback().follow();
    tokio::select! {
        _ = tokio::time::timeout(longest, states.wait_for(|now| met(now))) => {}
        () = access.closing() => {}
    }
    Ok(())
}
