//! `POST /api/folders/path`: finds a folder by its path and makes what is missing, for uploads of whole folders.

use serde::{Deserialize, Serialize};
use sluice_store::{
    folders::{self, MAX_DEPTH},
    now_ms, write_tx,
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::record::{FolderRecord, record_of};
use crate::application::{context::Platform, error::ApiError, filename};

/// Path of a folder.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FolderPathRequest {
    /// Names with `/` between them, or a list of names. Empty parts and `.` are left out.
    path: Path,
    /// Null: from the top.
    parent_id: Option<Uuid>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged, expecting = "must be a text or a list of names")]
enum Path {
    Text(String),
    Names(Vec<String>),
}

#[derive(Serialize, ToSchema)]
pub struct FolderPathAnswer {
    /// The innermost folder.
    folder: FolderRecord,
    /// Folders of the path that this request made.
    pub(crate) created: u32,
}

/// Finds the folder at the end of a path, and makes what is missing of it, once however many ask.
pub(crate) async fn ensure(
    platform: &Platform,
    account_id: Uuid,
    request: FolderPathRequest,
) -> Result<FolderPathAnswer, ApiError> {
    let names = request.path.names()?;
    let parent_id = request.parent_id;
    let end = write_tx!(platform.store, account_id, |tx| {
        folders::ensure_path(tx, account_id, parent_id, &names, now_ms()).await
    })?;
    let mut db = platform.store.read().await?;
    Ok(FolderPathAnswer {
        folder: record_of(&mut db, account_id, end.folder).await?,
        created: end.created,
    })
}

impl Path {
    /// Checks each name; 400 names the part.
    fn names(self) -> Result<Vec<String>, ApiError> {
        let parts: Vec<String> = match self {
            Self::Text(path) => path.split(['/', '\\']).map(str::to_owned).collect(),
            Self::Names(names) => names,
        };
        let is_name = |part: &String| !matches!(part.trim(), "" | ".");
        let parts: Vec<String> = parts.into_iter().filter(is_name).collect();
        if parts.is_empty() {
            return Err(invalid!(
                "path must have at least one name, as in Spring/Behind the scenes"
            ));
        }
        if parts.len() as i64 > MAX_DEPTH {
            return Err(invalid!(
                "path must have at most {MAX_DEPTH} names, got {}",
                parts.len()
            ));
        }
        let named = parts.iter().enumerate();
        named
            .map(|(index, part)| filename::checked(&format!("path[{index}]"), part))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names(path: serde_json::Value) -> Result<Vec<String>, ApiError> {
        let body = json!({"path": path});
        let request: FolderPathRequest = serde_json::from_value(body).unwrap();
        request.path.names()
    }

    #[test]
    fn paths_of_all_systems_are_taken_apart() {
        for (path, expected) in [
            (json!("Spring/Behind"), &["Spring", "Behind"][..]),
            (json!("/a//./b/"), &["a", "b"]),
            (json!("a\\b"), &["a", "b"]),
            (json!(" a / b "), &["a", "b"]),
            (json!(["a", "", "b c"]), &["a", "b c"]),
            (json!("cafe\u{301}"), &["café"]),
        ] {
            assert_eq!(names(path).unwrap(), expected);
        }
    }

    #[test]
    fn odd_paths_are_rejected_by_their_part() {
        for (path, named) in [
            (json!(""), "path must have at least one name"),
            (json!(["/"]), "path[0] must not hold path separators"),
            (json!("a/../b"), "path[1] must be a name"),
            (json!("a/\u{202E}b"), "path[1] must not hold"),
            (json!("x".repeat(256)), "path[0] must have 1 to 255"),
            (json!(vec!["a"; 101]), "path must have at most 100"),
        ] {
            let error = names(path).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
