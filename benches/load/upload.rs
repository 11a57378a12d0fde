//! Uploads files as `multipart/form-data` for the load harness.

use sluice_testkit::Failure;

use crate::{http::Client, service::with_key};

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
