//! Sandbox of a worker: the layers rlimits, privileges, landlock and seccomp, and the order in which they are entered.
//!
//! Each layer covers something by itself, and what it covers is proven with the others off ([`prove`](crate::prove)):
//!
//! | layer | covers |
//! |---|---|
//! | [`limits`] | memory, time, size of files, number of descriptors and tasks |
//! | [`privileges`] | capabilities, root, setuid programs |
//! | [`files`] (landlock) | every path, TCP ports, abstract sockets and signals |
//! | [`calls`] (seccomp) | sockets, programs, processes, signals, and the kernel's seldom used corners |
//!
//! They are put on after the codecs have loaded all they need, and before the first byte of a user's. All of them count
//! for a thread and those it starts, so they are put on while there is one.

pub mod calls;
pub mod files;
pub mod limits;
pub mod own;
pub mod privileges;

use std::{fs, io};

use crate::protocol::Layers;
use limits::Bounds;

/// Layers to enter; all of them, but in proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    pub limits: bool,
    pub privileges: bool,
    pub files: bool,
    pub calls: bool,
}

impl Choice {
    pub const ALL: Self = Self {
        limits: true,
        privileges: true,
        files: true,
        calls: true,
    };
    pub const NONE: Self = Self {
        limits: false,
        privileges: false,
        files: false,
        calls: false,
    };
}

/// Puts the layers on, for good, and says which of them hold. One that the kernel lacks is left out: what to do about it is
/// the service's to decide.
///
/// `parent`: the service; when it ends, so does this process.
pub fn enter(choice: Choice, bounds: Bounds, parent: Option<u32>) -> io::Result<Layers> {
    only_one_thread()?;
    let mut layers = Layers::default();
    if choice.limits {
        layers.rlimits = limits::lower(bounds).is_ok();
    }
    if choice.privileges {
        layers.no_new_privileges = privileges::drop_all().is_ok();
    }
    if let Some(parent) = parent {
        // A change of identity forgets this, so it comes after it; and calls are not refused yet.
        own::end_with(parent)?;
    }
    if choice.files {
        layers.landlock = files::refuse();
    }
    if choice.calls {
        layers.seccomp = calls::refuse().is_ok();
    }
    Ok(layers)
}

fn only_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!(
            "{threads} threads run before the sandbox is on, and all but one would stay outside of it"
        ))),
    }
}
