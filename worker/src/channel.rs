//! Channel between service and worker, an end of a socket pair: whole messages with descriptors, bounded waits, message
//! size.
//!
//! A frame is its length (4 bytes, little endian) and that much JSON. Neither end trusts the other: lengths are bounds and
//! never allocations, and descriptors that were not asked for are closed by the kernel.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
};
use serde::{Serialize, de::DeserializeOwned};

use crate::protocol::{MAX_DESCRIPTORS, MAX_FRAME};

const LENGTH_BYTES: usize = 4;
/// Bytes read at a time: memory grows with the bytes that came, not with the announced length.
const READ_BYTES: usize = 64 * 1024;
/// For waits that no clock can hold; looked at again afterwards.
const LONGEST_WAIT: Timespec = Timespec {
    tv_sec: 3600,
    tv_nsec: 0,
};

/// An end of the pair.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// Longest wait for the other end; [`Default`] waits for ever.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patience<'a> {
    pub until: Option<Instant>,
    /// Waiting ends as soon as this can be read.
    pub cancelled: Option<BorrowedFd<'a>>,
}

/// Reason why a message was not sent or received.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    #[error("the other end has closed")]
    Closed,
    #[error("the other end took too long")]
    TimedOut,
    #[error("no caller waits any more")]
    Cancelled,
    #[error("{0}")]
    Malformed(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for ChannelError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::PIPE | Errno::CONNRESET => Self::Closed,
            other => Self::Io(other.into()),
        }
    }
}

