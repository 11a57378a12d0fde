//! All sections of the settings: defaults, file, environment; unknown keys, `check`, redaction of secrets by `sluice config
//! --print`.
//!
//! `config/default.toml` is manual and default at once. Each crate owns its section and the checks of it; this module
//! composes them, and rejects what it does not know: a misspelt key in the file must not be a silent default.

mod account;
mod archive;
mod changes;
mod environment;
mod files;
mod origin;
mod plan;
mod renamed;
mod sections;
mod shares;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use figment::{
    Figment,
    providers::{Format as _, Serialized, Toml},
};
use serde::{Deserialize, Serialize};
use sluice_actors::{
    cdn::CdnSettings,
    compute::{ComputeSettings, VideoSettings},
    convert::ConvertSettings,
    live::{LiveSettings, restream::RestreamSettings},
    outbound::OutboundSettings,
    recording::RecordingSettings,
    video::StreamSettings,
    webhooks::WebhookSettings,
    workflow::WorkflowSettings,
};
use sluice_ingest::{
    rtmp::RtmpSettings, rtsp::RtspSettings, srt::SrtSettings, webrtc::WebRtcSettings,
};
use sluice_media::setting::size;
use sluice_store::{ClusterSettings, StoreSettings};

pub use account::Account;
pub use archive::Archive;
pub use changes::Changes;
pub use files::Files;
pub(crate) use origin::leaves;
pub use origin::{Origin, Origins};
pub use plan::{Plan, Plans};
pub use sections::{Bootstrap, Http, Log, LogFormat, Mcp, SignIn, Uploads};
pub use shares::Shares;
pub use sluice_actors::outbound::Cidr;

/// The manual of all settings, and their defaults.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

/// Text that is shown in place of secrets.
const REDACTED: &str = "••••";

/// Every setting of the service. Fields without meaning yet are accepted so that a configuration outlives upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub http: Http,
    pub rtmp: RtmpSettings,
    pub srt: SrtSettings,
    pub rtsp: RtspSettings,
    pub webrtc: WebRtcSettings,
    pub live: LiveSettings,
    pub store: StoreSettings,
    pub cluster: ClusterSettings,
    pub uploads: Uploads,
    pub archive: Archive,
    pub files: Files,
    pub image_workers: ComputeSettings,
    pub av_workers: VideoSettings,
    pub vod: StreamSettings,
    pub recordings: RecordingSettings,
    pub restream: RestreamSettings,
    pub convert: ConvertSettings,
    pub cdn: CdnSettings,
    pub sign_in: SignIn,
    pub shares: Shares,
    pub webhooks: WebhookSettings,
    pub changes: Changes,
    pub workflows: WorkflowSettings,
    pub mcp: Mcp,
    pub outbound: OutboundSettings,
    pub account: Account,
    pub bootstrap: Bootstrap,
    pub log: Log,
    /// Plans by name; an account's row names its plan.
    pub plans: Plans,
}

/// Result of [`Config::load`].
#[derive(Debug)]
pub struct Loaded {
    pub config: Config,
    /// Warnings in plain words, for the log once there is one: unknown `SLUICE_` variables, and settings under earlier
    /// names.
    pub warnings: Vec<String>,
    /// Source of each value.
    pub origins: Origins,
}

/// Reason why the settings cannot be used. Messages name the key, its source and what is allowed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the settings file {path}: {source}", path = path.display())]
    Unreadable {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{path}: {reason}", path = path.display())]
    NotToml { path: PathBuf, reason: String },
    #[error("{path}: unknown setting `{key}`; allowed here: {allowed}", path = path.display())]
    UnknownKey {
        path: PathBuf,
        key: String,
        allowed: String,
    },
    #[error("{0}")]
    Invalid(String),
}

