//! Thread of one client: its socket, its str0m session, and what a viewer or a publisher does with both.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use str0m::{Event, IceConnectionState, Input, Output, Rtc, net::Receive};

use super::line::Line;
use crate::Failure;

/// The longest sleep: after it the thread sees that it is to stop.
const TICK: Duration = Duration::from_millis(20);

/// End of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The service closed it: RTCP BYE and DTLS `close_notify`.
    Closed,
    /// No more answers came from the service.
    Silent,
    /// The TCP connection or the session failed.
    Failed(String),
}

/// Work of a client beside the protocols.
pub(super) trait Part: Send + 'static {
    fn event(&mut self, rtc: &mut Rtc, event: Event, now: Instant);

    /// Does what is due; returns when it wants to be called again.
    fn work(&mut self, rtc: &mut Rtc, now: Instant) -> Option<Instant>;

    fn ended(&mut self, how: Ended);
}

/// A client's thread; ended with the value.
#[derive(Debug)]
pub(super) struct Session {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    pub(super) fn start(mut rtc: Rtc, mut line: Line, mut part: impl Part) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let how = match run(&mut rtc, &mut line, &mut part, &seen) {
                Ok(Some(how)) => how,
                Ok(None) => return,
                Err(cause) => Ended::Failed(cause.to_string()),
            };
            part.ended(how);
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs until the session ends, or until it is to stop: then there is no end to tell.
fn run(
    rtc: &mut Rtc,
    line: &mut Line,
    part: &mut impl Part,
    stop: &AtomicBool,
) -> Result<Option<Ended>, Failure> {
    let mut closed = None;
    let mut wake = Instant::now();
    loop {
        let now = Instant::now();
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        while let Some((from, packet)) = line.receive(now)? {
            if let Ok(receive) = Receive::new(line.protocol(), from, line.local(), &packet) {
                rtc.handle_input(Input::Receive(now, receive))?;
                wake = outputs(rtc, line, part, &mut closed, now)?;
            }
        }
        let part_wake = part.work(rtc, now);
        if wake <= now {
            rtc.handle_input(Input::Timeout(now))?;
        }
        wake = outputs(rtc, line, part, &mut closed, now)?;
        if closed.is_some() || !rtc.is_alive() {
            return Ok(Some(closed.unwrap_or(Ended::Closed)));
        }
        let wakes = [Some(wake), part_wake, line.wake()];
        let next = wakes.into_iter().flatten().min().unwrap_or(now);
        wait(line, next.saturating_duration_since(Instant::now()))?;
    }
}

/// Sends and reports all that the session has ready; returns when it wants to be called again.
fn outputs(
    rtc: &mut Rtc,
    line: &mut Line,
    part: &mut impl Part,
    closed: &mut Option<Ended>,
    now: Instant,
) -> Result<Instant, Failure> {
    loop {
        match rtc.poll_output()? {
            Output::Timeout(at) => return Ok(at),
            Output::Transmit(packet) => line.send(now, packet.destination, &packet.contents),
            Output::Event(event) => {
                match event {
                    Event::Closed => *closed = Some(Ended::Closed),
                    Event::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                        *closed = Some(Ended::Silent);
                    }
                    _ => {}
                }
                part.event(rtc, event, now);
            }
        }
    }
}

fn wait(line: &Line, time: Duration) -> Result<(), Failure> {
    let time = time.min(TICK);
    let time = Timespec {
        tv_sec: 0,
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(line, PollFlags::IN)], Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(cause) => Err(cause.into()),
    }
}
