//! Delivery keys (`/api/delivery-keys`) with their aliases, and presets, in memory for every delivery. Loaded at the start,
//! changed by commits, of this process at once and of other nodes by the change log. A row that comes again changes nothing.

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
    /// By account and name.
    presets: RwLock<HashMap<Uuid, HashMap<String, KnownPreset>>>,
}

#[derive(Debug)]
struct KnownPreset {
    id: Uuid,
    /// The parameters, a canonical query.
    params: Arc<str>,
}

#[derive(Debug, Default)]
struct Keys {
    /// By the key's SHA-256 in hexadecimal.
    by_hash: HashMap<String, Arc<Key>>,
    by_alias: HashMap<String, Arc<Key>>,
}

impl Keys {
    fn put(&mut self, row: &DeliveryKey, key: Arc<Key>) {
        if let Some(alias) = &row.delivery_alias {
            self.by_alias.insert(alias.clone(), key.clone());
        }
        self.by_hash.insert(row.key_hash.clone(), key);
    }

    /// Returns the key of a row if deliveries see no difference between them.
    fn same(&self, row: &DeliveryKey) -> Option<&Arc<Key>> {
        let key = self.by_hash.get(&row.key_hash)?;
        (key.presets_only == row.presets_only).then_some(key)
    }

    fn alias_of(&self, id: Uuid) -> Option<&str> {
        let mut aliases = self.by_alias.iter();
        aliases
            .find(|(_, key)| key.id == id)
            .map(|(alias, _)| alias.as_str())
    }
}

impl Directory {
    /// Reads all rows, in place of what is known.
    pub(super) async fn load(&self, store: &Store, meter: &Meter) -> Result<(), Error> {
        let mut db = store.read().await?;
        let (rows, all_presets) = (
            delivery_keys::all(&mut db).await?,
            presets::all(&mut db).await?,
        );
        drop(db);
        let mut keys = Keys::default();
        for row in rows {
            // A key keeps its count of new variants.
            let known = self.keys.read().same(&row).cloned();
            let key = known.unwrap_or_else(|| Arc::new(Key::new(&row, meter)));
            keys.put(&row, key);
        }
        *self.keys.write() = keys;
        let mut by_account: HashMap<Uuid, HashMap<String, KnownPreset>> = HashMap::new();
        for preset in all_presets {
            let presets = by_account.entry(preset.account_id).or_default();
            presets.insert(preset.name.clone(), KnownPreset::of(&preset));
        }
        *self.presets.write() = by_account;
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

    /// Takes up the row of a key; its earlier alias is unknown from here on.
    pub(super) fn put_key(&self, row: &DeliveryKey, meter: &Meter) {
        let mut keys = self.keys.write();
        if keys.same(row).is_some() && keys.alias_of(row.id) == row.delivery_alias.as_deref() {
            return;
        }
        keys.by_alias.retain(|_, known| known.id != row.id);
        keys.put(row, Arc::new(Key::new(row, meter)));
    }

    pub(super) fn remove_key(&self, id: Uuid) {
        let mut keys = self.keys.write();
        keys.by_alias.retain(|_, key| key.id != id);
        keys.by_hash.retain(|_, key| key.id != id);
    }

    pub(super) fn preset(&self, account_id: Uuid, name: &str) -> Option<Arc<str>> {
        let presets = self.presets.read();
        let preset = presets.get(&account_id)?.get(name)?;
        Some(preset.params.clone())
    }

    /// Takes up the row of a preset; its earlier name is unknown from here on.
    pub(super) fn put_preset(&self, preset: &Preset) {
        let mut presets = self.presets.write();
        let presets = presets.entry(preset.account_id).or_default();
        presets.retain(|_, known| known.id != preset.id);
        presets.insert(preset.name.clone(), KnownPreset::of(preset));
    }

    pub(super) fn remove_preset(&self, account_id: Uuid, id: Uuid) {
        let mut presets = self.presets.write();
        if let Some(presets) = presets.get_mut(&account_id) {
            presets.retain(|_, known| known.id != id);
        }
    }
}

impl KnownPreset {
    fn of(preset: &Preset) -> Self {
        Self {
            id: preset.id,
            params: preset.params.as_str().into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::StoreSettings;

    use super::*;
    use crate::meter::Caps;

    fn key(id: u128, alias: Option<&str>) -> DeliveryKey {
        DeliveryKey {
            id: Uuid::from_u128(id),
            account_id: Uuid::nil(),
            name: String::new(),
            delivery_alias: alias.map(str::to_owned),
            presets_only: false,
            key_hash: id.to_string(),
            key_prefix: String::new(),
            created_at: 0,
            last_used_at: None,
            revoked_at: None,
        }
    }

    fn preset(id: u128, name: &str) -> Preset {
        Preset {
            id: Uuid::from_u128(id),
            account_id: Uuid::nil(),
            name: name.into(),
            params: "w=1".into(),
            created_at: 0,
            updated_at: 0,
        }
    }

    /// Rows come in any order, and more than once.
    #[tokio::test]
    async fn names_lead_to_the_row_that_has_them_by_now() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let (directory, meter) = (Directory::default(), Meter::new(store, Caps::new()));
        directory.put_key(&key(1, Some("alias")), &meter);
        let first = directory.key("alias").unwrap();
        directory.put_key(&key(1, Some("alias")), &meter);
        assert!(Arc::ptr_eq(&first, &directory.key("alias").unwrap()));
        // The second key has the alias that the first gave up, and its row comes first.
        directory.put_key(&key(2, Some("alias")), &meter);
        directory.put_key(&key(1, None), &meter);
        assert_eq!(directory.key("alias").unwrap().id, Uuid::from_u128(2));
        directory.remove_key(Uuid::from_u128(2));
        assert!(directory.key("alias").is_none());

        let named = |name| directory.preset(Uuid::nil(), name).is_some();
        directory.put_preset(&preset(1, "first"));
        directory.put_preset(&preset(1, "second"));
        assert!(!named("first") && named("second"));
        directory.put_preset(&preset(2, "second"));
        directory.remove_preset(Uuid::nil(), Uuid::from_u128(1));
        assert!(named("second"), "it is another one's by now");
        directory.remove_preset(Uuid::nil(), Uuid::from_u128(2));
        assert!(!named("second"));
    }
}
