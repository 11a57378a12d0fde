//! The way of encoded frames to the service: whole messages, one after the other, from any thread.

use std::{io::Write as _, os::unix::net::UnixStream};

use parking_lot::Mutex;
use sluice_media::av::live::FromLive;

/// Waits while the service does not read: queues before it fill then, and frames are dropped there.
pub(super) struct Outlet(Mutex<Outgoing>);

struct Outgoing {
    socket: UnixStream,
    message: Vec<u8>,
}

impl Outlet {
    pub fn new(socket: UnixStream) -> Self {
        Self(Mutex::new(Outgoing {
            socket,
            message: Vec::new(),
        }))
    }

    pub fn send(&self, message: &FromLive) {
        let mut outgoing = self.0.lock();
        let Outgoing {
            socket,
            message: bytes,
        } = &mut *outgoing;
        bytes.clear();
        message.encode(bytes);
        // A service that has closed its end is noticed by the thread that reads.
        let _ = socket.write_all(bytes);
    }
}
