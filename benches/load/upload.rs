//! Uploads files as `multipart/form-data` for the load harness.

use std::fmt;

use clap::Args;
use serde_json::Value;
use sluice_testkit::Failure;
use tokio::task::JoinSet;

use crate::{
    http::Client,
    service::{Service, with_key},
};

/// Uploads at a time into a folder.
const UPLOADS: u32 = 8;
const BOUNDARY: &str = "----sluice-load-boundary";

/// Stores a file; its id.
pub(crate) async fn upload(
    client: &mut Client,
    name: &str,
    bytes: &[u8],
) -> Result<String, Failure> {
    let body = form("file", name, bytes, &[]);
    let answer = client.post("/api/files", &form_headers(), &body).await?;
    let record: serde_json::Value = serde_json::from_slice(&answer.body)?;
    let id = record["file"]["id"].as_str();
    Ok(id
        .ok_or_else(|| format!("storing {name}: {} {record}", answer.status))?
        .to_owned())
}

/// Key and type of a request with a [`form`].
pub(crate) fn form_headers() -> String {
    with_key(&format!("multipart/form-data; boundary={BOUNDARY}"))
}

/// A `multipart/form-data` body of one file and some fields.
pub(crate) fn form(field: &str, name: &str, bytes: &[u8], fields: &[(&str, &str)]) -> Vec<u8> {
    let mut body = Vec::with_capacity(bytes.len() + 1024);
    for (name, value) in fields {
        let part = format!(
            "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
        );
        body.extend_from_slice(part.as_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{name}\"\r\n\r\n"
    );
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(bytes);
    body.extend_from_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}

/// Files of a folder, by number and size.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Files {
    /// Files in the folder.
    #[arg(long = "files", default_value_t = 17_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) count: u32,
    /// Bytes of the smallest file ...
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(8..=100_000_000))]
    smallest: u32,
    /// ... and of the largest; their sizes are spread evenly.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(8..=100_000_000))]
    largest: u32,
}

impl fmt::Display for Files {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            count,
            smallest,
            largest,
        } = self;
        write!(formatter, "{count} files of {smallest} to {largest} bytes")
    }
}

/// Makes the folder and its files; its id.
pub(crate) async fn fill(service: &Service, files: &Files) -> Result<String, Failure> {
    if files.smallest > files.largest {
        return Err("--smallest is more than --largest".into());
    }
    let folder = service
        .post("/api/folders", r#"{"name":"photographs"}"#)
        .await?;
    let folder = folder["folder"]["id"]
        .as_str()
        .ok_or("no folder")?
        .to_owned();
    let mut uploads = JoinSet::new();
    for first in 0..UPLOADS {
        let (files, folder) = (*files, folder.clone());
        let mut client = Client::new(service.address());
        uploads.spawn(async move {
            for number in (first..files.count).step_by(UPLOADS as usize) {
                upload_into(&mut client, &files, &folder, number).await?;
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(uploaded) = uploads.join_next().await {
        uploaded??;
    }
    Ok(folder)
}

async fn upload_into(
    client: &mut Client,
    files: &Files,
    folder: &str,
    number: u32,
) -> Result<(), Failure> {
    let spread = u64::from(files.largest - files.smallest) + 1;
    // A step that has no divisor in common with most spreads goes through the sizes in no order.
    let size = u64::from(files.smallest) + u64::from(number) * 7_919 % spread;
    let mut bytes = vec![0; size as usize];
    noise(u64::from(number), &mut bytes);
    let body = form(
        "file",
        &format!("IMG_{number:05}.jpg"),
        &bytes,
        &[("folderId", folder)],
    );
    let answer = client.post("/api/files", &form_headers(), &body).await?;
    match answer.status {
        201 => Ok(()),
        status => {
            let rejection: Value = serde_json::from_slice(&answer.body)?;
            Err(format!("storing a file: {status} {rejection}").into())
        }
    }
}

/// Bytes that nothing can make fewer.
pub(crate) fn noise(seed: u64, bytes: &mut [u8]) {
    let mut state = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    for chunk in bytes.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}
