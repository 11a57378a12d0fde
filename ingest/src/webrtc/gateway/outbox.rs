//! Messages to the service that wait for its socket (`MAX_WAITING`), and the thread that writes them, with a heartbeat.
//!
//! No thread of sessions waits for the service: what finds no room is dropped and counted. Messages about a session's state keep a
//! reserve of room for themselves, so that media of a publisher does not displace them.

use std::{
    io::Write as _,
    os::unix::net::UnixStream,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};

use super::super::message::FromGateway;

/// Bytes of messages that may wait.
const MAX_WAITING: usize = 32 << 20;
/// Bytes of them that media leaves free.
const RESERVE: usize = 4 << 20;
/// Interval of the heartbeat.
const BEAT_EVERY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    has_messages: Condvar,
    is_over: AtomicBool,
    dropped: AtomicU64,
}

impl Outbox {
    /// Queues a message, or drops it where there is no room; returns whether there was.
    pub fn push(&self, message: &FromGateway) -> bool {
        let (room, len) = match message {
            FromGateway::Video(frame) => (MAX_WAITING - RESERVE, frame.data.len()),
            FromGateway::Audio(frame) => (MAX_WAITING - RESERVE, frame.data.len()),
            _ => (MAX_WAITING, 0),
        };
        let mut waiting = self.waiting.lock();
        if waiting.len() + len > room {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        message.encode(&mut waiting);
        drop(waiting);
        self.has_messages.notify_one();
        true
    }

    /// Returns the number of messages that were dropped.
    #[cfg(test)]
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Lets [`Outbox::write`] end when it has written what waits.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.has_messages.notify_all();
    }

    /// Writes messages until the end or an error of the socket, and `heartbeat` each second where it gives one.
    pub fn write(
        &self,
        control: &mut UnixStream,
        heartbeat: impl Fn() -> Option<FromGateway>,
    ) -> std::io::Result<()> {
        let mut next_beat = Instant::now();
        let mut bytes = Vec::new();
        loop {
            if Instant::now() >= next_beat {
                next_beat = Instant::now() + BEAT_EVERY;
                if let Some(beat) = heartbeat() {
                    self.push(&beat);
                }
            }
            let mut waiting = self.waiting.lock();
            if waiting.is_empty() {
                if self.is_over.load(Ordering::Relaxed) {
                    return Ok(());
                }
                self.has_messages.wait_until(&mut waiting, next_beat);
            }
            std::mem::swap(&mut *waiting, &mut bytes);
            drop(waiting);
            control.write_all(&bytes)?;
            bytes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};

    use super::{
        super::super::message::{AudioFrame, GoneReason},
        *,
    };

    #[test]
    fn media_is_dropped_before_messages_of_sessions() {
        let outbox = Outbox::default();
        let audio = FromGateway::Audio(AudioFrame {
            of: 1,
            pts_90k: 0,
            wallclock_us: 0,
            data: Bytes::from(vec![0; 1 << 20]),
        });
        let taken = (0..64).take_while(|_| outbox.push(&audio)).count();
        assert_eq!(taken, 27);
        assert_eq!(outbox.dropped(), 1);
        let gone = FromGateway::Gone {
            session: 1,
            reason: GoneReason::Peer,
        };
        assert!(outbox.push(&gone));
        outbox.end();
        let (mut ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut theirs, &mut bytes).map(|_| bytes)
        });
        outbox.write(&mut ours, || None).unwrap();
        drop(ours);
        let mut input = BytesMut::from(&reader.join().unwrap().unwrap()[..]);
        for _ in 0..taken {
            assert_eq!(FromGateway::decode(&mut input), Ok(Some(audio.clone())));
        }
        assert_eq!(FromGateway::decode(&mut input), Ok(Some(gone)));
    }
}
