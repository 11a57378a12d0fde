//! Delivery keys (`/api/delivery-keys`) with their aliases, and presets, in memory for every delivery: loaded at the start,
//! changed by commits.

use std::{collections::HashMap, sync::Arc};

use parking_lot::RwLock;
use sluice_store::{
    Error, Store, credentials,
    delivery_keys::{self, DeliveryKey},
    presets::{self, Preset},
};
use uuid::Uuid;

use super::key::Key;
use crate::meter::Meter;

/// The directory; readers hold its locks for a lookup.
#[derive(Debug, Default)]
pub(super) struct Directory {
    keys: RwLock<Keys>,
    /// By account and name: the parameters, a canonical query.
    presets: RwLock<HashMap<Uuid, HashMap<String, Arc<str>>>>,
}

#[derive(Debug, Default)]
struct Keys {
    /// By the key's SHA-256 in hexadecimal.
    by_hash: HashMap<String, Arc<Key>>,
    by_alias: HashMap<String, Arc<Key>>,
}

impl Directory {
    pub(super) async fn load(&self, store: &Store, meter: &Meter) -> Result<(), Error> {
        let mut db = store.read().await?;
        for row in delivery_keys::all(&mut db).await? {
            self.put_key(&row, meter);
        }
        for preset in presets::all(&mut db).await? {
            self.put_preset(&preset);
        }
        Ok(())
    }

    /// Returns the key that a path's first part names, by its text or its alias.
    pub(super) fn key(&self, text: &str) -> Option<Arc<Key>> {
        let keys = self.keys.read();
        if credentials::is_delivery_key(text) {
            keys.by_hash.get(&credentials::hash(text)).cloned()
        } else {
            keys.by_alias.get(text).cloned()
        }
    }

    /// Replaces a key; its earlier alias is unknown from here on.
    pub(super) fn replace_key(&self, row: &DeliveryKey, meter: &Meter) {
        let key = Arc::new(Key::new(row, meter));
        let mut keys = self.keys.write();
        keys.by_alias.retain(|_, known| known.id != row.id);
        if let Some(alias) = &row.delivery_alias {
            keys.by_alias.insert(alias.clone(), key.clone());
        }
        keys.by_hash.insert(row.key_hash.clone(), key);
    }

    pub(super) fn put_key(&self, row: &DeliveryKey, meter: &Meter) {
        let key = Arc::new(Key::new(row, meter));
        let mut keys = self.keys.write();
        if let Some(alias) = &row.delivery_alias {
            keys.by_alias.insert(alias.clone(), key.clone());
        }
        keys.by_hash.insert(row.key_hash.clone(), key);
    }

    pub(super) fn remove_key(&self, id: Uuid) {
        let mut keys = self.keys.write();
        keys.by_alias.retain(|_, key| key.id != id);
        keys.by_hash.retain(|_, key| key.id != id);
    }

    pub(super) fn preset(&self, account_id: Uuid, name: &str) -> Option<Arc<str>> {
        let presets = self.presets.read();
        presets.get(&account_id)?.get(name).cloned()
    }

    pub(super) fn put_preset(&self, preset: &Preset) {
        let mut presets = self.presets.write();
        presets
            .entry(preset.account_id)
            .or_default()
            .insert(preset.name.clone(), preset.params.as_str().into());
    }

    pub(super) fn remove_preset(&self, account_id: Uuid, name: &str) {
        let mut presets = self.presets.write();
        if let Some(presets) = presets.get_mut(&account_id) {
            presets.remove(name);
        }
    }
}
