//! Brings the acknowledged bytes of unfinished resumable uploads to the data folder of a service that moves back.

use std::path::Path;

use futures_util::{StreamExt as _, stream};
use uuid::Uuid;

use super::{MoveProgress, Watch, side::Side};
use crate::{
    Error,
    backup::BackupProgress,
    blob::{Blobs, Unusable},
    now_ms,
    statement::{query_as, query_scalar},
    tus::TusUpload,
};

/// Rows that are read at a time.
const PAGE: i64 = 50;
/// Uploads that are moved at a time.
const AT_ONCE: usize = 8;
/// Lost uploads that are named; of the others there is a number.
const MAX_LOST_NAMED: usize = 100;
/// Condition that a row is one of an upload that may be continued and has bytes; the parameter is the time now.
const WANTED: &str = "completed_at IS NULL AND offset_bytes > 0 AND expires_at > $1";

/// Result of the transfer of unfinished resumable uploads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedUploads {
    /// Uploads with acknowledged bytes, with those that are lost.
    pub count: u64,
    /// Acknowledged bytes of those that are in place.
    pub bytes: u64,
    /// Uploads whose bytes are missing or damaged.
    pub lost: u64,
    /// The first ones of these, for people: the upload, its file name, and the reason.
    pub lost_named: Vec<String>,
}

impl CarriedUploads {
    fn note(&mut self, upload: &TusUpload, outcome: Result<bool, Unusable>) {
        self.count += 1;
        match outcome {
            Ok(_) => self.bytes += upload.offset(),
            Err(why) => {
                self.lost += 1;
                if self.lost_named.len() < MAX_LOST_NAMED {
                    let (id, name) = (upload.id, &upload.filename);
                    let lost = format!("the unfinished upload {id} ({name:?}) {why}");
                    self.lost_named.push(lost);
                }
            }
        }
    }
}

/// Writes the acknowledged bytes of each upload to its file in another data folder, wherever they are.
pub(super) async fn bring(
    side: &mut Side,
    blobs: &Blobs,
    data_dir: &Path,
    watch: &mut Watch,
) -> Result<CarriedUploads, Error> {
    let now = now_ms();
    let (count, bytes): (i64, i64) = query_as(format!(
        "SELECT count(*), CAST(coalesce(sum(offset_bytes), 0) AS INTEGER) FROM tus_uploads WHERE {WANTED}"
    ))
    .bind(now)
    .fetch_one(&mut side.tx())
    .await?;
    let mut progress = BackupProgress::begin(count.unsigned_abs(), bytes.unsigned_abs());
    let statement =
        format!("SELECT * FROM tus_uploads WHERE {WANTED} AND id > $2 ORDER BY id LIMIT $3");
    let mut carried = CarriedUploads::default();
    let mut last = Uuid::nil();
    loop {
        let page: Vec<TusUpload> = query_as(statement.clone())
            .bind(now)
            .bind(last)
            .bind(PAGE)
            .fetch_all(&mut side.tx())
            .await?;
        let Some(end) = page.last() else {
            return Ok(carried);
        };
        last = end.id;
        let mut bringing = stream::iter(page)
            .map(|upload| bring_one(blobs.clone(), upload, data_dir))
            .buffer_unordered(AT_ONCE);
        while let Some((upload, outcome)) = bringing.next().await {
            carried.note(&upload, outcome?);
            progress.count += 1;
            progress.bytes += upload.offset();
            watch(MoveProgress::Uploads(progress));
        }
    }
}

type Brought = (TusUpload, Result<Result<bool, Unusable>, Error>);

async fn bring_one(blobs: Blobs, upload: TusUpload, data_dir: &Path) -> Brought {
    let brought = blobs.bring_partial(upload.id, upload.progress(), data_dir);
    let brought = brought.await;
    (upload, brought)
}

/// Counts the uploads whose acknowledged bytes are in the data folder, where they continue after a move forward.
pub(super) async fn count_in_folder(side: &mut Side) -> Result<u64, Error> {
    let count: i64 = query_scalar(format!(
        "SELECT count(*) FROM tus_uploads WHERE {WANTED} AND base IS NULL"
    ))
    .bind(now_ms())
    .fetch_one(&mut side.tx())
    .await?;
    Ok(count.unsigned_abs())
}
