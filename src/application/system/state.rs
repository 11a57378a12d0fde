//! State of the process for its operators: facts of its start, addresses, what is measured once at a time, followers of the log.

use std::{
    net::SocketAddr,
    path::Path,
    sync::{Arc, OnceLock},
};

use sluice_store::now_ms;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    super::error::ApiError,
    disk_use::DiskUse,
    program::{OwnProgram, ProgramRecord},
    single_flight::SingleFlight,
};
use crate::{config::Origins, doctor::Report, log::LogRing};

/// Clients that may follow the log at a time.
const MOST_LOG_FOLLOWERS: usize = 32;

/// Facts of the process that its start knows.
pub struct Startup {
    pub origins: Origins,
    pub log: LogRing,
    /// Runs the checks of `sluice doctor` with that settings file.
    pub examine: fn(Option<&Path>) -> Report,
}

/// State of the process for its operators.
pub(crate) struct SystemState {
    pub(crate) startup: Startup,
    pub(super) started_at_ms: i64,
    pub(super) program: Arc<OwnProgram>,
    pub(super) replacement: SingleFlight<Option<ProgramRecord>>,
    pub(super) disk_use: SingleFlight<DiskUse>,
    pub(super) doctor: SingleFlight<Report>,
    pub(super) listeners: OnceLock<Vec<Listener>>,
    log_followers: Arc<Semaphore>,
}

/// An address of the service.
#[derive(Clone, Debug)]
pub struct Listener {
    pub protocol: &'static str,
    /// Transport below it: `tcp` or `udp`.
    pub transport: &'static str,
    /// `None`: turned off.
    pub address: Option<SocketAddr>,
    /// Component that serves it, when there is one.
    pub component: Option<&'static str>,
}

impl SystemState {
    pub(crate) fn new(startup: Startup) -> Self {
        Self {
            startup,
            started_at_ms: now_ms(),
            program: Arc::new(OwnProgram::at_start()),
            replacement: SingleFlight::default(),
            disk_use: SingleFlight::default(),
            doctor: SingleFlight::default(),
            listeners: OnceLock::new(),
            log_followers: Arc::new(Semaphore::new(MOST_LOG_FOLLOWERS)),
        }
    }

    /// Takes a permit to follow the log.
    pub(crate) fn follow_log(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let permit = self.log_followers.clone().try_acquire_owned();
        permit.map_err(|_| ApiError::Unavailable {
            what: "following the log, which as many clients do as may,",
            retry_after_s: 5,
        })
    }

    /// Sets the addresses, once they are bound.
    pub(crate) fn set_listeners(&self, listeners: Vec<Listener>) {
        // A process binds its addresses once.
        let _ = self.listeners.set(listeners);
    }
}
