//! Makes a large account without an hour of uploads: one real file, and rows of others that have its bytes.

use std::path::Path;

use sluice_store::{
    Page, Store, StoreSettings, accounts,
    file_filter::Filter,
    file_list,
    files::{self, NewFile},
    now_ms,
};
use sluice_testkit::Failure;

use crate::{http::Client, service::Service, upload::upload};

/// Rows of one transaction.
const AT_ONCE: u32 = 1_000;
const DRAWING: &[u8] = br##"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="48"><rect width="64" height="48" fill="#264653"/></svg>"##;

/// Stores the file whose bytes all others have.
pub(super) async fn first_file(service: &Service) -> Result<(), Failure> {
    upload(&mut Client::new(service.address()), "photo 0.svg", DRAWING).await?;
    Ok(())
}

/// Writes rows of so many files, in a folder of which no service runs.
pub(super) async fn files(data_dir: &Path, count: u32) -> Result<(), Failure> {
    let settings = StoreSettings {
        data_dir: data_dir.to_owned(),
        ..StoreSettings::default()
    };
    let store = Store::open(&settings).await?;
    let mut db = store.read().await?;
    let accounts = accounts::list(&mut db).await?;
    let account = accounts.first().ok_or("there is no account")?;
    let account_id = account.account.id;
    let stored = file_list::list(
        &mut db,
        account_id,
        &Filter::default(),
        &Page::first(1).into(),
    )
    .await?;
    let first = stored.into_iter().next().ok_or("there is no file")?;
    drop(db);
    for from in (1..count).step_by(AT_ONCE as usize) {
        let first = first.clone();
        let to = count.min(from + AT_ONCE);
        let written = store.write(move |tx| {
            Box::pin(async move {
                for number in from..to {
                    let new = NewFile {
                        folder_id: None,
                        filename: format!("photo {number}.svg"),
                        mime_type: first.mime_type.clone(),
                        size_bytes: DRAWING.len() as u64,
                        blob: first.blob,
                        role: first.role,
                        width: first.width,
                        height: first.height,
                        duration_ms: None,
                        generation: 0,
                    };
                    files::create(tx, account_id, new, now_ms()).await?;
                }
                Ok(())
            })
        });
        written.await?;
    }
    store.close().await;
    Ok(())
}
