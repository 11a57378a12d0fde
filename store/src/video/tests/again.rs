//! Repetitions: requests with a key, and the work on a stream whose owners die.

use super::*;
use crate::idempotency::Idempotency;

/// Time after which a claimed lease has ended, and longer than any pause after it.
const LATER: i64 = 600_000;

impl Bench {
    fn with_key(&self, fingerprint: u8) -> NewStream {
        NewStream {
            idempotency: Some(Idempotency {
                key: "order-7".into(),
                fingerprint: [fingerprint; 32],
            }),
            ..self.new_stream()
        }
    }

    async fn create_at(&self, new: NewStream, now: i64) -> Result<Submitted, Error> {
        self.write(move |tx| Box::pin(async move { create(tx, &new, now).await }))
            .await
    }

    /// Claims again after the last owner died without releasing; `None`: the stream was given up.
    async fn claim_again(&self, times: i64) -> Option<Lease> {
        let claim = self.write(move |tx| {
            Box::pin(async move {
                let (room, lease) = (Room::for_any(9), Duration::from_secs(15));
                let now = NOW + times * LATER;
                work::void_leases(tx, None, now - LATER).await?;
                let claimed = work::claim(tx, KIND, Uuid::now_v7(), room, lease, now).await?;
                for id in &claimed.given_up {
                    give_up(tx, *id, now).await?;
                }
                for lease in &claimed.leases {
                    work::begin(tx, lease).await?;
                }
                Ok(claimed.leases.into_iter().next())
            })
        });
        claim.await.unwrap()
    }
}

#[tokio::test]
async fn a_key_names_one_stream_for_a_day() {
    let bench = Bench::new().await;
    let stream = bench.stream_of(bench.with_key(1)).await;
    let Submitted::Known(known) = bench.create(bench.with_key(1)).await else {
        panic!("the same stream");
    };
    assert_eq!((known.id, bench.used().await), (stream.id, 1));
    let other = bench.create_at(bench.with_key(2), NOW).await;
    assert!(matches!(other, Err(Error::Conflict(_))), "{other:?}");
    // One that was deleted can be made again.
    let account = bench.account;
    bench
        .write(move |tx| Box::pin(delete(tx, account, stream.id)))
        .await
        .unwrap();
    bench.stream_of(bench.with_key(2)).await;
    let tomorrow = NOW + 24 * 60 * 60 * 1000;
    let again = bench.create_at(bench.with_key(1), tomorrow).await;
    assert!(matches!(again, Ok(Submitted::New(_))), "{again:?}");
}

/// Records a little progress in each try before the process is killed.
#[tokio::test]
async fn a_stream_that_always_ends_its_owner_is_given_up() {
    let bench = Bench::new().await;
    let mut lease = bench.begun(bench.new_stream()).await;
    let mut claims = 1;
    loop {
        let stream = bench.step_back(&lease, 0).await.unwrap();
        assert_eq!(stream.progress, if claims == 1 { 0 } else { 7 });
        bench.record(&lease, group(0..2)).await.unwrap();
        match bench.claim_again(claims).await {
            Some(next) => lease = next,
            None => break,
        }
        claims += 1;
        assert!(claims < 10, "it is never given up");
    }
    assert_eq!(claims, 3);
    let stream = by_id(&mut bench.world.read().await, lease.id).await;
    assert_eq!(stream.unwrap().error_code.as_deref(), Some("crashed"));
}

#[tokio::test]
async fn a_stream_that_gets_on_between_crashes_is_not_given_up() {
    let bench = Bench::new().await;
    let mut lease = bench.begun(bench.new_stream()).await;
    for number in 0..9 {
        let progress = 10 * (number as u8 + 1);
        let more = Group {
            progress,
            ..group(number..number + 1)
        };
        let stream = bench.record(&lease, more).await.unwrap();
        assert_eq!(stream.progress, progress);
        let again = bench.claim_again(i64::from(number) + 1).await;
        lease = again.expect("another owner");
    }
    assert_eq!(lease.begins, 1);
    // Segments that are made again are not announced again.
    bench.step_back(&lease, 0).await.unwrap();
    let stream = bench.record(&lease, group(0..1)).await.unwrap();
    assert_eq!(stream.progress, 90);
}
