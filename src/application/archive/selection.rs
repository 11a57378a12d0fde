//! `POST /api/files/zip`: chosen `ids` and `folderIds` that are downloaded as one ZIP; most folders, default name.

use serde::{Deserialize, Serialize};
use sluice_store::{
    bulk, duration_ms, folders, now_ms,
    selections::{self, NewSelection},
    write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::listing::Listing;
use crate::application::{
    answer::Timestamp,
    context::FileContext,
    downloads::{DownloadGrant, Downloadable, download_url},
    error::ApiError,
    filename,
    files::bulk::{MAX_IDS, distinct},
    reached::Reached,
    signing::Signer,
};

/// Folders that may be chosen.
const MAX_FOLDERS: usize = 100;
/// Name of an archive when the client gives none.
const DEFAULT_NAME: &str = "files";
const EXTENSION: &str = ".zip";

/// Files and folders to be downloaded as one archive.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionRequest {
    /// Ids of files, at most 1000.
    #[serde(default)]
    ids: Vec<Uuid>,
    /// Ids of folders, at most 100; each comes with everything below it.
    #[serde(default)]
    folder_ids: Vec<Uuid>,
    /// Name of the archive, without path separators and control characters (`files`).
    name: Option<String>,
}

/// Address of an archive.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectionAnswer {
    /// Needs no credential.
    url: String,
    expires_at: Timestamp,
    /// Length of the archive as it is now.
    bytes: u64,
    /// Files in it.
    files: usize,
    filename: String,
    /// Those of the ids that name no file or folder.
    missing: Vec<Uuid>,
}

/// The checked request.
#[derive(Debug)]
struct Chosen {
    files: Vec<Uuid>,
    folders: Vec<Uuid>,
    /// Without an extension.
    name: String,
}

/// Keeps a selection, and answers the address of its archive.
pub(crate) async fn select(
    context: &FileContext,
    account_id: Uuid,
    reached: &Reached,
    request: SelectionRequest,
) -> Result<SelectionAnswer, ApiError> {
    let chosen = request.checked()?;
    let missing = missing(context, account_id, &chosen).await?;
    if missing.len() == chosen.files.len() + chosen.folders.len() {
        return Err(ApiError::NotFound("file or folder"));
    }
    let listing = Listing::of_chosen(context, account_id, &chosen.files, &chosen.folders).await?;
    let (bytes, files) = (listing.layout.len(), listing.ids.len());
    drop(listing);
    let settings = &context.config.archive;
    let expires_at = now_ms().saturating_add(duration_ms(settings.keep_selections));
    let filename = format!("{}{EXTENSION}", chosen.name);
    let new = NewSelection {
        name: chosen.name,
        files: chosen.files,
        folders: chosen.folders,
        expires_at,
    };
    let most = settings.max_selections;
    let made = write_tx!(context.store, account_id, |tx| {
        selections::create(tx, account_id, new, most, now_ms()).await
    })?;
    let grant = DownloadGrant {
        what: Downloadable::Selection(made.id),
        expires_at,
    };
    let signer = Signer::of(&mut context.store.read().await?).await?;
    Ok(SelectionAnswer {
        url: download_url(&signer, &reached.address.base, grant),
        expires_at: Timestamp(expires_at),
        bytes,
        files,
        filename,
        missing,
    })
}

impl SelectionRequest {
    fn checked(self) -> Result<Chosen, ApiError> {
        let files = distinct("ids", self.ids, MAX_IDS)?;
        let folders = distinct("folderIds", self.folder_ids, MAX_FOLDERS)?;
        if files.is_empty() && folders.is_empty() {
            return Err(invalid!(
                "ids is missing: name files in ids, or folders in folderIds"
            ));
        }
        let name = match self.name.filter(|name| !name.trim().is_empty()) {
            Some(name) => {
                let name = filename::checked("name", &name)?;
                name.strip_suffix(EXTENSION).unwrap_or(&name).to_owned()
            }
            None => DEFAULT_NAME.to_owned(),
        };
        Ok(Chosen {
            files,
            folders,
            name: match name.as_str() {
                "" => DEFAULT_NAME.to_owned(),
                _ => name,
            },
        })
    }
}

/// Returns the chosen ids that name nothing of the account.
async fn missing(
    context: &FileContext,
    account_id: Uuid,
    chosen: &Chosen,
) -> Result<Vec<Uuid>, ApiError> {
    let mut db = context.store.read().await?;
    let known = bulk::existing(&mut db, account_id, &chosen.files).await?;
    let files = chosen.files.iter().filter(|id| !known.contains(id));
    let mut missing: Vec<Uuid> = files.copied().collect();
    for id in &chosen.folders {
        match folders::get(&mut db, account_id, *id).await {
            Ok(_) => {}
            Err(sluice_store::Error::NotFound(_)) => missing.push(*id),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(body: serde_json::Value) -> Result<Chosen, ApiError> {
        serde_json::from_value::<SelectionRequest>(body)
            .unwrap()
            .checked()
    }

    #[test]
    fn names_have_one_extension() {
        let id = Uuid::now_v7();
        for (name, expected) in [
            (json!(null), "files"),
            (json!(" "), "files"),
            (json!(".zip"), "files"),
            (json!("Spring"), "Spring"),
            (json!("Spring.zip"), "Spring"),
            (json!("a.jpg"), "a.jpg"),
        ] {
            let chosen = checked(json!({"ids": [id, id], "name": name})).unwrap();
            assert_eq!((chosen.name.as_str(), chosen.files.len()), (expected, 1));
        }
    }

    #[test]
    fn wrong_requests_name_the_field() {
        let id = Uuid::now_v7();
        for (body, named) in [
            (json!({}), "ids is missing"),
            (json!({"ids": vec![id; 1001]}), "ids must have at most 1000"),
            (
                json!({"folderIds": vec![id; 101]}),
                "folderIds must have at most 100",
            ),
            (json!({"ids": [id], "name": "a/b"}), "name must not hold"),
        ] {
            let error = checked(body).map(|_| ()).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
