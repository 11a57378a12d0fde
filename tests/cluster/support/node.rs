//! A node: the program with a data folder, fixed ports, and a relay before each of PostgreSQL, S3 and its listener for other
//! nodes.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use sluice_testkit::relay::{Line, Relay};
use tempfile::TempDir;

use super::{
    Failure,
    api::{ADMIN_PASSWORD, API_KEY, Api, client},
    cpu_share::CpuShare,
    eventually,
    objects::{ACCESS_KEY, Objects, SECRET_KEY},
    process::{Process, free_address, show_end},
};

/// A first start migrates a database, in a debug build on a busy machine.
const START_DEADLINE: Duration = Duration::from_secs(60);

/// Path of the program of all nodes; the debug build of these tests without it.
const PROGRAM: &str = "SLUICE_TEST_PROGRAM";

/// A node; its process is killed when this is dropped.
pub struct Node {
    pub name: String,
    folder: TempDir,
    pub http: SocketAddr,
    pub rtmp: SocketAddr,
    peer: SocketAddr,
    srt: SocketAddr,
    webrtc: SocketAddr,
    pub to_postgres: Relay,
    pub to_objects: Relay,
    /// Through which other nodes reach this one.
    pub from_peers: Relay,
    /// Further settings: names of variables and values.
    environment: Vec<(String, String)>,
    program: PathBuf,
    process: Option<Process>,
    /// Dropped after the process.
    cpu_share: Option<CpuShare>,
}

impl Node {
    /// Makes a node that does not run yet.
    pub async fn new(
        number: usize,
        postgres: SocketAddr,
        objects: SocketAddr,
        environment: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let peer = free_address()?;
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Ok(Self {
            name: format!("node{number}"),
            folder: TempDir::with_prefix("sluice-cluster-")?,
            http: free_address()?,
            rtmp: free_address()?,
            peer,
            srt: free_address()?,
            webrtc: free_address()?,
            to_postgres: Relay::of_postgres(postgres).await?,
            to_objects: Relay::of_http(objects).await?,
            from_peers: Relay::of_http(peer).await?,
            environment: environment.iter().map(owned).collect(),
            program: program(),
            process: None,
            cpu_share: None,
        })
    }

    /// Another program from the next start on.
    pub fn set_program(&mut self, program: &Path) {
        self.program = program.to_owned();
    }

    /// Bounds the processor time from the next start on.
    pub fn set_cpu_share(&mut self, share: CpuShare) {
        self.cpu_share = Some(share);
    }

    pub fn process_id(&self) -> Result<u32, Failure> {
        let process = self.process.as_ref();
        Ok(process.ok_or("the node does not run")?.id())
    }

    /// Adds variables from the next start on.
    pub fn set_environment(&mut self, variables: &[(&str, &str)]) {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        self.environment.extend(variables.iter().map(owned));
    }

    /// Starts the process without waiting for anything.
    pub fn launch(&mut self) -> Result<(), Failure> {
        if self.process.is_some() {
            return Err(format!("{} runs already", self.name).into());
        }
        let mut command = self.command();
        command.arg("serve");
        if let Some(share) = &self.cpu_share {
            command = share.of(&command);
        }
        self.process = Some(Process::start(&self.name, &mut command, &self.log())?);
        Ok(())
    }

