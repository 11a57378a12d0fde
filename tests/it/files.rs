//! Files as clients send and fetch them: with all kinds of names, and with transfers that end in all ways.

mod backup;
mod crash;
mod disk;
mod lineage;
mod many;
mod memory;
mod names;
mod previews;
mod source_url;
mod transfer;

use std::path::Path;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::{Failure, server::Api};

/// For what happens at once, on a machine with other work.
const SOON: std::time::Duration = std::time::Duration::from_secs(10);

/// Files below the folder of blobs.
fn blobs(data_dir: &Path) -> Result<usize, Failure> {
    let mut count = 0;
    for folder in std::fs::read_dir(data_dir.join("blobs"))? {
        count += std::fs::read_dir(folder?.path())?.count();
    }
    Ok(count)
}

/// The records of all files.
pub(crate) async fn all_files(api: &Api) -> Result<Vec<Value>, Failure> {
    let mut files = Vec::new();
    let mut path = "/api/files?limit=100".to_owned();
    loop {
        let (status, list) = api.call(Method::GET, &path, None).await?;
        assert_eq!(status, StatusCode::OK, "{list}");
        files.extend(list["files"].as_array().ok_or("no files")?.iter().cloned());
        match list["nextCursor"].as_str() {
            Some(cursor) => path = format!("/api/files?limit=100&cursor={cursor}"),
            None => return Ok(files),
        }
    }
}

/// The bytes behind a record's `download_url`.
pub(crate) async fn download(api: &Api, file: &Value) -> Result<Vec<u8>, Failure> {
    let url = file["download_url"].as_str().ok_or("no download_url")?;
    Ok(api.fetch(url).await?.expect(200)?.bytes.to_vec())
}

/// Bytes that look like none before them, by a number.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
