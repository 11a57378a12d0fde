//! Upload of a local file by `sluice mcp`: progress notifications, time-out when nothing moves; never all of it in memory.

use std::{future::Future, io, pin::pin, time::Duration};

use futures_util::TryStreamExt as _;
use serde_json::Value;
use sluice_actors::outbound::Body;
use tokio::{io::AsyncReadExt as _, sync::watch, time::timeout};
use tokio_util::io::ReaderStream;

use super::{endpoint::Endpoint, message::progress, output::Output, roots::LocalFile};

/// Bytes of the file read at a time.
const PIECE_BYTES: usize = 128 << 10;

/// Receiver of progress: the client, if it gave a token.
pub(super) struct Audience<'a> {
    pub(super) output: &'a Output,
    pub(super) token: Option<&'a Value>,
}

impl Audience<'_> {
    async fn report(&self, name: &str, percent: u64) {
        if let Some(token) = self.token {
            let text = format!("sending {name}: {percent} %");
            let message = progress(token, percent as f64 / 100.0, &text);
            self.output.send(&message).await;
        }
    }
}

/// Sends the file to a signed address. The audience receives whole percents from 0 on, each once, without the
/// hundredth. The error is for the model.
pub(super) async fn send(
    endpoint: &Endpoint,
    file: LocalFile,
    signed_url: &str,
    audience: Audience<'_>,
) -> Result<(), String> {
    let (length, name) = (file.length, file.name.clone());
    let (sent, mut moved) = watch::channel(0);
    let put = endpoint.put(signed_url, body(file, sent));
    let mut put = pin!(put);
    let timeout_after = endpoint.patience();
    audience.report(&name, 0).await;
    let mut reported = 0;
    loop {
        tokio::select! {
            answered = &mut put => return answered,
            change = timeout(timeout_after, moved.changed()) => match change {
                Err(_late) => return Err(stalled(timeout_after)),
                // All of it has gone: what is left is the answer.
                Ok(Err(_gone)) => return in_time(timeout_after, put).await,
                Ok(Ok(())) => {
                    let percent = percent(*moved.borrow_and_update(), length);
                    if percent > reported && percent < 100 {
                        reported = percent;
                        audience.report(&name, percent).await;
                    }
                }
            }
        }
    }
}

/// Streams exactly as many bytes as the file had when it was opened. One that shrinks meanwhile breaks the request off.
fn body(file: LocalFile, sent: watch::Sender<u64>) -> Body {
    let reader = tokio::fs::File::from_std(file.file).take(file.length);
    let pieces = ReaderStream::with_capacity(reader, PIECE_BYTES).inspect_ok(move |piece| {
        sent.send_modify(|sent| *sent += piece.len() as u64);
    });
    Body::pieces(pieces, file.length)
}

async fn in_time(
    timeout_after: Duration,
    put: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    let answered = timeout(timeout_after, put).await;
    answered.unwrap_or_else(|_late| Err(stalled(timeout_after)))
}

fn stalled(timeout_after: Duration) -> String {
    let late = io::Error::from(io::ErrorKind::TimedOut);
    format!("nothing moved for {} s: {late}", timeout_after.as_secs())
}

fn percent(sent: u64, length: u64) -> u64 {
    let percent = u128::from(sent) * 100 / u128::from(length.max(1));
    u64::try_from(percent).unwrap_or(100)
}
