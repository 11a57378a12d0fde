//! Webhook receivers of the load harness: each takes its requests, notes when they began, and answers 200, or never.
//!
//! Each has a port of its own, as so many hosts would: the service keeps connections by host and port.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use sluice_testkit::Failure;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream},
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinSet,
};
use uuid::Uuid;

const BACKLOG: u32 = 1024;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    Prompt,
    /// Takes requests and never answers.
    Hanging,
    /// No one listens.
    Dead,
}

/// A request at a prompt receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) endpoint: usize,
    pub(super) file: Uuid,
    /// Arrival of the first byte.
    pub(super) at: Instant,
}

type Arrivals = Arc<Mutex<Vec<Arrival>>>;

/// Receivers of webhooks; stopped on drop.
#[derive(Debug)]
pub(super) struct Receivers {
    addresses: Vec<SocketAddr>,
    arrivals: Arrivals,
    /// Ports of the dead, kept for them.
    reserved: Vec<(usize, TcpSocket)>,
    listening: JoinSet<()>,
}

impl Receivers {
    pub(super) fn start(temper: impl Fn(usize) -> Temper, count: u16) -> Result<Self, Failure> {
        let mut receivers = Self {
            addresses: Vec::new(),
            arrivals: Arrivals::default(),
            reserved: Vec::new(),
            listening: JoinSet::new(),
        };
        for number in 0..usize::from(count) {
            let socket = TcpSocket::new_v4()?;
            socket.bind(([127, 0, 0, 1], 0).into())?;
            receivers.addresses.push(socket.local_addr()?);
            match temper(number) {
                Temper::Dead => receivers.reserved.push((number, socket)),
                temper => receivers.listen(number, socket, temper)?,
            }
        }
        Ok(receivers)
    }

    /// The dead are prompt from now on.
    pub(super) fn revive(&mut self) -> Result<(), Failure> {
        for (number, socket) in std::mem::take(&mut self.reserved) {
            self.listen(number, socket, Temper::Prompt)?;
        }
        Ok(())
    }

    fn listen(&mut self, number: usize, socket: TcpSocket, temper: Temper) -> Result<(), Failure> {
        let (listener, arrivals) = (socket.listen(BACKLOG)?, Arc::clone(&self.arrivals));
        self.listening
            .spawn(accept(listener, number, temper, arrivals));
        Ok(())
    }

    pub(super) fn urls(&self) -> impl Iterator<Item = String> {
        let addresses = self.addresses.iter().enumerate();
        addresses.map(|(number, address)| format!("http://{address}/hooks/{number}"))
    }

    pub(super) fn count(&self) -> usize {
        lock(&self.arrivals).len()
    }

    pub(super) fn arrivals(&self) -> Vec<Arrival> {
        lock(&self.arrivals).clone()
    }
}

fn lock(arrivals: &Arrivals) -> std::sync::MutexGuard<'_, Vec<Arrival>> {
    arrivals.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, endpoint: usize, temper: Temper, arrivals: Arrivals) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let arrivals = Arc::clone(&arrivals);
        connections.spawn(async move {
            // A client that leaves is the client's business.
            let _ = serve(socket, endpoint, temper, &arrivals).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(
    socket: TcpStream,
    endpoint: usize,
    temper: Temper,
    arrivals: &Arrivals,
) -> Result<(), Failure> {
    socket.set_nodelay(true)?;
    let mut connection = BufStream::with_capacity(8 * 1024, 256, socket);
    let mut body = Vec::new();
    while !connection.fill_buf().await?.is_empty() {
        let at = Instant::now();
        read_request(&mut connection, &mut body).await?;
        if temper == Temper::Prompt {
            let file = file_of(&body)?;
            lock(arrivals).push(Arrival { endpoint, file, at });
            connection.write_all(ANSWER).await?;
            connection.flush().await?;
        }
    }
    Ok(())
}

async fn read_request(
    connection: &mut BufStream<TcpStream>,
    body: &mut Vec<u8>,
) -> Result<(), Failure> {
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        connection.read_line(&mut line).await?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            // The request line has a colon too, in no name that counts.
            match line.trim_end().is_empty() {
                true => break,
                false => continue,
            }
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
    }
    body.resize(length, 0);
    connection.read_exact(body).await?;
    Ok(())
}

/// Without parsing the rest of the envelope, whose cost is no part of the measurement.
fn file_of(body: &[u8]) -> Result<Uuid, Failure> {
    let body = std::str::from_utf8(body)?;
    let (_, rest) = body.split_once("\"fileId\":\"").ok_or("no fileId")?;
    Ok(rest.get(..36).ok_or("half a fileId")?.parse()?)
}