    /// The program with the settings of this node and no sub-command yet.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Variables of the developer's shell are no part of the scenario.
        let inherited = std::env::vars().map(|(name, _)| name);
        for name in inherited.filter(|name| name.starts_with("SLUICE_")) {
            command.env_remove(name);
        }
        let database = format!(
            "postgres://postgres@{}/postgres",
            self.to_postgres.address()
        );
        let of_relay = |relay: &Relay| relay.address();
        command
            .env("SLUICE_STORE__DATA_DIR", self.folder.path().join("data"))
            // The usual twentieth of a large disk may be more than this machine has left.
            .env("SLUICE_STORE__MIN_FREE", "64 MB")
            .env("SLUICE_STORE__DATABASE_URL", database)
            .env(
                "SLUICE_STORE__OBJECTS_URL",
                Objects::url_at(of_relay(&self.to_objects)),
            )
            .env("SLUICE_STORE__OBJECTS_ACCESS_KEY", ACCESS_KEY)
            .env("SLUICE_STORE__OBJECTS_SECRET_KEY", SECRET_KEY)
            .env("SLUICE_CLUSTER__NAME", &self.name)
            .env("SLUICE_CLUSTER__LISTEN", self.peer.to_string())
            .env(
                "SLUICE_CLUSTER__ADVERTISE",
                of_relay(&self.from_peers).to_string(),
            )
            .env("SLUICE_HTTP__LISTEN", self.http.to_string())
            .env("SLUICE_HTTP__TRUSTED_PROXIES", "127.0.0.1")
            .env("SLUICE_RTMP__LISTEN", self.rtmp.to_string())
            .env("SLUICE_SRT__LISTEN", self.srt.to_string())
            .env("SLUICE_WEBRTC__LISTEN", self.webrtc.to_string())
            .env("SLUICE_WEBRTC__TCP_LISTEN", self.webrtc.to_string())
            .env("SLUICE_OUTBOUND__ALLOW", "127.0.0.0/8")
            .env("SLUICE_BOOTSTRAP__API_KEY", API_KEY)
            .env("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", ADMIN_PASSWORD)
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Waits for `/readyz` to answer 200.
    pub async fn wait_ready(&mut self) -> Result<(), Failure> {
        let (client, url) = (client(), format!("http://{}/readyz", self.http));
        let process = self.process.as_mut().ok_or("the node does not run")?;
        let ready = eventually("a node is ready", START_DEADLINE, async || {
            if !process.is_running() {
                return Some(Err("a node ended at its start"));
            }
            let answer = client.get(&url).send().await.ok()?;
            answer.status().is_success().then_some(Ok(()))
        });
        let ready: Result<Result<(), &str>, Failure> = ready.await;
        ready?.map_err(|reason| format!("{}: {reason}", self.name).into())
    }

    pub async fn start(&mut self) -> Result<(), Failure> {
        self.launch()?;
        self.wait_ready().await
    }

    pub fn is_running(&mut self) -> bool {
        self.process.as_mut().is_some_and(Process::is_running)
    }

    /// Sends SIGKILL and waits for the end.
    pub fn kill(&mut self) -> Result<(), Failure> {
        let process = self.process.take().ok_or("the node does not run")?;
        process.end(Signal::KILL)?;
        Ok(())
    }

    /// Sends SIGTERM and waits for the end, on a thread that may block.
    pub async fn terminate(&mut self) -> Result<(), Failure> {
        let process = self.process.take().ok_or("the node does not run")?;
        let ended = tokio::task::spawn_blocking(move || process.end(Signal::TERM)).await?;
        match ended? {
            true => Ok(()),
            false => Err(format!("{} did not end well", self.name).into()),
        }
    }

    /// Sends a signal that does not end it.
    pub fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let process = self.process.as_ref();
        process.ok_or("the node does not run")?.signal(signal)
    }

    /// Sets its lines to PostgreSQL, S3 and from other nodes.
    pub fn set_lines(&self, line: Line) {
        for relay in [&self.to_postgres, &self.to_objects, &self.from_peers] {
            relay.set(line);
        }
    }

    /// With the bootstrap key.
    pub fn api(&self) -> Api {
        Api::new(format!("http://{}", self.http))
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Address of its listener for other nodes, without the relay.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

/// Returns the program that the nodes run.
pub fn program() -> PathBuf {
    let given = std::env::var_os(PROGRAM).filter(|path| !path.is_empty());
    given.map_or_else(|| env!("CARGO_BIN_EXE_sluice").into(), PathBuf::from)
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.process.take());
        show_end(&self.name, &self.log());
    }
}
