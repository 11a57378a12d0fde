//! Checks of settings, ports, disk, database, certificates, workers and machine, for `sluice doctor` and `GET /api/system/doctor`.
//!
//! Each check is a look at the machine that gathers facts and a pure judgement of them. The doctor takes no lock and changes
//! nothing: what it writes to try it, a file in the data folder and an object under `probe/` in the object store, it deletes at
//! once. So it may run beside the service, and inside of it on a thread that may block.

mod certificate;
mod database;
mod finding;
mod machine;
mod objects;
mod outbound;
mod ports;
mod public_address;
mod storage;
mod webrtc;
mod workers;

use std::path::Path;

pub use self::finding::{Finding, Level, Report};
use crate::{
    causes::WithCauses,
    config::{Config, Loaded},
};

/// Runs all checks, with the settings as the next start would read them; `file` is that of `--config`.
pub fn examine(file: Option<&Path>) -> Report {
    Report::new(findings(file))
}

/// With settings that cannot be read the machine alone is looked at.
fn findings(file: Option<&Path>) -> Vec<Finding> {
    let mut findings = Vec::new();
    match Config::load(file) {
        Ok(Loaded {
            config, warnings, ..
        }) => {
            findings.push(judge_settings(file, &warnings));
            let holder = storage::lock_holder(&config.store.data_dir);
            findings.extend(storage::check(&config.store, holder));
            findings.extend(database::check(&config.store, holder));
            findings.extend(objects::check(&config.store));
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
