//! Examination of an object store for `sluice doctor`: the probe of a start, and the owner.

use sqlx::{ConnectOptions as _, Connection as _};

use super::{
    Objects,
    owner::{Claimant, ObjectOwner},
    probe::{self, ObjectsReport},
};
use crate::{
    Error, StoreSettings, Tx, folder,
    postgres::{Server, live_node},
    serial::Serial,
    store::read_only,
};

/// Writes, reads, lists and deletes a small object, and looks for the owner; beside a running service, too. `None` without
/// `store.objects_url`.
///
/// `Error::Invalid` for an address that cannot be read, `Error::Unsupported` when the object store cannot be reached or used.
pub async fn examine_objects(settings: &StoreSettings) -> Result<Option<ObjectsReport>, Error> {
    let Some(objects) = Objects::of(settings)? else {
        return Ok(None);
    };
    let mut report = probe::check(&objects.0).await?;
    if !report.is_full {
        report.owner = owner(settings, &objects).await?;
    }
    Ok(Some(report))
}

/// Returns `None` when the rows cannot be read, which is for the examination of the database to say.
async fn owner(settings: &StoreSettings, objects: &Objects) -> Result<Option<ObjectOwner>, Error> {
    match claimant(settings).await {
        Ok(claimant) => Ok(Some(objects.owner(&claimant).await?)),
        Err(_) => Ok(None),
    }
}

async fn claimant(settings: &StoreSettings) -> Result<Claimant, Error> {
    match Server::of(settings)? {
        Some(server) => on_server(&server).await,
        None => in_folder(settings).await,
    }
}

async fn on_server(server: &Server) -> Result<Claimant, Error> {
    let mut connection = server.connect().await?;
    let has_rows: bool = sqlx::query_scalar("SELECT to_regclass('installation') IS NOT NULL")
        .fetch_one(&mut connection)
        .await?;
    let mut claimant = Claimant::default();
    if has_rows {
        claimant = Claimant::of(&mut Tx::postgres(&mut connection, Serial::Nothing)).await?;
        let node = live_node(&mut connection).await?;
        claimant = claimant.beside(node);
    }
    connection.close().await?;
    Ok(claimant)
}

async fn in_folder(settings: &StoreSettings) -> Result<Claimant, Error> {
    let database = folder::database(&settings.data_dir);
    if !database.exists() {
        return Ok(Claimant::default());
    }
    let options = read_only(&database).busy_timeout(settings.busy_timeout);
    let mut connection = options.connect().await?;
    let tables: i64 =
        sqlx::query_scalar("SELECT count(*) FROM sqlite_master WHERE name = 'installation'")
            .fetch_one(&mut connection)
            .await?;
    let mut claimant = Claimant::default();
    if tables > 0 {
        claimant = Claimant::of(&mut Tx::sqlite(&mut connection)).await?;
    }
    connection.close().await?;
    Ok(claimant)
}
