//! Life cycle of the parts of the service: load, components, drain, close, close time-out; what they report to `/readyz`
//! (degradations) and `/metrics`.
//!
//! The service keeps one list of them and walks it at its start, at a scrape, for `/readyz`, and at its stop. A new part
//! implements [`Subsystem`] and is added to that list.

use std::time::Duration;

use futures_util::future::{BoxFuture, ready};

use crate::{Error, component::Component, metric::Metric};

/// Longest time that [`Subsystem::close`] may take, unless the subsystem has another.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// A part of the service that owns components, work and counters.
pub trait Subsystem: Send + Sync {
    /// Name in logs, such as `video streams`.
    fn name(&self) -> &'static str;

    /// Reads from store and disk what must be known before the components start.
    fn load(&self) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(ready(Ok(())))
    }

    /// Branches of the supervision tree that run it.
    fn components(&self) -> Vec<Component> {
        Vec::new()
    }

    /// Begins the shutdown: nothing new is started or claimed from here on. Called while requests are still answered.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// Returns when all work in flight has ended or was given back, after [`Self::drain`] and the last request, and before
    /// the tree and the store end.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }

    /// The longest time to wait for [`Self::close`].
    fn close_timeout(&self) -> Duration {
        CLOSE_TIMEOUT
    }

    /// Everything that `/readyz` reports as degraded.
    fn degradations(&self) -> Vec<Degradation> {
        Vec::new()
    }

    /// Its metrics at this moment; an error leaves those of the last scrape.
    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        Box::pin(ready(Ok(Vec::new())))
    }
}

/// A condition that an operator has to see to, while streams continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degradation {
    /// Subject, such as `image workers`.
    pub name: &'static str,
    /// Reason in plain words.
    pub reason: String,
}
