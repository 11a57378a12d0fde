//! `sluice mcp`: standard input and output to the service's `/mcp`; messages in flight (`mcp.stdio_calls`), cancellation, end of
//! input.
//!
//! ```text
//! line ─ message ─┬─ request ──────── a task: POST, and what comes back goes out ─┐
//!                 ├─ notification ─── a task: POST                               ├─ output
//!                 └─ cancelled ────── ends the request's task                    ┘
//! ```
//!
//! A task belongs to one message of the client and holds its connection: ending the task ends the request. Nothing that goes
//! wrong with one ends the bridge; only the end of input, or of output, does.

use std::{sync::Arc, time::Duration};

use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::{AbortHandle, Id, JoinSet, spawn_blocking},
    time::timeout,
};

use super::{
    endpoint::{Answers, Endpoint},
    error::{BridgeError, Code},
    line::Line,
    message::{Message, Request, failure},
    output::Output,
    roots::Roots,
    tool::{self, Call, FileCall},
    upload::{self, Audience},
};

pub(super) struct Bridge {
    parts: Arc<Parts>,
    tasks: JoinSet<()>,
    /// The requests among the tasks.
    requests: Vec<InFlightRequests>,
    max_tasks: usize,
    linger: Duration,
}

/// State that the tasks share.
pub(super) struct Parts {
    /// The endpoint, or the reason why there is none.
    pub(super) endpoint: Result<Endpoint, String>,
    pub(super) roots: Roots,
    pub(super) output: Output,
    pub(super) max_message: usize,
}

struct InFlightRequests {
    request: Request,
    task: AbortHandle,
}

impl Bridge {
    /// At most `max_tasks` messages in flight at a time; `linger` bounds the wait for them when input has ended.
    pub(super) fn new(parts: Parts, max_tasks: usize, linger: Duration) -> Self {
        Self {
            parts: Arc::new(parts),
            tasks: JoinSet::new(),
            requests: Vec::new(),
            max_tasks,
            linger,
        }
    }

    /// Ends when the input has ended and what was in flight is answered, or when no one reads the output.
    pub(super) async fn run(mut self, mut input: mpsc::Receiver<Line>) {
        loop {
            tokio::select! {
                line = input.recv() => match line {
                    Some(line) => self.take(line).await,
                    None => break,
                },
                Some(ended) = self.tasks.join_next_with_id() => self.end(ended).await,
                () = self.parts.output.closed() => return,
            }
        }
        let linger = self.linger;
        if timeout(linger, self.drain()).await.is_err() {
            let left = self.requests.len();
            eprintln!(
                "sluice: {left} requests are given up: no answer within {} s",
                linger.as_secs()
            );
        }
    }

    async fn drain(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.end(ended).await;
        }
    }

    async fn take(&mut self, line: Line) {
        // A client that has its answer may use the id, and the place, at once.
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.end(ended).await;
        }
        let line = match line {
            Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => return,
            Line::Whole(line) => line,
            Line::TooLong => {
                let error = BridgeError::TooLarge {
                    what: "the message",
                    max_bytes: self.parts.max_message,
                };
                let rejection = failure(&Value::Null, error.code(), &error.to_string());
                return self.parts.output.send(&rejection).await;
            }
        };
        match Message::parse(&line) {
            Ok(Message::Request(request)) => self.begin(request).await,
            Ok(Message::Cancelled(id)) => self.cancel(&id),
            Ok(Message::Notification(body)) => self.notify(body),
            Ok(Message::Answer) => eprintln!("sluice: an answer to no request is ignored"),
            Err(rejection) => {
                let rejection = failure(&rejection.id, rejection.code, rejection.text);
                self.parts.output.send(&rejection).await;
            }
        }
    }

    async fn begin(&mut self, request: Request) {
        // A result under this id would be taken for the other request's.
        if self.find(&request.id).is_some() {
            let rejection = failure(
                &request.id,
                Code::InvalidRequest,
                &BridgeError::SameId.to_string(),
            );
            return self.parts.output.send(&rejection).await;
        }
        if self.tasks.len() >= self.max_tasks {
            let rejection = request.failed(&BridgeError::Busy(self.max_tasks));
            return self.parts.output.send(&rejection).await;
        }
        let (parts, asked) = (self.parts.clone(), request.clone());
        let task = self.tasks.spawn(async move { parts.answer(asked).await });
        self.requests.push(InFlightRequests { request, task });
    }

    fn notify(&mut self, body: Value) {
        if self.tasks.len() >= self.max_tasks {
            eprintln!(
                "sluice: a notification is left out: {}",
                BridgeError::Busy(self.max_tasks)
            );
            return;
        }
        let parts = self.parts.clone();
        self.tasks.spawn(async move {
            if let Err(error) = parts.pass_on(&body).await {
                eprintln!("sluice: a notification did not arrive: {error}");
            }
        });
    }

    /// Ends a request whose client no longer waits: no answer, and the end of the HTTP request, by which the service knows. The
    /// notification itself stays here. The service knows clients by key and address alone, so it could end another
    /// program's wait.
    fn cancel(&mut self, id: &Value) {
        if let Some(place) = self.find(id) {
            self.requests.swap_remove(place).task.abort();
        }
    }

    fn find(&self, id: &Value) -> Option<usize> {
        (self.requests.iter()).position(|in_flight| in_flight.request.id == *id)
    }

    /// Removes an ended task; answers for one that panicked.
    async fn end(&mut self, ended: Result<(Id, ()), tokio::task::JoinError>) {
        let id = match &ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        let Some(place) = (self.requests.iter()).position(|in_flight| in_flight.task.id() == id)
        else {
            return;
        };
        let in_flight = self.requests.swap_remove(place);
        if ended.is_err_and(|error| error.is_panic()) {
            let answer = in_flight.request.failed(&BridgeError::Internal);
            self.parts.output.send(&answer).await;
        }
    }
}

