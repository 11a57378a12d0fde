//! Listing of a shared folder: its folders first and then its files, newest first, in pages; `previewUrl`, `inlineUrl`,
//! `streamUrl`.

use std::collections::HashMap;

use actix_web::web;
use serde::Serialize;
use sluice_media::format::Class;
use sluice_store::{
    Cursor, Listed as _, Page, Reader,
    file_filter::{Filter, Place},
    file_list,
    files::File,
    folder_list::{self, FolderQuery},
    folders::Folder,
    now_ms,
    shares::{self, Totals},
    video::{self, Access, Showing},
};
use utoipa::ToSchema;
use uuid::Uuid;

use super::access::ShareAccess;
use crate::{
    application::{
        answer::Timestamp,
        context::ShareContext,
        error::ApiError,
        files::previews::{DEFAULT_WIDTH, class_of, has_preview},
        page::{cursor_text, read_cursor},
        playback_token,
        video::request::DEFAULT_TOKEN_TTL_S,
    },
    http::bytes::is_shown,
};

/// Folders and files of one page, together.
const PAGE_ROWS: u32 = 50;

/// A page of a shared folder.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    /// The folder that is listed.
    pub folder: SharedFolderRecord,
    /// Path from the shared folder down to this one.
    pub breadcrumb: Vec<SharedFolderRecord>,
    /// In it, newest first; all of them come before the first file.
    pub folders: Vec<SharedFolderRecord>,
    /// In it, newest first.
    pub files: Vec<SharedFileRecord>,
    pub totals: TotalsRecord,
    /// True when originals may be downloaded.
    pub allow_download: bool,
    /// An archive of the whole share; null where originals may not be taken away.
    pub zip_url: Option<String>,
    /// Null: never.
    pub expires_at: Option<Timestamp>,
    /// `cursor` of the next page; null on the last one.
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedFolderRecord {
    pub id: Uuid,
    pub name: String,
    pub created_at: Timestamp,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedFileRecord {
    pub id: Uuid,
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: i64,
    pub created_at: Timestamp,
    /// In pixels as shown; null where it has none or they are not known.
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// In seconds.
    pub duration: Option<f64>,
    /// An image of it, 640 pixels wide at most; `w` may be 320, 640, 1280 or 2560. Null where there is none.
    pub preview_url: Option<String>,
    /// The original; null where originals may not be taken away.
    pub download_url: Option<String>,
    /// The original to be shown or played in place, with ranges; null where it may not be.
    pub inline_url: Option<String>,
    /// A playlist (HLS) of the video; null where there is none.
    pub stream_url: Option<String>,
}

/// Sums over the listed folder and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TotalsRecord {
    pub files: i64,
    pub bytes: i64,
    /// Without the folder itself.
    pub folders: i64,
    /// False where there is more than is counted (`shares.max_counted`).
    pub is_exact: bool,
}

/// Start of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Folders(Option<Cursor>),
    Files(Option<Cursor>),
}

impl Position {
    fn read(text: &str) -> Result<Self, ApiError> {
        let (kind, rest) = text.split_at_checked(1).unwrap_or((text, ""));
        let cursor = match rest {
            "" => None,
            rest => Some(read_cursor(rest)?),
        };
        match kind {
            "" => Ok(Self::Folders(None)),
            "d" => Ok(Self::Folders(cursor)),
            "f" => Ok(Self::Files(cursor)),
            _ => Err(invalid!(
                "cursor must be the nextCursor of an earlier answer"
            )),
        }
    }

    fn text(self) -> String {
        let (kind, cursor) = match self {
            Self::Folders(cursor) => ("d", cursor),
            Self::Files(cursor) => ("f", cursor),
        };
        format!("{kind}{}", cursor.map(cursor_text).unwrap_or_default())
    }
}

/// Lists a page of a folder that is shared or below one; `None`: the shared one. The first page of that one is counted
/// as a view.
///
/// 404 for any other folder, 400 for a malformed cursor.
pub(in crate::http) async fn listing(
    context: &web::Data<ShareContext>,
    access: &ShareAccess,
    folder: Option<Uuid>,
    cursor: Option<&str>,
) -> Result<Listing, ApiError> {
    let position = Position::read(cursor.unwrap_or_default())?;
    let folder_id = folder.unwrap_or(access.folder_id());
    let mut db = context.store.read().await?;
    let path = shares::path(&mut db, access.share(), folder_id).await?;
    let path = path.ok_or(ApiError::NotFound("folder"))?;
    let page = read_page(&mut db, access.account_id(), folder_id, position).await?;
    let streams = streams_of(&mut db, &page.files).await?;
    // A wait for another request's totals must not hold a read connection.
    drop(db);
    let sum = async || {
        let max_counted = context.config.shares.max_counted;
        shares::totals(&mut context.store.read().await?, folder_id, max_counted).await
    };
    let totals = context.shares.totals.of(folder_id, sum).await?;
    if folder_id == access.folder_id() && position == Position::Folders(None) {
        access.note_view(context);
    }
    let record = Record {
        context,
        access,
        streams,
    };
    let mut files = Vec::with_capacity(page.files.len());
    for file in page.files {
        files.push(record.of(file).await?);
    }
    let breadcrumb: Vec<_> = path.into_iter().map(SharedFolderRecord::from).collect();
    let folder = breadcrumb.last().cloned();
    Ok(Listing {
        folder: folder.expect("a path ends with the folder itself"),
        breadcrumb,
        folders: page.folders.into_iter().map(Into::into).collect(),
        files,
        totals: totals.into(),
        allow_download: access.share().allow_download,
        zip_url: access.share().allow_download.then(|| access.url("/zip")),
        expires_at: access.share().expires_at.map(Timestamp),
        next_cursor: page.next.map(Position::text),
    })
}

