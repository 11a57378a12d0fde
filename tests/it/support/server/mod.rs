//! The service under test: the real binary on loopback ports, killed and started again as a scenario asks.

mod api;

use std::{
    fs::{File, OpenOptions},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::Duration,
};

use bytes::Bytes;
use reqwest::StatusCode;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use sluice_testkit::process;
use tempfile::TempDir;
use tokio::{
    process::{Child, Command},
    time::{Instant, timeout},
};

pub use self::api::{Api, Fetched, Form, Input};
use super::{Failure, checker::MediaPlaylist, eventually, http, media::target_folder};

/// The bootstrap key: `svc_` and 43 base62 characters.
pub const API_KEY: &str = "svc_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG";
pub const ADMIN_PASSWORD: &str = "correct horse battery staple";

/// A first start migrates a database and hashes a password, in a debug build on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(30);
const STOP_DEADLINE: Duration = Duration::from_secs(40);
/// Bytes of the log that are shown when a scenario fails.
const SHOWN_BYTES: usize = 16 * 1024;

/// Settings for the start of the service.
#[derive(Debug, Default)]
pub struct Settings {
    environment: Vec<(String, String)>,
    data_dir: Option<PathBuf>,
    tls: bool,
}

/// `{data_dir}/addresses.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Addresses {
    pub http: SocketAddr,
    pub https: bool,
    pub rtmp: SocketAddr,
    pub rtmps: Option<SocketAddr>,
    pub srt: Option<SocketAddr>,
    /// UDP port of the WebRTC gateway.
    pub webrtc: Option<SocketAddr>,
    pub webrtc_tcp: Option<SocketAddr>,
}

/// The service and the folder it lives in. The process is killed when this is dropped, and its log's end printed, which
/// the test harness shows for a scenario that failed.
#[derive(Debug)]
pub struct Server {
    /// Kept for its end.
    _folder: TempDir,
    greeting: PathBuf,
    log: PathBuf,
    data_dir: PathBuf,
    environment: Vec<(String, String)>,
    child: Option<Child>,
    addresses: Addresses,
    ready_after: Duration,
}

impl Settings {
    pub fn new() -> Self {
        Self::default()
    }

    /// For instance `SLUICE_LIVE__WINDOW`, `60s`.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The service may send requests to receivers on this machine.
    pub fn reaching_this_machine(self) -> Self {
        self.env("SLUICE_OUTBOUND__ALLOW", "127.0.0.0/8")
    }

    /// An existing folder instead of a fresh one.
    pub fn data_dir(mut self, path: &Path) -> Self {
        self.data_dir = Some(path.to_owned());
        self
    }

    /// HTTPS and RTMPS with a certificate that no one trusts.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Starts the service and waits until it is ready.
    pub async fn start(self) -> Result<Server, Failure> {
        let scratch = target_folder().join("tmp");
        std::fs::create_dir_all(&scratch)?;
        let folder = TempDir::with_prefix_in("it-", scratch)?;
        let mut environment: Vec<(String, String)> = [
            ("SLUICE_HTTP__LISTEN", "127.0.0.1:0"),
            ("SLUICE_RTMP__LISTEN", "127.0.0.1:0"),
            ("SLUICE_RTMP__TLS_LISTEN", "127.0.0.1:0"),
            ("SLUICE_SRT__LISTEN", "127.0.0.1:0"),
            ("SLUICE_WEBRTC__LISTEN", "127.0.0.1:0"),
            ("SLUICE_WEBRTC__TCP_LISTEN", "127.0.0.1:0"),
            ("SLUICE_BOOTSTRAP__API_KEY", API_KEY),
            ("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", ADMIN_PASSWORD),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        if self.tls {
            environment.extend(certificate(folder.path())?);
        }
        environment.extend(self.environment);
        let mut server = Server {
            greeting: folder.path().join("greeting.txt"),
            log: folder.path().join("sluice.log"),
            data_dir: self.data_dir.unwrap_or_else(|| folder.path().join("data")),
            _folder: folder,
            environment,
            child: None,
            addresses: Addresses {
                http: ([127, 0, 0, 1], 0).into(),
                https: false,
                rtmp: ([127, 0, 0, 1], 0).into(),
                rtmps: None,
                srt: None,
                webrtc: None,
                webrtc_tcp: None,
            },
            ready_after: Duration::ZERO,
        };
        server.launch().await?;
        Ok(server)
    }
}

/// Settings of the database for a data folder: with `SLUICE_TEST_POSTGRES` a schema of its own there, else none.
pub fn database_of(data_dir: &Path) -> Vec<(&'static str, String)> {
    let Ok(database_url) = std::env::var("SLUICE_TEST_POSTGRES") else {
        return Vec::new();
    };
    let mut hasher = DefaultHasher::new();
    data_dir.hash(&mut hasher);
    vec![
        ("SLUICE_STORE__DATABASE_URL", database_url),
        (
            "SLUICE_STORE__DATABASE_SCHEMA",
            format!("it_{:016x}", hasher.finish()),
        ),
    ]
}

impl Server {
    /// With default settings and a fresh data folder.
    pub async fn start() -> Result<Self, Failure> {
        Settings::new().start().await
    }

