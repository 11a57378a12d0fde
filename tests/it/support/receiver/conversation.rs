//! A connection: requests read byte by byte by the rules of HTTP/1.1 (RFC 9112), answers by the behaviour.

use std::{
    io::{Error, ErrorKind},
    sync::OnceLock,
    time::{Duration, SystemTime},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::{Instant, sleep},
};

use super::{Behaviour, Reply, Request, Shared};

/// Largest body of a request that a test could mean.
const MAX_BODY: usize = 64 * 1024 * 1024;
const MAX_HEAD: usize = 1024 * 1024;
const BOMB_BYTES: usize = 4 * 1024 * 1024;
const HUGE_HEAD_BYTES: usize = 1024 * 1024;

type Connection = BufReader<TcpStream>;

/// Next step of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Keep,
    Close,
}

/// Takes requests until either side closes.
pub(super) async fn hold(socket: TcpStream, number: usize, shared: &Shared) -> Result<(), Error> {
    socket.set_nodelay(true)?;
    let mut connection = BufReader::new(socket);
    while !connection.fill_buf().await?.is_empty() {
        let request = match read_request(&mut connection, number).await {
            Ok(request) => request,
            Err(error) => {
                shared.receive_part();
                return Err(error);
            }
        };
        let (request, behaviour) = shared.receive(request);
        if answer(&mut connection, &request, behaviour).await? == Then::Close
            || request.header("connection").eq_ignore_ascii_case("close")
        {
            break;
        }
    }
    Ok(())
}

/// The first byte has arrived.
async fn read_request(connection: &mut Connection, number: usize) -> Result<Request, Error> {
    let (arrived, arrived_at) = (Instant::now(), SystemTime::now());
    let mut lines = read_head(connection).await?.into_iter();
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(' ').map(str::to_owned);
    let (method, path) = (words.next(), words.next());
    let headers: Vec<_> = lines.filter_map(|line| split_header(&line)).collect();
    let mut request = Request {
        number: 0,
        connection: number,
        method: method.unwrap_or_default(),
        path: path.unwrap_or_default(),
        headers,
        body: bytes::Bytes::new(),
        arrived,
        arrived_at,
        answered: OnceLock::new(),
    };
    let length = request.header("content-length").parse().unwrap_or(0);
    if length > MAX_BODY || !request.header("transfer-encoding").is_empty() {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    request.body = body.into();
    Ok(request)
}

/// The lines before the empty one.
async fn read_head(connection: &mut Connection) -> Result<Vec<String>, Error> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        let read = connection.read_line(&mut line).await?;
        bytes += read;
        if read == 0 || bytes > MAX_HEAD {
            return Err(ErrorKind::InvalidData.into());
        }
        match line.trim_end() {
            "" => return Ok(lines),
            line => lines.push(line.to_owned()),
        }
    }
}

fn split_header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.to_ascii_lowercase(), value.trim().to_owned()))
}

async fn answer(
    connection: &mut Connection,
    request: &Request,
    mut behaviour: Behaviour,
) -> Result<Then, Error> {
    while let Behaviour::After(pause, then) = behaviour {
        sleep(pause).await;
        behaviour = *then;
    }
    match behaviour {
        Behaviour::Reply(reply) => {
            connection.write_all(&whole(&reply)).await?;
            // No one else sets it.
            let _ = request.answered.set(reply.status);
            return Ok(Then::Keep);
        }
        Behaviour::Hang => wait_for_the_end(connection).await?,
        Behaviour::DripHead(pause) => {
            drip(connection, b"HTTP/1.1 200 OK\r\nX-Drip: ", pause).await?
        }
        Behaviour::DripBody(status, pause) => {
            connection.write_all(&head(status, "")).await?;
            drip(connection, b"", pause).await?;
        }
        Behaviour::EndlessBody(status) => {
            connection.write_all(&head(status, "")).await?;
            loop {
                connection.write_all(&[b'x'; 16 * 1024]).await?;
            }
        }
        Behaviour::GzipBomb(status) => {
            let head = head(status, "Content-Encoding: gzip\r\n");
            connection.write_all(&head).await?;
            connection.write_all(&bomb(BOMB_BYTES)).await?;
        }
        Behaviour::HugeHead(status) => {
            let line = format!("X-Filler: {}\r\n", "f".repeat(1000));
            let lines = line.repeat(HUGE_HEAD_BYTES / line.len() + 1);
            connection.write_all(&head(status, &lines)).await?;
        }
        Behaviour::Reset => connection.get_ref().set_zero_linger()?,
        Behaviour::CutShort(status) => {
            let head = head(status, "Content-Length: 1000\r\n");
            connection.write_all(&head).await?;
            connection.write_all(b"cut").await?;
        }
        Behaviour::Garbage => connection.write_all(b"\x00\xff not HTTP\r\n\r\n").await?,
        Behaviour::After(..) => unreachable!("taken apart above"),
        Behaviour::Script(_) => return Err(Error::other("a script that answers with a script")),
    }
    Ok(Then::Close)
}

