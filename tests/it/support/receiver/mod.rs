//! A webhook receiver: answers on command, also badly, and keeps every request with its time.
//!
//! What it has received stays when it goes down and when the service is killed. The ledger file, where one is asked
//! for, is for a person who looks at a run that failed.

mod behaviour;
mod conversation;
mod request;

use std::{
    fs::{File, OpenOptions},
    io::Write,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::{JoinHandle, JoinSet},
    time::sleep,
};

pub use self::{
    behaviour::{Behaviour, Reply},
    request::Request,
};
use super::{Failure, eventually};

const BACKLOG: u32 = 1024;
/// An address that was just closed may be taken for a moment.
const BIND_DEADLINE: Duration = Duration::from_secs(5);
/// After a failed accept, which means that this process has no file to spare.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Listens on a loopback port until it is dropped; its connections end with it.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// `None` while it is down.
    listening: Option<Listening>,
}

#[derive(Debug)]
struct Listening(JoinHandle<()>);

struct Shared {
    state: Mutex<State>,
}

struct State {
    behaviour: Behaviour,
    requests: Vec<Arc<Request>>,
    /// Requests of which only a part came.
    broken: usize,
    connections: usize,
    ledger: Option<File>,
}

impl Receiver {
    /// On a free port.
    pub async fn start(behaviour: Behaviour) -> Result<Self, Failure> {
        Self::open(behaviour, None).await
    }

    /// The same, with a line of JSON for each request appended to `ledger`.
    pub async fn start_with_ledger(behaviour: Behaviour, ledger: &Path) -> Result<Self, Failure> {
        let ledger = OpenOptions::new().create(true).append(true).open(ledger)?;
        Self::open(behaviour, Some(ledger)).await
    }

    async fn open(behaviour: Behaviour, ledger: Option<File>) -> Result<Self, Failure> {
        let listener = listen(([127, 0, 0, 1], 0).into())?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                behaviour,
                requests: Vec::new(),
                broken: 0,
                connections: 0,
                ledger,
            }),
        });
        Ok(Self {
            address: listener.local_addr()?,
            listening: Some(Listening::begin(listener, &shared)),
            shared,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `path` with its slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// From the next request on.
    pub fn behave(&self, behaviour: Behaviour) {
        self.shared.lock().behaviour = behaviour;
    }

    /// Closes the port and all connections: new ones are refused.
    pub async fn go_down(&mut self) {
        if let Some(mut listening) = self.listening.take() {
            listening.0.abort();
            // Ends with the abort's error, which is no failure.
            let _ = (&mut listening.0).await;
        }
    }

    /// Listens again on the same port.
    pub async fn come_back(&mut self) -> Result<(), Failure> {
        if self.listening.is_some() {
            return Err("the receiver is up".into());
        }
        let listener = eventually("the port is free again", BIND_DEADLINE, async || {
            listen(self.address).ok()
        });
        self.listening = Some(Listening::begin(listener.await?, &self.shared));
        Ok(())
    }

    /// All whole requests so far, in the order of their arrival.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.lock().requests.clone()
    }

    /// Whole requests so far.
    pub fn count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// Requests of which only a part came, such as the last one of a process that was killed.
    pub fn broken(&self) -> usize {
        self.shared.lock().broken
    }

    /// Connections that were ever opened, requests or none.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }

    /// Waits until that many requests have come; all of them.
    pub async fn wait_for(
        &self,
        count: usize,
        deadline: Duration,
    ) -> Result<Vec<Arc<Request>>, Failure> {
        let what = format!("{count} requests at the receiver");
        let arrived = eventually(&what, deadline, async || {
            (self.count() >= count).then(|| self.requests())
        });
        arrived
            .await
            .map_err(|late| format!("{late}; there are {}", self.count()).into())
    }
}

impl Listening {
    fn begin(listener: TcpListener, shared: &Arc<Shared>) -> Self {
        Self(tokio::spawn(accept(listener, shared.clone())))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The connections are this task's own and end with it.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                connections.spawn(serve(socket, shared.clone()));
            }
            Err(_) => sleep(ACCEPT_AGAIN).await,
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(socket: TcpStream, shared: Arc<Shared>) {
    let connection = {
        let mut state = shared.lock();
        state.connections += 1;
        state.connections
    };
    // A client that leaves is no failure of the receiver.
    let _ = conversation::hold(socket, connection, &shared).await;
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a request; what to do about it.
    fn receive(&self, mut request: Request) -> (Arc<Request>, Behaviour) {
        let mut state = self.lock();
        request.number = state.requests.len();
        let request = Arc::new(request);
        state.requests.push(request.clone());
        if let Some(ledger) = &mut state.ledger {
            // A single write, so that lines of several receivers do not mix.
            let _ = ledger.write_all(request.ledger_line().as_bytes());
        }
        let behaviour = state.behaviour.clone();
        drop(state);
        let behaviour = match behaviour {
            Behaviour::Script(script) => script(&request),
            other => other,
        };
        (request, behaviour)
    }

    fn receive_part(&self) {
        self.lock().broken += 1;
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.lock();
        formatter
            .debug_struct("Shared")
            .field("behaviour", &state.behaviour)
            .field("requests", &state.requests.len())
            .finish_non_exhaustive()
    }
}

fn listen(address: SocketAddr) -> Result<TcpListener, std::io::Error> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