impl Config {
    /// Reads the defaults, then `file`, then the process's environment.
    pub fn load(file: Option<&Path>) -> Result<Loaded, ConfigError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::load_with(file, variables)
    }

    /// Runs [`Config::load`] with the given environment.
    pub fn load_with(
        file: Option<&Path>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Loaded, ConfigError> {
        let known = default_table();
        let mut settings = Figment::from(Toml::string(DEFAULT_TOML));
        let mut warnings = Vec::new();
        let mut origins = Origins::default();
        if let Some(path) = file {
            let invalid = |reason| ConfigError::NotToml {
                path: path.to_owned(),
                reason,
            };
            let mut text = read(path)?;
            let mut table: toml::Table = text
                .parse()
                .map_err(|error| invalid(without_source(&text, &error)))?;
            let renamed = renamed::rename(&mut table).map_err(invalid)?;
            check_keys(path, &table, &known)?;
            origins.note_file(path, &table);
            if !renamed.is_empty() {
                text = table.to_string();
            }
            warnings.extend(
                renamed
                    .into_iter()
                    .map(|it| format!("{}: {it}", path.display())),
            );
            settings = settings.merge(NamedToml {
                path: path.to_owned(),
                text,
            });
        }
        let environment = environment::read(variables, &known).map_err(ConfigError::Invalid)?;
        warnings.extend(environment.warnings);
        for variable in environment.values {
            origins.note_variable(&variable.key, &variable.name);
            settings = settings.merge(variable);
        }
        let config: Self = settings
            .extract()
            .map_err(|error| ConfigError::Invalid(explain(&error)))?;
        config.check().map_err(ConfigError::Invalid)?;
        Ok(Loaded {
            config,
            warnings,
            origins,
        })
    }

    /// The settings in force as TOML, secrets replaced.
    pub fn print(&self) -> String {
        self.shown().to_string()
    }

    /// The settings in force, secrets replaced.
    pub fn shown(&self) -> toml::Table {
        let mut shown = self.clone();
        for secret in [
            &mut shown.bootstrap.admin_password,
            &mut shown.bootstrap.api_key,
            &mut shown.store.objects_access_key,
            &mut shown.store.objects_secret_key,
        ] {
            if !secret.is_empty() {
                *secret = REDACTED.to_owned();
            }
        }
        for server in &mut shown.webrtc.ice_servers {
            *server = server.masked(REDACTED);
        }
        shown.store.database_url = without_password(&shown.store.database_url);
        let mut table =
            toml::Table::try_from(&shown).expect("every section is a table of plain values");
        for (section, key, size) in [
            ("rtmp", "max_command", self.rtmp.max_command),
            ("rtmp", "max_media", self.rtmp.max_media),
            ("rtmp", "max_unfinished", self.rtmp.max_unfinished),
            (
                "rtmp",
                "max_unfinished_before_publish",
                self.rtmp.max_unfinished_before_publish,
            ),
            ("store", "wal_truncate_above", self.store.wal_truncate_above),
            ("store", "cache", self.store.cache),
        ] {
            table[section][key] = size::exact(size).into();
        }
        table
    }

    /// The plan of that name; an account with a name that is not configured (any more) is not bounded.
    pub fn plan(&self, name: &str) -> Plan {
        self.plans.get(name).cloned().unwrap_or_default()
    }

    /// Checks that there is a plan of that name; the message names the existing ones.
    pub fn check_plan(&self, name: &str) -> Result<(), String> {
        if self.plans.contains_key(name) {
            return Ok(());
        }
        let names: Vec<&str> = self.plans.keys().map(String::as_str).collect();
        Err(format!(
            "there is no plan `{name}`: use one of {}, or add [plans.{name}] to the settings",
            names.join(", ")
        ))
    }

    /// The plans, the smallest first.
    pub fn plans_by_size(&self) -> Vec<(&String, &Plan)> {
        let mut plans: Vec<(&String, &Plan)> = self.plans.iter().collect();
        plans.sort_by_key(|(name, plan)| {
            let size = |count: u64| (count == 0, count);
            (
                size(plan.operations_per_month),
                size(plan.deliveries_per_month),
                *name,
            )
        });
        plans
    }

    /// Deliveries a month by plan; 0: no cap.
    pub fn delivery_caps(&self) -> BTreeMap<String, u64> {
        let caps = self.plans.iter();
        caps.map(|(name, plan)| (name.clone(), plan.deliveries_per_month))
            .collect()
    }

    fn check(&self) -> Result<(), String> {
        self.http.check()?;
        sections::check_url("rtmp.public_url", &self.rtmp.public_url, &["rtmps", "rtmp"])?;
        at_least("rtmp.max_unadmitted", self.rtmp.max_unadmitted > 0, "1")?;
        sections::check_url("srt.public_url", &self.srt.public_url, &["srt"])?;
        self.srt.check()?;
        self.webrtc.check()?;
        self.uploads.check()?;
        self.archive.check()?;
        self.files.check()?;
        self.sign_in.check()?;
        self.shares.check()?;
        self.log.check()?;
        self.store.check().map_err(|error| error.to_string())?;
        self.cluster.check()?;
        if self.cluster.is_node() && !self.store.is_on_postgres() {
            return Err(
                "cluster.listen: the nodes of a cluster share a PostgreSQL database: set store.database_url, or leave \
                 cluster.listen empty"
                    .into(),
            );
        }
        if self.cluster.is_node() && self.store.objects_url.is_empty() {
            return Err(
                "cluster.listen: the nodes of a cluster share an object store, since the files in the folder of one are missing on \
                 the others: set store.objects_url (s3://… or a shared folder, file:///…), or leave cluster.listen empty"
                    .into(),
            );
        }
        self.live.check()?;
        self.image_workers.check()?;
        self.av_workers.check()?;
        self.vod.check()?;
        self.recordings.check()?;
        self.restream.check()?;
        self.convert.check()?;
        self.cdn.check()?;
        self.webhooks.check()?;
        self.changes.check()?;
        self.workflows.check()?;
        self.mcp.check()?;
        self.account.check()?;
        self.check_plan(&self.account.plan)
            .map_err(|reason| format!("account.plan: {reason}"))?;
        self.outbound.check()
    }
}

