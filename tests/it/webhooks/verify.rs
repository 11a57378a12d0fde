//! Verification of real deliveries by receivers' software: the official libraries of Stripe and of Standard Webhooks,
//! and each receiver of the guide, run unchanged. Tampered ones are rejected.

mod cases;
mod example;
mod five_minutes;
mod guide;

use std::{path::Path, process::Stdio, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::json;
use tokio::process::{Child, Command};

use self::{
    cases::{Captured, Case},
    guide::{Example, GUIDE, Language},
};
use crate::support::{
    Failure,
    command::run,
    eventually,
    http::{client, free_port},
    media::target_folder,
    skip,
};

/// The start of an interpreter, or Go's compiler with an empty cache, on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Verdict {
    stripe: bool,
    standard: bool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_libraries_believe_what_is_genuine() -> Result<(), Failure> {
    let captured = Captured::from_the_service().await?;
    let cases = captured.cases();
    let input: Vec<_> = cases
        .iter()
        .map(|case| {
            let headers: serde_json::Map<_, _> = case
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().into()))
                .collect();
            json!({"secret": captured.secret, "headers": headers, "body": STANDARD.encode(&case.body)})
        })
        .collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/webhooks/verify/official.py");
    let mut python = Command::new("python3");
    python
        .arg(script)
        .env(
            "PYTHONPATH",
            target_folder().join("tools/webhook-libraries"),
        )
        // No `__pycache__` is written into the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1");
    let answer = answer(python, &serde_json::to_vec(&input)?).await?;
    let verdicts: Vec<Verdict> = serde_json::from_slice(&answer)?;
    assert_eq!(verdicts.len(), cases.len());
    for (case, verdict) in cases.iter().zip(verdicts) {
        let expected = Verdict {
            // It accepts a time in the future.
            stripe: case.is_genuine || case.is_ahead,
            standard: case.is_genuine,
        };
        assert_eq!(verdict, expected, "{}", case.name);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_receiver_of_the_guide_believes_what_is_genuine() -> Result<(), Failure> {
    let captured = Captured::from_the_service().await?;
    for language in Language::ALL {
        let scenario = format!("the guide's receiver in {language:?}");
        match language.example(GUIDE)?.start(&captured.secret).await? {
            Some(receiver) => meet(&receiver, &captured, &scenario).await?,
            None => skip(
                &scenario,
                "its runtime is missing (scripts/install.sh test)",
            ),
        }
    }
    Ok(())
}

/// Each case gets the answer that it deserves.
async fn meet(receiver: &Running, captured: &Captured, scenario: &str) -> Result<(), Failure> {
    for case in captured.cases() {
        let status = receiver.post(&case).await?;
        let expected = if case.is_genuine { 204 } else { 400 };
        assert_eq!(status, expected, "{scenario}: {}", case.name);
    }
    let said = receiver.output()?;
    assert!(said.contains(&captured.event_id()), "{scenario}: {said}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guides_rust_believes_what_is_genuine() -> Result<(), Failure> {
    // The compiled code is the code of the guide.
    assert_eq!(
        guide::block(GUIDE, "rust")?,
        include_str!("verify/example.rs")
    );
    let captured = Captured::from_the_service().await?;
    for case in captured.cases() {
        let header = case.header("service-signature");
        let believed = example::verified(header, &case.body, &captured.secret);
        assert_eq!(believed, case.is_genuine, "{}", case.name);
    }
    Ok(())
}

/// A receiver that runs; it is killed when this is dropped.
struct Running {
    _process: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Running {
    async fn post(&self, case: &Case) -> Result<u16, Failure> {
        let url = format!("http://127.0.0.1:{}/", self.port);
        let mut request = client().post(url).body(case.body.clone());
        for (name, value) in &case.headers {
            request = request.header(name, value);
        }
        Ok(request.send().await?.status().as_u16())
    }

    /// Returns its output so far.
    fn output(&self) -> Result<String, Failure> {
        Ok(std::fs::read_to_string(self.folder.path().join("output"))?)
    }
}

impl Example {
    /// Runs it as its first line says; `None` when the machine has nothing to run it.
    async fn start(&self, secret: &str) -> Result<Option<Running>, Failure> {
        let scratch = target_folder().join("tmp");
        std::fs::create_dir_all(&scratch)?;
        let folder = tempfile::TempDir::with_prefix_in("guide-", scratch)?;
        std::fs::write(folder.path().join(self.language.file()), &self.text)?;
        let port = free_port()?;
        let Some(mut command) = self.language.command(folder.path(), port).await? else {
            return Ok(None);
        };
        let output = std::fs::File::create(folder.path().join("output"))?;
        let process = command
            .env("WEBHOOK_SECRET", secret)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .kill_on_drop(true)
            .spawn()?;
        let running = Running {
            _process: process,
            port,
            folder,
        };
        eventually("the receiver listens", DEADLINE, async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok()
        })
        .await
        .map_err(|late| format!("{late}: {}", running.output().unwrap_or_default()))?;
        Ok(Some(running))
    }
}

/// Returns the output of a program that must succeed on this input.
async fn answer(mut program: Command, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let output = run(&mut program, input, DEADLINE).await?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(output.stdout)
}
