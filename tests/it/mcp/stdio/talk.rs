//! A conversation with a program by lines of JSON on its standard input and output.

use std::{process::Stdio, time::Duration};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
    time::timeout,
};

use crate::support::{Failure, command::Call};

/// For a line of a debug build on a machine with other work.
const DEADLINE: Duration = Duration::from_secs(60);

/// A bridge process and its pipes; killed on drop.
pub(super) struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl Talk {
    pub(super) fn start(call: Call) -> Result<Self, Failure> {
        let mut command = call.into_command();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let output = child.stdout.take().ok_or("no standard output")?;
        Ok(Self {
            input: child.stdin.take(),
            output: BufReader::new(output).lines(),
            child,
        })
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let input = self.input.as_mut().ok_or("the input is closed")?;
        timeout(DEADLINE, input.write_all(bytes)).await??;
        Ok(())
    }

    pub(super) async fn say(&mut self, message: &Value) -> Result<(), Failure> {
        self.write(format!("{message}\n").as_bytes()).await
    }

    /// The next line; every one is a message.
    pub(super) async fn hear(&mut self) -> Result<Value, Failure> {
        let line = timeout(DEADLINE, self.output.next_line()).await??;
        let line = line.ok_or("the output has ended")?;
        let message = serde_json::from_str(&line);
        message.map_err(|error| format!("{line} is no JSON: {error}").into())
    }

    /// The answer to what is said, and the messages before it.
    pub(super) async fn ask_all(&mut self, message: &Value) -> Result<Vec<Value>, Failure> {
        self.say(message).await?;
        let mut heard = Vec::new();
        loop {
            let next = self.hear().await?;
            let is_answer = next["id"] == message["id"];
            heard.push(next);
            if is_answer {
                return Ok(heard);
            }
        }
    }

    pub(super) async fn ask(&mut self, message: &Value) -> Result<Value, Failure> {
        let mut heard = self.ask_all(message).await?;
        heard.pop().ok_or_else(|| "no answer".into())
    }

    pub(super) fn close(&mut self) {
        self.input = None;
    }

    /// Reads no more, and waits for the end; the exit code. The input stays open.
    pub(super) async fn leave(mut self, last_words: &Value) -> Result<Option<i32>, Failure> {
        drop(self.output);
        let mut input = self.input.take().ok_or("the input is closed")?;
        input
            .write_all(format!("{last_words}\n").as_bytes())
            .await?;
        let status = timeout(DEADLINE, self.child.wait()).await??;
        Ok(status.code())
    }

    /// Closes the input and waits for the end: what is still said, the exit code, and the standard error.
    pub(super) async fn end(mut self) -> Result<(Vec<Value>, Option<i32>, String), Failure> {
        self.close();
        let mut heard = Vec::new();
        while let Some(line) = timeout(DEADLINE, self.output.next_line()).await?? {
            heard.push(serde_json::from_str(&line)?);
        }
        let status = timeout(DEADLINE, self.child.wait()).await??;
        let mut words = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut words).await?;
        }
        Ok((heard, status.code(), words))
    }
}
