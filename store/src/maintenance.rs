//! Sweeping of expired rows, in short turns of the writer so that other work is done between them.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    Error, Store, Tx, Work, blobs, idempotency, jobs, sessions, shares, tus, uploads, video, work,
};

/// Intended time for which a turn holds the writer.
const TURN: Duration = Duration::from_millis(20);
/// Rows of the first turn.
const FIRST_ROWS: u32 = 200;
/// Rows of a turn at most: more would hold up the writer.
const MOST_ROWS: u32 = 5_000;
/// Time for which the record of a job is kept after its end.
const JOBS_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Deletes expired sessions, shares and uploads, segments and folders that belong to no video stream, and blobs that
/// nothing has named for long; returns how many rows.
pub(crate) async fn sweep(store: &Store, now_ms: i64) -> Result<u64, Error> {
    store
        .write(move |tx| Box::pin(work::mend_due_times(tx, now_ms)))
        .await?;
    let sessions = in_turns(store, move |tx, rows| {
        Box::pin(sessions::delete_expired(tx, now_ms, rows))
    })
    .await?;
    let shares = in_turns(store, move |tx, rows| {
        Box::pin(shares::delete_expired(tx, now_ms, rows))
    })
    .await?;
    let jobs = sweep_jobs(store, now_ms).await?;
    let streams = video::sweep_segments(store).await? + video::sweep_folders(store).await?;
    Ok(sessions + shares + jobs + streams + sweep_files(store, now_ms).await?)
}

/// Deletes unfinished uploads, and then the blobs that nothing names any more.
async fn sweep_files(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let uploads = in_turns(store, move |tx, rows| {
        Box::pin(uploads::delete_expired(tx, now_ms, rows))
    })
    .await?;
    let resumable = tus::sweep(store, now_ms).await?;
    Ok(uploads + resumable + blobs::sweep(store, now_ms).await?)
}

/// Deletes expired results, old idempotency keys and jobs that ended long ago.
async fn sweep_jobs(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let results = in_turns(store, move |tx, rows| {
        Box::pin(jobs::expire_results(tx, now_ms, rows))
    })
    .await?;
    let keys = in_turns(store, move |tx, rows| {
        Box::pin(idempotency::delete_expired(tx, now_ms, rows))
    })
    .await?;
    let ended_before = now_ms - JOBS_KEPT_MS;
    let old = in_turns(store, move |tx, rows| {
        Box::pin(jobs::delete_ended_before(tx, ended_before, rows))
    })
    .await?;
    Ok(results + keys + old)
}

/// Result of a turn of the writer.
pub(crate) struct SweepResult {
    pub rows: u64,
    pub is_last: bool,
}

/// Repeats a deletion, each time of as many rows as fit a turn, until it finds fewer.
pub(crate) async fn in_turns<D>(store: &Store, delete: D) -> Result<u64, Error>
where
    D: for<'t> Fn(&'t mut Tx<'_>, u32) -> Work<'t, u64> + Clone + Send + 'static,
{
    turns(store, move |tx, most| {
        let delete = delete.clone();
        Box::pin(async move {
            let rows = delete(tx, most).await?;
            Ok(SweepResult {
                rows,
                is_last: rows < u64::from(most),
            })
        })
    })
    .await
}

/// Repeats work on as many rows as fit a turn until it reports that it is done; returns how many rows there were.
pub(crate) async fn turns<W>(store: &Store, work: W) -> Result<u64, Error>
where
    W: for<'t> Fn(&'t mut Tx<'_>, u32) -> Work<'t, SweepResult> + Clone + Send + 'static,
{
    let mut rows = FIRST_ROWS;
    let mut total = 0;
    loop {
        let work = work.clone();
        let (turn, took) = store
            .write(move |tx| {
                Box::pin(async move {
                    let begun = Instant::now();
                    let turn = work(tx, rows).await?;
                    Ok((turn, begun.elapsed()))
                })
            })
            .await?;
        total += turn.rows;
        if turn.is_last {
            return Ok(total);
        }
        rows = rows_of_next_turn(rows, took);
    }
}

/// Halves after a turn that took too long, doubles after a short one.
fn rows_of_next_turn(rows: u32, took: Duration) -> u32 {
    if took > TURN {
        (rows / 2).max(1)
    } else if took < TURN / 4 {
        (rows * 2).min(MOST_ROWS)
    } else {
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_follow_the_time_they_take() {
        let cases = [
            (1, 500, 1),
            (200, 21, 100),
            (200, 20, 200),
            (200, 5, 200),
            (200, 4, 400),
            (4_000, 0, MOST_ROWS),
        ];
        for (rows, took_ms, next) in cases {
            let took = Duration::from_millis(took_ms);
            assert_eq!(
                rows_of_next_turn(rows, took),
                next,
                "{rows} rows in {took_ms} ms"
            );
        }
    }
}