/// `lines` are further header lines, each with its line end.
fn head(status: u16, lines: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Answer\r\n{lines}\r\n").into_bytes()
}

fn whole(reply: &Reply) -> Vec<u8> {
    let length = ("Content-Length".to_owned(), reply.body.len().to_string());
    let lines = reply.headers.iter().chain([&length]);
    let lines: String = lines
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let mut bytes = head(reply.status, &lines);
    bytes.extend_from_slice(&reply.body);
    bytes
}

/// Waits until the client closes.
async fn wait_for_the_end(connection: &mut Connection) -> Result<(), Error> {
    while !connection.fill_buf().await?.is_empty() {
        let read = connection.buffer().len();
        connection.consume(read);
    }
    Ok(())
}

async fn drip(connection: &mut Connection, first: &[u8], pause: Duration) -> Result<(), Error> {
    for byte in first.iter().copied().chain(std::iter::repeat(b'd')) {
        connection.write_all(&[byte]).await?;
        sleep(pause).await;
    }
    Ok(())
}

/// The start of a gzip stream (RFC 1952) of zeros: one block with fixed codes (RFC 1951, 3.2.6), of one literal and
/// then of matches that repeat it 258 times in 13 bits each.
fn bomb(bytes: usize) -> Vec<u8> {
    const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    // Codes come first bit first: last block, fixed codes (01, low bit first), literal 0.
    const START: &str = "11000110000";
    // Length 258 (code 285, no further bits), distance 1.
    const MATCH: &str = "1100010100000";
    /// Bytes that begin with the literal, and bytes in which matches of 13 bits come round.
    const FIRST: usize = 2;
    const ROUND: usize = 13;
    let mut bits = START.bytes().chain(MATCH.bytes().cycle());
    let mut byte = || {
        (0..8).fold(0, |byte, at| {
            byte | u8::from(bits.next() == Some(b'1')) << at
        })
    };
    let first: Vec<u8> = (0..FIRST).map(|_| byte()).collect();
    let round: Vec<u8> = (0..ROUND).map(|_| byte()).collect();
    let packed = first.into_iter().chain(round.into_iter().cycle());
    HEADER.into_iter().chain(packed).take(bytes).collect()
}

#[test]
fn the_bomb_is_gzip_that_unpacks_to_much_more() {
    use std::io::Write;
    let mut python = match std::process::Command::new("python3")
        .args(["-c", "import sys, zlib; sys.exit(len(zlib.decompressobj(31).decompress(sys.stdin.buffer.read())) < 1_500_000)"])
        .stdin(std::process::Stdio::piped())
        .spawn()
    {
        Ok(python) => python,
        Err(_) => return crate::support::skip("unpacking the bomb", "no python3"),
    };
    let mut input = python.stdin.take().expect("piped above");
    input.write_all(&bomb(10_000)).expect("it reads");
    drop(input);
    assert!(python.wait().expect("it ends").success());
}
