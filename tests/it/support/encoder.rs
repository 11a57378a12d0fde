//! ffmpeg as an encoder: publishes a clip in real time, and ends as an encoder ends, politely or not.

use std::{
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, BufReader},
    process::{Child, Command},
    time::timeout,
};

use super::{
    Failure,
    media::{Clip, modern_ffmpeg},
};

/// Kept bytes of ffmpeg's complaints.
const KEPT_BYTES: usize = 64 * 1024;
const STOP_DEADLINE: Duration = Duration::from_secs(10);

/// Settings of a publish.
#[derive(Clone, Debug)]
pub struct Publish {
    program: PathBuf,
    flv: PathBuf,
    url: String,
    looped: bool,
    start_s: Option<f64>,
    audio: Option<&'static str>,
    audio_rate: Option<u32>,
}

impl Publish {
    /// `url` is the whole RTMP, RTMPS, SRT or WHIP address with the stream key. A clip that Debian's ffmpeg cannot publish is
    /// published by the modern one; fails without it.
    pub fn new(clip: &Clip, url: &str) -> Result<Self, Failure> {
        let publish = Self {
            program: "ffmpeg".into(),
            flv: clip.flv.clone(),
            url: url.to_owned(),
            looped: false,
            start_s: None,
            audio: None,
            audio_rate: None,
        };
        if clip.recipe.needs_modern_ffmpeg() {
            publish.by_modern_ffmpeg()
        } else {
            Ok(publish)
        }
    }

    pub fn by_modern_ffmpeg(mut self) -> Result<Self, Failure> {
        self.program = modern_ffmpeg().ok_or("no current ffmpeg on this machine")?;
        Ok(self)
    }

    /// Begins again at the clip's end, with growing time stamps.
    pub fn looped(mut self) -> Self {
        self.looped = true;
        self
    }

    /// Begins at the key frame at or before this second of the clip, with time stamps from 0.
    pub fn starting_at(mut self, second: f64) -> Self {
        self.start_s = Some(second);
        self
    }

    /// Encodes the audio again, by ffmpeg's name of an encoder.
    pub fn with_audio(mut self, encoder: &'static str) -> Self {
        self.audio = Some(encoder);
        self
    }

    /// Encodes the audio again at this sample rate, as AAC.
    pub fn with_audio_rate(mut self, rate: u32) -> Self {
        self.audio_rate = Some(rate);
        self.with_audio("aac")
    }

    pub fn start(&self) -> Result<Ffmpeg, Failure> {
        let mut command = Command::new(&self.program);
        command.args(["-nostdin", "-hide_banner", "-v", "warning"]);
        if self.looped {
            command.args(["-stream_loop", "-1"]);
        }
        if let Some(second) = self.start_s {
            command.args(["-ss", &second.to_string(), "-noaccurate_seek"]);
        }
        command.args(["-re", "-i"]).arg(&self.flv);
        command.args(["-c", "copy"]);
        if let Some(encoder) = self.audio {
            command.args(["-c:a", encoder]);
        }
        if let Some(rate) = self.audio_rate {
            command.args(["-ar", &rate.to_string()]);
        }
        if self.url.starts_with("srt:") {
            command.args(["-f", "mpegts"]);
        } else if self.url.starts_with("http") {
            command.args(["-f", "whip"]);
        } else {
            command.args(["-f", "flv", "-flvflags", "no_duration_filesize"]);
        }
        if self.url.starts_with("rtmps:") {
            command.args(["-tls_verify", "0"]);
        }
        command.arg(&self.url);
        Ffmpeg::spawn(command)
    }
}

/// A running ffmpeg; killed when dropped.
#[derive(Debug)]
pub struct Ffmpeg {
    child: Child,
    complaints: Arc<Mutex<String>>,
}

impl Ffmpeg {
    fn spawn(mut command: Command) -> Result<Self, Failure> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|cause| format!("{command:?} does not start: {cause}"))?;
        let complaints = Arc::new(Mutex::new(String::new()));
        let mut stderr = BufReader::new(child.stderr.take().expect("piped above"));
        let kept = Arc::clone(&complaints);
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(1..) = stderr.read(&mut piece).await.inspect(|&length| {
                let mut kept = kept.lock().expect("no holder panics");
                if kept.len() < KEPT_BYTES {
                    kept.push_str(&String::from_utf8_lossy(&piece[..length]));
                }
            }) {}
        });
        Ok(Self { child, complaints })
    }

    /// Returns ffmpeg's complaints so far, at least the first 64 KiB.
    pub fn complaints(&self) -> String {
        self.complaints.lock().expect("no holder panics").clone()
    }

    /// SIGKILL: the connection ends without a word of RTMP.
    pub async fn kill(&mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    /// SIGINT, as Ctrl-C: ffmpeg says `FCUnpublish` and `deleteStream`.
    pub async fn stop(&mut self) -> Result<ExitStatus, Failure> {
        self.signal(Signal::INT)?;
        self.wait(STOP_DEADLINE).await
    }

    /// SIGSTOP: the encoder falls silent with its connection open.
    pub fn freeze(&self) -> Result<(), Failure> {
        self.signal(Signal::STOP)
    }

    pub fn thaw(&self) -> Result<(), Failure> {
        self.signal(Signal::CONT)
    }

    /// Waits for ffmpeg's own end: of the clip, or by a rejection.
    pub async fn wait(&mut self, deadline: Duration) -> Result<ExitStatus, Failure> {
        match timeout(deadline, self.child.wait()).await {
            Ok(status) => Ok(status?),
            Err(_) => {
                Err(format!("ffmpeg runs on after {deadline:?}: {}", self.complaints()).into())
            }
        }
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let id = self.child.id().ok_or("ffmpeg has ended")?;
        let pid = Pid::from_raw(i32::try_from(id)?).ok_or("ffmpeg has no process id")?;
        Ok(kill_process(pid, signal)?)
    }
}
