//! PostgreSQL and an S3 server for the load harness, and nodes that share them.
//!
//! Both are started by `scripts/with-postgres.sh` and `scripts/with-objects.sh`, whose variables say where they are:
//! `scripts/with-postgres.sh scripts/with-objects.sh cargo bench --bench load -- webhooks --nodes 2`.

use std::{
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use sluice_testkit::{Failure, process::free_port};

use crate::service::Service;

/// The usual twentieth of a large disk may be more than a developer's machine has left.
const MIN_FREE: &str = "64 MB";

/// An empty place on the two servers: a schema and a folder of the bucket, named alike.
#[derive(Clone, Debug)]
pub(crate) struct Engines {
    name: String,
    pub(crate) database_url: String,
    pub(crate) objects_url: String,
    access_key: String,
    secret_key: String,
}

impl Engines {
    pub(crate) fn of_environment() -> Result<Self, Failure> {
        let variable = |name: &str| {
            std::env::var(name).map_err(|_| {
                format!("{name} is not set: run this by scripts/with-postgres.sh scripts/with-objects.sh COMMAND…")
            })
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let name = format!("load_{}", now.as_millis());
        let bucket = variable("SLUICE_TEST_OBJECTS")?;
        let (bucket, parameters) = bucket
            .split_once('?')
            .ok_or("no endpoint in SLUICE_TEST_OBJECTS")?;
        Ok(Self {
            database_url: variable("SLUICE_TEST_POSTGRES")?,
            objects_url: format!("{bucket}/{name}?{parameters}"),
            name,
            access_key: variable("SLUICE_TEST_OBJECTS_ACCESS_KEY")?,
            secret_key: variable("SLUICE_TEST_OBJECTS_SECRET_KEY")?,
        })
    }

    /// Schema and keys, for a command that names both servers itself.
    pub(crate) fn keys(&self) -> [(&str, &str); 4] {
        [
            ("SLUICE_STORE__DATABASE_SCHEMA", &self.name),
            ("SLUICE_STORE__OBJECTS_ACCESS_KEY", &self.access_key),
            ("SLUICE_STORE__OBJECTS_SECRET_KEY", &self.secret_key),
            ("SLUICE_STORE__MIN_FREE", MIN_FREE),
        ]
    }

    /// Settings of a service that has its rows and files there.
    pub(crate) fn settings(&self) -> Vec<(&str, &str)> {
        let addresses = [
            ("SLUICE_STORE__DATABASE_URL", self.database_url.as_str()),
            ("SLUICE_STORE__OBJECTS_URL", self.objects_url.as_str()),
        ];
        self.keys().into_iter().chain(addresses).collect()
    }
}

/// Starts so many nodes, each with a folder of its own below `folder`.
pub(crate) async fn start_nodes(
    program: &Path,
    folder: &Path,
    count: u16,
    settings: &[(&str, &str)],
) -> Result<Vec<Service>, Failure> {
    let engines = Engines::of_environment()?;
    let mut nodes = Vec::new();
    for number in 1..=count {
        let name = format!("node{number}");
        let folder = folder.join(&name);
        std::fs::create_dir(&folder)?;
        let listen = format!("127.0.0.1:{}", free_port()?);
        let mut all = engines.settings();
        all.extend([
            ("SLUICE_CLUSTER__NAME", name.as_str()),
            ("SLUICE_CLUSTER__LISTEN", listen.as_str()),
        ]);
        all.extend(settings);
        nodes.push(Service::start_with(program, &folder, &all).await?);
    }
    Ok(nodes)
}
