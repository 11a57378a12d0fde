//! A webhook receiver that answers 200 and keeps the ids of the events that came, by path.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::Failure;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
/// The largest body that a delivery has.
const MOST_BODY_BYTES: usize = 1024 * 1024;

/// A request that came whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// `webhook-id`.
    pub event_id: String,
    pub body: Vec<u8>,
}

/// Listens on loopback until it is dropped.
pub struct Receiver {
    address: SocketAddr,
    arrivals: Arc<Mutex<HashMap<String, Vec<Arrival>>>>,
    task: JoinHandle<()>,
}

impl Receiver {
    /// On a free port.
    pub async fn start() -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let arrivals = Arc::<Mutex<HashMap<_, _>>>::default();
        Ok(Self {
            address: listener.local_addr()?,
            task: tokio::spawn(accept(listener, arrivals.clone())),
            arrivals,
        })
    }

    /// `path` with its slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Everything that came to a path, in the order of its arrival.
    pub fn arrivals(&self, path: &str) -> Vec<Arrival> {
        let arrivals = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        arrivals.get(path).cloned().unwrap_or_default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Arrivals = Mutex<HashMap<String, Vec<Arrival>>>;

async fn accept(listener: TcpListener, arrivals: Arc<Arrivals>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(serve(socket, arrivals.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves the requests of a connection until its client leaves.
async fn serve(socket: TcpStream, arrivals: Arc<Arrivals>) -> Option<()> {
    socket.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(socket);
    loop {
        let (path, arrival) = read(&mut stream).await?;
        {
            let mut arrivals = arrivals.lock().unwrap_or_else(PoisonError::into_inner);
            arrivals.entry(path).or_default().push(arrival);
        }
        stream.write_all(ANSWER).await.ok()?;
    }
}

/// Reads a request; `None` when only a part of one comes.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<(String, Arrival)> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let (mut length, mut event_id) = (0, String::new());
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().ok()?,
            "webhook-id" => value.clone_into(&mut event_id),
            _ => {}
        }
    }
    let mut body = vec![0; Some(length).filter(|length| *length <= MOST_BODY_BYTES)?];
    stream.read_exact(&mut body).await.ok()?;
    Some((path, Arrival { event_id, body }))
}
