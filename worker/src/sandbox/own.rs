//! Priority of a worker process: nice value, OOM score, name, death with its parent.

use std::{ffi::CStr, fs, io};

use rustix::{
    process::{Pid, Signal, getppid, nice, set_parent_process_death_signal},
    thread::set_name,
};

/// Name in `top`; the program's own name would be `exe`.
const NAME: &CStr = c"sluice-worker";
/// Behind every thread of the service, so that no conversion costs a live stream its turn.
const NICE: i32 = 10;
/// For a live stream's frames, which viewers wait for: before the conversions, behind the service.
const NICE_OF_LIVE: i32 = 5;
/// The kernel takes a worker before anything else when memory runs out.
const OOM_SCORE: &str = "1000";

/// Steps back behind the rest of the machine. Where the machine does not allow it, only the priority is lost.
pub fn step_back(is_live: bool) {
    let _ = nice(if is_live { NICE_OF_LIVE } else { NICE });
    let _ = fs::write("/proc/self/oom_score_adj", OOM_SCORE);
    let _ = set_name(NAME);
}

/// Asks the kernel to kill this process when the thread that started it ends; fails when that has happened already.
pub fn end_with(parent: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let now = getppid().map(Pid::as_raw_pid);
    match now.and_then(|pid| u32::try_from(pid).ok()) {
        Some(pid) if pid == parent => Ok(()),
        _ => Err(io::Error::other("the service has ended meanwhile")),
    }
}
