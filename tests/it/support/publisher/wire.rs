//! The publisher's connection: commands, answers, and the certainty that what was written has arrived.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{mpsc, watch},
    task::JoinHandle,
    time::timeout,
};

use super::{
    PublishError, Target,
    answer::Status,
    rtmp::{
        Amf, Answers, CHUNK_SIZE, COMMAND, CONTROL_STREAM, SET_CHUNK_SIZE, USER_CONTROL,
        created_stream, put_command, put_message, shake_hands,
    },
};
use crate::support::{Failure, eventually};

const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
const PING_REQUEST: [u8; 2] = [0, 6];
const PING_RESPONSE: [u8; 2] = [0, 7];

/// An accepted publish on its socket. The connection is cut when this is dropped.
#[derive(Debug)]
pub struct Wire {
    writer: OwnedWriteHalf,
    local: SocketAddr,
    stream_id: u32,
    pings: mpsc::Receiver<[u8; 4]>,
    statuses: Arc<Mutex<Vec<Status>>>,
    closed: watch::Receiver<bool>,
    _listening: Listening,
}

/// Ends the reading task, which holds the other half of the socket.
#[derive(Debug)]
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Wire {
    /// Handshake, `connect`, `createStream`, `publish`, and the server's permission.
    pub async fn open(target: &Target) -> Result<Self, PublishError> {
        match timeout(ANSWER_DEADLINE, Self::open_unhurried(target)).await {
            Ok(opened) => opened,
            Err(_) => Err(Failure::from(format!("no answer within {ANSWER_DEADLINE:?}")).into()),
        }
    }

    async fn open_unhurried(target: &Target) -> Result<Self, PublishError> {
        let mut socket = TcpStream::connect(&target.address)
            .await
            .map_err(Failure::from)?;
        socket.set_nodelay(true).map_err(Failure::from)?;
        let local = socket.local_addr().map_err(Failure::from)?;
        shake_hands(&mut socket).await?;
        let (reader, mut writer) = socket.into_split();
        let mut answers = Answers::new(reader);
        let stream_id = create_stream(&mut writer, &mut answers, target).await?;
        let mut out = BytesMut::new();
        let arguments = [Amf::Null, Amf::Text(&target.stream), Amf::Text("live")];
        put_command(&mut out, stream_id, "publish", 5.0, &arguments);
        writer
            .write_all_buf(&mut out)
            .await
            .map_err(Failure::from)?;
        permission(&mut answers).await?;

        let statuses = Arc::new(Mutex::new(Vec::new()));
        let (asked, pings) = mpsc::channel(4);
        let (gone, closed) = watch::channel(false);
        let listening = tokio::spawn(listen(answers, Arc::clone(&statuses), asked, gone));
        Ok(Self {
            writer,
            local,
            stream_id,
            pings,
            statuses,
            closed,
            _listening: Listening(listening),
        })
    }

    pub fn stream_id(&self) -> u32 {
        self.stream_id
    }

    pub fn statuses(&self) -> Vec<Status> {
        self.statuses.lock().expect("no holder panics").clone()
    }

    /// Writes all of `out`, and answers a ping that waits.
    pub async fn write(&mut self, out: &mut BytesMut) -> Result<(), Failure> {
        if let Ok(time) = self.pings.try_recv() {
            let pong = [&PING_RESPONSE[..], &time].concat();
            let mut first = BytesMut::new();
            put_message(&mut first, CONTROL_STREAM, USER_CONTROL, 0, &pong);
            self.writer.write_all_buf(&mut first).await?;
        }
        match timeout(ANSWER_DEADLINE, self.writer.write_all_buf(out)).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(format!("the server has not read for {ANSWER_DEADLINE:?}").into()),
        }
    }

    /// Waits until the peer's kernel has acknowledged every byte.
    pub async fn flush(&mut self) -> Result<(), Failure> {
        let local = self.local;
        eventually(
            "the server's acknowledgement",
            ANSWER_DEADLINE,
            async || (unacknowledged_bytes(local) == Some(0)).then_some(()),
        )
        .await
    }

    pub async fn wait_closed(&mut self, deadline: Duration) -> Result<(), Failure> {
        match timeout(deadline, self.closed.wait_for(|&closed| closed)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(format!("the server keeps the connection after {deadline:?}").into()),
        }
    }

    /// Closes the socket by RST, which drops what was not acknowledged.
    pub fn reset(self) -> Result<(), Failure> {
        self.writer.as_ref().set_zero_linger()?;
        // Dropped, it would send FIN before.
        self.writer.forget();
        Ok(())
    }
}

