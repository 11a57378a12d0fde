//! Start of GStreamer before the sandbox: plug-in registry (`GST_REGISTRY`), our elements, removal of all others.
//!
//! Afterwards the process has one thread and no child: looking at plug-ins that the registry does not know is done by a
//! helper program of GStreamer's own, which has ended by then. Plug-ins are loaded when they are first used, from folders
//! that the sandbox leaves readable.

use std::{io, path::Path};

use gstreamer as gst;
use parking_lot::Mutex;

use super::{allow, scaler, source};

/// The variable by which GStreamer finds its registry.
pub const REGISTRY_VARIABLE: &str = "GST_REGISTRY";

/// Starts GStreamer once; later calls change nothing.
///
/// `registry` is where it keeps what it knows of its plug-ins. The environment of the
/// process names it; one that cannot be read or written costs time and nothing else.
pub fn start(registry: &Path) -> io::Result<()> {
    static STARTED: Mutex<bool> = Mutex::new(false);
    let mut started = STARTED.lock();
    if *started {
        return Ok(());
    }
    debug_assert!(
        std::env::var_os(REGISTRY_VARIABLE).is_none_or(|named| named == registry.as_os_str()),
        "the environment names another registry"
    );
    gst::init().map_err(io::Error::other)?;
    gst::log::remove_default_log_function();
    source::register().map_err(io::Error::other)?;
    scaler::register().map_err(io::Error::other)?;
    allow::enforce();
    *started = true;
    Ok(())
}

/// The elements that the work needs and this machine lacks, after [`start`].
pub fn missing() -> Vec<&'static str> {
    allow::missing()
}
