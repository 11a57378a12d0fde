//! Settings of the store (`[store]`): `data_dir`, `min_free`, readers, writer queue, `busy_timeout`, write-ahead log, object
//! store and its cache; defaults and ranges.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Error, credentials::hexadecimal, objects::Address};

/// Settings of the store, with their defaults in [`Default`].
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreSettings {
    /// The folder of the database, the live media and everything else that must survive.
    pub data_dir: PathBuf,
    /// Empty: SQLite in `data_dir`. `postgres://…`: PostgreSQL, 14 or newer.
    pub database_url: String,
    /// Schema of the PostgreSQL database in which the tables are; it is made when it is missing.
    pub database_schema: String,
    /// Free disk space below which uploads and jobs wait: a share ("5%") or a size ("10 GB").
    pub min_free: String,
    /// Connections that read beside the writer.
    pub readers: u32,
    /// Connections that write to PostgreSQL at a time; SQLite has one writer.
    pub writers: u32,
    /// Units of work that may wait for the writer; further ones are rejected as busy.
    pub writer_queue: usize,
    /// Units of work that share one commit at most.
    pub commit_group: usize,
    /// Time for which a change or a read waits for a locked database or a free reader before it fails as busy.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub busy_timeout: Duration,
    /// Size of the write-ahead log above which it is truncated.
    #[serde(serialize_with = "write_exactly")]
    pub wal_truncate_above: ByteSize,
    /// Files that are hashed, written or flushed at a time; others wait.
    pub file_work: usize,
    /// Empty: the bytes of files are kept in `data_dir`. `s3://…` or `file://…`: the object store that keeps them.
    pub objects_url: String,
    /// Empty, with `objects_secret_key`: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` count.
    pub objects_access_key: String,
    pub objects_secret_key: String,
    /// Connections to the object store at a time, idle ones among them; further requests wait.
    pub objects_connections: usize,
    /// Longest time for a request to the object store, repetitions among them; more while its bytes move.
    #[serde(with = "jiff::fmt::serde::unsigned_duration::friendly::compact::required")]
    pub objects_timeout: Duration,
    /// Pieces of files that are uploaded to the object store at a time.
    pub objects_at_once: usize,
    /// Bytes of files in `data_dir` that the object store has too; those that were not used for longest are removed above it.
    #[serde(serialize_with = "write_exactly")]
    pub cache: ByteSize,
}

impl fmt::Debug for StoreSettings {
    /// Shows neither addresses, which may have a password, nor keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = serde_json::to_value(self).map_err(|_| fmt::Error)?;
        for (key, value) in [
            ("database_url", &self.database_url),
            ("objects_url", &self.objects_url),
            ("objects_access_key", &self.objects_access_key),
            ("objects_secret_key", &self.objects_secret_key),
        ] {
            if !value.is_empty() {
                shown[key] = "…".into();
            }
        }
        write!(f, "StoreSettings {shown}")
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            data_dir: "data".into(),
            database_url: String::new(),
            database_schema: "sluice".into(),
            min_free: "5%".into(),
            readers: 4,
            writers: 6,
            writer_queue: 1024,
            commit_group: 256,
            busy_timeout: Duration::from_secs(5),
            wal_truncate_above: ByteSize::mb(64),
            file_work: 32,
            objects_url: String::new(),
            objects_access_key: String::new(),
            objects_secret_key: String::new(),
            objects_connections: 16,
            objects_timeout: Duration::from_secs(20),
            objects_at_once: 8,
            cache: ByteSize::gb(20),
        }
    }
}

impl StoreSettings {
    /// The defaults for a store in `data_dir` that may fill its disk to the last byte. Tests: with `SLUICE_TEST_POSTGRES` the rows
    /// are kept there, in a schema for each folder.
    pub fn without_reserve(data_dir: &Path) -> Self {
        let settings = Self::on_sqlite(data_dir);
        match std::env::var("SLUICE_TEST_POSTGRES") {
            Ok(database_url) => Self {
                database_url,
                database_schema: schema_of(data_dir),
                ..settings
            },
            Err(_) => settings,
        }
    }

    /// [`StoreSettings::without_reserve`], always on SQLite.
    pub fn on_sqlite(data_dir: &Path) -> Self {
        Self {
            data_dir: data_dir.to_owned(),
            min_free: "0 B".into(),
            ..Self::default()
        }
    }

