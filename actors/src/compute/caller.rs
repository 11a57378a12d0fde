//! Watches whether the caller of a task still waits: an eventfd that the blocked thread of a worker polls, to kill abandoned
//! work.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{Errno, write},
};

/// Held by the caller; dropping it signals that no caller waits any more.
#[derive(Debug)]
pub(super) struct Caller(Arc<OwnedFd>);

/// Held by the work.
#[derive(Debug)]
pub(super) struct Watch(Arc<OwnedFd>);

impl Caller {
    pub(super) fn new() -> io::Result<(Self, Watch)> {
        let event = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok((Self(event.clone()), Watch(event)))
    }
}

impl Drop for Caller {
    fn drop(&mut self) {
        // The counter of a fresh event takes one; nothing else can go wrong with it.
        let _ = write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Watch {
    /// Returns whether the caller has left; waits for that long at most.
    pub(super) fn has_left_within(&self, time: Duration) -> bool {
        let mut event = [PollFd::new(&*self.0, PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap_or_default();
        match poll(&mut event, Some(&time)) {
            Ok(ready) => ready > 0,
            Err(error) => error != Errno::INTR,
        }
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaving_is_seen_once_it_happens_and_for_good() {
        let (caller, watch) = Caller::new().unwrap();
        assert!(!watch.has_left_within(Duration::ZERO));
        drop(caller);
        for _ in 0..2 {
            assert!(watch.has_left_within(Duration::from_secs(60)));
        }
    }
}
