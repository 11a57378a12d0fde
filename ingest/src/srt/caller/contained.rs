//! Runtime of SRT outputs in which panics of `srt-tokio` are contained, counted and kept out of the log. It has one
//! thread; a peer's datagrams cause the panics.
//!
//! `srt-protocol` 0.4.4 panics on some malformed datagrams, for instance the 16 bytes
//! `ffff0008 ffff51ff bbffffff ffbbff51`. A panic ends the task of its connection, which is reported as a failed or
//! ended connection; a target that sends such datagrams at every attempt would otherwise fill the log.

use std::{
    io, panic,
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use tokio::runtime::{Builder, Runtime};
use tokio_util::task::AbortOnDropHandle;

const THREAD: &str = "srt-caller";

static PANICS: AtomicU64 = AtomicU64::new(0);

static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name(THREAD)
        .enable_all()
        .build()
});

/// Panics of the SRT library since the start, of all connections to targets.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Counts panics of the SRT library's thread instead of printing them; all others are printed as before. To be called
/// at the start of the program.
pub fn silence_panics() {
    let print = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match is_caller_thread() {
        true => count(),
        false => print(panic),
    }));
}

fn is_caller_thread() -> bool {
    thread::current().name() == Some(THREAD)
}

fn count() {
    PANICS.fetch_add(1, Ordering::Relaxed);
}

/// Runs a future on the runtime, together with everything that it spawns; dropping the handle ends it.
///
/// # Errors
/// When the machine can start no thread.
pub(super) fn spawn<F>(future: F) -> io::Result<AbortOnDropHandle<F::Output>>
where
    F: Future<Output: Send> + Send + 'static,
{
    match &*RUNTIME {
        Ok(runtime) => Ok(AbortOnDropHandle::new(runtime.spawn(future))),
        Err(error) => Err(error.kind().into()),
    }
}