impl Channel {
    /// Takes an end that was inherited or made by [`pair`](Self::pair).
    #[cfg_attr(
        not(feature = "codecs"),
        allow(dead_code, reason = "of the worker's side")
    )]
    pub fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Two connected ends; the second is for the child.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        Ok((Self(here), there))
    }

    /// Returns whether the other end is still open. Its messages are not read.
    pub fn is_open(&self) -> bool {
        let mut looked_at = [PollFd::new(&self.0, PollFlags::IN)];
        let now = Timespec::default();
        match poll(&mut looked_at, Some(&now)) {
            Ok(_) => !looked_at[0]
                .revents()
                .intersects(PollFlags::HUP | PollFlags::ERR),
            Err(_) => false,
        }
    }

    /// Sends one message with at most [`MAX_DESCRIPTORS`] descriptors.
    pub fn send<T: Serialize>(
        &self,
        message: &T,
        descriptors: &[BorrowedFd<'_>],
        patience: Patience<'_>,
    ) -> Result<(), ChannelError> {
        let frame = encode(message)?;
        if descriptors.len() > MAX_DESCRIPTORS {
            return Err(ChannelError::Malformed(format!(
                "{} descriptors, at most {MAX_DESCRIPTORS} go with a message",
                descriptors.len()
            )));
        }
        let mut sent = 0;
        while sent < frame.len() {
            // They go with the first byte and arrive with it.
            let riding = if sent == 0 { descriptors } else { &[] };
            match send_some(&self.0, &frame[sent..], riding) {
                Ok(bytes) => sent += bytes,
                Err(Errno::AGAIN) => self.wait(PollFlags::OUT, patience)?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Receives the bytes of one message; descriptors with it are closed.
    pub fn receive_frame(&self, patience: Patience<'_>) -> Result<Vec<u8>, ChannelError> {
        self.receive_into(patience, &mut RecvAncillaryBuffer::default())
    }

    /// Receives one message and the descriptors with it.
    #[cfg_attr(
        not(feature = "codecs"),
        allow(dead_code, reason = "of the worker's side")
    )]
    pub fn receive_with_descriptors<T: DeserializeOwned>(
        &self,
        patience: Patience<'_>,
    ) -> Result<(T, Vec<OwnedFd>), ChannelError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let frame = self.receive_into(patience, &mut control)?;
        let message = serde_json::from_slice(&frame)
            .map_err(|error| ChannelError::Malformed(error.to_string()))?;
        let descriptors = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        Ok((message, descriptors))
    }

    fn receive_into(
        &self,
        patience: Patience<'_>,
        control: &mut RecvAncillaryBuffer<'_>,
    ) -> Result<Vec<u8>, ChannelError> {
        let mut length = [0; LENGTH_BYTES];
        let mut filled = self.read(&mut length, control, patience)?;
        while filled < LENGTH_BYTES {
            filled += self.read_bytes(&mut length[filled..], patience)?;
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > MAX_FRAME {
            return Err(ChannelError::Malformed(format!(
                "a message of {length} bytes was announced, at most {MAX_FRAME} are taken"
            )));
        }
        let mut body = Vec::new();
        while body.len() < length {
            let start = body.len();
            body.resize(start + READ_BYTES.min(length - start), 0);
            let read = self.read_bytes(&mut body[start..], patience)?;
            body.truncate(start + read);
        }
        Ok(body)
    }

    fn read_bytes(&self, buffer: &mut [u8], patience: Patience<'_>) -> Result<usize, ChannelError> {
        self.read(buffer, &mut RecvAncillaryBuffer::default(), patience)
    }

    /// Reads at least one byte.
    fn read(
        &self,
        buffer: &mut [u8],
        control: &mut RecvAncillaryBuffer<'_>,
        patience: Patience<'_>,
    ) -> Result<usize, ChannelError> {
        loop {
            self.wait(PollFlags::IN, patience)?;
            let mut into = [IoSliceMut::new(buffer)];
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            match recvmsg(&self.0, &mut into, control, flags) {
                Ok(received) if received.bytes == 0 => return Err(ChannelError::Closed),
                Ok(received) => return Ok(received.bytes),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until the socket is ready; what was sent before a cancellation still counts.
    fn wait(&self, events: PollFlags, patience: Patience<'_>) -> Result<(), ChannelError> {
        loop {
            let left = patience
                .until
                .map(|until| until.saturating_duration_since(Instant::now()));
            let socket = PollFd::new(&self.0, events);
            let ready = match patience.cancelled {
                Some(cancelled) => {
                    let mut both = [socket, PollFd::from_borrowed_fd(cancelled, PollFlags::IN)];
                    poll_for(&mut both, left)?.then(|| both[0].revents().is_empty())
                }
                None => poll_for(&mut [socket], left)?.then_some(false),
            };
            match ready {
                Some(false) => return Ok(()),
                Some(true) => return Err(ChannelError::Cancelled),
                None if left.is_some_and(|left| left.is_zero()) => {
                    return Err(ChannelError::TimedOut);
                }
                None => {}
            }
        }
    }
}

fn encode<T: Serialize>(message: &T) -> Result<Vec<u8>, ChannelError> {
    let mut frame = vec![0; LENGTH_BYTES];
    serde_json::to_writer(&mut frame, message)
        .map_err(|error| ChannelError::Malformed(error.to_string()))?;
    let length = frame.len() - LENGTH_BYTES;
    if length > MAX_FRAME {
        return Err(ChannelError::Malformed(format!(
            "a message of {length} bytes, at most {MAX_FRAME} are taken"
        )));
    }
    let length = u32::try_from(length).expect("it was compared with MAX_FRAME");
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

fn send_some(
    socket: &OwnedFd,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        let fits = control.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(fits, "the space is for MAX_DESCRIPTORS");
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)
}

/// Waits for an event within `left`; it may return without one, also before the time is over.
fn poll_for(fds: &mut [PollFd<'_>], left: Option<Duration>) -> Result<bool, Errno> {
    let left = left.map(|left| Timespec::try_from(left).unwrap_or(LONGEST_WAIT));
    match poll(fds, left.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Read, os::fd::AsFd, os::unix::fs::FileExt, thread};

    use rustix::{
        event::{EventfdFlags, eventfd},
        io::write,
        net::send,
    };

    use super::*;

    impl Channel {
        fn receive<T: DeserializeOwned>(&self, patience: Patience<'_>) -> Result<T, ChannelError> {
            let frame = self.receive_frame(patience)?;
            Ok(serde_json::from_slice(&frame).expect("the other end is this test"))
        }
    }

    fn pair() -> (Channel, Channel) {
        let (here, there) = Channel::pair().unwrap();
        (here, Channel::new(there))
    }

    fn soon() -> Patience<'static> {
        Patience {
            until: Some(Instant::now() + Duration::from_secs(10)),
            cancelled: None,
        }
    }

    #[test]
    fn messages_arrive_whole_with_their_descriptors() {
        let (here, there) = pair();
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(b"in a file", 0).unwrap();
        let long = "x".repeat(900_000);
        let sent = thread::spawn(move || {
            here.send(&long, &[file.as_fd(), file.as_fd()], soon())
                .unwrap();
            here.send(&7, &[], soon()).unwrap();
        });
        let (text, files): (String, _) = there.receive_with_descriptors(soon()).unwrap();
        assert_eq!((text.len(), files.len()), (900_000, 2));
        let mut read = String::new();
        let file = files.into_iter().next().unwrap();
        File::from(file).read_to_string(&mut read).unwrap();
        assert_eq!(read, "in a file");
        assert_eq!(there.receive::<u32>(soon()).unwrap(), 7);
        sent.join().unwrap();
        assert!(matches!(
            there.receive::<u32>(soon()),
            Err(ChannelError::Closed)
        ));
        assert!(!there.is_open());
    }

    #[test]
    fn a_frame_has_a_bound_on_both_sides() {
        let (here, there) = pair();
        let too_long = "x".repeat(MAX_FRAME);
        assert!(matches!(
            here.send(&too_long, &[], soon()),
            Err(ChannelError::Malformed(_))
        ));
        for announced in [u32::MAX, MAX_FRAME as u32 + 1] {
            send(&here.0, &announced.to_le_bytes(), SendFlags::empty()).unwrap();
            assert!(matches!(
                there.receive::<String>(soon()),
                Err(ChannelError::Malformed(_))
            ));
        }
    }

    #[test]
    fn half_a_frame_is_waited_for_no_longer_than_allowed() {
        let (here, there) = pair();
        send(&here.0, &[9, 0, 0, 0, b'"'], SendFlags::empty()).unwrap();
        let patience = Patience {
            until: Some(Instant::now() + Duration::from_millis(30)),
            cancelled: None,
        };
        assert!(matches!(
            there.receive::<String>(patience),
            Err(ChannelError::TimedOut)
        ));
    }

    #[test]
    fn cancelling_ends_the_wait_but_not_what_has_come() {
        let (here, there) = pair();
        let cancelled = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        write(&cancelled, &1u64.to_ne_bytes()).unwrap();
        let patience = Patience {
            until: None,
            cancelled: Some(cancelled.as_fd()),
        };
        here.send(&1, &[], soon()).unwrap();
        assert_eq!(there.receive::<u32>(patience).unwrap(), 1);
        assert!(matches!(
            there.receive::<u32>(patience),
            Err(ChannelError::Cancelled)
        ));
    }

    #[test]
    fn descriptors_that_were_not_asked_for_are_closed() {
        let (here, there) = pair();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        here.send(&1, &[writer.as_fd()], soon()).unwrap();
        drop(writer);
        assert_eq!(there.receive::<u32>(soon()).unwrap(), 1);
        let mut end = [0; 1];
        assert_eq!(rustix::io::read(&reader, &mut end).unwrap(), 0);
    }
}
