//! Fake S3 server of the tests: objects in memory, failures in an order that a test gives.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Request as it came.
#[derive(Clone, Debug)]
pub(super) struct Received {
    pub(super) method: String,
    /// Path without the bucket's, decoded query behind `?`.
    pub(super) target: String,
    /// Lower-case names.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
    /// Number of the connection, from 0.
    pub(super) connection: usize,
}

/// Answer in place of the right one.
#[derive(Clone, Debug)]
pub(super) enum Trick {
    /// The right answer.
    None,
    /// This status, with the code in its explanation.
    Status(u16, &'static str),
    /// Rejects the request for its time, by a clock that is so many seconds ahead.
    Ahead(i64),
    /// Announces more bytes than it sends, and closes.
    Short,
    /// The right answer with its body's first byte changed.
    WrongBytes,
    /// Announces this many bytes, and sends none.
    Announced(usize),
    /// Bytes without end, in chunks.
    Endless,
    /// Reads the request and says nothing.
    Stall,
    /// Closes without an answer.
    Close,
    /// The right answer after which the connection is closed, without saying so.
    LastOfConnection,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<String, Vec<u8>>,
    tricks: VecDeque<Trick>,
    received: Vec<Received>,
    connections: usize,
    /// Objects of a page.
    page: usize,
    /// Pause before each [`STEP`] bytes that come or go.
    pause: Duration,
}

/// Bytes that are read or written at a time.
const STEP: usize = 64 << 10;

pub(super) struct FakeS3 {
    pub(super) port: u16,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Drop for FakeS3 {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl FakeS3 {
    /// Starts a server with the bucket `media`.
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State {
            page: 1000,
            ..State::default()
        }));
        let shared = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let number = shared.lock().connections;
                shared.lock().connections += 1;
                tokio::spawn(serve(stream, number, shared.clone()));
            }
        });
        Self { port, state, task }
    }

    /// Answers the next requests so.
    pub(super) fn play(&self, tricks: &[Trick]) {
        self.state.lock().tricks.extend(tricks.iter().cloned());
    }

    pub(super) fn list_by(&self, page: usize) {
        self.state.lock().page = page;
    }

    /// Takes and sends [`STEP`] bytes in each such time from now on.
    pub(super) fn slow_down(&self, pause: Duration) {
        self.state.lock().pause = pause;
    }

    pub(super) fn objects(&self) -> Vec<String> {
        self.state.lock().objects.keys().cloned().collect()
    }

    pub(super) fn insert(&self, key: &str, bytes: Vec<u8>) {
        self.state.lock().objects.insert(key.to_owned(), bytes);
    }

    /// Takes the requests that came since the last call.
    pub(super) fn received(&self) -> Vec<Received> {
        std::mem::take(&mut self.state.lock().received)
    }

    pub(super) fn connections(&self) -> usize {
        self.state.lock().connections
    }
}

