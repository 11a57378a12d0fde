//! The way to the registry of one kind of work: nudges go in, and the registry is started.

use std::{fmt, time::Duration};

use sluice_store::Store;
use uuid::Uuid;

use crate::{
    concern::{Concern, Door},
    registry::{self, Entity, Registry},
};

/// Clones share it; it exists before the registry runs.
pub(crate) struct Entrance<E: Entity> {
    door: Door<Registry<E>>,
}

impl<E: Entity> Entrance<E> {
    pub(crate) fn new() -> Self {
        Self {
            door: Door::default(),
        }
    }

    /// The concern that runs the registry, with so many rows at a time.
    pub(crate) fn concern(
        &self,
        name: &'static str,
        entity: E,
        store: &Store,
        max_active: usize,
        lease: Duration,
    ) -> Concern {
        let args = registry::Args {
            entity,
            store: store.clone(),
            max_active,
            lease,
        };
        Concern::of(name, args, registry::MAILBOX, self.door.clone())
    }

    /// The actors that live, each with its row.
    #[cfg(test)]
    pub(crate) async fn owners(&self) -> std::collections::HashMap<kameo::actor::ActorId, Uuid> {
        let registry = self.door.get().expect("the registry runs");
        registry.ask(registry::Owners).await.expect("it answers")
    }

    /// As [`Door::nudge`].
    pub(crate) fn nudge(&self) {
        self.door.nudge();
    }

    /// As [`Door::withdraw`].
    pub(crate) fn withdraw(&self, row: Uuid) {
        self.door.withdraw(row);
    }
}

impl<E: Entity> Clone for Entrance<E> {
    fn clone(&self) -> Self {
        Self {
            door: self.door.clone(),
        }
    }
}

impl<E: Entity> fmt::Debug for Entrance<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance")
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}