    /// Starts the killed or stopped service again: the same data, the same ports.
    pub async fn restart(&mut self) -> Result<(), Failure> {
        if self.child.is_some() {
            return Err("the service still runs".into());
        }
        self.launch().await
    }

    async fn launch(&mut self) -> Result<(), Failure> {
        let announced = self.data_dir.join("addresses.json");
        // Removed, so that a later file was written by this start.
        if announced.exists() {
            std::fs::remove_file(&announced)?;
        }
        let append = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
        let (greeting, log) = (append(&self.greeting)?, append(&self.log)?);
        let started = Instant::now();
        self.child = Some(self.command(greeting, log).spawn()?);
        let addresses = eventually("addresses.json", START_DEADLINE, async || {
            if !self.is_running() {
                return Some(Err("the service ended at its start"));
            }
            let json = std::fs::read(&announced).ok()?;
            serde_json::from_slice::<Addresses>(&json).ok().map(Ok)
        });
        self.addresses = addresses.await??;
        self.wait_ready(START_DEADLINE).await?;
        self.ready_after = started.elapsed();
        Ok(())
    }

    fn command(&self, greeting: File, log: File) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sluice"));
        // Variables of the developer's shell are no part of the scenario.
        let inherited = std::env::vars().map(|(name, _)| name);
        for name in inherited.filter(|name| name.starts_with("SLUICE_")) {
            command.env_remove(name);
        }
        command
            .arg("serve")
            // The usual twentieth of a large disk may be more than this machine has left.
            .env("SLUICE_STORE__MIN_FREE", "64 MB")
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("SLUICE_STORE__DATA_DIR", &self.data_dir)
            .envs(database_of(&self.data_dir))
            .stdin(Stdio::null())
            .stdout(greeting)
            .stderr(log)
            .kill_on_drop(true);
        if self.addresses.http.port() != 0 {
            command.env("SLUICE_HTTP__LISTEN", self.addresses.http.to_string());
            command.env("SLUICE_RTMP__LISTEN", self.addresses.rtmp.to_string());
        }
        if let Some(rtmps) = self.addresses.rtmps {
            command.env("SLUICE_RTMP__TLS_LISTEN", rtmps.to_string());
        }
        for (name, address) in [
            ("SLUICE_SRT__LISTEN", self.addresses.srt),
            ("SLUICE_WEBRTC__LISTEN", self.addresses.webrtc),
            ("SLUICE_WEBRTC__TCP_LISTEN", self.addresses.webrtc_tcp),
        ] {
            command.envs(address.map(|address| (name, address.to_string())));
        }
        command
    }

    /// Waits for `/readyz` to answer 200.
    pub async fn wait_ready(&self, deadline: Duration) -> Result<(), Failure> {
        let (client, url) = (http::client(), format!("{}/readyz", self.base_url()));
        eventually("/readyz is 200", deadline, async || {
            let answer = client.get(&url).send().await.ok()?;
            (answer.status() == 200).then_some(())
        })
        .await
    }

