//! Handle of a registry (nudge, withdraw, drain, close): exists before the registry runs, and outlives its restarts.

use std::{sync::Arc, time::Duration};

use sluice_store::Store;
use uuid::Uuid;

use super::shutdown::ShutdownTracker;
use crate::{
    component::{ActorHandle, Component},
    registry::{self, Entity, Registry},
};

/// Clones share the registry and its shutdown.
pub(crate) struct RegistryHandle<E: Entity> {
    handle: ActorHandle<Registry<E>>,
    shutdown: Arc<ShutdownTracker>,
}

impl<E: Entity> RegistryHandle<E> {
    pub(crate) fn new() -> Self {
        Self {
            handle: ActorHandle::default(),
            shutdown: Arc::default(),
        }
    }

    /// Makes the component that runs the registry, with at most `max_active` rows at a time.
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
            shutdown: self.shutdown.clone(),
        };
        Component::new(name, args, registry::MAILBOX, self.handle.clone())
    }

    /// Returns the actors that live, each with its row.
    #[cfg(test)]
    pub(crate) async fn owners(&self) -> std::collections::HashMap<kameo::actor::ActorId, Uuid> {
        let registry = self.handle.get().expect("the registry runs");
        registry.ask(registry::Owners).await.expect("it answers")
    }

    /// See [`ActorHandle::nudge`].
    pub(crate) fn nudge(&self) {
        self.handle.nudge();
    }

    /// See [`ActorHandle::withdraw`].
    pub(crate) fn withdraw(&self, row: Uuid) {
        self.handle.withdraw(row);
    }

    /// Ends the claiming of rows; owners give theirs back, at the next start they continue.
    pub(crate) fn drain(&self) {
        self.shutdown.begin();
    }

    /// Returns once [`Self::drain`] was called.
    pub(crate) async fn drained(&self) {
        self.shutdown.begun().await;
    }

    /// Returns when every row has ended or was given back, after [`Self::drain`].
    pub(crate) async fn close(&self) {
        self.shutdown.all_left().await;
    }
}

impl<E: Entity> Clone for RegistryHandle<E> {
    fn clone(&self) -> Self {
        Self {
            handle: self.handle.clone(),
            shutdown: self.shutdown.clone(),
        }
    }
}
