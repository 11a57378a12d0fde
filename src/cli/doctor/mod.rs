//! `sluice doctor`: list of its checks of settings, ports, disk, certificates, workers; exit code, `--json`.
//!
//! Each check is a look at the machine that gathers facts and a pure judgement of them. The doctor changes nothing and
//! takes no lock, so it may run beside the service.

mod certificate;
mod finding;
mod machine;
mod outbound;
mod ports;
mod public_address;
mod storage;
mod webrtc;
mod workers;

use std::{path::Path, process::ExitCode};

use self::finding::{Finding, Report};
use super::{Error, show};
use crate::{
    causes::WithCauses,
    config::{Config, Loaded},
};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The report as one JSON object: {"ok", "checks": [{"check", "level", "message", "advice"}]}
    #[arg(long)]
    json: bool,
}

/// Runs the checks; exit code 1 when one failed, 0 with warnings alone.
pub(super) fn run(arguments: &Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let report = Report::new(examine(settings));
    if arguments.json {
        let json = serde_json::to_string_pretty(&report).expect("a report is plain data");
        show(&format!("{json}\n"))?;
    } else {
        show(&report.text())?;
    }
    Ok(if report.ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// All checks. With settings that cannot be read the machine alone is looked at.
fn examine(settings: Option<&Path>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Config::load(settings) {
        Ok(Loaded { config, warnings }) => {
            findings.push(judge_settings(settings, &warnings));
            let holder = storage::lock_holder(&config.store.data_dir);
            findings.extend(storage::check(&config.store, holder));
            findings.extend(ports::check(&config, holder));
            findings.extend(webrtc::check(&config, holder));
            findings.extend(certificate::check(&config.http));
            findings.extend(public_address::check(&config));
            findings.extend(outbound::check(&config.outbound));
            findings.push(workers::check(&config.image_workers));
            findings.push(workers::check_video(&config.av_workers));
        }
        Err(error) => findings.push(Finding::fail(
            "settings",
            WithCauses(&error).to_string(),
            "correct it; `sluice config --defaults` shows every setting with its meaning",
        )),
    }
    findings.extend(machine::check());
    findings
}

fn judge_settings(file: Option<&Path>, warnings: &[String]) -> Finding {
    let origin = file.map_or("the defaults and the environment".to_owned(), |path| {
        path.display().to_string()
    });
    if warnings.is_empty() {
        Finding::ok("settings", format!("valid, from {origin}"))
    } else {
        Finding::warn(
            "settings",
            warnings.join("; "),
            "correct the variable's name or remove it",
        )
    }
}
