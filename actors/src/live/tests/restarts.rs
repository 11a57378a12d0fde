//! Owners and listeners that panicked and were restarted, and do what they did before.

use std::net::Ipv4Addr;

use kameo::actor::Spawn as _;
use sluice_ingest::rtmp::RtmpSettings;
use tokio::{net::TcpListener, runtime::Builder, sync::Semaphore};
use tokio_util::task::TaskTracker;

use super::*;
use crate::{
    component::Supervisor,
    live::{inputs::Panic, listener},
    network::NetworkLimit,
};

async fn reach(playback: &Playback, phase: Phase) {
    eventually(&format!("the input is {phase:?}"), || {
        playback.now().phase == phase
    })
    .await;
}

/// On air, below an owner that has just been restarted and took the stream up.
async fn restarted(dir: &Path) -> (Service, FirstCredentials, Arc<Playback>) {
    let settings = LiveSettings {
        linger: Duration::from_millis(100),
        ..LiveSettings::default()
    };
    let (service, first) = start_with(dir, settings).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    reach(&playback, Phase::Live).await;
    service.inputs.tell(Panic).await.unwrap();
    reach(&playback, Phase::Reconnecting).await;
    (service, first, playback)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_owner_restarts_a_crashed_input() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first, playback) = restarted(dir.path()).await;
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..10).await.unwrap();
    reach(&playback, Phase::Live).await;
    let crash = Crash(first.live_input.id);
    service.inputs.ask(crash).await.unwrap();
    reach(&playback, Phase::Reconnecting).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_owner_forgets_an_input_that_ended_and_stops_with_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first, playback) = restarted(dir.path()).await;
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..10).await.unwrap();
    session.end(Ended::Clean).await;
    reach(&playback, Phase::Idle).await;
    let inputs = service.inputs.clone();
    service.stop().await;
    assert!(!inputs.is_alive());
}

/// The tree runs without timers, over a socket whose runtime is gone: to accept fails, and the pause after that panics.
#[test]
fn each_panic_of_an_accept_loop_is_noticed() {
    let [gone, tree] = [(); 2].map(|()| {
        let mut runtime = Builder::new_multi_thread();
        runtime.worker_threads(1).enable_io().build().unwrap()
    });
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let socket = Arc::new(gone.block_on(socket).unwrap());
    drop(gone);
    let args = listener::Args {
        socket: socket.clone(),
        authorizer: LiveAuthorizer::new(LiveInputs::prepare().actor_ref().clone()),
        settings: Arc::new(RtmpSettings::default()),
        tls: None,
        read_interval: Duration::ZERO,
        permits: Arc::new(Semaphore::new(1)),
        unadmitted: NetworkLimit::new(1),
        sessions: TaskTracker::new(),
        stop: CancellationToken::new(),
    };
    let start = listener::component("listener", args).start;
    let supervisor = tree.block_on(async { Supervisor::spawn(start) });
    let timers = Builder::new_current_thread().enable_time().build().unwrap();
    timers.block_on(async {
        let parked =
            tokio::time::timeout(Duration::from_secs(20), supervisor.wait_for_shutdown()).await;
        assert!(parked.is_ok(), "a loop that keeps panicking is parked");
        drop(supervisor);
        let held = || Arc::strong_count(&socket);
        eventually("nothing of it holds the socket", || held() == 1).await;
    });
}
