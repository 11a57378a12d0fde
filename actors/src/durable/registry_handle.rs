//! The way to the registry of one kind of work: nudges go in, and the registry is started.

use std::{fmt, time::Duration};

use sluice_store::Store;
use uuid::Uuid;

use crate::{
    component::{ActorHandle, Component},
    registry::{self, Entity, Registry},
};

/// Clones share it; it exists before the registry runs.
pub(crate) struct RegistryHandle<E: Entity> {
    handle: ActorHandle<Registry<E>>,
}

impl<E: Entity> RegistryHandle<E> {
    pub(crate) fn new() -> Self {
        Self {
            handle: ActorHandle::default(),
        }
    }

    /// The component that runs the registry, with so many rows at a time.
    pub(crate) fn component(
        &self,
        name: &'static str,
        entity: E,
        store: &Store,
        max_active: usize,
        lease: Duration,
    ) -> Component {
        let args = registry::Args {
            entity,
            store: store.clone(),
            max_active,
            lease,
        };
        Component::new(name, args, registry::MAILBOX, self.handle.clone())
    }

    /// The actors that live, each with its row.
    #[cfg(test)]
    pub(crate) async fn owners(&self) -> std::collections::HashMap<kameo::actor::ActorId, Uuid> {
        let registry = self.handle.get().expect("the registry runs");
        registry.ask(registry::Owners).await.expect("it answers")
    }

    /// As [`ActorHandle::nudge`].
    pub(crate) fn nudge(&self) {
        self.handle.nudge();
    }

    /// As [`ActorHandle::withdraw`].
    pub(crate) fn withdraw(&self, row: Uuid) {
        self.handle.withdraw(row);
    }
}

impl<E: Entity> Clone for RegistryHandle<E> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
        }
    }
}

impl<E: Entity> fmt::Debug for RegistryHandle<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegistryHandle")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
