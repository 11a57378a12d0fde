//! Standard output of `sluice mcp`: one JSON-RPC message a line; messages that wait for the client to read.

use std::{io::Write, thread};

use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::message::on_one_line;

/// Most messages that wait for the client to read.
const MAX_WAITING: usize = 16;

/// Writer of messages to the client. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Output {
    lines: mpsc::Sender<Vec<u8>>,
}

/// Resolves when everything has been written, or no one reads any more.
pub(super) type Written = oneshot::Receiver<()>;

impl Output {
    /// Writes on a thread of its own, since a client that does not read would block it. It ends when all clones are gone.
    pub(super) fn start(mut write: impl Write + Send + 'static) -> (Self, Written) {
        let (lines, mut waiting) = mpsc::channel::<Vec<u8>>(MAX_WAITING);
        let (over, written) = oneshot::channel();
        thread::spawn(move || {
            while let Some(mut line) = waiting.blocking_recv() {
                line.push(b'\n');
                if write.write_all(&line).and_then(|()| write.flush()).is_err() {
                    break;
                }
            }
            // No one may be waiting for it.
            let _ = over.send(());
        });
        (Self { lines }, written)
    }

    /// Waits until the message has its place. Once no one reads any more, messages are dropped; [`Output::closed`] shows it.
    pub(super) async fn send(&self, message: &Value) {
        self.pass_on(message.to_string().into_bytes()).await;
    }

    /// Sends a message as the service wrote it.
    pub(super) async fn pass_on(&self, message: Vec<u8>) {
        let _ = self.lines.send(on_one_line(message)).await;
    }

    /// Completes when no one reads any more.
    pub(super) async fn closed(&self) {
        self.lines.closed().await;
    }
}
