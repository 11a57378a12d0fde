//! SRT over links that lose packets. A link is a task between both ends and not `nft` in a network namespace: it needs
//! no root, and loses the same packets in each run.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{net::UdpSocket, task::JoinHandle};

use crate::support::{
    Failure,
    dice::{Dice, seed},
    encoder::{Ffmpeg, Publish},
    media::{Clip, Recipe, check_contiguous, check_contiguous_to_a_cut},
    server::{Input, Server, Settings},
    viewer::{Viewer, Viewing},
};

const MINUTE: u32 = 60;
const PLAYED: Duration = Duration::from_secs(90);
const SOON: Duration = Duration::from_secs(15);
/// Several times the default, which a machine with other work uses up before a packet comes again.
const LATENCY: &str = "1600ms";
/// The goodbye of a caller (draft-sharabayko-srt §3.2.7), which it says only once.
const SHUTDOWN: [u8; 2] = [0x80, 0x05];
/// Frames at the end of a clip whose packets may be lost for good: after the goodbye no one sends them again.
const LAST_FRAMES: u32 = 15;

/// Carries one caller's packets both ways, and loses some. Ends when it is dropped.
struct LossyLine {
    address: SocketAddr,
    /// Lost packets of a hundred, each way.
    percent: Arc<AtomicU64>,
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
        let percent = Arc::new(AtomicU64::new(percent));
        let (counted, share) = (lost.clone(), percent.clone());
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
                if dice.below(100) < share.load(Relaxed) && !packet.starts_with(&SHUTDOWN) {
                    counted.fetch_add(1, Relaxed);
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
            percent,
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

/// A broadcast of a whole clip over such a line, with a viewer from its beginning on.
struct Sent {
    server: Server,
    input: Input,
    line: LossyLine,
    viewing: Viewing,
    encoder: Ffmpeg,
}

impl Sent {
    async fn over(percent: u64, clip: &Clip) -> Result<Self, Failure> {
        let server = Settings::new()
            .env("SLUICE_SRT__LATENCY", LATENCY)
            .start()
            .await?;
        let input = server.api().create(json!({})).await?;
        let address = server.addresses().srt.ok_or("no SRT listener")?;
        let line = LossyLine::to(address, percent, Dice::new(seed()? + percent)).await?;
        let url = input
            .srt_url()?
            .replace(&address.to_string(), &line.address.to_string());
        Ok(Self {
            viewing: Viewer::new(&input.hls_url).start(),
            encoder: Publish::new(clip, &url)?.start()?,
            server,
            input,
            line,
        })
    }

    /// Returns the health once it fits.
    async fn health(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Result<Value, Failure> {
        let api = self.server.api();
        api.wait_health(&self.input.id, what, PLAYED, fits).await
    }

    /// The numbers of the frames that were seen, without a discontinuity.
    async fn seen(mut self) -> Result<Vec<u32>, Failure> {
        assert!(
            self.encoder.wait(PLAYED).await?.success(),
            "{}",
            self.encoder.complaints()
        );
        let seen = self.viewing.until_ended(SOON).await?;
        assert!(self.line.lost.load(Relaxed) > 50, "the line is lossy");
        let mut ranges = seen.numbers()?;
        assert_eq!(
            ranges.len(),
            1,
            "the session has gone on: {}",
            seen.summary()
        );
        Ok(ranges.remove(0))
    }
}

/// Returns the numbers of the frames before the last ones that were seen, and the number of frames from the first of them on
/// that were sent.
fn before_the_goodbye<'a>(numbers: &'a [u32], clip: &Clip) -> Result<(&'a [u32], usize), Failure> {
    let until = clip.first() + clip.frames() - LAST_FRAMES;
    let seen = &numbers[..numbers.partition_point(|&number| number < until)];
    let first = seen.first().ok_or("no frame was seen")?;
    Ok((seen, (until - first) as usize))
}

/// At 5 % each way nothing is lost for good in a minute.
async fn what_is_lost_comes_again() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).lasting(MINUTE).make()?;
    let sent = Sent::over(5, &clip).await?;
    let is_late = |health: &Value| health["retransmittedPackets"].as_u64() >= Some(50);
    let health = sent.health("packets are sent again", is_late).await?;
    assert_eq!(health["lostPackets"], 0, "{health}");
    let numbers = sent.seen().await?;
    let (seen, sent) = before_the_goodbye(&numbers, &clip)?;
    check_contiguous(seen, clip.first())?;
    assert_eq!(seen.len(), sent, "frames are missing");
    Ok(())
}

/// At 10 % at most a thousandth of the frames is.
async fn a_tenth_costs_next_to_nothing() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let numbers = Sent::over(10, &clip).await?.seen().await?;
    let (seen, sent) = before_the_goodbye(&numbers, &clip)?;
    let missing = sent - seen.len();
    assert!(missing * 1_000 <= sent, "{missing} frames are missing");
    Ok(())
}

/// Three seconds at 30 % are survived, and nothing that comes after them is touched.
async fn a_storm_passes() -> Result<(), Failure> {
    let clip = Recipe::numbered(0).make()?;
    let sent = Sent::over(0, &clip).await?;
    let runs = |health: &Value| health["bytesReceived"].as_u64() > Some(100_000);
    sent.health("the stream runs", runs).await?;
    sent.line.percent.store(30, Relaxed);
    // The length of the storm, not a wait for something.
    tokio::time::sleep(Duration::from_secs(3)).await;
    sent.line.percent.store(0, Relaxed);
    let numbers = sent.seen().await?;
    let calm = &numbers[numbers.len().saturating_sub(600)..];
    let first = *calm.first().ok_or("no frame was seen")?;
    check_contiguous_to_a_cut(calm, first)
}

/// Runs the cases concurrently, since each takes as long as its clip.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lossy_lines_lose_no_broadcast() -> Result<(), Failure> {
    tokio::try_join!(
        what_is_lost_comes_again(),
        a_tenth_costs_next_to_nothing(),
        a_storm_passes()
    )?;
    Ok(())
}
