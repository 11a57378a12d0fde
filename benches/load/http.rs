//! Plain HTTP/1.1 client of the load harness over one kept connection.

use std::time::Duration;

use sluice_testkit::Failure;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream},
    net::TcpStream,
    time::timeout,
};

/// A blocking reload answers within a few part targets, a large AVIF within seconds; nothing takes this long but a
/// server that hangs.
const ANSWER_DEADLINE: Duration = Duration::from_secs(60);

/// An answer with its whole body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A connection, opened at the first request and again after a failure.
#[derive(Debug)]
pub(crate) struct Client {
    address: String,
    connection: Option<BufStream<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            connection: None,
        }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Failure> {
        self.send("GET", path, "", b"").await
    }

    /// `headers` are whole lines, each with its line end.
    pub(crate) async fn get_with(&mut self, path: &str, headers: &str) -> Result<Answer, Failure> {
        self.send("GET", path, headers, b"").await
    }

    pub(crate) async fn post(
        &mut self,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<Answer, Failure> {
        self.send("POST", path, headers, body).await
    }

    /// `headers` are whole lines, each with its line end.
    async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> Result<Answer, Failure> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n{headers}\r\n",
            self.address,
            body.len(),
        );
        // Taken out, so that a request that fails or is dropped half-way leaves no connection in an unknown state.
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(&self.address).await?,
        };
        let exchange = exchange(&mut connection, head.as_bytes(), body);
        let (answer, keep) = timeout(ANSWER_DEADLINE, exchange)
            .await
            .map_err(|_| format!("{method} {path}: no answer within {ANSWER_DEADLINE:?}"))??;
        self.connection = keep.then_some(connection);
        Ok(answer)
    }
}

async fn connect(address: &str) -> Result<BufStream<TcpStream>, Failure> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    Ok(BufStream::with_capacity(64 * 1024, 4 * 1024, socket))
}

/// Sends a request and reads its answer; also returns whether the connection may carry another one.
async fn exchange(
    connection: &mut BufStream<TcpStream>,
    head: &[u8],
    body: &[u8],
) -> Result<(Answer, bool), Failure> {
    connection.write_all(head).await?;
    connection.write_all(body).await?;
    connection.flush().await?;
    let mut line = String::new();
    connection.read_line(&mut line).await?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok())
        .ok_or("no HTTP answer")?;

    let (mut length, mut chunked, mut keep) = (0, false, true);
    loop {
        line.clear();
        connection.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse()?,
            "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
            "connection" => keep = !value.eq_ignore_ascii_case("close"),
            _ => {}
        }
    }
    let body = if chunked {
        read_chunks(connection).await?
    } else {
        read_exactly(connection, length).await?
    };
    Ok((Answer { status, body }, keep))
}

async fn read_exactly(
    connection: &mut BufStream<TcpStream>,
    length: usize,
) -> Result<Vec<u8>, Failure> {
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    Ok(body)
}

async fn read_chunks(connection: &mut BufStream<TcpStream>) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        connection.read_line(&mut line).await?;
        let length = usize::from_str_radix(line.trim_end(), 16)?;
        body.extend(read_exactly(connection, length).await?);
        connection.read_line(&mut String::new()).await?;
        if length == 0 {
            return Ok(body);
        }
    }
}