impl Parts {
    /// Answers a request in any case.
    async fn answer(&self, request: Request) {
        let answered = match Call::of(request.clone()) {
            Ok(Call::Plain(plain)) => self.relay(&plain, &plain.body, |_| {}).await,
            Ok(Call::File(call)) => self.run_file(&call).await,
            Err(error) => Err(error),
        };
        if let Err(error) = answered {
            self.output.send(&request.failed(&error)).await;
        }
    }

    fn endpoint(&self) -> Result<&Endpoint, BridgeError> {
        let endpoint = self.endpoint.as_ref();
        endpoint.map_err(|reason| BridgeError::NotSetUp(reason.clone()))
    }

    /// Sends a notification; its answer is ignored.
    async fn pass_on(&self, body: &Value) -> Result<(), BridgeError> {
        self.endpoint()?.post(body).await.map(drop)
    }

    /// Sends `body` for a request and gives what comes back to the client, up to the answer. `change` sees what precedes it.
    async fn relay(
        &self,
        request: &Request,
        body: &Value,
        change: impl Fn(&mut Value),
    ) -> Result<(), BridgeError> {
        let endpoint = self.endpoint()?;
        let mut answers = endpoint.post(body).await?;
        loop {
            let (mut message, bytes) = next(&mut answers, endpoint).await?;
            if is_answer(&message) {
                self.finish(request, message, bytes).await;
                return Ok(());
            }
            let before = message.clone();
            change(&mut message);
            match message == before {
                true => self.output.pass_on(bytes).await,
                false => self.output.send(&message).await,
            }
        }
    }

    /// Gives the answer to the client, after learning from it what later messages need.
    async fn finish(&self, request: &Request, mut answer: Value, bytes: Vec<u8>) {
        match request.method.as_str() {
            "initialize" => {
                let version = answer.pointer("/result/protocolVersion");
                if let (Some(version), Ok(endpoint)) =
                    (version.and_then(Value::as_str), self.endpoint())
                {
                    endpoint.agree(version);
                }
            }
            "tools/list" => {
                tool::offer_file_path(&mut answer, &self.roots);
                return self.output.send(&answer).await;
            }
            _ => {}
        }
        // A rejection may have been made before the id was read.
        if answer["id"] != request.id {
            answer["id"] = request.id.clone();
            return self.output.send(&answer).await;
        }
        self.output.pass_on(bytes).await;
    }

    /// Runs `run_workflow` for a file of this machine: open it, get an address, send it there, run.
    async fn run_file(&self, call: &FileCall) -> Result<(), BridgeError> {
        let endpoint = self.endpoint()?;
        let (roots, path) = (self.roots.clone(), call.path.clone());
        // A folder may be on a network.
        let opened = spawn_blocking(move || roots.open(&path)).await;
        let file = opened.map_err(|_panicked| BridgeError::Internal)??;
        let name = file.name.clone();
        let signed_url = self.signed_url(endpoint, call, &name, file.length).await?;
        let audience = Audience {
            output: &self.output,
            token: call.request.progress_token(),
        };
        let sent = upload::send(endpoint, file, &signed_url, audience).await;
        sent.map_err(|reason| BridgeError::Upload { name, reason })?;
        self.relay(&call.request, &call.run(&signed_url), tool::count_upload)
            .await
    }

    async fn signed_url(
        &self,
        endpoint: &Endpoint,
        call: &FileCall,
        name: &str,
        size_bytes: u64,
    ) -> Result<String, BridgeError> {
        let mut answers = endpoint.post(&call.create_upload(name, size_bytes)).await?;
        loop {
            let (message, _) = next(&mut answers, endpoint).await?;
            if is_answer(&message) {
                return tool::upload_url(&message);
            }
        }
    }
}

/// The next message, read and as it came.
async fn next(answers: &mut Answers, endpoint: &Endpoint) -> Result<(Value, Vec<u8>), BridgeError> {
    let broken = |reason: &str| BridgeError::Broken {
        url: endpoint.url().to_owned(),
        reason: reason.to_owned(),
    };
    let bytes = answers.next().await?;
    let bytes = bytes.ok_or_else(|| broken("it ended before the answer"))?;
    let message: Value = serde_json::from_slice(&bytes).map_err(|_| broken("it is not JSON"))?;
    match message.is_object() {
        true => Ok((message, bytes)),
        false => Err(broken("it is not a message")),
    }
}

/// Returns whether this ends a request.
fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}
