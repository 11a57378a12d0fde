//! Long deletions in short turns of the writer (20 ms), so that other work is done between them.

use std::time::Duration;

use tokio::time::Instant;

use crate::{Error, Store, Tx, Work};

/// Intended time for which a turn holds the writer.
const TURN: Duration = Duration::from_millis(20);
/// Rows of the first turn.
const FIRST_ROWS: u32 = 200;
/// Rows of a turn at most: more would hold up the writer.
const MOST_ROWS: u32 = 5_000;

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
