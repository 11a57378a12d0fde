//! Moves the bytes of stored files: from the folder to the object store, or from both to another folder.

use std::{path::Path, time::Duration};

use futures_util::{StreamExt as _, stream};
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use super::{MoveProgress, Watch, side::Side};
use crate::{
    Error,
    backup::{BackupProgress, Carried, Lost},
    blob::{self, BlobHash, Blobs, Unusable, pieces::Place, place_in},
    blobs::{REFERENCES, naming},
    statement::{query, query_as, query_scalar},
};

/// Rows that are read at a time.
const PAGE: i64 = 200;
/// Blobs that are moved at a time.
const AT_ONCE: usize = 8;
/// Lost blobs that are named; of the others there is a number.
const MAX_LOST_NAMED: usize = 100;
/// File names listed for files with the same bytes.
const FILENAMES: i64 = 3;
/// Interval at which progress is reported while a large blob is on its way.
const REPORTED_EVERY: Duration = Duration::from_millis(500);

/// Blobs that are moved, and what became of those before.
struct Transfer<'m> {
    blobs: Blobs,
    carried: Carried,
    progress: BackupProgress,
    watch: &'m mut Watch,
}

impl<'m> Transfer<'m> {
    async fn begin(
        side: &mut Side,
        blobs: &Blobs,
        condition: &str,
        watch: &'m mut Watch,
    ) -> Result<Self, Error> {
        let (count, bytes): (i64, i64) = query_as(format!(
            "SELECT count(*), CAST(coalesce(sum(size_bytes), 0) AS INTEGER) FROM blobs WHERE {condition}"
        ))
        .fetch_one(&mut side.tx())
        .await?;
        let progress = BackupProgress::begin(count.unsigned_abs(), bytes.unsigned_abs());
        Ok(Self {
            blobs: blobs.clone(),
            carried: Carried::default(),
            progress,
            watch,
        })
    }

