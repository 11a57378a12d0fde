//! System: state, faults that an operator sees, log, doctor, settings, accounts; the steps make the faults.

use serde_json::json;
use tempfile::TempDir;

use super::{scene, walk, welcome};
use crate::{
    browser::Turn,
    support::{Failure, http::free_port, server::Settings, skip, small_disk::SmallDisk},
};

/// Room for the service, and for the time between a full disk and the reserve of `store.min_free`.
const DISK_MEBIBYTES: u32 = 256;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_finds_a_killed_worker_a_locked_database_and_a_full_disk() -> Result<(), Failure>
{
    let Some(_turn) = Turn::alone().await? else {
        return Ok(());
    };
    let folder = TempDir::new()?;
    let disk = SmallDisk::mount(folder.path().join("data"), DISK_MEBIBYTES).await?;
    if disk.is_none() {
        skip("a full disk", "no right to mount a small file system");
    }
    let listen = format!("127.0.0.1:{}", free_port()?);
    let server = Settings::new()
        .data_dir(&folder.path().join("data"))
        .env("SLUICE_SIGN_IN__REQUESTS_PER_MINUTE", "100000")
        // The doctor reads the settings of the next start, which takes any port where this one has port 0.
        .env("SLUICE_HTTP__LISTEN", &listen)
        .start()
        .await?;
    let more = json!({
        "process": server.process_id(),
        "dataDir": server.data_dir(),
        "isSmallDisk": disk.is_some(),
        "boss": welcome(&server, "boss", "admin").await?,
    });
    walk("system", &scene(&server, &more)).await
}