    /// Returns whether the rows are kept by PostgreSQL.
    pub fn is_on_postgres(&self) -> bool {
        ["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| self.database_url.starts_with(scheme))
    }

    /// Rejects values that cannot work, with the key's path and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        if !self.database_url.is_empty() && !self.is_on_postgres() {
            return Err(invalid(
                "store.database_url",
                "postgres://USER:PASSWORD@HOST/DATABASE, or empty, which means SQLite in store.data_dir",
            ));
        }
        if !is_schema_name(&self.database_schema) {
            return Err(invalid(
                "store.database_schema",
                "1 to 48 of a-z, 0-9 and _, and no digit at the beginning",
            ));
        }
        if self.data_dir.as_os_str().is_empty() {
            return Err(invalid("store.data_dir", "a folder"));
        }
        if !(1..=64).contains(&self.readers) {
            return Err(invalid("store.readers", "1 to 64"));
        }
        if !(1..=64).contains(&self.writers) {
            return Err(invalid("store.writers", "1 to 64"));
        }
        if !(1..=65_536).contains(&self.writer_queue) {
            return Err(invalid("store.writer_queue", "1 to 65536"));
        }
        if !(1..=4_096).contains(&self.commit_group) {
            return Err(invalid("store.commit_group", "1 to 4096"));
        }
        if self.busy_timeout.is_zero() || self.busy_timeout > Duration::from_secs(300) {
            return Err(invalid("store.busy_timeout", "above 0 and at most 5m"));
        }
        if self.wal_truncate_above < ByteSize::mb(1) {
            return Err(invalid("store.wal_truncate_above", "1 MB or more"));
        }
        if !(1..=256).contains(&self.file_work) {
            return Err(invalid("store.file_work", "1 to 256"));
        }
        self.check_objects()?;
        self.min_free_bytes(0).map(|_| ())
    }

    fn check_objects(&self) -> Result<(), Error> {
        Address::parse(&self.objects_url)?;
        if self.objects_access_key.is_empty() != self.objects_secret_key.is_empty() {
            return Err(invalid(
                "store.objects_secret_key",
                "a value together with store.objects_access_key; or leave both empty, and set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            ));
        }
        if !(1..=256).contains(&self.objects_connections) {
            return Err(invalid("store.objects_connections", "1 to 256"));
        }
        let timeout = Duration::from_secs(1)..=Duration::from_secs(300);
        if !timeout.contains(&self.objects_timeout) {
            return Err(invalid("store.objects_timeout", "1s to 5m"));
        }
        if !(1..=64).contains(&self.objects_at_once) {
            return Err(invalid("store.objects_at_once", "1 to 64"));
        }
        if self.cache < ByteSize::mb(256) {
            return Err(invalid("store.cache", "256 MB or more"));
        }
        Ok(())
    }

    /// `min_free` in bytes on a disk of `total` bytes.
    pub fn min_free_bytes(&self, total: u64) -> Result<u64, Error> {
        const ALLOWED: &str = "a share of the disk (\"5%\", 0 to 99) or a size (\"10 GB\")";
        let text = self.min_free.trim();
        match text.strip_suffix('%') {
            Some(share) => match share.trim().parse::<f64>() {
                Ok(percent) if (0.0..=99.0).contains(&percent) => {
                    Ok((total as f64 * percent / 100.0) as u64)
                }
                _ => Err(invalid("store.min_free", ALLOWED)),
            },
            None => match text.parse::<ByteSize>() {
                Ok(size) => Ok(size.as_u64()),
                Err(_) => Err(invalid("store.min_free", ALLOWED)),
            },
        }
    }
}

/// Returns a name that only this folder has.
fn schema_of(data_dir: &Path) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(data_dir.as_os_str().as_encoded_bytes());
    format!("t_{}", &hexadecimal(&digest)[..24])
}

/// Names of this form need no quotes.
fn is_schema_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    (1..=48).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// Writes a size so that it reads back as the same one; `ByteSize` itself rounds ("61.0 MiB" for 64 MB).
fn write_exactly<S: Serializer>(size: &ByteSize, serializer: S) -> Result<S::Ok, S::Error> {
    const UNITS: [(u64, &str); 4] = [
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "kB"),
        (1, "B"),
    ];
    let bytes = size.as_u64();
    let (unit_bytes, unit) = UNITS
        .into_iter()
        .find(|(unit_bytes, _)| bytes.is_multiple_of(*unit_bytes))
        .expect("every number is a multiple of one");
    serializer.collect_str(&format_args!("{} {unit}", bytes / unit_bytes))
}