/// The user file, named in figment's errors by its path.
struct NamedToml {
    path: PathBuf,
    text: String,
}

impl figment::Provider for NamedToml {
    fn metadata(&self) -> figment::Metadata {
        figment::Metadata::named(self.path.display().to_string())
    }

    fn data(&self) -> figment::Result<figment::value::Map<figment::Profile, figment::value::Dict>> {
        Toml::string(&self.text).data()
    }
}

impl figment::Provider for environment::Variable {
    fn metadata(&self) -> figment::Metadata {
        figment::Metadata::named(format!("environment variable {}", self.name))
    }

    fn data(&self) -> figment::Result<figment::value::Map<figment::Profile, figment::value::Dict>> {
        Serialized::default(&self.key, &self.value).data()
    }
}

/// Rejects a setting that is less than `least`.
fn at_least(key: &str, is_met: bool, least: &str) -> Result<(), String> {
    match is_met {
        true => Ok(()),
        false => Err(format!("{key} must be at least {least}")),
    }
}

fn default_table() -> toml::Table {
    toml::Table::try_from(Config::default()).expect("every section is a table of plain values")
}

/// The error with its line's number, and without the line: it may be a secret without quotes.
fn without_source(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    let before = error.span().and_then(|span| text.get(..span.start));
    match before {
        Some(before) => format!("line {}: {message}", before.matches('\n').count() + 1),
        None => message.to_owned(),
    }
}

fn read(path: &Path) -> Result<String, ConfigError> {
    std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

/// Rejects the first key of the file that no setting has.
fn check_keys(path: &Path, table: &toml::Table, known: &toml::Table) -> Result<(), ConfigError> {
    match unknown_key(table, known, "") {
        None => Ok(()),
        Some((key, allowed)) => Err(ConfigError::UnknownKey {
            path: path.to_owned(),
            key,
            allowed,
        }),
    }
}

/// The path of an unknown key and the keys allowed beside it. A plan's name is free; its keys are not.
fn unknown_key(table: &toml::Table, known: &toml::Table, prefix: &str) -> Option<(String, String)> {
    for (key, value) in table {
        let path = format!("{prefix}{key}");
        let counterpart = match known.get(key) {
            Some(counterpart) => counterpart,
            None if prefix == "plans." => known.values().next()?,
            None => {
                let allowed: Vec<&str> = known.keys().map(String::as_str).collect();
                return Some((path, allowed.join(", ")));
            }
        };
        if let (toml::Value::Table(inner), toml::Value::Table(known)) = (value, counterpart)
            && let Some(found) = unknown_key(inner, known, &format!("{path}."))
        {
            return Some(found);
        }
    }
    None
}

fn explain(error: &figment::Error) -> String {
    let key = error.path.join(".");
    let origin = error
        .metadata
        .as_ref()
        .map(|metadata| metadata.name.to_string())
        .unwrap_or_default();
    format!("{origin}: setting `{key}`: {}", error.kind)
}

/// Parameters of a database's address that are no secrets, whatever they hold.
const OPEN_PARAMETERS: [&str; 8] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
];

/// Returns the address of a database without its password, which may also be a parameter. Of a text that is no address, such as
/// one whose password has an unescaped `/`, nothing is shown.
fn without_password(address: &str) -> String {
    if address.is_empty() {
        return String::new();
    }
    let Ok(mut url) = url::Url::parse(address) else {
        return REDACTED.to_owned();
    };
    let is_masked = url.password().is_none() || url.set_password(Some(REDACTED)).is_ok();
    // A password of digits and an unescaped `/`, `?` or `#` reads as a port and what follows it.
    let rest = [Some(url.path()), url.query(), url.fragment()];
    let has_at = rest.into_iter().flatten().any(|part| part.contains('@'));
    if !is_masked || has_at {
        return REDACTED.to_owned();
    }
    url.set_fragment(None);
    if url.query().is_some() {
        let shown: Vec<(String, String)> = url
            .query_pairs()
            .map(|(key, value)| match OPEN_PARAMETERS.contains(&&*key) {
                true => (key.into_owned(), value.into_owned()),
                false => (key.into_owned(), REDACTED.to_owned()),
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(shown);
    }
    let encoded: String = url::form_urlencoded::byte_serialize(REDACTED.as_bytes()).collect();
    url.as_str().replace(&encoded, REDACTED)
}

#[cfg(test)]
mod tests;
