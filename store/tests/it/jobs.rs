//! Jobs: charged once, refunded once, and never with half of either.

use std::time::Duration;

use bytes::Bytes;
use serde_json::json;
use sluice_store::{
    Error, Page, Store,
    blob::Sealed,
    deliveries::Day,
    idempotency::Idempotency,
    jobs::{
        self, Allowance, Input, Item, ItemState, Job, JobFilter, JobState, JobType, NewAttachment,
        NewItem, NewJob, NewResult, Submitted,
    },
    operations::{self, Charge},
    usage_history::{self, OperationDay},
    work::{self, Lane, Lease},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

const KEEP: i64 = 24 * 60 * 60 * 1000;
const MONTH: i64 = 31 * KEEP;

async fn upload(store: &Store, bytes: &'static [u8]) -> Sealed {
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(bytes)).await.unwrap();
    spool.seal().await.unwrap()
}

fn new_job(account_id: Uuid, upload: &Sealed, files: usize, cap: u64) -> NewJob {
    let item = NewItem {
        operation: json!({"tool": "convert"}),
        operations: 1,
        source_file_id: None,
        inputs: vec![Input {
            blob: upload.blob().hash,
            filename: "a.png".into(),
            size: upload.blob().size as i64,
            member: None,
        }],
    };
    NewJob {
        account_id,
        job_type: JobType::Convert,
        tool: "convert".into(),
        lane: Lane::Batch,
        saves: false,
        folder_id: None,
        archives: false,
        allowance: Allowance {
            operations: cap,
            ..Allowance::default()
        },
        items: vec![item; files],
        idempotency: None,
    }
}

async fn submit(store: &Store, new: NewJob) -> Result<Submitted, Error> {
    let upload = upload(store, b"bytes").await;
    store
        .write(move |tx| {
            Box::pin(
                async move { jobs::submit(tx, &new, std::slice::from_ref(&upload), NOW).await },
            )
        })
        .await
}

async fn submitted(store: &Store, account: Uuid, files: usize) -> (Job, Vec<Item>) {
    let new = new_job(account, &upload(store, b"bytes").await, files, 0);
    let Submitted::New(job) = submit(store, new).await.unwrap() else {
        panic!("a new job");
    };
    let items = jobs::items(&mut store.read().await.unwrap(), job.id)
        .await
        .unwrap();
    (job, items)
}

async fn claim(store: &Store) -> Lease {
    let claimed = store
        .write(|tx| {
            Box::pin(work::claim(
                tx,
                jobs::KIND,
                Uuid::nil(),
                work::Room::for_any(1),
                Duration::from_secs(15),
                NOW,
            ))
        })
        .await;
    claimed.unwrap().leases.pop().unwrap()
}

async fn used(store: &Store, account: Uuid) -> u64 {
    operations::used(&mut store.read().await.unwrap(), account, NOW)
        .await
        .unwrap()
        .operations
}

async fn fail(store: &Store, lease: &Lease, item: Uuid) -> Result<Job, Error> {
    let lease = lease.clone();
    store
        .write(move |tx| {
            Box::pin(
                async move { jobs::fail_item(tx, &lease, item, "undecodable", "no image").await },
            )
        })
        .await
}

async fn complete(store: &Store, lease: &Lease, item: Uuid, result: &Sealed) -> Result<Job, Error> {
    let (lease, blob) = (lease.clone(), *result.blob());
    let result = NewResult {
        blob: Some(blob.hash),
        filename: "a.jpg".into(),
        mime_type: "image/jpeg".into(),
        size: blob.size,
        duration_ms: Some(12_500),
        attachment: Some(NewAttachment {
            blob: blob.hash,
            filename: "a.vtt".into(),
            mime_type: "text/vtt".into(),
            size: blob.size,
            stored_file_id: None,
        }),
        ..NewResult::default()
    };
    store
        .write(move |tx| {
            Box::pin(async move { jobs::complete_item(tx, &lease, item, result).await })
        })
        .await
}

async fn finish(store: &Store, lease: &Lease) -> Result<Job, Error> {
    let lease = lease.clone();
    store
        .write(move |tx| Box::pin(async move { jobs::finish(tx, &lease, None, KEEP, NOW).await }))
        .await
}

