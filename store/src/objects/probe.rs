//! Check of an object store with an object under `probe/`: writing, reading, listing, deleting.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tracing::warn;
use uuid::Uuid;

use super::{Backend, ObjectOwner, failure::Failure};
use crate::Error;

const LENGTH: u64 = 4096;

/// Facts about the object store of `store.objects_url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsReport {
    /// Address or folder, without secrets.
    pub place: String,
    /// True for a server that is reached without TLS.
    pub is_plain_http: bool,
    /// True when there is no space for a small object; nothing else was checked then.
    pub is_full: bool,
    /// Time for a small object to be written, and to be read.
    pub write_time: Duration,
    pub read_time: Duration,
    /// `None` when the rows cannot be read, or the object store is full.
    pub owner: Option<ObjectOwner>,
}

pub(super) async fn check(backend: &Backend) -> Result<ObjectsReport, Error> {
    let key = format!("probe/{}", Uuid::now_v7().simple());
    let mut report = ObjectsReport {
        place: backend.place(),
        is_plain_http: backend.place().starts_with("http:"),
        is_full: false,
        write_time: Duration::ZERO,
        read_time: Duration::ZERO,
        owner: None,
    };
    let written = key.repeat(LENGTH as usize / key.len() + 1);
    let written = Bytes::from(written).slice(..LENGTH as usize);
    let start = Instant::now();
    match backend.put(&key, written.clone()).await {
        Err(Failure::Full) => {
            warn!("the object store is full: uploads fail until there is space");
            report.is_full = true;
            return Ok(report);
        }
        put => put.map_err(|failure| rejected("write an object (PUT)", failure))?,
    }
    report.write_time = start.elapsed();
    let checked = check_reads(backend, &key, &written, &mut report).await;
    let deleted = backend.delete(&key).await;
    checked?;
    deleted.map_err(|failure| rejected("delete an object (DELETE)", failure))?;
    Ok(report)
}

async fn check_reads(
    backend: &Backend,
    key: &str,
    written: &Bytes,
    report: &mut ObjectsReport,
) -> Result<(), Error> {
    const READ: &str = "read an object (GET)";
    const LIST: &str = "list objects (ListObjectsV2)";
    let start = Instant::now();
    let read = backend.get(key).await;
    let read = read.map_err(|failure| rejected(READ, failure))?;
    report.read_time = start.elapsed();
    if read != *written {
        return Err(differs(READ));
    }
    let listed = backend.list(key, None).await;
    let listed = listed.map_err(|failure| rejected(LIST, failure))?;
    let is_listed = listed.len() == 1 && listed[0].key == key && listed[0].size == LENGTH;
    match is_listed {
        true => Ok(()),
        false => Err(differs(LIST)),
    }
}

fn rejected(step: &str, failure: Failure) -> Error {
    let reason = match failure {
        Failure::Missing => "it is not found after it was written: use an object store that shows what was written at once".to_owned(),
        Failure::Full => "the object store is full: make space, or raise its quota".to_owned(),
        Failure::Rejected { reason, advice } => format!("the object store {reason}: {advice}"),
        Failure::Transient(reason) => format!(
            "the object store {reason}: start it, or correct the address in store.objects_url"
        ),
    };
    Error::Unsupported(format!("store.objects_url: cannot {step}: {reason}"))
}

fn differs(step: &str) -> Error {
    Error::Unsupported(format!(
        "store.objects_url: cannot {step}: the object store answers with something else than was written: use one that shows what was written at once, without a cache in between"
    ))
}
