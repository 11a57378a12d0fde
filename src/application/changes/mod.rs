//! Followers of `GET /api/changes`: pace of batches, health samples of an input, end with the credential.
//!
//! A follower holds a position in the account's change log and nothing else. It takes what is new when its client has
//! taken what came before, so that a slow client delays no other and no queue grows for it.

pub(crate) mod permits;

use std::time::Duration;

use serde_json::Value;
use sluice_store::changes::{Batch, Follower};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use self::permits::FollowerPermit;
use super::{
    caller::{Caller, Read},
    context::ChangeContext,
    error::ApiError,
    live_inputs,
};

/// Shortest time between two batches: what changes in between is merged, and progress comes four times a second at most.
const PACE: Duration = Duration::from_millis(250);
/// Time between two samples of an input's health.
const HEALTH_EVERY: Duration = Duration::from_secs(1);

/// A client that follows the changes of its account.
pub(crate) struct Following {
    follower: Follower,
    permit: FollowerPermit,
    caller: Caller<Read>,
    /// No batch before this.
    batch_from: Instant,
    health: Option<HealthSamples>,
}

/// Health of one input, a sample each second.
struct HealthSamples {
    input_id: Uuid,
    next_at: Instant,
}

/// News for a follower.
pub(crate) enum News {
    Changes(Batch),
    Health { input_id: Uuid, health: Value },
}

impl Following {
    /// Follows from now on: whatever was committed before can be read by now. With `health`, the id of an input of the
    /// account, its health too.
    pub(crate) async fn begin(
        context: &ChangeContext,
        caller: Caller<Read>,
        health: Option<Uuid>,
    ) -> Result<Self, ApiError> {
        if let Some(input_id) = health {
            live_inputs::find(context, caller.account_id(), input_id).await?;
        }
        let permit = context
            .limiter
            .take(caller.account_id(), caller.credential_id())?;
        let follower = context.store.follow_changes(caller.account_id()).await?;
        Ok(Self {
            follower,
            permit,
            caller,
            batch_from: Instant::now(),
            health: health.map(|input_id| HealthSamples {
                input_id,
                next_at: Instant::now(),
            }),
        })
    }

    /// Returns the next news; `None` when the credential or the input of `health` has ended. Dropping the future and
    /// calling again is fine.
    pub(crate) async fn next(&mut self, context: &ChangeContext) -> Option<News> {
        let changed = async {
            self.follower.changed().await;
            sleep_until(self.batch_from).await;
        };
        let sampled = async {
            match &self.health {
                Some(samples) => sleep_until(samples.next_at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = sampled => return self.sample(context).await,
        }
        let batch = self.follower.take();
        self.batch_from = Instant::now() + PACE;
        let changed_at = batch.is_of_credentials().then(|| self.follower.seen());
        let is_admitted = self.is_admitted_since(context, changed_at).await;
        is_admitted.then_some(News::Changes(batch))
    }

    async fn sample(&mut self, context: &ChangeContext) -> Option<News> {
        let samples = self.health.as_mut()?;
        samples.next_at = Instant::now() + HEALTH_EVERY;
        let input_id = samples.input_id;
        // Gone with the input.
        context.live.live.playback_of(input_id)?;
        let health = live_inputs::health_of(&context.live, input_id).ok()?;
        let is_admitted = self.is_admitted(context).await;
        is_admitted.then_some(News::Health { input_id, health })
    }

    /// Returns whether the credential is still valid, false when that cannot be determined.
    pub(crate) async fn is_admitted(&self, context: &ChangeContext) -> bool {
        self.is_admitted_since(context, None).await
    }

    /// `changed_at`: the number of a change that may have ended it.
    async fn is_admitted_since(&self, context: &ChangeContext, changed_at: Option<u64>) -> bool {
        let look = async {
            let Ok(mut db) = context.store.read().await else {
                return false;
            };
            matches!(self.caller.is_still_admitted(&mut db).await, Ok(true))
        };
        self.permit.is_valid(changed_at, look).await
    }
}
