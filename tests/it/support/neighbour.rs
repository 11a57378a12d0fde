//! A client with valid requests, concurrent with an attack.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::task::JoinHandle;

use super::Failure;

/// A client that repeats the same valid work during an attack; its requests may wait and must not fail.
pub struct Neighbour {
    leaving: Arc<AtomicBool>,
    work: JoinHandle<Result<usize, String>>,
}

impl Neighbour {
    pub fn start<W>(mut work: impl FnMut() -> W + Send + 'static) -> Self
    where
        W: Future<Output = Result<(), Failure>> + Send + 'static,
    {
        let leaving = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&leaving);
        let work = tokio::spawn(async move {
            let mut count = 0;
            while !stop.load(Ordering::Relaxed) {
                let worked = work().await;
                worked.map_err(|failure| format!("after {count} times: {failure}"))?;
                count += 1;
            }
            Ok(count)
        });
        Self { leaving, work }
    }

    /// Fails when any of the work did, or when there was none.
    pub async fn leave(self) -> Result<(), Failure> {
        self.leaving.store(true, Ordering::Relaxed);
        match self.work.await?? {
            0 => Err("the neighbour did nothing".into()),
            _ => Ok(()),
        }
    }
}
