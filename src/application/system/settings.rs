//! The settings in force for operators (`GET /api/system/settings`): secrets replaced, the source of each value.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::config::{Config, Origin, Origins, leaves};

/// Value of a setting.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingRecord {
    /// For instance `http.listen`.
    key: String,
    /// A text, a number, a boolean or a list; a secret is `••••`.
    value: Value,
    /// `default`, `file` or `environment`.
    source: &'static str,
    /// The environment variable of `environment`.
    variable: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SettingList {
    /// The settings file; null without one.
    file: Option<String>,
    settings: Vec<SettingRecord>,
}

/// Returns all settings, as `sluice config --print` prints them.
pub(crate) fn settings(config: &Config, origins: &Origins) -> SettingList {
    let shown = config.shown();
    let settings = leaves(&shown).into_iter().map(|(key, value)| {
        let (source, variable) = match origins.of(&key) {
            Origin::Default => ("default", None),
            Origin::File(_) => ("file", None),
            Origin::Environment(name) => ("environment", Some(name.to_owned())),
        };
        SettingRecord {
            value: serde_json::to_value(value).expect("a setting is a plain value"),
            source,
            variable,
            key,
        }
    });
    SettingList {
        settings: settings.collect(),
        file: origins.file().map(|path| path.display().to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_source_and_secrets_do_not_show() {
        let variables = [
            ("SLUICE_BOOTSTRAP__ADMIN_PASSWORD", "correct horse"),
            ("SLUICE_HTTP__WORKERS", "3"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let loaded = Config::load_with(None, variables).unwrap();
        let list = serde_json::to_value(settings(&loaded.config, &loaded.origins)).unwrap();
        let setting = |key: &str| {
            let settings = list["settings"].as_array().unwrap();
            settings.iter().find(|it| it["key"] == key).unwrap().clone()
        };
        let password = setting("bootstrap.admin_password");
        assert_eq!(password["value"], "••••");
        assert_eq!(password["source"], "environment");
        assert_eq!(password["variable"], "SLUICE_BOOTSTRAP__ADMIN_PASSWORD");
        assert_eq!(setting("http.workers")["value"], 3);
        assert_eq!(setting("http.listen")["source"], "default");
        assert!(!list.to_string().contains("correct horse"));
        assert_eq!(list["file"], Value::Null);
    }
}