async fn create_stream(
    writer: &mut OwnedWriteHalf,
    answers: &mut Answers<OwnedReadHalf>,
    target: &Target,
) -> Result<u32, Failure> {
    let address = format!("rtmp://{}/{}", target.address, target.app);
    let connect = [
        ("app", target.app.as_str()),
        ("type", "nonprivate"),
        ("flashVer", "FMLE/3.0 (compatible; sluice tests)"),
        ("tcUrl", &address),
    ];
    let name = Amf::Text(&target.stream);
    let mut out = BytesMut::new();
    let chunk_size = (CHUNK_SIZE as u32).to_be_bytes();
    put_message(&mut out, CONTROL_STREAM, SET_CHUNK_SIZE, 0, &chunk_size);
    put_command(&mut out, 0, "connect", 1.0, &[Amf::Object(&connect)]);
    put_command(&mut out, 0, "releaseStream", 2.0, &[Amf::Null, name]);
    put_command(&mut out, 0, "FCPublish", 3.0, &[Amf::Null, name]);
    put_command(&mut out, 0, "createStream", 4.0, &[Amf::Null]);
    writer.write_all_buf(&mut out).await?;
    loop {
        let message = answers.next().await?;
        if message.kind == COMMAND
            && let Some(id) = created_stream(&message.body)
        {
            return Ok(id);
        }
    }
}

/// Waits for `NetStream.Publish.Start`; any other status of the publish is a rejection.
async fn permission(answers: &mut Answers<OwnedReadHalf>) -> Result<(), PublishError> {
    loop {
        let message = answers.next().await?;
        let status = (message.kind == COMMAND)
            .then(|| Status::parse(&message.body))
            .flatten();
        match status {
            Some(status) if status.code == "NetStream.Publish.Start" => return Ok(()),
            Some(status) if status.is_error() => return Err(PublishError::Refused(status)),
            _ => {}
        }
    }
}

/// Keeps what the server says until it closes the connection.
async fn listen(
    mut answers: Answers<OwnedReadHalf>,
    statuses: Arc<Mutex<Vec<Status>>>,
    pings: mpsc::Sender<[u8; 4]>,
    gone: watch::Sender<bool>,
) {
    while let Ok(message) = answers.next().await {
        match message.kind {
            USER_CONTROL => {
                let time = message.body.strip_prefix(&PING_REQUEST);
                // A ping that finds the queue full is answered by the pong to an earlier one.
                time.and_then(|time| time.first_chunk())
                    .map(|time| pings.try_send(*time));
            }
            COMMAND => {
                let mut statuses = statuses.lock().expect("no holder panics");
                statuses.extend(Status::parse(&message.body));
            }
            _ => {}
        }
    }
    gone.send_replace(true);
}

/// Bytes in the send queue of the socket with this local address (proc_net_tcp); `None` when there is none any more.
fn unacknowledged_bytes(local: SocketAddr) -> Option<u64> {
    let IpAddr::V4(ip) = local.ip() else {
        return None;
    };
    let address = format!(
        "{:08X}:{:04X}",
        u32::from_ne_bytes(ip.octets()),
        local.port()
    );
    let table = std::fs::read_to_string("/proc/self/net/tcp").ok()?;
    let mut rows = table
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1) == Some(&address.as_str()))?;
    u64::from_str_radix(row.get(4)?.split(':').next()?, 16).ok()
}
