//! Scenario `zip`: a folder of photographs as one archive, compared with nginx and a file of the same size.
//!
//! One client downloads both in turn and discards the bytes. The page cache holds the files when memory is large
//! enough for both; then the figures are those of the servers, else those of the disk.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use serde_json::Value;
use sluice_testkit::{Failure, process::Figures};
use tokio::task::{JoinHandle, spawn_blocking};

use crate::{
    http::Client,
    image::nginx,
    report::share,
    service::{Service, with_key, workplace},
    upload::{Files, fill, noise},
};

const SILENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 256 * 1024;
/// Pages of the listing that are looked at.
const MOST_PAGES: usize = 2_000;

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    #[command(flatten)]
    files: Files,
    /// Whole downloads from each server, in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Downloads that are cut off after their first byte, for the times until it.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    starts: u32,
    /// First all downloads from the service, then all from nginx, each with its files in memory alone: for machines
    /// whose memory does not hold both.
    #[arg(long)]
    apart: bool,
    /// The program to measure.
    #[arg(long, default_value = "target/release/sluice")]
    program: PathBuf,
}

/// Measurement of a download.
#[derive(Clone, Copy, Debug)]
struct Download {
    status: u16,
    /// Length that the head declares.
    length: u64,
    received: u64,
    first_byte: Duration,
    lasted: Duration,
}

impl Download {
    fn gigabytes_per_second(&self) -> f64 {
        self.received as f64 / 1e9 / self.lasted.as_secs_f64()
    }
}

/// Runs the scenario and prints its figures.
pub(crate) async fn run(options: &Options) -> Result<(), Failure> {
    let (root, scratch) = workplace()?;
    let service = Service::start(&root.join(&options.program), scratch.path()).await?;
    let started = Instant::now();
    let folder = fill(&service, &options.files).await?;
    println!(
        "zip: {}, stored in {:.0} s",
        options.files,
        started.elapsed().as_secs_f64()
    );
    let ours = Source {
        address: service.address().to_owned(),
        path: format!("/api/folders/{folder}/zip"),
        headers: with_key("application/json"),
    };
    listing(&service, &folder).await?;
    let idle = service.server.figures()?;
    let length = starts(&ours, options.starts).await?;

    let mut sent = Vec::new();
    if options.apart {
        whole(&ours, length).await?;
        for _ in 0..options.rounds {
            sent.push(measured(&service, &ours, length).await?);
        }
    }
    let files = scratch.path().join("files");
    std::fs::create_dir_all(&files)?;
    write_noise(files.join("archive.zip"), length).await??;
    let peer = nginx(root, scratch.path(), &files).await?;
    let theirs = Source {
        address: peer.address.clone(),
        path: "/archive.zip".to_owned(),
        headers: String::new(),
    };
    // Fills the page cache with the files, as far as they fit.
    if !options.apart {
        whole(&ours, length).await?;
    }
    whole(&theirs, length).await?;
    let mut peers = Vec::new();
    for round in 0..options.rounds as usize {
        if !options.apart {
            sent.push(measured(&service, &ours, length).await?);
        }
        peers.push(whole(&theirs, length).await?);
        let nginx = peers[round].gigabytes_per_second();
        let mine = sent[round].download.gigabytes_per_second();
        println!(
            "  round {}          {mine:.2} GB/s in {:.2} s of processor time, nginx {nginx:.2} GB/s: {:.2} ×",
            round + 1,
            sent[round].cpu.as_secs_f64(),
            mine / nginx,
        );
    }
    let peak_kib = sent.iter().map(|it| it.peak_kib).max().unwrap_or_default();
    let (mine, nginx) = (
        median(sent.iter().map(|it| it.download)),
        median(peers.iter().copied()),
    );
    println!(
        "  throughput       {mine:.2} GB/s, nginx {nginx:.2} GB/s, the medians: {:.2} ×",
        mine / nginx
    );
    println!(
        "  memory           {:.1} MiB idle, {:.1} MiB at most while sending",
        idle.resident_kib as f64 / 1024.0,
        peak_kib as f64 / 1024.0
    );
    Ok(())
}

