//! S3 servers: SeaweedFS, which keeps what it acknowledged over a kill; moto and rclone, which lack what it has.

use std::{net::SocketAddr, path::PathBuf, process::Command, time::Duration};

use reqwest::Method;
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;

use super::{
    Failure, eventually,
    process::{Process, free_address, program, root, show_end},
};

/// SeaweedFS elects itself first, and reads what it has.
const START_DEADLINE: Duration = Duration::from_secs(60);
const BUCKET: &str = "sluice";
/// Keys of all servers.
pub const ACCESS_KEY: &str = "sluice";
pub const SECRET_KEY: &str = "secret-of-a-test";

/// Program that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    SeaweedFs,
    Moto,
    Rclone,
}

/// The server; it ends when this is dropped.
pub struct Objects {
    kind: Kind,
    folder: TempDir,
    /// That of S3.
    address: SocketAddr,
    /// SeaweedFS's other ports: pairs of HTTP and gRPC of master, volume and filer, and gRPC of S3.
    others: Vec<SocketAddr>,
    process: Option<Process>,
}

impl Objects {
    /// Starts a server with an empty bucket.
    pub async fn start(kind: Kind) -> Result<Self, Failure> {
        let others = match kind {
            Kind::SeaweedFs => (0..7).map(|_| free_address()).collect::<Result<_, _>>()?,
            _ => Vec::new(),
        };
        let mut server = Self {
            kind,
            folder: TempDir::with_prefix("sluice-cluster-")?,
            address: free_address()?,
            others,
            process: None,
        };
        std::fs::create_dir_all(server.folder.path().join("data").join(BUCKET))?;
        server.launch().await?;
        server.make_bucket().await?;
        Ok(server)
    }

    /// Starts the killed server again on the same data and ports.
    pub async fn launch(&mut self) -> Result<(), Failure> {
        let mut process = Process::start("the S3 server", &mut self.command()?, &self.log())?;
        let (client, url) = (super::api::client(), format!("http://{}/", self.address));
        // Without a signature it is no more than an answer.
        eventually("the S3 server answers", START_DEADLINE, async || {
            if !process.is_running() {
                return Some(Err("the S3 server ended at its start"));
            }
            client.get(&url).send().await.ok().map(|_| Ok(()))
        })
        .await??;
        self.process = Some(process);
        Ok(())
    }

    pub fn kill(&mut self) -> Result<(), Failure> {
        let process = self.process.take().ok_or("the S3 server does not run")?;
        process.end(Signal::KILL)?;
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Setting `store.objects_url` of a node that reaches the server at this address.
    pub fn url_at(address: SocketAddr) -> String {
        format!("s3://{BUCKET}?endpoint=http://{address}")
    }

    fn command(&self) -> Result<Command, Failure> {
        let data = self.folder.path().join("data");
        let address = self.address.to_string();
        let mut command;
        match self.kind {
            Kind::SeaweedFs => {
                let keys = self.folder.path().join("keys.json");
                let identity = json!({
                    "name": "sluice",
                    "actions": ["Admin"],
                    "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
                });
                std::fs::write(&keys, json!({"identities": [identity]}).to_string())?;
                command = Command::new(program("weed", "seaweedfs/bin/weed")?);
                command
                    .arg("server")
                    .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3"])
                    .args(["-master.telemetry=false", "-master.electionTimeout=1s"])
                    .args(["-master.volumeSizeLimitMB=256", "-volume.max=64"])
                    .arg(format!("-dir={}", data.display()))
                    .arg(format!("-s3.config={}", keys.display()))
                    .arg(format!("-s3.port={}", self.address.port()));
                let options = [
                    "master.port",
                    "master.port.grpc",
                    "volume.port",
                    "volume.port.grpc",
                    "filer.port",
                    "filer.port.grpc",
                    "s3.port.grpc",
                ];
                for (option, address) in options.iter().zip(&self.others) {
                    command.arg(format!("-{option}={}", address.port()));
                }
                for part in ["filer", "s3"] {
                    let socket = self.folder.path().join(format!("{part}.sock"));
                    command.arg(format!("-{part}.localSocket={}", socket.display()));
                }
            }
            Kind::Moto => {
                command = Command::new("python3");
                let libraries = root().join("target/tools/moto");
                command
                    .env("PYTHONPATH", libraries)
                    .args(["-m", "moto.server", "-H", "127.0.0.1", "-p"])
                    .arg(self.address.port().to_string());
            }
            Kind::Rclone => {
                command = Command::new(program("rclone", "rclone/bin/rclone")?);
                command
                    .args(["serve", "s3", "--addr", &address, "--auth-key"])
                    .arg(format!("{ACCESS_KEY},{SECRET_KEY}"))
                    .args(["--config", "/dev/null", "--vfs-cache-mode", "off"])
                    .arg(data);
            }
        }
        command.current_dir(self.folder.path());
        Ok(command)
    }

    /// A bucket is a folder of SeaweedFS's file service and of rclone's, and moto asks for no signature.
    async fn make_bucket(&self) -> Result<(), Failure> {
        let client = super::api::client();
        let (url, method) = match self.kind {
            Kind::Rclone => return Ok(()),
            Kind::SeaweedFs => (
                format!("http://{}/buckets/{BUCKET}/", self.others[4]),
                Method::POST,
            ),
            Kind::Moto => (format!("http://{}/{BUCKET}", self.address), Method::PUT),
        };
        eventually("the S3 server has a bucket", START_DEADLINE, async || {
            let asked = client.request(method.clone(), &url).send().await.ok()?;
            asked.status().is_success().then_some(())
        })
        .await
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        drop(self.process.take());
        // By these its parts call each other; it leaves them behind.
        for address in &self.others {
            for part in ["master", "volume", "filer", "s3"] {
                let socket = format!("/tmp/seaweedfs-{part}-grpc-{}.sock", address.port());
                let _ = std::fs::remove_file(socket);
            }
        }
        show_end("S3 server", &self.log());
    }
}