async fn serve(mut stream: TcpStream, connection: usize, state: Arc<Mutex<State>>) {
    let mut buffer = Vec::new();
    while let Some(request) = read_request(&mut stream, &mut buffer, connection, &state).await {
        let trick = {
            let mut state = state.lock();
            state.received.push(request.clone());
            state.tricks.pop_front()
        };
        let mut is_last = false;
        let answer = match trick {
            Some(Trick::Status(status, code)) => {
                let body = format!(
                    "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>as the test wants</Message></Error>"
                );
                answer(status, "", body.as_bytes())
            }
            Some(Trick::Ahead(seconds)) => {
                let date = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
                let date =
                    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&date);
                let body = b"<Error><Code>RequestTimeTooSkewed</Code></Error>";
                answer(403, &format!("Date: {}\r\n", date.unwrap()), body)
            }
            Some(Trick::Short) => {
                is_last = true;
                b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec()
            }
            Some(Trick::Announced(length)) => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
                let _sent = stream.write_all(head.as_bytes()).await;
                tokio::time::sleep(Duration::from_secs(60)).await;
                return;
            }
            Some(Trick::Endless) => {
                let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
                let mut sent = stream.write_all(head).await;
                let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
                while sent.is_ok() {
                    sent = stream.write_all(&chunk).await;
                }
                return;
            }
            Some(Trick::Stall) => {
                tokio::time::sleep(Duration::from_secs(60)).await;
                return;
            }
            Some(Trick::Close) => return,
            Some(Trick::WrongBytes) => {
                let mut right = right_answer(&request, &state);
                let body = right.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
                if let Some(first) = right.get_mut(body) {
                    *first ^= 1;
                }
                right
            }
            Some(Trick::LastOfConnection) => {
                is_last = true;
                right_answer(&request, &state)
            }
            Some(Trick::None) | None => right_answer(&request, &state),
        };
        for step in answer.chunks(STEP) {
            pause(&state).await;
            if stream.write_all(step).await.is_err() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

async fn read_request(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    connection: usize,
    state: &Mutex<State>,
) -> Option<Received> {
    let mut part = vec![0; STEP];
    let head_end = loop {
        if let Some(at) = buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            break at + 4;
        }
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => buffer.extend_from_slice(&part[..length]),
        }
    };
    let head = String::from_utf8(buffer[..head_end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next().unwrap().split(' ');
    let (method, target) = (first.next().unwrap(), first.next().unwrap());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers.get("content-length");
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while buffer.len() < head_end + length {
        pause(state).await;
        match stream.read(&mut part).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => buffer.extend_from_slice(&part[..length]),
        }
    }
    let received = Received {
        method: method.to_owned(),
        target: target.strip_prefix("/media/").unwrap_or(target).to_owned(),
        body: buffer[head_end..head_end + length].to_vec(),
        headers,
        connection,
    };
    buffer.drain(..head_end + length);
    Some(received)
}

async fn pause(state: &Mutex<State>) {
    let pause = state.lock().pause;
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

fn right_answer(request: &Received, state: &Mutex<State>) -> Vec<u8> {
    let mut state = state.lock();
    if let Some(query) = request.target.strip_prefix('?') {
        return list(query, &state);
    }
    match request.method.as_str() {
        "PUT" => {
            (state.objects).insert(request.target.clone(), request.body.clone());
            answer(200, "ETag: \"x\"\r\n", b"")
        }
        "DELETE" => {
            state.objects.remove(&request.target);
            answer(204, "", b"")
        }
        _ => match state.objects.get(&request.target) {
            Some(bytes) => answer(200, "", bytes),
            None => answer(404, "", b"<Error><Code>NoSuchKey</Code></Error>"),
        },
    }
}

fn list(query: &str, state: &State) -> Vec<u8> {
    let query: BTreeMap<_, _> = url::form_urlencoded::parse(query.as_bytes()).collect();
    let get = |name: &str| query.get(name).map(|value| value.to_string());
    let prefix = get("prefix").unwrap_or_default();
    let after = get("continuation-token").or_else(|| get("start-after"));
    let after = after.unwrap_or_default();
    let wanted = state.objects.iter();
    let mut wanted =
        wanted.filter(|(key, _)| key.starts_with(&prefix) && key.as_str() > after.as_str());
    let page: Vec<_> = wanted.by_ref().take(state.page).collect();
    let is_truncated = wanted.next().is_some();
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>media</Name><IsTruncated>{is_truncated}</IsTruncated>"
    );
    for (key, bytes) in &page {
        xml += &format!(
            "<Contents><Key>{key}</Key><LastModified>2024-05-06T07:08:09.010Z</LastModified><ETag>\"x\"</ETag><Size>{}</Size></Contents>",
            bytes.len()
        );
    }
    if let (true, Some((last, _))) = (is_truncated, page.last()) {
        xml += &format!("<NextContinuationToken>{last}</NextContinuationToken>");
    }
    xml += "</ListBucketResult>";
    answer(200, "Content-Type: application/xml\r\n", xml.as_bytes())
}

fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = match status {
        204 => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let mut answer = format!("HTTP/1.1 {status} X\r\n{length}{headers}\r\n").into_bytes();
    answer.extend_from_slice(body);
    answer
}
