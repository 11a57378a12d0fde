//! Health over time, and broadcasts that their owner ends.

use super::*;
use crate::live::HISTORY_S;

fn samples_with_media(playback: &Playback) -> usize {
    let samples = playback.history().last(HISTORY_S, crate::live::unix_ms());
    samples
        .iter()
        .filter(|sample| sample.drift_ms.is_some())
        .count()
}

/// Frames after which some are listed: a crash before that leaves nothing to continue.
const LISTED: i64 = 40;

/// Sends frames until a second of them is in the history, which may be few on a loaded machine, and at least [`LISTED`].
async fn measured(session: &mut LiveSession, playback: &Playback, from: i64) -> i64 {
    let before = samples_with_media(playback);
    let mut next = from;
    while samples_with_media(playback) <= before || next < from + LISTED {
        send(session, next..next + 1).await.unwrap();
        next += 1;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    next
}

#[tokio::test(flavor = "multi_thread")]
async fn history_survives_its_actor_and_the_broadcast() {
    let dir = tempfile::tempdir().unwrap();
    let settings = LiveSettings {
        linger: Duration::from_millis(100),
        ..LiveSettings::default()
    };
    let (service, first) = start_with(dir.path(), settings).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    assert_eq!(playback.history().newest(), None);
    let mut session = service.publish(&first, 1).await;
    let next = measured(&mut session, &playback, 0).await;
    let before = samples_with_media(&playback);
    eventually("what was sent is listed", || {
        last_video_frame(&playback) > next - 20
    })
    .await;

    service.crash(&first).await;
    assert!(samples_with_media(&playback) >= before, "kept over a crash");
    let mut session = service.publish(&first, 1).await;
    measured(&mut session, &playback, next).await;
    session.end(Ended::Clean).await;
    eventually("nothing is left of the broadcast", || {
        playback.now().phase == Phase::Idle
    })
    .await;
    assert!(samples_with_media(&playback) > before, "kept after the end");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_is_ended_by_its_owner_once() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let (id, playback) = (first.live_input.id, service.playback(&first));
    assert!(!service.live.end(id).await.unwrap(), "nothing is on air");
    assert!(!service.live.end(uuid::Uuid::now_v7()).await.unwrap());

    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    eventually("the input is live", || playback.now().phase == Phase::Live).await;
    assert_eq!(service.live.on_air().len(), 1);
    assert!(service.live.end(id).await.unwrap());
    assert_eq!(playback.now().phase, Phase::Ended);
    session.closed().await;
    assert!(!service.live.end(id).await.unwrap(), "it has ended");
    assert!(service.live.on_air().is_empty());

    // The encoder comes back, is lost, and its owner does not wait for it.
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    session.end(Ended::Dropped).await;
    eventually("the window is open", || {
        playback.now().phase == Phase::Reconnecting
    })
    .await;
    assert!(service.live.end(id).await.unwrap());
    assert_eq!(playback.now().phase, Phase::Ended);
    service.stop().await;
}