fn invalid(key: &str, allowed: &str) -> Error {
    Error::Invalid(format!("{key}: expected {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_written_with_units_and_read_back() {
        let written = serde_json::to_value(StoreSettings::default()).unwrap();
        let expected = serde_json::json!({
            "data_dir": "data", "database_url": "", "database_schema": "sluice", "min_free": "5%", "readers": 4, "writers": 6, "writer_queue": 1024,
            "commit_group": 256, "busy_timeout": "5s", "wal_truncate_above": "64 MB", "file_work": 32,
            "objects_url": "", "objects_access_key": "", "objects_secret_key": "", "objects_connections": 16, "objects_timeout": "20s",
            "objects_at_once": 8, "cache": "20 GB",
        });
        assert_eq!(written, expected);
        assert_eq!(
            serde_json::from_value::<StoreSettings>(written).unwrap(),
            StoreSettings::default()
        );
        for bytes in [0, 1, 999, 1_000, 1_048_576, 5_000_000_000, u64::MAX] {
            let settings = StoreSettings {
                wal_truncate_above: ByteSize(bytes),
                ..StoreSettings::default()
            };
            let text = serde_json::to_string(&settings).unwrap();
            let read: StoreSettings = serde_json::from_str(&text).unwrap();
            assert_eq!(read, settings, "{text}");
        }
        StoreSettings::default().check().unwrap();
    }

    #[test]
    fn a_password_is_not_shown() {
        let settings = StoreSettings {
            database_url: "postgres://sluice:swordfish@db/sluice".into(),
            objects_url: "s3://swordfish".into(),
            objects_access_key: "swordfish".into(),
            objects_secret_key: "swordfish".into(),
            ..StoreSettings::default()
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("\"readers\":4"), "{shown}");
        assert!(!shown.contains("swordfish"), "{shown}");
    }

    #[test]
    fn sizes_and_durations_are_read_with_units() {
        let text = r#"{"busy_timeout": "1m 30s", "wal_truncate_above": "64 MB"}"#;
        let settings: StoreSettings = serde_json::from_str(text).unwrap();
        assert_eq!(settings.busy_timeout, Duration::from_secs(90));
        assert_eq!(settings.wal_truncate_above, ByteSize::mb(64));
        for wrong in [
            r#"{"busy_timeout": "soon"}"#,
            r#"{"busy_timeout": "-5s"}"#,
            r#"{"wal_truncate_above": "much"}"#,
            r#"{"dir": "x"}"#,
        ] {
            assert!(
                serde_json::from_str::<StoreSettings>(wrong).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_wrong_value_is_rejected_with_its_key() {
        type Change = fn(&mut StoreSettings);
        let cases: [(&str, Change); 22] = [
            ("store.data_dir", |s| s.data_dir = PathBuf::new()),
            ("store.readers", |s| s.readers = 0),
            ("store.readers", |s| s.readers = 65),
            ("store.writer_queue", |s| s.writer_queue = 0),
            ("store.commit_group", |s| s.commit_group = 0),
            ("store.busy_timeout", |s| s.busy_timeout = Duration::ZERO),
            ("store.busy_timeout", |s| {
                s.busy_timeout = Duration::from_secs(301)
            }),
            ("store.wal_truncate_above", |s| {
                s.wal_truncate_above = ByteSize::kb(1)
            }),
            ("store.file_work", |s| s.file_work = 0),
            ("store.file_work", |s| s.file_work = 257),
            ("store.objects_url", |s| {
                s.objects_url = "https://example.org/bucket".into()
            }),
            ("store.objects_url", |s| s.objects_url = "s3://b".into()),
            ("store.objects_secret_key", |s| {
                s.objects_access_key = "key".into()
            }),
            ("store.objects_connections", |s| s.objects_connections = 0),
            ("store.objects_timeout", |s| {
                s.objects_timeout = Duration::from_millis(999)
            }),
            ("store.objects_timeout", |s| {
                s.objects_timeout = Duration::from_secs(301)
            }),
            ("store.objects_at_once", |s| s.objects_at_once = 65),
            ("store.cache", |s| s.cache = ByteSize::mb(255)),
            ("store.min_free", |s| s.min_free = "".into()),
            ("store.min_free", |s| s.min_free = "100%".into()),
            ("store.min_free", |s| s.min_free = "-1%".into()),
            ("store.min_free", |s| s.min_free = "NaN%".into()),
        ];
        for (key, change) in cases {
            let mut settings = StoreSettings::default();
            change(&mut settings);
            let message = settings.check().unwrap_err().to_string();
            assert!(
                message.starts_with(&format!("{key}: expected ")),
                "{message}"
            );
        }
    }

    #[test]
    fn the_free_space_to_keep_is_a_share_or_a_size() {
        for (text, expected) in [
            ("5%", 50),
            ("0%", 0),
            (" 2.5 % ", 25),
            ("10 B", 10),
            ("1 kB", 1_000),
            ("7", 7),
        ] {
            let settings = StoreSettings {
                min_free: text.into(),
                ..StoreSettings::default()
            };
            assert_eq!(settings.min_free_bytes(1_000).unwrap(), expected, "{text}");
        }
    }
}