    /// From the process's start to the first 200 of `/readyz`.
    pub fn ready_after(&self) -> Duration {
        self.ready_after
    }

    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Without a slash at its end.
    pub fn base_url(&self) -> String {
        let scheme = if self.addresses.https {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.addresses.http)
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Names in the folder of temporary files.
    pub fn temporary_files(&self) -> Result<usize, Failure> {
        Ok(std::fs::read_dir(self.data_dir.join("tmp"))?.count())
    }

    /// Waits until spooled files are removed, which is soon after their request has ended.
    pub async fn nothing_temporary_is_left(&self, deadline: Duration) -> Result<(), Failure> {
        eventually("no temporary file is left", deadline, async || {
            (self.temporary_files().ok()? == 0).then_some(())
        })
        .await
    }

    /// With the bootstrap key.
    pub fn api(&self) -> Api {
        Api::new(
            self.base_url(),
            API_KEY,
            self.addresses.rtmp,
            self.addresses.rtmps,
        )
    }

    /// Fetches a path as a viewer, such as [`Input::playback_path`] gives.
    pub async fn get(&self, path: &str) -> Result<(StatusCode, Bytes), Failure> {
        let url = format!("{}{path}", self.base_url());
        let answer = http::client().get(url).send().await?;
        Ok((answer.status(), answer.bytes().await?))
    }

    /// The media playlist of this moment; `None` when nothing is on air.
    pub async fn playlist(&self, input: &Input) -> Result<Option<MediaPlaylist>, Failure> {
        let (status, body) = self.get(&input.playback_path("media.m3u8")).await?;
        match status {
            StatusCode::OK => {
                let text = String::from_utf8(body.into())?;
                Ok(Some(MediaPlaylist::parse(&text)?))
            }
            StatusCode::NOT_FOUND => Ok(None),
            status => Err(format!("media.m3u8: {status}").into()),
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child
            .as_mut()
            .is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().and_then(Child::id)
    }

    /// Sends SIGKILL and waits for the end of the process.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        let mut child = self.child.take().ok_or("the service does not run")?;
        Ok(child.kill().await?)
    }

    /// Sends SIGTERM and waits for the end of the process.
    pub async fn terminate(&mut self) -> Result<ExitStatus, Failure> {
        self.signal(Signal::TERM)?;
        self.wait(STOP_DEADLINE).await
    }

    pub fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let id = self.process_id().ok_or("the service does not run")?;
        let pid = Pid::from_raw(i32::try_from(id)?).ok_or("no process id")?;
        Ok(kill_process(pid, signal)?)
    }

    /// Waits for the process's end.
    pub async fn wait(&mut self, deadline: Duration) -> Result<ExitStatus, Failure> {
        let mut child = self.child.take().ok_or("the service does not run")?;
        match timeout(deadline, child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => {
                self.child = Some(child);
                Err(format!("the service runs on after {deadline:?}").into())
            }
        }
    }

    /// Resident memory in KiB.
    pub fn resident_kib(&self) -> Result<u64, Failure> {
        self.status_field("VmRSS:")
    }

    /// The most resident memory so far, in KiB.
    pub fn peak_resident_kib(&self) -> Result<u64, Failure> {
        self.status_field("VmHWM:")
    }

    pub fn threads(&self) -> Result<u64, Failure> {
        self.status_field("Threads:")
    }

    pub fn open_files(&self) -> Result<usize, Failure> {
        let id = self.process_id().ok_or("the service does not run")?;
        Ok(std::fs::read_dir(format!("/proc/{id}/fd"))?.count())
    }

    fn status_field(&self, name: &str) -> Result<u64, Failure> {
        let id = self.process_id().ok_or("the service does not run")?;
        Ok(process::status_field(id, name).ok_or_else(|| format!("no {name} of process {id}"))?)
    }

    /// The file that the service logs to.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Everything that the service logged, over all its starts.
    pub fn log(&self) -> String {
        text(&self.log)
    }

    /// Returns the greetings of the service at its starts.
    pub fn greeting(&self) -> String {
        text(&self.greeting)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Reads that succeeded are left out: a wait repeats them until nothing else is left of the log.
        let log = self.log();
        let lines = log.split_inclusive('\n');
        let log: String = lines.filter(|line| !is_good_read(line)).collect();
        let from = log.len().saturating_sub(SHOWN_BYTES);
        let from = (from..=log.len())
            .find(|&at| log.is_char_boundary(at))
            .unwrap_or(0);
        eprintln!("--- the service's log:\n{}---", &log[from..]);
    }
}

fn is_good_read(line: &str) -> bool {
    line.contains(" answered method=GET ") && line.contains(" status=200 ")
}

fn text(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// Makes a certificate for loopback; the settings that name it.
fn certificate(folder: &Path) -> Result<[(String, String); 2], Failure> {
    let made =
        rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&cert, made.cert.pem())?;
    std::fs::write(&key, made.signing_key.serialize_pem())?;
    let setting = |name: &str, path: PathBuf| (name.to_owned(), path.display().to_string());
    Ok([
        setting("SLUICE_HTTP__TLS_CERT", cert),
        setting("SLUICE_HTTP__TLS_KEY", key),
    ])
}