/// Both are looked up before the job is made, and may be deleted in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_does_without_the_folder_and_the_file_that_are_gone() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let mut new = new_job(account, &upload(&store, b"bytes").await, 1, 0);
    new.folder_id = Some(Uuid::now_v7());
    new.items[0].source_file_id = Some(Uuid::now_v7());
    let Submitted::New(job) = submit(&store, new).await.unwrap() else {
        panic!("a new job");
    };
    let items = jobs::items(&mut store.read().await.unwrap(), job.id)
        .await
        .unwrap();
    assert_eq!((job.folder_id, items[0].source_file_id), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_charged_when_it_is_made_and_failures_are_given_back() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (job, items) = submitted(&store, account, 3).await;
    assert_eq!((job.state, job.total_files), (JobState::Pending, 3));
    assert_eq!(used(&store, account).await, 3);

    let lease = claim(&store).await;
    let upload = upload(&store, b"bytes").await;
    complete(&store, &lease, items[0].id, &upload)
        .await
        .unwrap();
    fail(&store, &lease, items[1].id).await.unwrap();
    assert_eq!(used(&store, account).await, 2);
    for again in [
        fail(&store, &lease, items[1].id).await,
        fail(&store, &lease, items[0].id).await,
        complete(&store, &lease, items[0].id, &upload).await,
    ] {
        assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    }
    assert_eq!(
        used(&store, account).await,
        2,
        "nothing is given back twice"
    );

    fail(&store, &lease, items[2].id).await.unwrap();
    let ended = finish(&store, &lease).await.unwrap();
    assert_eq!(
        (ended.state, ended.completed_files, ended.failed_files),
        (JobState::Completed, 1, 2)
    );
    assert_eq!(ended.expires_at, Some(NOW + KEEP));
    let mut reader = store.read().await.unwrap();
    let inputs = jobs::inputs(&mut reader, items[0].id).await.unwrap();
    assert_eq!(inputs, [], "what was uploaded goes with the end");
    assert!(matches!(
        finish(&store, &lease).await,
        Err(Error::Conflict(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_a_result_fails_with_the_first_error() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (_, items) = submitted(&store, account, 1).await;
    let lease = claim(&store).await;
    fail(&store, &lease, items[0].id).await.unwrap();
    let ended = finish(&store, &lease).await.unwrap();
    assert_eq!(ended.state, JobState::Failed);
    assert_eq!(ended.error_code.as_deref(), Some("undecodable"));
    assert_eq!(used(&store, account).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cap_is_never_exceeded_and_a_rejection_changes_nothing() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let new = |files, upload: &Sealed| new_job(account, upload, files, 5);
    let bytes = upload(&store, b"bytes").await;
    assert!(matches!(
        submit(&store, new(4, &bytes)).await,
        Ok(Submitted::New(_))
    ));
    let refused = submit(&store, new(2, &bytes)).await.unwrap();
    assert_eq!(refused, Submitted::UsedUp { used: 4 });
    assert_eq!(used(&store, account).await, 4);
    let mut reader = store.read().await.unwrap();
    assert_eq!(
        jobs::count(&mut reader, account, &JobFilter::default())
            .await
            .unwrap(),
        1
    );
    drop(reader);
    assert!(matches!(
        submit(&store, new(1, &bytes)).await,
        Ok(Submitted::New(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_names_one_job_for_a_day() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let bytes = upload(&store, b"bytes").await;
    let with_key = |fingerprint: u8| NewJob {
        idempotency: Some(Idempotency {
            key: "order-7".into(),
            fingerprint: [fingerprint; 32],
        }),
        ..new_job(account, &bytes, 1, 0)
    };
    let Submitted::New(job) = submit(&store, with_key(1)).await.unwrap() else {
        panic!("a new job");
    };
    let Submitted::Known(known) = submit(&store, with_key(1)).await.unwrap() else {
        panic!("the same job");
    };
    assert_eq!(known.id, job.id);
    assert_eq!(used(&store, account).await, 1, "charged once");
    let other = submit(&store, with_key(2)).await;
    assert!(matches!(other, Err(Error::Conflict(_))), "{other:?}");
    let stranger = add_account(&store, "elsewhere").await.unwrap();
    let theirs = NewJob {
        account_id: stranger,
        ..with_key(2)
    };
    assert!(matches!(
        submit(&store, theirs).await,
        Ok(Submitted::New(_))
    ));

    store.sweep(NOW + KEEP).await.unwrap();
    assert!(matches!(
        submit(&store, with_key(2)).await,
        Ok(Submitted::New(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_gives_back_what_has_no_result_and_stops_the_owner() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (job, items) = submitted(&store, account, 3).await;
    let lease = claim(&store).await;
    let upload = upload(&store, b"bytes").await;
    complete(&store, &lease, items[0].id, &upload)
        .await
        .unwrap();
    let cancel =
        |account| store.write(move |tx| Box::pin(jobs::cancel(tx, account, job.id, KEEP, NOW)));
    let stranger = add_account(&store, "elsewhere").await.unwrap();
    assert!(matches!(cancel(stranger).await, Err(Error::NotFound(_))));
    let cancelled = cancel(account).await.unwrap();
    assert_eq!(
        (cancelled.state, cancelled.completed_files),
        (JobState::Cancelled, 1)
    );
    assert_eq!(used(&store, account).await, 1);
    let late = complete(&store, &lease, items[1].id, &upload).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
    assert!(matches!(cancel(account).await, Err(Error::Conflict(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_given_up_keeps_its_results_and_gives_back_the_rest() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (job, items) = submitted(&store, account, 2).await;
    let lease = claim(&store).await;
    let upload = upload(&store, b"bytes").await;
    complete(&store, &lease, items[0].id, &upload)
        .await
        .unwrap();
    let give_up = || store.write(move |tx| Box::pin(jobs::give_up(tx, job.id, KEEP, NOW)));
    assert!(give_up().await.unwrap().is_some());
    assert!(give_up().await.unwrap().is_none());
    let mut reader = store.read().await.unwrap();
    let given_up = jobs::by_id(&mut reader, job.id).await.unwrap();
    assert_eq!(
        (
            given_up.state,
            given_up.completed_files,
            given_up.failed_files
        ),
        (JobState::Failed, 1, 1)
    );
    assert_eq!(given_up.error_code.as_deref(), Some("crashed"));
    drop(reader);
    assert_eq!(used(&store, account).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_begins_once_and_keeps_the_name_of_its_first_file() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (job, items) = submitted(&store, account, 3).await;
    assert_eq!(job.filename, "a.png");
    let begin = |now_ms| store.write(move |tx| Box::pin(jobs::begin(tx, job.id, now_ms)));
    let begun = begin(NOW).await.unwrap().unwrap();
    assert_eq!(
        (begun.state, begun.started_at),
        (JobState::Processing, Some(NOW))
    );
    assert_eq!(begin(NOW + 1).await.unwrap(), None);

    let lease = claim(&store).await;
    fail(&store, &lease, items[1].id).await.unwrap();
    let mut reader = store.read().await.unwrap();
    for (index, item) in items.iter().enumerate() {
        let found = jobs::index_of(&mut reader, item).await.unwrap();
        assert_eq!(found, index as u64);
    }
    for (state, limit, expected) in [
        (ItemState::Pending, 9, vec![items[0].id, items[2].id]),
        (ItemState::Pending, 1, vec![items[0].id]),
        (ItemState::Failed, 9, vec![items[1].id]),
        (ItemState::Completed, 9, vec![]),
    ] {
        let found = jobs::items_of_state(&mut reader, job.id, state, limit).await;
        let found: Vec<Uuid> = found.unwrap().iter().map(|item| item.id).collect();
        assert_eq!(found, expected, "{state:?} {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_members_of_an_archive_take_its_place_and_are_charged() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let bytes = upload(&store, b"bytes").await;
    let Submitted::New(job) = submit(&store, new_job(account, &bytes, 2, 5))
        .await
        .unwrap()
    else {
        panic!("a new job");
    };
    let lease = claim(&store).await;
    let items = jobs::items(&mut store.read().await.unwrap(), job.id)
        .await
        .unwrap();
    let expand = |members: usize| {
        let (lease, archive) = (lease.clone(), items[0].clone());
        let mut member = new_job(account, &bytes, 1, 5).items.pop().unwrap();
        member.inputs[0].member = Some(0);
        store.write(move |tx| {
            Box::pin(async move {
                jobs::expand(tx, &lease, &archive, &vec![member; members], NOW).await
            })
        })
    };
    assert_eq!(expand(5).await.unwrap(), Charge::UsedUp { used: 2 });
    assert!(matches!(expand(4).await.unwrap(), Charge::Charged(_)));
    assert_eq!(used(&store, account).await, 5);
    assert!(
        matches!(expand(0).await, Err(Error::Conflict(_))),
        "once only"
    );
    let mut reader = store.read().await.unwrap();
    let after = jobs::items(&mut reader, job.id).await.unwrap();
    assert_eq!(after.len(), 5);
    assert_eq!(
        after[4].id, items[1].id,
        "the next file stays behind the members"
    );
    assert_eq!(
        jobs::by_id(&mut reader, job.id).await.unwrap().total_files,
        5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn results_and_old_jobs_expire() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (job, items) = submitted(&store, account, 1).await;
    let lease = claim(&store).await;
    let upload = upload(&store, b"bytes").await;
    complete(&store, &lease, items[0].id, &upload)
        .await
        .unwrap();
    finish(&store, &lease).await.unwrap();
    let result = async || jobs::item(&mut store.read().await.unwrap(), items[0].id).await;
    store.sweep(NOW + KEEP - 1).await.unwrap();
    let kept = result().await.unwrap();
    assert_eq!(kept.duration_ms, Some(12_500));
    assert_eq!(kept.attachment().unwrap().blob, kept.result_blob);
    assert!(kept.result_blob.is_some());
    store.sweep(NOW + KEEP).await.unwrap();
    let expired = result().await.unwrap();
    assert_eq!(expired.result_blob, None);
    assert_eq!(expired.attachment().unwrap().blob, None);
    store.sweep(NOW + 91 * KEEP).await.unwrap();
    let gone = jobs::by_id(&mut store.read().await.unwrap(), job.id).await;
    assert!(matches!(gone, Err(Error::NotFound(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_newest_first_and_filtered() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.insert(0, submitted(&store, account, 1).await.0.id);
    }
    let mut reader = store.read().await.unwrap();
    let mut list = async |state, limit, offset| -> Vec<Uuid> {
        let filter = JobFilter {
            state,
            ..JobFilter::default()
        };
        let jobs = jobs::list(&mut reader, account, &filter, Page::first(limit), offset).await;
        jobs.unwrap().iter().map(|job| job.id).collect()
    };
    assert_eq!(list(None, 9, 0).await, ids);
    assert_eq!(list(Some(JobState::Pending), 1, 1).await, ids[1..2]);
    assert!(list(Some(JobState::Failed), 9, 0).await.is_empty());
    let filter = |job_type, tool: &str, since| JobFilter {
        job_type,
        tool: (!tool.is_empty()).then(|| tool.to_owned()),
        since,
        ..JobFilter::default()
    };
    for (filter, expected) in [
        (filter(Some(JobType::Convert), "", None), 3),
        (filter(Some(JobType::Tool), "", None), 0),
        (filter(None, "convert", None), 3),
        (filter(None, "thumbnail", None), 0),
        (filter(None, "", Some(NOW)), 3),
        (filter(None, "", Some(NOW + 1)), 0),
    ] {
        let jobs = jobs::list(&mut reader, account, &filter, Page::first(9), 0).await;
        assert_eq!(jobs.unwrap().len(), expected, "{filter:?}");
        let count = jobs::count(&mut reader, account, &filter).await.unwrap();
        assert_eq!(count, expected as u64, "{filter:?}");
    }
}

/// A charge and its refund are of the same day and kind.
#[tokio::test(flavor = "multi_thread")]
async fn operations_are_counted_by_day_and_kind() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let days = async || {
        let mut db = store.read().await.unwrap();
        let days = usage_history::operation_days(&mut db, account, 0).await;
        let count = |row: OperationDay| (row.day, row.kind, row.operations);
        days.unwrap().into_iter().map(count).collect::<Vec<_>>()
    };
    let today = Day::of(NOW);
    let (job, _) = submitted(&store, account, 3).await;
    assert_eq!(days().await, [(today, "convert".to_owned(), 3)]);
    let cancel =
        store.write(move |tx| Box::pin(jobs::cancel(tx, account, job.id, KEEP, NOW + MONTH)));
    cancel.await.unwrap();
    assert_eq!(days().await, []);
    submitted(&store, account, 2).await;
    let other = |kind: &'static str, asked_at| {
        let work = operations::ChargedWork { kind, asked_at };
        store.write(move |tx| Box::pin(operations::charge(tx, account, work, 1, 0, asked_at)))
    };
    other("workflow", NOW).await.unwrap();
    other("workflow", NOW + KEEP).await.unwrap();
    let expected = [
        (today, "convert".to_owned(), 2),
        (today, "workflow".to_owned(), 1),
        (today + 1, "workflow".to_owned(), 1),
    ];
    assert_eq!(days().await, expected);
    let forget = store.write(move |tx| Box::pin(usage_history::forget_before(tx, today + 1)));
    forget.await.unwrap();
    assert_eq!(days().await, expected[2..]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_does_not_reopen_a_month() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let charge = |now| {
        let work = operations::ChargedWork {
            kind: "convert",
            asked_at: now,
        };
        store.write(move |tx| Box::pin(operations::charge(tx, account, work, 3, 5, now)))
    };
    assert!(matches!(charge(NOW).await.unwrap(), Charge::Charged(_)));
    assert_eq!(charge(NOW).await.unwrap(), Charge::UsedUp { used: 3 });
    assert!(matches!(
        charge(NOW + MONTH).await.unwrap(),
        Charge::Charged(_)
    ));
    for back in [NOW, NOW - MONTH, 0] {
        assert_eq!(
            charge(back).await.unwrap(),
            Charge::UsedUp { used: 3 },
            "{back}"
        );
    }
    assert!(matches!(
        charge(NOW + 2 * MONTH).await.unwrap(),
        Charge::Charged(_)
    ));
}
