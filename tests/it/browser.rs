//! The pages in a browser: Debian's Chromium opens them and `tests/browser/player.mjs` reports what they show.
//!
//! One browser at a time: two would compete with each other and with the encoders for the processor. A page is opened
//! once in a scenario and never reloaded, also when the service restarts.

mod dashboard;
mod share_page;

use std::{path::Path, process::Stdio, sync::Arc, time::Duration};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::{Mutex, Semaphore, SemaphorePermit},
    time::{Instant, timeout},
};

use crate::{
    support::{
        Failure,
        encoder::{Ffmpeg, Publish},
        eventually,
        media::{Clip, Recipe},
        server::{Input, Server},
    },
    video::streams,
};

/// Starting Chromium on a busy machine, and every answer beyond what its command allows itself.
const SLACK: Duration = Duration::from_secs(30);
/// Seconds until the page has to show a change, of a debug build on a machine with other work.
const SHOWN_S: u64 = 60;

/// Browsers at a time on two cores. A player has them alone: it must keep up.
const BROWSERS: u32 = 2;
static TURNS: Semaphore = Semaphore::const_new(BROWSERS as usize);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_opened_early_plays_this_broadcast_and_the_next() -> Result<(), Failure> {
    let Some(turn) = Turn::alone().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).make()?;
    let (server, input) = on_stage().await?;
    let mut page = turn.open(&page_of(&server, &input)).await?;
    page.expect_state("waiting").await?;
    page.command("expect-text Waiting for the stream to start")
        .await?;

    let started = Instant::now();
    let mut encoder = publish(&clip, &input)?;
    page.expect_state("live").await?;
    eprintln!(
        "from the encoder's start to the first frame: {:?}",
        started.elapsed()
    );
    let playing = page.expect_played(3).await?;
    assert_eq!(playing["muted"], true, "{playing}");
    assert_eq!(playing["tapToUnmute"], true, "{playing}");
    // It is measured a while after the first frame.
    eventually("the delay is known", SLACK, async || {
        let seen = page.command("sample").await.ok()?;
        seen["latency"].is_number().then_some(())
    })
    .await?;
    page.command("click unmute").await?;
    let heard = page.command(&format!("expect-audio {SHOWN_S}")).await?;
    assert_eq!(heard["tapToUnmute"], false, "{heard}");

    encoder.stop().await?;
    page.expect_state("ended").await?;
    page.command("expect-text The stream has ended").await?;
    // A viewer does not see what an encoder speaks.
    let _next = Publish::new(&clip, &input.srt_url()?)?.start()?;
    page.expect_state("live").await?;
    let next = page.expect_played(3).await?;
    assert_eq!(next["muted"], false, "audio stays on: {next}");

    let summary = page.quit().await?;
    assert_eq!(summary["consoleErrors"], json!([]), "{summary}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_stays_open_over_a_lost_encoder_and_a_killed_service() -> Result<(), Failure> {
    let Some(turn) = Turn::alone().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).make()?;
    let (mut server, input) = on_stage().await?;
    let mut encoder = publish(&clip, &input)?;
    let mut page = turn.open(&page_of(&server, &input)).await?;
    page.expect_played(2).await?;

    encoder.kill().await?;
    page.expect_state("reconnecting").await?;
    page.command("expect-text The encoder lost its connection")
        .await?;
    let _returned = publish(&clip, &input)?;
    page.expect_played(3).await?;

    server.kill().await?;
    page.expect_state("unreachable").await?;
    page.command("expect-text The service is restarting")
        .await?;
    server.restart().await?;
    page.expect_state("reconnecting").await?;
    let _again = publish(&clip, &input)?;
    page.expect_played(3).await?;

    let summary = page.quit().await?;
    let errors = summary["consoleErrors"].as_array();
    let unexpected = errors.into_iter().flatten().filter(|text| {
        let text = text.as_str().unwrap_or_default();
        !text.starts_with("Failed to load resource: net::")
    });
    assert_eq!(unexpected.count(), 0, "{summary}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn video_alone_and_audio_alone_play() -> Result<(), Failure> {
    let Some(turn) = Turn::alone().await? else {
        return Ok(());
    };
    let (server, silent) = on_stage().await?;
    let mut page = turn.open(&page_of(&server, &silent)).await?;
    page.expect_state("waiting").await?;
    let _video = publish(&Recipe::video_only().make()?, &silent)?;
    page.expect_played(4).await?;

    let blind = server.api().create(json!({"name": "radio"})).await?;
    page.command(&format!("open {}", page_of(&server, &blind)))
        .await?;
    page.expect_state("waiting").await?;
    let _audio = publish(&Recipe::audio_only().make()?, &blind)?;
    page.command("expect-text Audio only").await?;
    // Over the end of the segment that playback began in.
    page.expect_played(5).await?;

    let summary = page.quit().await?;
    assert_eq!(summary["jumps"], json!([]), "{summary}");
    assert_eq!(summary["consoleErrors"], json!([]), "{summary}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_video_stream_plays_and_changes_its_quality() -> Result<(), Failure> {
    let Some(turn) = Turn::alone().await? else {
        return Ok(());
    };
    let clip = Recipe::numbered(0).lasting(18).enlarged(2)?;
    let server = Server::start().await?;
    let api = server.api();
    let fields = json!({
        "profile": "custom", "segmentDuration": 2, "renditions": [{"height": 96}, {"height": 192}],
    });
    let stream = streams::create(&api, &clip, fields).await?;
    let page_url = |leave: &Value| {
        let leave = leave.as_str().unwrap_or_default();
        format!("{}/video/{leave}", server.base_url())
    };
    let mut page = turn.open(&page_url(&stream["playbackId"])).await?;
    streams::wait_ready(&api, stream["id"].as_str().unwrap_or_default()).await?;
    page.expect_state("ready").await?;
    page.command("click video").await?;
    page.expect_played(1).await?;
    for lines in [96, 192, 96] {
        page.command(&format!("choose quality {lines}p")).await?;
        page.command(&format!("expect-height {lines} {SHOWN_S}"))
            .await?;
        page.expect_played(1).await?;
    }

    let path = format!(
        "/api/video/streams/{}",
        stream["id"].as_str().unwrap_or_default()
    );
    let signed = json!({"access": "signed"});
    api.expect(StatusCode::OK, Method::PATCH, &path, Some(&signed))
        .await?;
    page.command("reload").await?;
    page.expect_state("forbidden").await?;
    page.command("expect-text This video needs a link of its own")
        .await?;
    let path = format!("{path}/playback-token");
    let token = api
        .expect(StatusCode::OK, Method::POST, &path, Some(&json!({})))
        .await?;
    page.command(&format!("open {}", page_url(&token["token"])))
        .await?;
    page.expect_state("ready").await?;
    page.command("click video").await?;
    page.expect_played(1).await?;

    let summary = page.quit().await?;
    let errors = summary["consoleErrors"].as_array();
    let unexpected = errors.into_iter().flatten().filter(|text| {
        // The manifest before it is there, and without a token.
        let text = text.as_str().unwrap_or_default();
        !text.starts_with("Failed to load resource: the server responded with a status of 40")
    });
    assert_eq!(unexpected.count(), 0, "{summary}");
    Ok(())
}

async fn on_stage() -> Result<(Server, Input), Failure> {
    let server = Server::start().await?;
    let input = server.api().create(json!({"name": "page"})).await?;
    Ok((server, input))
}

fn publish(clip: &Clip, input: &Input) -> Result<Ffmpeg, Failure> {
    Publish::new(clip, &input.rtmp_url())?.looped().start()
}

fn page_of(server: &Server, input: &Input) -> String {
    format!("{}/live/{}", server.base_url(), input.playback_id)
}

/// The right to have a browser.
pub(crate) struct Turn {
    permit: SemaphorePermit<'static>,
}

impl Turn {
    /// Waits until no other browser runs. `None`, said aloud, on a machine without a browser or its driver; under
    /// continuous integration that is a failure.
    pub(crate) async fn alone() -> Result<Option<Self>, Failure> {
        Self::take(BROWSERS).await
    }

    /// Waits as [`Turn::alone`] does, until at most one other browser runs, which does not mind.
    pub(crate) async fn beside_another() -> Result<Option<Self>, Failure> {
        Self::take(1).await
    }

    async fn take(browsers: u32) -> Result<Option<Self>, Failure> {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser/node_modules");
        let chromium = std::env::var_os("CHROMIUM").unwrap_or("/usr/bin/chromium".into());
        let missing = [driver.as_path(), Path::new(&chromium)]
            .into_iter()
            .find(|path| !path.exists());
        if let Some(path) = missing {
            let reason = format!("no {}: `make test` installs it", path.display());
            if std::env::var("CI").is_ok_and(|value| value == "true") {
                return Err(reason.into());
            }
            eprintln!("SKIPPED: a scenario with a browser: {reason}");
            return Ok(None);
        }
        let permit = TURNS.acquire_many(browsers).await?;
        Ok(Some(Self { permit }))
    }

    async fn open(self, url: &str) -> Result<Page, Failure> {
        self.drive("player.mjs", &["--url", url]).await
    }

    /// Starts a script of `tests/browser` that takes commands line by line.
    pub(crate) async fn drive(self, script: &str, arguments: &[&str]) -> Result<Page, Failure> {
        let profile = TempDir::with_prefix("sluice-browser-")?;
        let mut child = Command::new("node")
            .arg(script)
            .args(arguments)
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser"))
            .env("TMPDIR", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut page = Page {
            stdin: child.stdin.take().expect("piped above"),
            answers: BufReader::new(child.stdout.take().expect("piped above")).lines(),
            complaints: Arc::default(),
            child,
            _profile: profile,
            _turn: self.permit,
        };
        page.keep_complaints();
        page.answer("open", SLACK).await?;
        Ok(page)
    }
}

/// A page in Chromium. Both end when this is dropped: Chromium does when the pipe to its driver breaks.
pub(crate) struct Page {
    stdin: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    complaints: Arc<Mutex<String>>,
    child: Child,
    _profile: TempDir,
    _turn: SemaphorePermit<'static>,
}

impl Page {
    /// Waits until the page is in this state, as `window.sluice` says.
    async fn expect_state(&mut self, state: &str) -> Result<Value, Failure> {
        self.command(&format!("expect-state {state} {SHOWN_S}"))
            .await
    }

    /// Waits until playback has advanced by `media_s` seconds.
    async fn expect_played(&mut self, media_s: u64) -> Result<Value, Failure> {
        self.command(&format!("expect-played {media_s} {}", media_s + SHOWN_S))
            .await
    }

    /// Gives a command of the script and waits for its answer. Fails when the command did.
    pub(crate) async fn command(&mut self, command: &str) -> Result<Value, Failure> {
        self.stdin
            .write_all(format!("{command}\n").as_bytes())
            .await?;
        self.answer(command, Duration::from_secs(SHOWN_S) + SLACK)
            .await
    }

    /// Closes the browser; what the page did. Fails when a request went to another origin or the driver has failed.
    async fn quit(mut self) -> Result<Value, Failure> {
        let summary = self.command("quit").await?;
        let status = timeout(SLACK, self.child.wait()).await??;
        match status.success() && summary["foreignRequests"] == json!([]) {
            true => Ok(summary),
            false => Err(format!("{status}: {summary}").into()),
        }
    }

    async fn answer(&mut self, command: &str, deadline: Duration) -> Result<Value, Failure> {
        let line = timeout(deadline, self.answers.next_line()).await;
        let Ok(Ok(Some(line))) = line else {
            let complaints = self.complaints.lock().await;
            return Err(format!("no answer to {command}: {line:?}: {complaints}").into());
        };
        let answer: Value = serde_json::from_str(&line)?;
        match answer["ok"] == true {
            true => Ok(answer),
            false => Err(format!("{command}: {line}").into()),
        }
    }

    fn keep_complaints(&mut self) {
        let mut stderr = self.child.stderr.take().expect("piped above");
        let kept = Arc::clone(&self.complaints);
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                let text = String::from_utf8_lossy(&piece[..length]);
                kept.lock().await.push_str(&text);
            }
        });
    }
}
