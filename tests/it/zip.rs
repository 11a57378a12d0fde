//! Folders as archives: whole and in parts, in the hands of other people's programs.

mod changes;
mod chosen;
mod large;
mod readers;
mod resume;
mod stalled;

use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    Failure, command,
    json::text,
    server::{API_KEY, Api, Fetched, Form},
};

/// Programs that look through an archive of 4 GiB, on a busy machine.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(300);

/// Makes a folder; its id.
async fn folder(api: &Api, name: &str, parent: Option<&str>) -> Result<String, Failure> {
    let new = json!({"name": name, "parentId": parent});
    let made = api.expect(
        StatusCode::CREATED,
        Method::POST,
        "/api/folders",
        Some(&new),
    );
    text(&made.await?["folder"]["id"])
}

/// Stores a file in a folder; its record.
async fn store(api: &Api, folder: &str, name: &str, bytes: &[u8]) -> Result<Value, Failure> {
    let form = Form::new()
        .field("folderId", folder)
        .file("file", name, bytes);
    let answer = api.post_form("/api/files", form).await?.expect(201)?;
    Ok(answer.json()?["file"].clone())
}

fn path(folder: &str) -> String {
    format!("/api/folders/{folder}/zip")
}

/// Requests a folder's archive with these headers besides the key.
async fn fetch(api: &Api, folder: &str, headers: &[(&str, &str)]) -> Result<Fetched, Failure> {
    let key = format!("Bearer {API_KEY}");
    let mut all = vec![("authorization", key.as_str())];
    all.extend(headers);
    api.fetch_with(&path(folder), &all).await
}

/// Runs Python with a script of this folder, and gives back what it says.
async fn python(script: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut python = Command::new("python3");
    python.args(["-c", script]).args(arguments);
    let output = command::run(&mut python, b"", PATIENCE).await?;
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout)?),
        false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
    }
}

fn database(data_dir: &Path) -> String {
    data_dir.join("sluice.db").display().to_string()
}
