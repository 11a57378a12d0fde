//! RTMP publisher of tests: handshake, `connect`, `publish`, pings, goodbye.

use std::time::Duration;

use bytes::BytesMut;
use tokio::{
    io::AsyncWriteExt,
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    time::timeout,
};

pub use crate::status::Status;
use crate::{
    Failure,
    rtmp::{
        Amf, Answers, CHUNK_SIZE, COMMAND, CONTROL_STREAM, SET_CHUNK_SIZE, USER_CONTROL,
        created_stream, put_command, put_message, shake_hands,
    },
};

/// Time within which a server answers.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);
const PING_REQUEST: [u8; 2] = [0, 6];
const PING_RESPONSE: [u8; 2] = [0, 7];

/// Target of a publish: `rtmp://{address}/{app}` and the stream name.
#[derive(Clone, Debug)]
pub struct Target {
    pub address: String,
    pub app: String,
    pub stream: String,
}

/// Reason why nothing was published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The server rejected the publish, in the protocol's own way.
    #[error("rejected: {} ({})", .0.code, .0.description)]
    Refused(Status),
    #[error(transparent)]
    Failed(#[from] Failure),
}

/// Connection of a publish that the server has accepted.
#[derive(Debug)]
pub struct Connection {
    pub answers: Answers<OwnedReadHalf>,
    pub writer: OwnedWriteHalf,
    pub stream_id: u32,
}

impl Connection {
    /// Connects: handshake, `connect`, `createStream`, `publish`, and the server's permission.
    pub async fn open(target: &Target) -> Result<Self, PublishError> {
        match timeout(ANSWER_DEADLINE, Self::open_without_deadline(target)).await {
            Ok(opened) => opened,
            Err(_) => {
                let address = &target.address;
                let late = format!("no answer from {address} within {ANSWER_DEADLINE:?}");
                Err(Failure::from(late).into())
            }
        }
    }

    async fn open_without_deadline(target: &Target) -> Result<Self, PublishError> {
        let mut socket = TcpStream::connect(&target.address)
            .await
            .map_err(Failure::from)?;
        socket.set_nodelay(true).map_err(Failure::from)?;
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
        Ok(Self {
            answers,
            writer,
            stream_id,
        })
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

/// Hands over the times that pings ask for, and every status; returns why the server stopped talking.
pub async fn listen(
    mut answers: Answers<OwnedReadHalf>,
    pings: mpsc::Sender<[u8; 4]>,
    mut on_status: impl FnMut(Status),
) -> Failure {
    loop {
        match answers.next().await {
            Ok(message) if message.kind == USER_CONTROL => {
                let time = message.body.strip_prefix(&PING_REQUEST);
                // A ping that finds the queue full is answered by the pong to an earlier one.
                time.and_then(|time| time.first_chunk())
                    .map(|time| pings.try_send(*time));
            }
            Ok(message) if message.kind == COMMAND => {
                if let Some(status) = Status::parse(&message.body) {
                    on_status(status);
                }
            }
            Ok(_) => {}
            Err(failure) => return failure,
        }
    }
}

/// Appends the answer to a ping.
pub fn put_pong(out: &mut BytesMut, time: [u8; 4]) {
    let pong = [&PING_RESPONSE[..], &time].concat();
    put_message(out, CONTROL_STREAM, USER_CONTROL, 0, &pong);
}

/// Appends what an encoder says when its user presses stop.
pub fn put_goodbye(out: &mut BytesMut, stream: &str, stream_id: u32) {
    let name = [Amf::Null, Amf::Text(stream)];
    put_command(out, 0, "FCUnpublish", 6.0, &name);
    let id = [Amf::Null, Amf::Number(stream_id.into())];
    put_command(out, 0, "deleteStream", 7.0, &id);
}
