//! A strict low-latency HLS viewer: every playlist goes through the checker, every part is fetched, a whole segment
//! must be the concatenation of its parts. The hinted part is fetched ahead of time.
//!
//! It runs in a task of its own until ENDLIST, an error, or until it is dropped.

mod collection;
mod follow;

use std::{sync::Arc, time::Duration};

use tokio::{sync::watch, task::JoinHandle, time::timeout};

pub use self::collection::{Collection, Outage, Piece, Range};
use self::follow::Follower;
use super::Failure;

/// Stream to follow, and the manner.
#[derive(Clone, Debug)]
pub struct Viewer {
    hls_url: String,
    delta_updates: bool,
    tolerate_outages: bool,
}

impl Viewer {
    /// `hls_url` is the multivariant playlist's.
    pub fn new(hls_url: &str) -> Self {
        Self {
            hls_url: hls_url.to_owned(),
            delta_updates: false,
            tolerate_outages: false,
        }
    }

    /// Asks for delta updates, and compares each with the full playlist.
    pub fn with_delta_updates(mut self) -> Self {
        self.delta_updates = true;
        self
    }

    /// Tries again when connections fail or break, instead of giving up.
    pub fn tolerate_outages(mut self) -> Self {
        self.tolerate_outages = true;
        self
    }

    /// Starts at once; the stream may become live later.
    pub fn start(self) -> Viewing {
        let (publish, state) = watch::channel(State::default());
        let task = tokio::spawn(async move {
            let mut follower = Follower::new(self, publish.clone());
            let ended = follower.run().await;
            publish.send_modify(|state| {
                state.end = Some(ended.map_err(|failure| failure.to_string()));
            });
        });
        Viewing { state, task }
    }
}

/// Visible state of the follower.
#[derive(Clone, Debug, Default)]
struct State {
    collection: Arc<Collection>,
    /// `Ok` after ENDLIST.
    end: Option<Result<(), String>>,
}

/// A viewer at work; it ends when this is dropped.
#[derive(Debug)]
pub struct Viewing {
    state: watch::Receiver<State>,
    task: JoinHandle<()>,
}

impl Drop for Viewing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Viewing {
    /// Returns the media collected so far.
    pub fn collected(&self) -> Arc<Collection> {
        Arc::clone(&self.state.borrow().collection)
    }

    /// Waits until `met` is true for the collected media. Fails when the viewer fails, or ends before, or at the
    /// deadline.
    pub async fn until(
        &mut self,
        what: &str,
        deadline: Duration,
        mut met: impl FnMut(&Collection) -> bool,
    ) -> Result<Arc<Collection>, Failure> {
        let seen = self
            .state
            .wait_for(|state| state.end.is_some() || met(&state.collection));
        let seen = match timeout(deadline, seen).await {
            Ok(Ok(state)) => Some(state.clone()),
            Ok(Err(_)) => return Err("the viewer's task has died".into()),
            Err(_) => None,
        };
        match seen {
            Some(State { collection, .. }) if met(&collection) => Ok(collection),
            Some(State { end, .. }) => {
                Err(format!("the viewer ended with {end:?} before: {what}").into())
            }
            None => Err(format!("not within {deadline:?}: {what}; {}", self.summary()).into()),
        }
    }

    /// Waits until so many frames were fetched, over all ranges.
    pub async fn until_frames(
        &mut self,
        count: usize,
        deadline: Duration,
    ) -> Result<Arc<Collection>, Failure> {
        let what = format!("{count} frames");
        self.until(&what, deadline, |collection| {
            collection.video_frames() >= count
        })
        .await
    }

    /// Waits until ENDLIST is seen and all that was listed is fetched and compared.
    pub async fn until_ended(&mut self, deadline: Duration) -> Result<Arc<Collection>, Failure> {
        let ended = self.state.wait_for(|state| state.end.is_some());
        let ended = match timeout(deadline, ended).await {
            Ok(Ok(state)) => Some(state.clone()),
            Ok(Err(_)) => return Err("the viewer's task has died".into()),
            Err(_) => None,
        };
        match ended {
            Some(State {
                end: Some(Err(failure)),
                ..
            }) => Err(failure.into()),
            Some(State { collection, .. }) => Ok(collection),
            None => Err(format!("no ENDLIST within {deadline:?}; {}", self.summary()).into()),
        }
    }

    /// Fails when the viewer has failed.
    pub fn check(&self) -> Result<(), Failure> {
        match &self.state.borrow().end {
            Some(Err(failure)) => Err(failure.clone().into()),
            _ => Ok(()),
        }
    }

    fn summary(&self) -> String {
        let state = self.state.borrow();
        format!(
            "seen: {}, ended: {:?}",
            state.collection.summary(),
            state.end
        )
    }
}
