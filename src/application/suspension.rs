//! Suspended accounts (`sluice accounts suspend`): how requests, playback, encoders learn of them, `account.look_every`.
//!
//! `sluice accounts suspend` runs in a process of its own, so a running service learns of it from the database.
//! Requests of the API read the account's row anyway and are rejected at once; image delivery, playback and live inputs
//! follow within `account.look_every`. A live input of a suspended account is treated as disabled; its row is not
//! changed.

use std::{collections::HashSet, sync::Arc};

use arc_swap::ArcSwap;
use sluice_store::{accounts, live_inputs, live_inputs::LiveInput};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use uuid::Uuid;

use crate::application::context::LiveContext;

/// Set of the suspended accounts, as of the last read.
#[derive(Debug, Default)]
pub struct Suspensions {
    accounts: ArcSwap<HashSet<Uuid>>,
    /// Asks for a look before the next one is due.
    asked: Notify,
}

impl Suspensions {
    pub fn contains(&self, account_id: Uuid) -> bool {
        self.accounts.load().contains(&account_id)
    }

    pub fn set(&self, accounts: HashSet<Uuid>) {
        self.accounts.store(Arc::new(accounts));
    }

    /// Has the database looked at without waiting for `account.look_every`.
    pub(crate) fn look_now(&self) {
        self.asked.notify_one();
    }

    /// The live input as encoders meet it: disabled while its account is suspended.
    pub fn in_force(&self, input: LiveInput) -> LiveInput {
        in_force(input, &self.accounts.load())
    }
}

/// The live input as encoders meet it, see [`Suspensions::in_force`].
pub fn in_force(input: LiveInput, suspended: &HashSet<Uuid>) -> LiveInput {
    LiveInput {
        enabled: input.enabled && !suspended.contains(&input.account_id),
        ..input
    }
}

/// Follows the database until `stop`. `applied` are the accounts whose live inputs already have the suspension applied.
pub async fn follow(
    context: Arc<LiveContext>,
    mut applied: HashSet<Uuid>,
    stop: CancellationToken,
) {
    let mut is_failing = false;
    loop {
        tokio::select! {
            () = tokio::time::sleep(context.config.account.look_every) => {}
            () = context.suspensions.asked.notified() => {}
            () = stop.cancelled() => return,
        }
        let looked = look(&context, &mut applied).await;
        if let Err(error) = &looked
            && !is_failing
        {
            warn!(%error, "suspended accounts are not followed for the moment");
        }
        is_failing = looked.is_err();
    }
}

/// Applies suspensions; what fails is tried again by the next look.
async fn look(
    context: &LiveContext,
    applied: &mut HashSet<Uuid>,
) -> Result<(), sluice_actors::Error> {
    let found = accounts::suspended(&mut context.store.read().await?).await?;
    let suspended: HashSet<Uuid> = found.into_iter().collect();
    let changed: Vec<Uuid> = applied.symmetric_difference(&suspended).copied().collect();
    context.suspensions.set(suspended);
    for account_id in changed {
        notify_live_inputs(context, account_id).await?;
        let is_suspended = context.suspensions.contains(account_id);
        match is_suspended {
            true => applied.insert(account_id),
            false => applied.remove(&account_id),
        };
        info!(account = %account_id, is_suspended, "an account was suspended or resumed");
    }
    Ok(())
}

async fn notify_live_inputs(
    context: &LiveContext,
    account_id: Uuid,
) -> Result<(), sluice_actors::Error> {
    let _in_order = context.live_changes.lock().await;
    let inputs = live_inputs::all_of(&mut context.store.read().await?, account_id).await?;
    for input in inputs {
        context
            .live
            .changed(context.suspensions.in_force(input))
            .await?;
    }
    Ok(())
}
