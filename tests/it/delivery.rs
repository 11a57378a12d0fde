//! Image delivery as pages use it: `srcset`, caches, quotas, kills.

mod flow;
mod quota;
mod restart;
mod usage;

use std::{path::Path, time::Duration};

use serde_json::Value;

use crate::support::{
    Failure, eventually,
    images::photographs,
    server::{Api, Server},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);

/// A service with a stored photograph and a delivery key.
struct Gallery {
    server: Server,
    api: Api,
    key: String,
    file: String,
}

impl Gallery {
    async fn on(server: Server) -> Result<Self, Failure> {
        let api = server.api();
        let key = api.delivery_key().await?;
        let file = api.upload_id("photo.jpg", &photograph()?).await?;
        Ok(Self {
            server,
            api,
            key,
            file,
        })
    }

    async fn open() -> Result<Self, Failure> {
        Self::on(Server::start().await?).await
    }

    fn path(&self, query: &str) -> String {
        format!("/cdn/v1/{}/{}?{query}", self.key, self.file)
    }

    /// A number of `/metrics`, by its name and labels.
    async fn metric(&self, name: &str) -> Result<u64, Failure> {
        let text = self.api.fetch("/metrics").await?.expect(200)?;
        let text = String::from_utf8(text.bytes.into())?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.ok_or_else(|| format!("no {name} in {text}"))?;
        Ok(number.trim().parse()?)
    }

    async fn renders(&self) -> Result<u64, Failure> {
        self.metric("sluice_cdn_variants{made=\"rendered\"}").await
    }

    /// Waits until everything that was rendered is on disk, too.
    async fn wait_for_disk(&self, variants: usize) -> Result<(), Failure> {
        let folder = self.server.data_dir().join("cache");
        eventually("the variants are on disk", SOON, async || {
            (files_below(&folder) == variants).then_some(())
        })
        .await
    }
}

/// A real one where the machine has some.
fn photograph() -> Result<Vec<u8>, Failure> {
    let found = photographs(1)?;
    Ok(std::fs::read(found.first().ok_or("no photograph")?)?)
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.path() {
            path if path.is_dir() => files_below(&path),
            _ => 1,
        })
        .sum()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}
