//! Dashboard in a browser: starts the service for the steps in `tests/browser/dashboard/`.

mod activity;
mod convert;
mod docs;
mod files;
mod images;
mod live;
mod members;
mod runs;
mod screens;
mod settings;
mod shell;
mod streams;
mod system;
mod webhooks;
mod workflow_editor;

use std::{process::Stdio, time::Duration};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    Failure,
    command::sluice,
    server::{ADMIN_PASSWORD, Server},
};

/// Deadline for all steps of an area, in a debug build on a machine with other work.
const STEPS: Duration = Duration::from_secs(600);

/// Contents of every scene; `more` is what an area adds.
pub(super) fn scene(server: &Server, more: &Value) -> Value {
    let mut scene = json!({
        "base": server.base_url(),
        "username": "admin",
        "password": ADMIN_PASSWORD,
        "log": server.log_path(),
    });
    let fields = scene.as_object_mut().expect("it is one");
    fields.extend(
        more.as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    scene
}

/// Makes a user with this role; returns the address of their welcome link.
pub(super) async fn welcome(server: &Server, name: &str, role: &str) -> Result<String, Failure> {
    let beside = |arguments: &[&str]| sluice(arguments).data_dir(server.data_dir());
    beside(&["users", "add", name, "--role", role])
        .succeed()
        .await?;
    let made = beside(&["users", "welcome", name]).succeed().await?;
    let link = made.lines().find(|line| line.contains("/app/welcome#"));
    let (_, path) = link
        .and_then(|link| link.trim().split_once("/app/"))
        .ok_or_else(|| made.clone())?;
    Ok(format!("{}/app/{path}", server.base_url()))
}

/// Takes the steps of `dashboard/AREA.test.mjs`; their report is part of the failure.
pub(super) async fn walk(area: &str, scene: &Value) -> Result<(), Failure> {
    let child = Command::new("node")
        .args(["--test", &format!("dashboard/{area}.test.mjs")])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/browser"))
        .env("SLUICE_DASHBOARD", scene.to_string())
        .env_remove("NODE_TEST_CONTEXT")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(STEPS, child).await??;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stdout).into()),
    }
}
