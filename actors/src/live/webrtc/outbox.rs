//! Messages that wait for the WebRTC gateway: orders are never dropped, media only up to a bound (`MOST_MEDIA_BYTES`, `MOST_MEDIA`).
//!
//! One queue, so that a feed's frames come behind the order that they follow. A gateway that does not read is given up, and with it
//! the queue.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use sluice_ingest::webrtc::message::ToGateway;
use tokio::{io::AsyncWriteExt as _, net::unix::OwnedWriteHalf, sync::Notify, time::timeout};

use crate::live::gateway::Failure;

/// Most bytes of media that wait: several open groups of pictures.
const MOST_MEDIA_BYTES: usize = 32 << 20;
/// Most frames that wait.
const MOST_MEDIA: usize = 8_192;
/// Orders that wait from which on the gateway is given up: more than all sessions are sent at once.
const MOST_ORDERS: usize = 1 << 20;
/// Messages that are taken at a time.
const BATCH: usize = 256;
/// Bytes that are written at a time.
const WRITE: usize = 256 << 10;
/// Time after which a gateway that does not read is given up.
const WRITE_WITHIN: Duration = Duration::from_secs(5);

/// See the module documentation.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    /// Notified when all has been written.
    written: Notify,
}

#[derive(Debug, Default)]
struct Queue {
    messages: VecDeque<ToGateway>,
    media: usize,
    media_bytes: usize,
    /// Messages are on their way to the socket.
    is_writing: bool,
}

impl Outbox {
    /// Adds an order.
    pub fn order(&self, order: ToGateway) {
        self.queue.lock().messages.push_back(order);
        self.filled.notify_one();
    }

    /// Adds a frame; false when it does not fit and is dropped.
    pub fn media(&self, frame: ToGateway) -> bool {
        let bytes = media_len(&frame);
        let mut queue = self.queue.lock();
        if queue.media >= MOST_MEDIA || queue.media_bytes + bytes > MOST_MEDIA_BYTES {
            return false;
        }
        queue.media += 1;
        queue.media_bytes += bytes;
        queue.messages.push_back(frame);
        drop(queue);
        self.filled.notify_one();
        true
    }

    /// Waits until everything is written.
    pub async fn until_written(&self) {
        loop {
            let written = self.written.notified();
            {
                let queue = self.queue.lock();
                if queue.messages.is_empty() && !queue.is_writing {
                    return;
                }
            }
            written.await;
        }
    }

    /// Writes what is added until the gateway is gone; returns the reason.
    pub async fn write_to(&self, mut socket: OwnedWriteHalf) -> Failure {
        let (mut batch, mut out) = (Vec::new(), Vec::new());
        loop {
            if let Err(failure) = self.next(&mut batch).await {
                return failure;
            }
            let last = batch.len() - 1;
            for (index, message) in batch.drain(..).enumerate() {
                message.encode(&mut out);
                if out.len() < WRITE && index < last {
                    continue;
                }
                match timeout(WRITE_WITHIN, socket.write_all(&out)).await {
                    Ok(Ok(())) => out.clear(),
                    Ok(Err(error)) => return Failure::Ended(error.to_string()),
                    Err(_) => return Failure::Deaf,
                }
            }
        }
    }

    /// Waits for messages and takes some.
    async fn next(&self, batch: &mut Vec<ToGateway>) -> Result<(), Failure> {
        loop {
            let filled = self.filled.notified();
            {
                let mut queue = self.queue.lock();
                if queue.messages.len() - queue.media > MOST_ORDERS {
                    return Err(Failure::Deaf);
                }
                queue.take(batch);
                queue.is_writing = !batch.is_empty();
            }
            self.written.notify_waiters();
            if !batch.is_empty() {
                return Ok(());
            }
            filled.await;
        }
    }

    #[cfg(test)]
    pub fn taken(&self) -> Vec<ToGateway> {
        let mut batch = Vec::new();
        let mut queue = self.queue.lock();
        while !queue.messages.is_empty() {
            queue.take(&mut batch);
        }
        batch
    }
}

impl Queue {
    fn take(&mut self, batch: &mut Vec<ToGateway>) {
        let count = self.messages.len().min(BATCH);
        for message in self.messages.drain(..count) {
            if is_media(&message) {
                self.media -= 1;
                self.media_bytes -= media_len(&message);
            }
            batch.push(message);
        }
    }
}

fn is_media(message: &ToGateway) -> bool {
    matches!(message, ToGateway::Video(_) | ToGateway::Audio(_))
}

fn media_len(message: &ToGateway) -> usize {
    match message {
        ToGateway::Video(frame) => frame.data.len(),
        ToGateway::Audio(frame) => frame.data.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::{Bytes, BytesMut};
    use sluice_ingest::webrtc::message::{AudioFrame, CloseReason};
    use tokio::{io::AsyncReadExt as _, net::UnixStream};

    use super::*;

    fn audio(bytes: usize) -> ToGateway {
        ToGateway::Audio(AudioFrame {
            of: 1,
            pts_90k: 0,
            wallclock_us: 0,
            data: Bytes::from(vec![0; bytes]),
        })
    }

    fn close(session: u32) -> ToGateway {
        ToGateway::Close {
            session,
            reason: CloseReason::Over,
        }
    }

    #[test]
    fn media_has_a_bound_and_orders_do_not_wait_for_room() {
        let outbox = Outbox::default();
        for _ in 0..4 {
            assert!(outbox.media(audio(MOST_MEDIA_BYTES / 4)));
        }
        assert!(!outbox.media(audio(1)));
        outbox.order(close(1));
        assert_eq!(outbox.taken().last(), Some(&close(1)));
        assert!(outbox.media(audio(1)), "there is room again");
        let outbox = Outbox::default();
        let taken = (0..MOST_MEDIA + 5).filter(|_| outbox.media(audio(0)));
        assert_eq!(taken.count(), MOST_MEDIA);
    }

    #[tokio::test]
    async fn messages_are_written_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let outbox = Outbox::default();
        let sent: Vec<ToGateway> = (0..600)
            .map(|number| match number % 3 {
                0 => close(number),
                _ => audio(number as usize),
            })
            .collect();
        for message in &sent {
            match is_media(message) {
                true => assert!(outbox.media(message.clone())),
                false => outbox.order(message.clone()),
            }
        }
        let mut input = BytesMut::new();
        let mut read = Vec::new();
        let reading = async {
            while read.len() < sent.len() {
                theirs.read_buf(&mut input).await.unwrap();
                while let Some(message) = ToGateway::decode(&mut input).unwrap() {
                    read.push(message);
                }
            }
        };
        tokio::select! {
            failure = outbox.write_to(ours.into_split().1) => panic!("{failure}"),
            () = reading => {}
        }
        assert_eq!(read, sent);
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_does_not_read_is_given_up() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let outbox = Outbox::default();
        outbox.media(audio(8 << 20));
        let failure = outbox.write_to(ours.into_split().1).await;
        assert!(matches!(failure, Failure::Deaf), "{failure}");
    }
}
