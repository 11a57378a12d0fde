//! Proofs of sandbox layers (`sluice worker --prove`): enters only the layers named, tries one thing, and prints the
//! result.
//!
//! In debug builds only, `sluice worker --prove LAYERS --attempt NAME` prints one JSON object. Attempts at limits may end the process by a signal
//! instead, and one at a program replaces it: the prover looks at both.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    net::{TcpListener, TcpStream, UdpSocket},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::{UnixDatagram, UnixStream},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use rustix::process::{
    Pid, getppid, getpriority_process, setpgid, setpriority_pgrp, test_kill_process,
};
use serde::Serialize;

use crate::{
    faults, foreign,
    protocol::Layers,
    sandbox::{
        self, Choice,
        limits::{self, Bounds},
    },
};

/// The processor time of an attempt, where limits are under proof.
const SECONDS: u32 = 1;
/// More than any proof allows.
const MUCH: usize = 1 << 30;

/// Attempt of a proof, and its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub choice: Choice,
    pub bounds: Bounds,
    /// A name of [`ATTEMPTS`].
    pub attempt: String,
    /// An existing folder that every user may write to, with an existing file `there` that every user may write.
    pub folder: PathBuf,
}

/// Result of a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub layers: Layers,
    pub attempt: String,
    pub done: bool,
    /// Reason of the failure.
    pub error: Option<String>,
}

type Attempt = fn(&Path) -> io::Result<()>;

/// Everything that can be tried.
pub const ATTEMPTS: [(&str, Attempt); 34] = [
    ("read", |folder| fs::read(folder.join("there")).map(drop)),
    ("list", |folder| fs::read_dir(folder).map(drop)),
    ("write", |folder| {
        let mut file = OpenOptions::new().append(true).open(folder.join("there"))?;
        file.write_all(b"more")
    }),
    ("create", |folder| {
        File::create(folder.join("fresh")).map(drop)
    }),
    ("delete", |folder| fs::remove_file(folder.join("there"))),
    ("rename", |folder| {
        fs::rename(folder.join("there"), folder.join("moved"))
    }),
    ("make-folder", |folder| fs::create_dir(folder.join("fresh"))),
    ("link", |folder| symlink("there", folder.join("fresh"))),
    ("mode", |folder| {
        fs::set_permissions(folder.join("there"), fs::Permissions::from_mode(0o777))
    }),
    ("read-fonts", |_| fs::read_dir("/usr/share/fonts").map(drop)),
    ("tcp-connect", |_| {
        // Nothing listens: being refused by the other side is a connection that was tried.
        match TcpStream::connect(("127.0.0.1", 9)) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            connected => connected.map(drop),
        }
    }),
    ("tcp-listen", |_| {
        TcpListener::bind(("127.0.0.1", 0)).map(drop)
    }),
    ("udp-send", |_| {
        UdpSocket::bind(("127.0.0.1", 0))?
            .send_to(b"hello", ("127.0.0.1", 9))
            .map(drop)
    }),
    ("unix-connect", |folder| {
        match UnixStream::connect(folder.join("there")) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
            connected => connected.map(drop),
        }
    }),
    ("unix-listen", |folder| {
        UnixDatagram::bind(folder.join("fresh")).map(drop)
    }),
    ("socket-pair", |_| UnixStream::pair().map(drop)),
    ("datagram-pair", |_| UnixDatagram::pair().map(drop)),
    ("program", |_| {
        Err(Command::new("/bin/echo").arg(r#"{"done":true}"#).exec())
    }),
    ("process", |_| {
        let quiet = || Stdio::null();
        let mut child = Command::new("/bin/true")
            .stdin(quiet())
            .stdout(quiet())
            .stderr(quiet())
            .spawn()?;
        child.wait().map(drop)
    }),
    ("thread", |_| {
        let started = thread::Builder::new().spawn(|| ())?;
        started.join().map_err(|_| io::Error::other("it panicked"))
    }),
    ("signal", |_| Ok(test_kill_process(parent()?)?)),
    (
        "signal-by-kernel",
        |_| foreign::signal_when_ready(parent()?),
    ),
    ("leave-group", |_| Ok(setpgid(None, None)?)),
    ("turns-of-group", |_| {
        // As it is: what counts is whether it may.
        Ok(setpriority_pgrp(None, getpriority_process(None)?)?)
    }),
    ("root", |_| {
        let root = rustix::process::Uid::ROOT;
        Ok(rustix::thread::set_thread_res_uid(root, root, root)?)
    }),
    ("capabilities", |_| {
        match rustix::thread::capabilities(None)?.permitted.is_empty() {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => Ok(()),
        }
    }),
    ("outlive", |_| {
        Ok(rustix::process::set_parent_process_death_signal(None)?)
    }),
    ("more-files", |_| {
        let mut open = Vec::new();
        for _ in 0..2000 {
            open.push(File::open("/dev/null")?);
        }
        Ok(())
    }),
    ("large-file", write_much),
    ("time", |_| faults::spin()),
    ("memory", |_| faults::allocate()),
    ("x32", |_| foreign::x32()),
    ("ia32", |_| foreign::ia32()),
    ("nothing", |_| Ok(())),
];

/// Puts on the layers, then tries. An error is one of the proof itself: a name that is none, a sandbox that fails.
pub fn prove(proof: &Proof) -> io::Result<Outcome> {
    let (_, attempt) = ATTEMPTS
        .iter()
        .find(|(name, _)| *name == proof.attempt)
        .ok_or_else(|| io::Error::other(format!("{:?} is no attempt", proof.attempt)))?;
    let prover = getppid().map(|pid| pid.as_raw_pid().unsigned_abs());
    let layers = sandbox::enter(proof.choice, proof.bounds, prover)?;
    if proof.choice.limits {
        limits::allow_processor(SECONDS)?;
    }
    let tried = attempt(&proof.folder);
    Ok(Outcome {
        layers,
        attempt: proof.attempt.clone(),
        done: tried.is_ok(),
        error: tried.err().map(|error| error.to_string()),
    })
}

/// Reads `none`, `all`, or names of layers separated by commas.
pub fn choice(names: &str) -> Option<Choice> {
    let mut choice = Choice::NONE;
    for name in names.split(',') {
        match name {
            "none" => {}
            "all" => choice = Choice::ALL,
            "limits" => choice.limits = true,
            "privileges" => choice.privileges = true,
            "files" => choice.files = true,
            "calls" => choice.calls = true,
            _ => return None,
        }
    }
    Some(choice)
}

fn parent() -> io::Result<Pid> {
    getppid().ok_or_else(|| io::Error::other("there is no parent"))
}

fn write_much(folder: &Path) -> io::Result<()> {
    let mut file = File::create(folder.join("large"))?;
    let chunk = vec![0; 1 << 20];
    for _ in 0..MUCH / chunk.len() {
        file.write_all(&chunk)?;
    }
    Ok(())
}