/// In gigabytes a second.
fn median(downloads: impl Iterator<Item = Download>) -> f64 {
    let mut rates: Vec<f64> = downloads.map(|it| it.gigabytes_per_second()).collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn cpu(before: Figures, after: Figures) -> Duration {
    after.cpu.saturating_sub(before.cpu)
}

/// Prints how long the pages of a link to the folder take, one after the other as a reader has them.
async fn listing(service: &Service, folder: &str) -> Result<(), Failure> {
    let shared = service
        .post(&format!("/api/folders/{folder}/share"), "{}")
        .await?;
    let token = shared["share"]["token"].as_str().ok_or("no token")?;
    let mut client = Client::new(service.address());
    let mut times = Vec::new();
    let mut query = String::new();
    for _ in 0..MOST_PAGES {
        let started = Instant::now();
        let page = client
            .get(&format!("/api/share/folder/{token}{query}"))
            .await?;
        times.push(started.elapsed());
        if page.status != 200 {
            return Err(format!("a page of the listing: {} {}", page.status, page.text()).into());
        }
        let page: Value = serde_json::from_slice(&page.body)?;
        match page["nextCursor"].as_str() {
            Some(cursor) => query = format!("?cursor={cursor}"),
            None => break,
        }
    }
    let first = times[0];
    times.sort_unstable();
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    println!(
        "  listing          {} pages: median {:.2} ms, 99 % {:.2} ms, the first with its sums {:.1} ms",
        times.len(),
        ms(share(&times, 0.5)),
        ms(share(&times, 0.99)),
        ms(first)
    );
    Ok(())
}

fn write_noise(path: PathBuf, length: u64) -> JoinHandle<Result<(), Failure>> {
    spawn_blocking(move || {
        let mut file = std::fs::File::create(path)?;
        let mut piece = vec![0; 1 << 20];
        let mut left = length;
        while left > 0 {
            noise(left, &mut piece);
            let count = left.min(piece.len() as u64);
            file.write_all(&piece[..count as usize])?;
            left -= count;
        }
        file.sync_all()?;
        Ok(())
    })
}

/// Prints the times to the first byte, of the whole and at 90 %; the archive's length.
async fn starts(ours: &Source, count: u32) -> Result<u64, Failure> {
    let length = ours.download("", Some(1)).await?.length;
    for (title, headers) in [
        ("first byte", String::new()),
        (
            "resume at 90 %",
            format!("Range: bytes={}-\r\n", length / 10 * 9),
        ),
    ] {
        let mut times = Vec::new();
        for _ in 0..count {
            times.push(ours.download(&headers, Some(1)).await?.first_byte);
        }
        times.sort_unstable();
        let at = |part| share(&times, part).as_secs_f64() * 1000.0;
        println!(
            "  {title:<16} median {:.0} ms, most {:.0} ms",
            at(0.5),
            at(1.0)
        );
    }
    println!("  length           {:.2} GB", length as f64 / 1e9);
    Ok(length)
}

async fn whole(source: &Source, length: u64) -> Result<Download, Failure> {
    let download = source.download("", None).await?;
    if download.status != 200 || download.received != length {
        return Err(format!("{}: {download:?} instead of {length} bytes", source.path).into());
    }
    Ok(download)
}

/// A whole download from the service.
struct Sent {
    download: Download,
    cpu: Duration,
    /// The most memory that the service had during it.
    peak_kib: u64,
}

async fn measured(service: &Service, ours: &Source, length: u64) -> Result<Sent, Failure> {
    let before = service.server.figures()?;
    let mut peak_kib = 0;
    let mut download = std::pin::pin!(whole(ours, length));
    let download = loop {
        tokio::select! {
            download = &mut download => break download?,
            () = tokio::time::sleep(LOOK_AGAIN) => {
                peak_kib = peak_kib.max(service.server.figures()?.resident_kib);
            }
        }
    };
    Ok(Sent {
        download,
        cpu: cpu(before, service.server.figures()?),
        peak_kib,
    })
}

/// Something to download.
#[derive(Clone, Debug)]
struct Source {
    address: String,
    path: String,
    /// Whole lines, each with its line end.
    headers: String,
}

impl Source {
    /// Up to so many bytes of the body, on a connection and a thread of its own.
    async fn download(&self, headers: &str, most: Option<u64>) -> Result<Download, Failure> {
        let request = format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{}{headers}\r\n",
            self.path, self.address, self.headers
        );
        let address = self.address.clone();
        spawn_blocking(move || read(&address, &request, most)).await?
    }
}

fn read(address: &str, request: &str, most: Option<u64>) -> Result<Download, Failure> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(SILENCE))?;
    let started = Instant::now();
    connection.write_all(request.as_bytes())?;
    let mut buffer = vec![0; READ_BYTES];
    let mut filled = 0;
    let body_at = loop {
        let count = connection.read(&mut buffer[filled..])?;
        if count == 0 {
            return Err("the answer ends in its head".into());
        }
        filled += count;
        if let Some(end) = buffer[..filled].windows(4).position(|it| it == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = std::str::from_utf8(&buffer[..body_at])?.to_ascii_lowercase();
    let status = head.get(9..12).unwrap_or_default().parse()?;
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
        .ok_or("no length")?;
    let mut received = (filled - body_at) as u64;
    let mut first_byte = (received > 0).then(|| started.elapsed());
    while received < most.unwrap_or(length).min(length) {
        let count = connection.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        first_byte.get_or_insert_with(|| started.elapsed());
        received += count as u64;
    }
    Ok(Download {
        status,
        length,
        received,
        first_byte: first_byte.unwrap_or_default(),
        lasted: started.elapsed(),
    })
}
