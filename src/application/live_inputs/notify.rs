//! Applies committed changes to the live actors, and retries while they do not answer; pauses between tries. Rows that another
//! node may have changed are read again.

use std::{collections::HashSet, sync::Arc, time::Duration};

use sluice_actors::Error;
use sluice_store::live_inputs::{self, LiveInput};
use uuid::Uuid;

use crate::application::context::LiveContext;

/// Pauses between tries, in seconds; after the last one the next start of the service reads the rows.
const PAUSES_S: [u64; 6] = [1, 2, 4, 8, 16, 30];

/// Applies the committed row to the live input.
pub(crate) async fn changed(context: &Arc<LiveContext>, input: &LiveInput) {
    let input_in_force = context.suspensions.in_force(input.clone());
    let result = context.live.changed(input_in_force).await;
    follow_up(context, input.id, result);
}

/// Ends the live input of a deleted row.
pub(crate) async fn deleted(context: &Arc<LiveContext>, id: Uuid) {
    let result = context.live.deleted(id).await;
    follow_up(context, id, result);
}

fn follow_up(context: &Arc<LiveContext>, id: Uuid, result: Result<(), Error>) {
    if let Err(error) = result {
        tracing::warn!(input = %id, %error, "a change was committed and live inputs do not know it yet");
        tokio::spawn(notify_until_known(context.clone(), id));
    }
}

/// Retries the notification; each try reads the row again, so that a late one cannot restore an older state.
async fn notify_until_known(context: Arc<LiveContext>, id: Uuid) {
    for pause in PAUSES_S {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        match read_again(&context, id).await {
            Ok(()) => return,
            Err(error) => {
                tracing::warn!(input = %id, %error, "live inputs still do not know a change")
            }
        }
    }
    tracing::error!(input = %id, "live inputs were not notified of a change: gave up");
}

/// Reads the row of an input again and applies it, whatever it is by now.
pub(crate) async fn read_again(context: &LiveContext, id: Uuid) -> Result<(), Error> {
    let _in_order = context.live_changes.lock().await;
    let row = live_inputs::by_id(&mut context.store.read().await?, id).await?;
    match row {
        Some(input) => {
            context
                .live
                .changed(context.suspensions.in_force(input))
                .await
        }
        None => remove(context, id).await,
    }
}

/// Reads the rows of all inputs again, or of an account's, and applies them.
pub(crate) async fn read_all_again(
    context: &LiveContext,
    account_id: Option<Uuid>,
) -> Result<(), Error> {
    let _in_order = context.live_changes.lock().await;
    let mut db = context.store.read().await?;
    let rows = match account_id {
        Some(account_id) => live_inputs::all_of(&mut db, account_id).await?,
        None => live_inputs::all(&mut db).await?,
    };
    drop(db);
    let there: HashSet<Uuid> = rows.iter().map(|row| row.id).collect();
    for playback in context.live.playbacks() {
        let is_of = account_id.is_none_or(|id| playback.account_id == id);
        if is_of && !there.contains(&playback.input_id) {
            remove(context, playback.input_id).await?;
        }
    }
    for row in rows {
        let row = context.suspensions.in_force(row);
        context.live.changed(row).await?;
    }
    Ok(())
}

async fn remove(context: &LiveContext, id: Uuid) -> Result<(), Error> {
    context.live.deleted(id).await?;
    context.restreams.input_removed(id);
    Ok(())
}
