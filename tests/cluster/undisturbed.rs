//! Scenarios that need no fault, one after the other in one installation: each leaves it to the next one as it found it.

use crate::{
    answers::{compare_answers, revoke_keys},
    images::render_once_and_purge,
    limits::reject_sixth_password,
    rejected::{name_wrong_clock, reject_strangers},
    rolling::restart_one_by_one,
    stores::store_and_read,
    support::{Failure, installation::Installation},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_are_one_service_also_while_they_are_restarted() -> Result<(), Failure> {
    let mut installation = Installation::start(&[]).await?;
    // The first one, as it looks for files that are left.
    store_and_read(&installation).await?;
    compare_answers(&installation).await?;
    revoke_keys(&installation).await?;
    render_once_and_purge(&installation).await?;
    reject_sixth_password(&installation).await?;
    reject_strangers(&installation).await?;
    restart_one_by_one(&mut installation).await?;
    // The last one, as it leaves a node with a wrong clock.
    name_wrong_clock(&mut installation).await
}