/// The rows of a page, and where the next one begins.
struct Rows {
    folders: Vec<Folder>,
    files: Vec<File>,
    next: Option<Position>,
}

/// Reads one row more than the page holds: it shows that another page follows, and is removed.
async fn read_page(
    db: &mut Reader,
    account_id: Uuid,
    folder_id: Uuid,
    position: Position,
) -> Result<Rows, ApiError> {
    let mut folders = Vec::new();
    let mut files_after = None;
    match position {
        Position::Files(after) => files_after = after,
        Position::Folders(after) => {
            let page = Page {
                limit: PAGE_ROWS + 1,
                after,
            };
            let wanted = FolderQuery::newest(Some(Some(folder_id)), page);
            folders = folder_list::list(db, account_id, &wanted).await?;
            if folders.len() > PAGE_ROWS as usize {
                folders.truncate(PAGE_ROWS as usize);
                let last = folders.last().map(Folder::cursor);
                return Ok(Rows {
                    folders,
                    files: Vec::new(),
                    next: Some(Position::Folders(last)),
                });
            }
        }
    }
    let room = PAGE_ROWS as usize - folders.len();
    let filter = Filter::at(Place::In(Some(folder_id)));
    let page = Page {
        limit: room as u32 + 1,
        after: files_after,
    };
    let mut files = file_list::list(db, account_id, &filter, &page.into()).await?;
    let has_more = files.len() > room;
    files.truncate(room);
    let next = has_more.then(|| Position::Files(files.last().map(File::cursor)));
    Ok(Rows {
        folders,
        files,
        next,
    })
}

async fn streams_of(db: &mut Reader, files: &[File]) -> Result<HashMap<Uuid, Showing>, ApiError> {
    let videos = files
        .iter()
        .filter(|file| matches!(class_of(&file.mime_type), Some(Class::Video)));
    let ids: Vec<Uuid> = videos.map(|file| file.id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let showing = video::showing(db, &ids).await?;
    Ok(showing
        .into_iter()
        .map(|stream| (stream.source_file_id, stream))
        .collect())
}

/// Everything that a file's record needs besides its row.
struct Record<'a> {
    context: &'a ShareContext,
    access: &'a ShareAccess,
    streams: HashMap<Uuid, Showing>,
}

impl Record<'_> {
    async fn of(&self, file: File) -> Result<SharedFileRecord, ApiError> {
        let url = |rest: &str| self.access.url(&format!("/files/{}{rest}", file.id));
        let allow_download = self.access.share().allow_download;
        let stream_url = match self.streams.get(&file.id) {
            Some(stream) => Some(self.stream_url(stream).await?),
            None => None,
        };
        Ok(SharedFileRecord {
            preview_url: has_preview(&file.mime_type)
                .then(|| url(&format!("/preview?w={DEFAULT_WIDTH}"))),
            download_url: allow_download.then(|| url("")),
            inline_url: self.access.shows(&file.mime_type).then(|| url("?inline=1")),
            stream_url,
            id: file.id,
            filename: file.filename,
            mime_type: file.mime_type,
            size_bytes: file.size_bytes,
            created_at: Timestamp(file.created_at),
            width: file.width,
            height: file.height,
            duration: file.duration_ms.map(|ms| ms as f64 / 1_000.0),
        })
    }

    /// Returns the address of a stream; where a token is needed, one that is valid as long as the link.
    async fn stream_url(&self, stream: &Showing) -> Result<String, ApiError> {
        let playback_id = match stream.access {
            Access::Public => stream.playback_id.clone(),
            Access::Signed => {
                let usual_s = stream.token_ttl_s.unwrap_or(DEFAULT_TOKEN_TTL_S);
                let left_ms = self.access.share().expires_at.map(|at| at - now_ms());
                let left_s = left_ms.map_or(usual_s, |ms| {
                    u32::try_from((ms / 1_000).max(1)).unwrap_or(usual_s)
                });
                let id = stream.playback_id.clone();
                let lifetime_s = usual_s.min(left_s);
                playback_token::issue(&self.context.playback_tokens, id, lifetime_s, Vec::new())
                    .await?
                    .token
            }
        };
        let base = &self.access.reached.address.base;
        Ok(format!("{base}/video/v1/{playback_id}/master.m3u8"))
    }
}

impl ShareAccess {
    /// Returns whether the original may be shown in place, which video, audio and documents need. An image has
    /// previews: its original is given only where it may be downloaded without a bound.
    pub(super) fn shows(&self, mime_type: &str) -> bool {
        let may_have_all = self.share.allow_download && self.share.download_limit.is_none();
        is_shown(mime_type) && (may_have_all || !mime_type.starts_with("image/"))
    }
}

impl From<Folder> for SharedFolderRecord {
    fn from(folder: Folder) -> Self {
        Self {
            id: folder.id,
            name: folder.name,
            created_at: Timestamp(folder.created_at),
        }
    }
}

impl From<Totals> for TotalsRecord {
    fn from(totals: Totals) -> Self {
        Self {
            files: totals.files,
            bytes: totals.bytes,
            folders: totals.folders,
            is_exact: totals.is_exact,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was_given() {
        let cursor = Some(Cursor {
            created_at: 1_795_000_000_123,
            id: Uuid::now_v7(),
        });
        for position in [
            Position::Folders(cursor),
            Position::Files(cursor),
            Position::Files(None),
        ] {
            assert_eq!(Position::read(&position.text()).unwrap(), position);
        }
        assert_eq!(Position::read("").unwrap(), Position::Folders(None));
        for odd in ["x", "dx", "f-", "é", "d1-1", "1-1"] {
            let error = Position::read(odd).unwrap_err().to_string();
            assert!(error.starts_with("cursor must"), "{odd}: {error}");
        }
    }
}
