//! Source of each setting's value: the defaults, the settings file, an environment variable (`GET /api/system/settings`).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin<'a> {
    Default,
    File(&'a Path),
    /// The name of the environment variable.
    Environment(&'a str),
}

/// Sources of all values that are not the defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins {
    file: Option<PathBuf>,
    in_file: BTreeSet<String>,
    /// Names of variables by setting.
    variables: BTreeMap<String, String>,
}

impl Origins {
    /// Returns the settings file, if there is one.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the source of a setting such as `http.listen`.
    pub fn of(&self, key: &str) -> Origin<'_> {
        match (self.variables.get(key), &self.file) {
            (Some(name), _) => Origin::Environment(name),
            (None, Some(path)) if self.in_file.contains(key) => Origin::File(path),
            _ => Origin::Default,
        }
    }

    pub(super) fn note_file(&mut self, path: &Path, table: &toml::Table) {
        self.file = Some(path.to_owned());
        for (key, _) in leaves(table) {
            self.in_file.insert(key);
        }
    }

    pub(super) fn note_variable(&mut self, key: &str, name: &str) {
        self.variables.insert(key.to_owned(), name.to_owned());
    }
}

/// Returns all values of a table with their dotted keys, in its order.
pub(crate) fn leaves(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => found.extend(
                leaves(inner)
                    .into_iter()
                    .map(|(below, value)| (format!("{key}.{below}"), value)),
            ),
            value => found.push((key.clone(), value)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_source_of_each_value_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sluice.toml");
        std::fs::write(
            &path,
            "[http]\nworkers = 3\nmax_json = \"2 MiB\"\n[plans.house]\nfiles_per_batch = 2",
        )
        .unwrap();
        let variable = ("SLUICE_HTTP__WORKERS".to_owned(), "2".to_owned());
        let loaded = Config::load_with(Some(&path), [variable]).unwrap();
        let origins = &loaded.origins;
        assert_eq!(origins.file(), Some(path.as_path()));
        assert_eq!(
            origins.of("http.workers"),
            Origin::Environment("SLUICE_HTTP__WORKERS")
        );
        assert_eq!(origins.of("http.max_json"), Origin::File(&path));
        assert_eq!(
            origins.of("plans.house.files_per_batch"),
            Origin::File(&path)
        );
        assert_eq!(origins.of("http.listen"), Origin::Default);
        let shown = loaded.config.shown();
        let keys: Vec<String> = leaves(&shown).into_iter().map(|(key, _)| key).collect();
        assert!(keys.contains(&"plans.house.files_per_batch".to_owned()));
        assert!(keys.contains(&"http.listen".to_owned()));
    }
}
