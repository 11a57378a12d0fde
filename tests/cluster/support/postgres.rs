//! A PostgreSQL server that scenarios stop at once and start again.

use std::{
    net::SocketAddr,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{
    Failure, eventually,
    process::{Process, free_address, show_end},
};

/// A new server recovers from its log first.
const START_DEADLINE: Duration = Duration::from_secs(60);
/// Commits are in files when a process dies; only a power loss needs more.
const SETTINGS: &str = "
synchronous_commit = on
fsync = off
full_page_writes = off
max_connections = 200
shared_buffers = 128MB
";

/// User and group without rights, on each Debian.
const WITHOUT_RIGHTS: (u32, u32) = (65_534, 65_534);

/// The server; it ends when this is dropped.
pub struct Postgres {
    folder: TempDir,
    address: SocketAddr,
    /// User and group that it runs as, when this process is root, whom it rejects.
    user: Option<(u32, u32)>,
    process: Option<Process>,
}

impl Postgres {
    /// Starts an empty server.
    pub async fn start() -> Result<Self, Failure> {
        let mut server = Self {
            // Not in target/: the path of a socket is short, and the server's user may not come there.
            folder: TempDir::with_prefix("sluice-cluster-")?,
            address: free_address()?,
            user: server_user()?,
            process: None,
        };
        server.make()?;
        server.launch().await?;
        Ok(server)
    }

    fn make(&self) -> Result<(), Failure> {
        let data = self.data();
        std::fs::create_dir(&data)?;
        if let Some((user, group)) = self.user {
            chown(&data, Some(user), Some(group))?;
            std::fs::set_permissions(self.folder.path(), PermissionsExt::from_mode(0o711))?;
        }
        let made = self
            .command("initdb")?
            .arg("--pgdata")
            .arg(&data)
            .args(["--username=postgres", "--auth=trust", "--no-sync"])
            .args(["--locale=C.UTF-8", "--encoding=UTF8", "--no-instructions"])
            .output()?;
        if !made.status.success() {
            return Err(format!("initdb: {}", String::from_utf8_lossy(&made.stderr)).into());
        }
        let file = data.join("postgresql.conf");
        let given = std::fs::read_to_string(&file)?;
        Ok(std::fs::write(file, given + SETTINGS)?)
    }

    /// Starts the stopped server again on the same data and port.
    pub async fn launch(&mut self) -> Result<(), Failure> {
        let mut command = self.command("postgres")?;
        command.arg("-D").arg(self.data()).args([
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "unix_socket_directories=",
            "-p",
            &self.address.port().to_string(),
        ]);
        let mut process = Process::start("PostgreSQL", &mut command, &self.log())?;
        eventually("PostgreSQL answers", START_DEADLINE, async || {
            if !process.is_running() {
                return Some(Err("PostgreSQL ended at its start"));
            }
            accepts(self.address).await.then_some(Ok(()))
        })
        .await??;
        self.process = Some(process);
        Ok(())
    }

    /// Stops it as a crash does: sessions end without a word, and the next start recovers (`pg_ctl stop -m immediate`).
    pub fn stop_at_once(&mut self) -> Result<(), Failure> {
        let process = self.process.take().ok_or("PostgreSQL does not run")?;
        // Its exit status says that it was no clean stop.
        process.end(Signal::QUIT)?;
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Asks by psql as the superuser; the rows as lines, columns separated by `|`.
    pub fn ask(&self, sql: &str) -> Result<Vec<String>, Failure> {
        let url = format!("postgres://postgres@{}/postgres", self.address);
        let asked = Command::new(programs()?.join("psql"))
            .args([
                "--no-psqlrc",
                "--tuples-only",
                "--no-align",
                "--command",
                sql,
                &url,
            ])
            .output()?;
        if !asked.status.success() {
            return Err(format!("{sql}: {}", String::from_utf8_lossy(&asked.stderr)).into());
        }
        let rows = String::from_utf8(asked.stdout)?;
        Ok(rows.lines().map(str::to_owned).collect())
    }

    fn command(&self, name: &str) -> Result<Command, Failure> {
        let program = programs()?.join(name);
        let mut command = match self.user {
            None => Command::new(program),
            Some((user, group)) => {
                let mut command = Command::new("setpriv");
                command
                    .args([format!("--reuid={user}"), format!("--regid={group}")])
                    .arg("--clear-groups")
                    .arg(program);
                command
            }
        };
        command.current_dir(self.folder.path());
        Ok(command)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("server.log")
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its own processes end with it, unlike after a SIGKILL.
        if let Some(process) = self.process.take() {
            let _ = process.end(Signal::QUIT);
        }
        show_end("PostgreSQL", &self.log());
    }
}

/// Returns whether the server takes sessions: one that recovers has its port open already, and closes what comes.
async fn accepts(address: SocketAddr) -> bool {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let asking = async {
        let mut socket = TcpStream::connect(address).await?;
        // The request for TLS is answered by one letter, then the start of a session by its first message.
        let user = b"user\0postgres\0\0";
        let length = u32::try_from(8 + user.len()).expect("it is short");
        let start = [&length.to_be_bytes()[..], &[0, 3, 0, 0], user].concat();
        socket.write_all(&start).await?;
        socket.read_u8().await
    };
    // `R` begins the answer about the authentication, `E` an error.
    asking.await.is_ok_and(|kind: u8| kind == b'R')
}

/// Returns the folder of the newest server's programs; Debian keeps them out of PATH.
fn programs() -> Result<PathBuf, Failure> {
    let mut found = Vec::new();
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    for version in versions.into_iter().flatten().flatten() {
        let folder = version.path().join("bin");
        let number: Option<u32> = version.file_name().to_string_lossy().parse().ok();
        if folder.join("initdb").exists() {
            found.push((number, folder));
        }
    }
    found.sort();
    if let Some((_, folder)) = found.pop() {
        return Ok(folder);
    }
    let initdb = super::process::program("initdb", "postgresql/bin/initdb")?;
    let folder = initdb.parent().map(Path::to_owned);
    Ok(folder.ok_or("initdb is in no folder")?)
}

/// Returns whom the server runs as; `None` when this process is not root.
fn server_user() -> Result<Option<(u32, u32)>, Failure> {
    if !rustix::process::getuid().is_root() {
        return Ok(None);
    }
    let id = |option: &str| -> Option<u32> {
        let asked = Command::new("id").args([option, "postgres"]).output();
        String::from_utf8(asked.ok()?.stdout)
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    Ok(id("-u").zip(id("-g")).or(Some(WITHOUT_RIGHTS)))
}
