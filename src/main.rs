//! The `sluice` binary: arguments, log format and filter, runtime threads, limit of open files.

use std::{
    io::{IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory, Parser, Subcommand};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sluice::{
    app::{self, Service, Startup},
    causes::WithCauses,
    cli,
    config::{Config, Loaded, Log, LogFormat},
    doctor,
    log::{LogRing, RingLayer},
};
use tracing::{error, warn};
use tracing_subscriber::{
    EnvFilter, Layer as _, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

/// A self-hosted media service: OBS over RTMP in, low-latency HLS out.
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// Settings file (TOML); environment variables SLUICE_SECTION__KEY come on top
    #[arg(long, global = true, value_name = "FILE", env = "SLUICE_CONFIG")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the service (the default)
    Serve,
    #[command(flatten)]
    Other(cli::Command),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.command {
        None | Some(Command::Serve) => serve(arguments.config.as_deref()),
        Some(Command::Other(command)) => {
            command.run(arguments.config.as_deref(), Arguments::command())
        }
    }
}

fn serve(file: Option<&Path>) -> ExitCode {
    let loaded = match Config::load(file) {
        Ok(loaded) => loaded,
        Err(error) => {
            eprintln!("sluice: {error}");
            return ExitCode::FAILURE;
        }
    };
    let log = start_log(&loaded.config.log);
    raise_file_limit();
    sluice_ingest::srt::caller::silence_panics();
    let Loaded {
        config,
        warnings,
        origins,
    } = loaded;
    warnings.iter().for_each(|warning| warn!("{warning}"));
    let system = actix_rt::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(tree_threads())
            .enable_all()
            .build()
            .expect("the machine can start threads")
    });
    match system.block_on(run(
        config,
        Startup {
            origins,
            log,
            examine: doctor::examine,
        },
    )) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = WithCauses(&error);
            error!(%error, "the service ends");
            eprintln!("sluice: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Threads for actors and listeners; HTTP and the database have their own. More threads than the streams need only wake
/// each other up.
fn tree_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).max(1))
}

async fn run(config: Config, startup: Startup) -> Result<(), app::Error> {
    let service = Service::start(config, startup).await?;
    let greeting = service.greeting();
    // Standard output may be a pipe that is full: meanwhile requests are served.
    let greeted = tokio::task::spawn_blocking(move || greet(&greeting)).await;
    let is_greeted = greeted.expect("greeting does not panic");
    service.run_until_signal(is_greeted).await
}

/// Writes to standard output: what is shown to a person once is no line of the log. Returns whether it could be written.
fn greet(greeting: &str) -> bool {
    let mut output = std::io::stdout().lock();
    let written = output.write_all(greeting.as_bytes());
    match written.and_then(|()| output.flush()) {
        Ok(()) => true,
        Err(error) => {
            warn!(%error, "the addresses, and at a first start the credentials, could not be written to standard output");
            false
        }
    }
}

/// Raises the limit of open files. Each viewer and each encoder is one; the limit that a shell gives is meant for programs with few.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        warn!(%error, "the limit of open files stays as it is");
    }
}

/// Logs to standard error, text for people, JSON by setting, and into the ring that it returns. kameo's own target writes too much
/// at `info`.
fn start_log(log: &Log) -> LogRing {
    let filter = EnvFilter::try_new(log.directives()).unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match log.format {
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
    };
    let ring = LogRing::default();
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(RingLayer(ring.clone()))
        .init();
    ring
}
