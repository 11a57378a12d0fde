//! Leases: claims of rows, and rows whose owners die.

use std::time::Duration;

use futures_util::future::join_all;
use sluice_store::{
    Error, Store, Work,
    work::{self, Claimed, Held, Lane, Lease, MOST_BEGINS, Room, TaskProgress, UNCOUNTED_RETRIES},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, settings, store};

const KIND: &str = "test";
const LEASE: Duration = Duration::from_secs(15);
const EXPIRED: i64 = NOW + 15_000;

async fn enqueue(store: &Store, lane: Lane, due_at: i64) -> Uuid {
    let (account, id) = (add_account(store, "owner").await.unwrap(), Uuid::now_v7());
    store
        .write(move |tx| Box::pin(work::enqueue(tx, KIND, id, account, lane, due_at)))
        .await
        .unwrap();
    id
}

async fn claim(store: &Store, owner: Uuid, limit: usize, now_ms: i64) -> Claimed {
    claim_within(store, owner, Room::for_any(limit), now_ms).await
}

async fn claim_within(store: &Store, owner: Uuid, room: Room, now_ms: i64) -> Claimed {
    store
        .write(move |tx| Box::pin(work::claim(tx, KIND, owner, room, LEASE, now_ms)))
        .await
        .unwrap()
}

async fn is_due(store: &Store, room: Room, now_ms: i64) -> bool {
    work::is_due(&mut store.read().await.unwrap(), KIND, room, now_ms)
        .await
        .unwrap()
}

async fn claim_one(store: &Store, now_ms: i64) -> Option<Lease> {
    claim(store, Uuid::now_v7(), 1, now_ms).await.leases.pop()
}

/// Runs a verb over a lease.
async fn with<T: Send + 'static>(
    store: &Store,
    lease: &Lease,
    verb: impl for<'t> FnOnce(&'t mut sluice_store::Tx<'_>, &'t Lease) -> Work<'t, T> + Send + 'static,
) -> Result<T, Error> {
    let lease = lease.clone();
    store
        .write(move |tx| Box::pin(async move { verb(tx, &lease).await }))
        .await
}

async fn begin(store: &Store, lease: &Lease) {
    with(store, lease, |tx, lease| Box::pin(work::begin(tx, lease)))
        .await
        .unwrap();
}

