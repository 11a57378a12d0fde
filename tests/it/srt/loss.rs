//! A line that loses packets: what SRT is for.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{net::UdpSocket, task::JoinHandle};

use crate::support::{
    Failure,
    dice::{Dice, seed},
    encoder::Publish,
    media::{Recipe, check_contiguous},
    server::Server,
    viewer::Viewer,
};

const PLAYED: Duration = Duration::from_secs(60);
const SOON: Duration = Duration::from_secs(15);
/// The goodbye of a caller (draft-sharabayko-srt §3.2.7), which it says only once.
const SHUTDOWN: [u8; 2] = [0x80, 0x05];

/// Carries one caller's packets both ways, and loses some. Ends when it is dropped.
struct LossyLine {
    address: SocketAddr,
    lost: Arc<AtomicU64>,
    carrying: JoinHandle<()>,
}

impl LossyLine {
    /// Loses `percent` of the packets each way, goodbyes apart: without one a broadcast ends with its reconnect window.
    async fn to(target: SocketAddr, percent: u64, mut dice: Dice) -> Result<Self, Failure> {
        let near = UdpSocket::bind("127.0.0.1:0").await?;
        let far = UdpSocket::bind("127.0.0.1:0").await?;
        far.connect(target).await?;
        let (address, lost) = (near.local_addr()?, Arc::new(AtomicU64::new(0)));
        let counted = lost.clone();
        let carrying = tokio::spawn(async move {
            let (mut there, mut back) = ([0; 2048], [0; 2048]);
            let mut caller = None;
            loop {
                let (packet, outward) = tokio::select! {
                    received = near.recv_from(&mut there) => {
                        let Ok((len, from)) = received else { continue };
                        caller = Some(from);
                        (&there[..len], true)
                    }
                    received = far.recv(&mut back) => {
                        let Ok(len) = received else { continue };
                        (&back[..len], false)
                    }
                };
                if dice.below(100) < percent && !packet.starts_with(&SHUTDOWN) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let _ = match (outward, caller) {
                    (true, _) => far.send(packet).await,
                    (false, Some(caller)) => near.send_to(packet, caller).await,
                    (false, None) => continue,
                };
            }
        });
        Ok(Self {
            address,
            lost,
            carrying,
        })
    }
}

impl Drop for LossyLine {
    fn drop(&mut self) {
        self.carrying.abort();
    }
}

/// Nothing is lost for good at 5 % each way and four hundred milliseconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_line_loses_comes_again() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let server = Server::start().await?;
    let api = server.api();
    let input = api.create(json!({})).await?;
    let address = server.addresses().srt.ok_or("no SRT listener")?;
    let line = LossyLine::to(address, 5, Dice::new(seed()?)).await?;
    let url = input
        .srt_url()?
        .replace(&address.to_string(), &line.address.to_string());
    let mut viewing = Viewer::new(&input.hls_url).start();
    let mut encoder = Publish::new(&clip, &url)?.start()?;
    let counted = |health: &Value| health["retransmittedPackets"].as_u64() >= Some(10);
    let health = api
        .wait_health(&input.id, "packets are sent again", SOON * 2, counted)
        .await?;
    assert_eq!(health["lostPackets"], 0, "{health}");
    assert!(
        encoder.wait(PLAYED).await?.success(),
        "{}",
        encoder.complaints()
    );
    let seen = viewing.until_ended(SOON).await?;
    assert!(line.lost.load(Ordering::Relaxed) > 50, "the line is lossy");
    let ranges = seen.numbers()?;
    assert_eq!(
        ranges.len(),
        1,
        "the session has gone on: {}",
        seen.summary()
    );
    check_contiguous(&ranges[0], clip.first())?;
    // The packets before the goodbye may be lost, and nobody sends them again then.
    let missing = clip.frames() as usize - ranges[0].len();
    assert!(missing <= 15, "{missing} pictures are missing");
    Ok(())
}