    /// Counts a blob; `Ok(true)`: it was moved now.
    async fn note(
        &mut self,
        side: &mut Side,
        hash: BlobHash,
        size: u64,
        outcome: Result<bool, Unusable>,
    ) -> Result<(), Error> {
        self.carried.count += 1;
        self.carried.bytes += size;
        self.progress.count += 1;
        self.progress.bytes += size;
        match outcome {
            Ok(false) => {}
            Ok(true) => {
                self.carried.brought += 1;
                self.carried.brought_bytes += size;
            }
            Err(why) => {
                self.carried.lost += 1;
                if self.carried.lost_named.len() < MAX_LOST_NAMED {
                    let filenames = filenames(side, hash).await?;
                    self.carried.lost_named.push(Lost {
                        hash,
                        filenames,
                        why,
                    });
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self) {
        // Of large blobs the pieces that were sent count before all of them are.
        let statistics = self.blobs.object_statistics();
        let sent = statistics.map_or(0, |statistics| statistics.sent_bytes);
        let bytes = self.progress.bytes.max(sent);
        (self.watch)(MoveProgress::Bytes(BackupProgress {
            bytes: bytes.min(self.progress.total_bytes),
            ..self.progress
        }));
    }
}

async fn filenames(side: &mut Side, hash: BlobHash) -> Result<Vec<String>, Error> {
    Ok(
        query_scalar("SELECT filename FROM files WHERE blob_hash = $1 LIMIT $2")
            .bind(hash)
            .bind(FILENAMES)
            .fetch_all(&mut side.tx())
            .await?,
    )
}

/// Uploads the blobs that are in the folder and that something names; their rows say so afterwards. Files stay.
pub(super) async fn send(
    side: &mut Side,
    blobs: &Blobs,
    watch: &mut Watch,
) -> Result<Carried, Error> {
    let mut transfer = Transfer::begin(side, blobs, "base IS NULL", watch).await?;
    let statement = format!(
        "SELECT hash, size_bytes FROM blobs WHERE base IS NULL AND hash > $1 AND {} ORDER BY hash LIMIT $2",
        naming(REFERENCES)
    );
    let mut ticks = interval(REPORTED_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last: Vec<u8> = Vec::new();
    loop {
        let page: Vec<(BlobHash, i64)> = query_as(statement.clone())
            .bind(last)
            .bind(PAGE)
            .fetch_all(&mut side.tx())
            .await?;
        let Some((end, _)) = page.last() else {
            return Ok(transfer.carried);
        };
        last = end.as_bytes().to_vec();
        let mut sending = stream::iter(page)
            .map(|(hash, size)| send_one(blobs.clone(), hash, size.unsigned_abs()))
            .buffer_unordered(AT_ONCE);
        loop {
            tokio::select! {
                sent = sending.next() => {
                    let Some((hash, size, outcome)) = sent else {
                        break;
                    };
                    let outcome = match outcome? {
                        Ok(place) => {
                            record(side, hash, place).await?;
                            Ok(true)
                        }
                        Err(unusable) => Err(unusable),
                    };
                    transfer.note(side, hash, size, outcome).await?;
                }
                _ = ticks.tick() => {}
            }
            transfer.tell();
        }
    }
}

type Sent = (BlobHash, u64, Result<Result<Place, Unusable>, Error>);

async fn send_one(blobs: Blobs, hash: BlobHash, size: u64) -> Sent {
    (hash, size, blobs.send(hash, size).await)
}

async fn record(side: &mut Side, hash: BlobHash, place: Place) -> Result<(), Error> {
    query("UPDATE blobs SET base = $2, piece_hashes = $3 WHERE hash = $1 AND base IS NULL")
        .bind(hash)
        .bind(place.base)
        .bind(place.piece_hashes)
        .execute(&mut side.tx())
        .await?;
    Ok(())
}

type BlobPlace = (BlobHash, i64, Option<Uuid>, Option<Vec<u8>>);

/// Copies the blobs that something names to the folder of blobs of another data folder, wherever they are.
pub(super) async fn bring(
    side: &mut Side,
    blobs: &Blobs,
    data_dir: &Path,
    watch: &mut Watch,
) -> Result<Carried, Error> {
    let mut transfer = Transfer::begin(side, blobs, "TRUE", watch).await?;
    let folder = blob::folder_in(data_dir);
    let statement = format!(
        "SELECT hash, size_bytes, base, piece_hashes FROM blobs WHERE hash > $1 AND {} ORDER BY hash LIMIT $2",
        naming(REFERENCES)
    );
    let mut last: Vec<u8> = Vec::new();
    loop {
        let page: Vec<BlobPlace> = query_as(statement.clone())
            .bind(last)
            .bind(PAGE)
            .fetch_all(&mut side.tx())
            .await?;
        let Some((end, ..)) = page.last() else {
            return Ok(transfer.carried);
        };
        last = end.as_bytes().to_vec();
        let mut bringing = stream::iter(page)
            .map(|row| bring_one(blobs.clone(), row, &folder))
            .buffer_unordered(AT_ONCE);
        while let Some((hash, size, outcome)) = bringing.next().await {
            transfer.note(side, hash, size, outcome?).await?;
            transfer.tell();
        }
    }
}

type Brought = (BlobHash, u64, Result<Result<bool, Unusable>, Error>);

async fn bring_one(
    blobs: Blobs,
    (hash, size, base, piece_hashes): BlobPlace,
    folder: &Path,
) -> Brought {
    let (size, target) = (size.unsigned_abs(), place_in(folder, &hash));
    let is_there = tokio::fs::metadata(&target)
        .await
        .is_ok_and(|found| found.len() == size);
    if is_there {
        return (hash, size, Ok(Ok(false)));
    }
    let brought = match base {
        Some(base) => {
            let piece_hashes = piece_hashes.unwrap_or_default();
            let place = Place { base, piece_hashes };
            blobs.fetch_to(hash, size, place, target).await
        }
        None => blobs.copy_to(hash, size, target).await,
    };
    (hash, size, brought.map(|brought| brought.map(|()| true)))
}