async fn holds(store: &Store, lease: &Lease) -> bool {
    match with(store, lease, |tx, lease| Box::pin(work::hold(tx, lease))).await {
        Ok(()) => true,
        Err(Error::Conflict(_)) => false,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_has_one_owner_until_the_lease_expires() {
    let (store, _folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    let is_due = async |now| is_due(&store, Room::for_any(1), now).await;
    assert!(!is_due(NOW - 1).await && is_due(NOW).await);
    assert_eq!(claim_one(&store, NOW - 1).await, None, "not due yet");
    let first = claim_one(&store, NOW).await.unwrap();
    assert_eq!((first.id, first.fence, first.begins), (id, 1, 0));
    assert_eq!(
        claim_one(&store, EXPIRED - 1).await,
        None,
        "someone holds it"
    );
    assert!(!is_due(EXPIRED - 1).await && is_due(EXPIRED).await);
    assert!(holds(&store, &first).await);

    let second = claim_one(&store, EXPIRED).await.unwrap();
    assert_eq!((second.fence, second.begins), (2, 0));
    assert!(
        !holds(&store, &first).await,
        "the first owner is fenced off"
    );
    assert!(holds(&store, &second).await);
    for late in [
        with(&store, &first, |tx, lease| {
            Box::pin(work::finish(tx, lease))
        })
        .await,
        with(&store, &first, |tx, lease| {
            Box::pin(work::progressed(tx, lease))
        })
        .await,
        with(&store, &first, |tx, lease| {
            Box::pin(work::retry(tx, lease, NOW))
        })
        .await,
    ] {
        assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    }
    with(&store, &second, |tx, lease| {
        Box::pin(work::finish(tx, lease))
    })
    .await
    .unwrap();
    assert_eq!(claim_one(&store, i64::MAX).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_what_it_names_and_nothing_else() {
    let (store, _folder) = store().await;
    for _ in 0..3 {
        enqueue(&store, Lane::Batch, NOW).await;
    }
    let leases = claim(&store, Uuid::now_v7(), 3, NOW).await.leases;
    let named: Vec<(Uuid, i64)> = leases.iter().map(|lease| (lease.id, lease.fence)).collect();
    let (kept, forgotten, taken) = (named[0], named[1], (named[2].0, named[2].1 - 1));
    let lost = store
        .write(move |tx| {
            Box::pin(
                async move { work::heartbeat(tx, KIND, &[kept, taken], LEASE, EXPIRED - 1).await },
            )
        })
        .await
        .unwrap();
    assert_eq!(lost, [taken], "its fence is an older one's");
    let mut expired: Vec<Uuid> = claim(&store, Uuid::now_v7(), 9, EXPIRED)
        .await
        .leases
        .iter()
        .map(|lease| lease.id)
        .collect();
    expired.sort();
    let mut expected = [forgotten.0, taken.0];
    expected.sort();
    assert_eq!(expired, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn interactive_rows_go_first_then_those_that_wait_longest() {
    let (store, _folder) = store().await;
    let late = enqueue(&store, Lane::Batch, NOW - 1).await;
    let early = enqueue(&store, Lane::Batch, NOW - 2).await;
    let waited_for = enqueue(&store, Lane::Interactive, NOW).await;
    let mut order = Vec::new();
    while let Some(lease) = claim_one(&store, NOW).await {
        order.push(lease.id);
    }
    assert_eq!(order, [waited_for, early, late]);
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_rows_leave_the_room_that_is_not_theirs() {
    let (store, _folder) = store().await;
    for _ in 0..4 {
        enqueue(&store, Lane::Batch, NOW).await;
    }
    let (owner, room) = (Uuid::now_v7(), |rows, batch| Room { rows, batch });
    assert_eq!(
        claim_within(&store, owner, room(4, 2), NOW)
            .await
            .leases
            .len(),
        2
    );
    assert!(!is_due(&store, room(2, 0), NOW).await);
    let waited_for = enqueue(&store, Lane::Interactive, NOW).await;
    assert!(is_due(&store, room(2, 0), NOW).await);
    let leases = claim_within(&store, owner, room(2, 0), NOW).await.leases;
    assert_eq!((leases.len(), leases[0].id), (1, waited_for));
    assert!(!is_due(&store, room(0, 9), NOW).await);
    assert_eq!(
        claim_within(&store, owner, room(1, 9), NOW)
            .await
            .leases
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_owners_keep_dying_is_given_up() {
    let (store, _folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    let mut now = NOW;
    for begins in 1..=MOST_BEGINS {
        let lease = claim_one(&store, now).await.unwrap();
        assert_eq!(lease.begins, begins - 1);
        // A crash before the begin counts as well.
        if begins == 2 {
            begin(&store, &lease).await;
        }
        with(&store, &lease, move |tx, lease| {
            Box::pin(work::retry_after_crash(tx, lease, now))
        })
        .await
        .unwrap();
        if begins < MOST_BEGINS {
            assert_eq!(claim_one(&store, now).await, None, "it pauses first");
            now += 60_000;
        }
    }
    let last = claim(&store, Uuid::now_v7(), 9, now).await;
    assert_eq!((last.leases, last.given_up), (Vec::new(), vec![id]));
    assert_eq!(
        claim(&store, Uuid::now_v7(), 9, i64::MAX).await,
        Claimed::default()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_whose_bytes_stay_lost_is_given_up_late() {
    let (store, _folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    let (mut now, mut tries) = (NOW, 0);
    while let Some(lease) = claim_one(&store, now).await {
        begin(&store, &lease).await;
        with(&store, &lease, move |tx, lease| {
            Box::pin(work::retry_without_bytes(tx, lease, now))
        })
        .await
        .unwrap();
        tries += 1;
        now += 1_000_000;
    }
    assert_eq!(tries, UNCOUNTED_RETRIES + i64::from(MOST_BEGINS));
    let after = claim(&store, Uuid::now_v7(), 9, now).await;
    assert_eq!(after, Claimed::default(), "{id} is given up");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_and_orderly_ends_do_not_count_as_deaths() {
    let (store, _folder) = store().await;
    enqueue(&store, Lane::Batch, NOW).await;
    let mut now = NOW;
    for turn in 0..3 * MOST_BEGINS {
        let lease = claim_one(&store, now).await.expect("never given up");
        begin(&store, &lease).await;
        now += 1_000_000;
        match turn % 3 {
            0 => {
                with(&store, &lease, |tx, lease| {
                    Box::pin(work::progressed(tx, lease))
                })
                .await
            }
            1 => {
                with(&store, &lease, move |tx, lease| {
                    Box::pin(work::retry(tx, lease, now))
                })
                .await
            }
            _ => Ok(()),
        }
        .unwrap();
        now += 1_000_000;
    }
}

/// Stops the service without releasing its leases, and starts it again on the same folder.
async fn die(store: Store, folder: &tempfile::TempDir) -> Store {
    store.close().await;
    Store::open(&settings(folder.path())).await.unwrap()
}

/// Later than every pause.
fn later() -> i64 {
    sluice_store::now_ms() + 3_600_000
}

#[tokio::test(flavor = "multi_thread")]
async fn leases_of_an_earlier_process_are_void() {
    let (first, folder) = store().await;
    let id = enqueue(&first, Lane::Batch, NOW).await;
    let lease = claim_one(&first, NOW).await.unwrap();
    let second = die(first, &folder).await;
    let again = claim_one(&second, NOW).await.expect("at once");
    assert_eq!((again.id, again.fence, again.begins), (id, 2, 0));
    assert!(!holds(&second, &lease).await);
}

/// Checks repeated deaths of the service: rows that wait under a lease are not charged, and of those that run none is
/// given up while others run beside it.
#[tokio::test(flavor = "multi_thread")]
async fn deaths_of_the_service_give_up_nothing_that_waits() {
    let (mut store, folder) = store().await;
    for _ in 0..30 {
        enqueue(&store, Lane::Batch, NOW).await;
    }
    let mut left = 30;
    for death in 0..10 {
        let claimed = claim(&store, Uuid::now_v7(), 64, later()).await;
        assert!(claimed.given_up.is_empty(), "death {death}");
        // Four run at a time, in the order of the claim, and one ends; the others wait under their leases.
        for lease in claimed.leases.iter().take(4) {
            begin(&store, lease).await;
        }
        with(&store, &claimed.leases[0], |tx, lease| {
            Box::pin(work::finish(tx, lease))
        })
        .await
        .unwrap();
        left -= 1;
        store = die(store, &folder).await;
    }
    let mut ended = 0;
    loop {
        let claimed = claim(&store, Uuid::now_v7(), 64, later()).await;
        assert!(claimed.given_up.is_empty());
        if claimed.leases.is_empty() {
            break;
        }
        for lease in &claimed.leases {
            begin(&store, lease).await;
            with(&store, lease, |tx, lease| Box::pin(work::finish(tx, lease)))
                .await
                .unwrap();
            ended += 1;
        }
    }
    assert_eq!(ended, left);
}

/// Checks that a row that ends the service whenever it runs is found among others that run beside it and end when they
/// are let.
#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_ends_the_service_is_found_among_others_and_given_up() {
    let (mut store, folder) = store().await;
    let mut rows = Vec::new();
    for _ in 0..6 {
        rows.push(enqueue(&store, Lane::Batch, NOW).await);
    }
    let poison = rows[2];
    let (mut deaths, mut ended) = (0, 0);
    loop {
        let claimed = claim(&store, Uuid::now_v7(), 64, later()).await;
        if !claimed.given_up.is_empty() {
            assert_eq!(claimed.given_up, [poison]);
            assert_eq!(deaths, MOST_BEGINS + 1, "once among others, then alone");
            break;
        }
        for lease in &claimed.leases {
            begin(&store, lease).await;
        }
        if claimed.leases.iter().any(|lease| lease.id == poison) {
            deaths += 1;
            assert!(deaths < 10, "it is never given up");
            store = die(store, &folder).await;
            continue;
        }
        for lease in &claimed.leases {
            with(&store, lease, |tx, lease| Box::pin(work::finish(tx, lease)))
                .await
                .unwrap();
            ended += 1;
        }
    }
    let rest = claim(&store, Uuid::now_v7(), 64, later()).await.leases;
    assert!(ended + rest.len() <= 5 && !rest.iter().any(|lease| lease.id == poison));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_ends_the_service_alone_has_three_begins() {
    let (mut store, folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    for begins in 0..MOST_BEGINS {
        let lease = claim_one(&store, later()).await.expect("not given up yet");
        assert_eq!(lease.begins, begins);
        begin(&store, &lease).await;
        begin(&store, &lease).await;
        store = die(store, &folder).await;
    }
    let last = claim(&store, Uuid::now_v7(), 9, later()).await;
    assert_eq!((last.leases, last.given_up), (Vec::new(), vec![id]));
}

/// Checks a clock that was ahead when a row was inserted or released.
#[tokio::test(flavor = "multi_thread")]
async fn due_times_of_a_clock_that_was_ahead_are_mended_at_a_start() {
    let (first, folder) = store().await;
    let now = sluice_store::now_ms();
    let untried = enqueue(&first, Lane::Batch, now + 3_600_000).await;
    let retried = enqueue(&first, Lane::Batch, now).await;
    let lease = claim_one(&first, now).await.unwrap();
    with(&first, &lease, move |tx, lease| {
        Box::pin(work::retry(tx, lease, now + 3_600_000))
    })
    .await
    .unwrap();
    let pausing = enqueue(&first, Lane::Batch, now).await;
    let lease = claim_one(&first, now).await.unwrap();
    with(&first, &lease, move |tx, lease| {
        Box::pin(work::retry(tx, lease, now + 200_000))
    })
    .await
    .unwrap();
    let second = die(first, &folder).await;
    let due = claim(&second, Uuid::now_v7(), 9, sluice_store::now_ms())
        .await
        .leases;
    let mut due: Vec<Uuid> = due.iter().map(|lease| lease.id).collect();
    due.sort();
    let mut expected = [untried, retried];
    expected.sort();
    assert_eq!(due, expected, "and {pausing} pauses");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_frees_at_once_and_does_not_count() {
    let (store, _folder) = store().await;
    enqueue(&store, Lane::Batch, NOW).await;
    let owner = Uuid::now_v7();
    for _ in 0..2 * MOST_BEGINS {
        let lease = claim(&store, owner, 1, NOW).await.leases.remove(0);
        assert_eq!(lease.begins, 0);
        begin(&store, &lease).await;
        let freed = store
            .write(move |tx| Box::pin(work::release_all(tx, Some(KIND), owner)))
            .await;
        assert_eq!(freed.unwrap(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_row_is_due_at_once_as_if_it_had_not_been_claimed() {
    let (store, _folder) = store().await;
    enqueue(&store, Lane::Batch, NOW).await;
    for _ in 0..2 * MOST_BEGINS {
        let lease = claim_one(&store, NOW).await.unwrap();
        assert_eq!(lease.begins, 0);
        begin(&store, &lease).await;
        let released = lease.clone();
        store
            .write(move |tx| Box::pin(async move { work::release(tx, &released).await }))
            .await
            .unwrap();
        let again = store
            .write(move |tx| Box::pin(async move { work::release(tx, &lease).await }))
            .await;
        assert!(again.is_ok(), "no one has claimed it since");
    }
    let old = claim_one(&store, NOW).await.unwrap();
    let taken = claim_one(&store, EXPIRED).await.unwrap();
    let late = store
        .write(move |tx| Box::pin(async move { work::release(tx, &old).await }))
        .await;
    assert!(matches!(late, Err(Error::Conflict(_))));
    assert!(holds(&store, &taken).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawn_row_has_no_owner() {
    let (store, _folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    let lease = claim_one(&store, NOW).await.unwrap();
    store
        .write(move |tx| Box::pin(work::withdraw(tx, KIND, id)))
        .await
        .unwrap();
    assert!(!holds(&store, &lease).await);
}

/// Claims as a node of a cluster does, of these rows or of any.
async fn claim_beside(store: &Store, limit: usize, only: Option<Vec<Uuid>>) -> Vec<Lease> {
    let (room, owner) = (Room::for_any(limit), Uuid::now_v7());
    store
        .write_beside(move |tx| {
            Box::pin(async move {
                let only = only.as_deref();
                work::claim_beside(tx, KIND, owner, room, only, LEASE, later()).await
            })
        })
        .await
        .unwrap()
}

fn ids(leases: &[Lease]) -> Vec<Uuid> {
    let mut ids: Vec<Uuid> = leases.iter().map(|lease| lease.id).collect();
    ids.sort_unstable();
    ids
}

/// Claims at the same time, by turns in the one process and in the other.
async fn claim_in_both(stores: [&Store; 2], claims: usize, limit: usize) -> Vec<Lease> {
    let claimed = (0..claims).map(|turn| claim_beside(stores[turn % 2], limit, None));
    join_all(claimed).await.concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_beside_each_other_take_each_row_once() {
    let (store, folder) = store().await;
    let beside = Store::open_beside(&settings(folder.path())).await.unwrap();
    let mut rows = Vec::new();
    for _ in 0..24 {
        rows.push(enqueue(&store, Lane::Batch, NOW).await);
    }
    let mut claimed = claim_beside(&store, 9, Some(vec![rows[3], Uuid::now_v7()])).await;
    assert_eq!(ids(&claimed), [rows[3]]);
    claimed.extend(claim_in_both([&store, &beside], 12, 4).await);
    claimed.extend(claim_beside(&store, 24, None).await);
    rows.sort_unstable();
    assert_eq!(ids(&claimed), rows);
    for lease in &claimed {
        assert_eq!((lease.fence, lease.is_exhausted()), (1, false));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn claims_beside_each_other_lease_one_suspect() {
    let (first, folder) = store().await;
    for _ in 0..6 {
        enqueue(&first, Lane::Batch, NOW).await;
    }
    for lease in claim(&first, Uuid::now_v7(), 6, NOW).await.leases {
        begin(&first, &lease).await;
    }
    let second = die(first, &folder).await;
    let beside = Store::open_beside(&settings(folder.path())).await.unwrap();
    let unsuspected = enqueue(&second, Lane::Batch, NOW).await;
    let claimed = claim_in_both([&second, &beside], 8, 9).await;
    assert_eq!(claimed.len(), 2, "{claimed:?}");
    assert!(ids(&claimed).contains(&unsuspected));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspect_on_which_another_node_alone_can_work_holds_up_no_other() {
    let (first, folder) = store().await;
    let mut rows = Vec::new();
    for _ in 0..3 {
        rows.push(enqueue(&first, Lane::Batch, NOW).await);
    }
    for lease in claim(&first, Uuid::now_v7(), 3, NOW).await.leases {
        begin(&first, &lease).await;
    }
    let store = die(first, &folder).await;
    // The last one in the order of their turns first.
    rows.sort_unstable();
    for id in rows.into_iter().rev() {
        let leases = claim_beside(&store, 3, Some(vec![id])).await;
        assert_eq!(ids(&leases), [id]);
        with(&store, &leases[0], |tx, lease| {
            Box::pin(work::finish(tx, lease))
        })
        .await
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_began_too_often_is_leased_to_be_given_up() {
    let (store, _folder) = store().await;
    let id = enqueue(&store, Lane::Batch, NOW).await;
    for _ in 0..MOST_BEGINS {
        let lease = claim_one(&store, later()).await.unwrap();
        with(&store, &lease, |tx, lease| {
            Box::pin(work::retry_after_crash(tx, lease, NOW))
        })
        .await
        .unwrap();
    }
    let leases = claim_beside(&store, 1, None).await;
    assert_eq!(ids(&leases), [id]);
    assert!(leases[0].is_exhausted());
    with(&store, &leases[0], |tx, lease| {
        Box::pin(work::finish(tx, lease))
    })
    .await
    .unwrap();
    assert!(claim_beside(&store, 1, None).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_seen_with_the_lease_under_which_it_was_made() {
    let (store, _folder) = store().await;
    for _ in 0..2 {
        enqueue(&store, Lane::Batch, NOW).await;
    }
    let held = async || -> Vec<Held> {
        work::held(&mut store.read().await.unwrap(), KIND)
            .await
            .unwrap()
    };
    assert!(held().await.is_empty());
    let owner = Uuid::now_v7();
    let lease = claim(&store, owner, 1, NOW).await.leases.remove(0);
    let report = async |fence: i64, share: u32, queue_place: Option<u32>| {
        let progress = TaskProgress {
            id: lease.id,
            fence,
            share,
            queue_place,
        };
        let written = store.write_beside(move |tx| {
            Box::pin(async move { work::report(tx, KIND, &[progress]).await })
        });
        written.await.unwrap();
    };
    report(lease.fence, 0, Some(3)).await;
    let mut expected = Held {
        id: lease.id,
        account_id: lease.account_id,
        fence: lease.fence,
        lease_owner: owner,
        share: Some(0),
        queue_place: Some(3),
    };
    assert_eq!(held().await, [expected.clone()]);
    report(lease.fence, 1_500, None).await;
    report(lease.fence - 1, 9, None).await;
    (expected.share, expected.queue_place) = (Some(1_500), None);
    assert_eq!(held().await, [expected]);
    let again = claim(&store, owner, 1, EXPIRED).await.leases.remove(0);
    let found = held().await;
    let of_row = found.iter().find(|row| row.id == again.id).unwrap();
    assert_eq!((of_row.fence, of_row.share), (again.fence, None));
}
