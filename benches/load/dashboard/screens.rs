//! Figures of the screens, taken in Chromium by `benches/dashboard.mjs`.

use std::path::Path;

use sluice_testkit::Failure;
use tokio::process::Command;

use crate::service::{ADMIN_PASSWORD, Service};

const SCRIPT: &str = "benches/dashboard.mjs";

/// Runs the script, which prints its figures itself.
pub(super) async fn measure(root: &Path, service: &Service) -> Result<(), Failure> {
    let mut command = Command::new("node");
    command
        .arg(root.join(SCRIPT))
        .env("SLUICE_URL", format!("http://{}", service.address()))
        .env("SLUICE_PASSWORD", ADMIN_PASSWORD)
        .kill_on_drop(true);
    let ended = match command.status().await {
        Ok(ended) => ended,
        Err(error) => {
            println!("the screens are left out: node does not start: {error}");
            return Ok(());
        }
    };
    match ended.success() {
        true => Ok(()),
        false => Err(format!("{SCRIPT}: {ended}").into()),
    }
}
