//! List of an account's uploads that are not files yet: direct and resumable ones, newest first.

use uuid::Uuid;

use crate::{Connection, Error, Page, statement::query_as};

/// Parameters: account, time now, and those of [`Page::read`]. Each part reads its own index, no further than the page.
pub(crate) const LIST: &str = "
    SELECT * FROM (SELECT id, 'tus' AS kind, filename, folder_id, length_bytes AS size_bytes, offset_bytes,
                          FALSE AS is_received, created_at, expires_at
                   FROM tus_uploads
                   WHERE account_id = $1 AND completed_at IS NULL AND +expires_at > $2 AND (created_at, id) < ($3, $4)
                   ORDER BY created_at DESC, id DESC LIMIT $5) tus
    UNION ALL
    SELECT * FROM (SELECT id, 'direct', filename, folder_id, size_bytes, iif(state = 'received', size_bytes, 0),
                          state = 'received', created_at, expires_at
                   FROM uploads
                   WHERE account_id = $1 AND state <> 'completed' AND +expires_at > $2 AND (created_at, id) < ($3, $4)
                   ORDER BY created_at DESC, id DESC LIMIT $5) direct
    ORDER BY created_at DESC, id DESC LIMIT $5";

text_enum! {
    /// Way in which an upload's bytes come.
    pub enum UploadKind {
        /// By requests of tus, which go on where the last one ended.
        Tus = "tus",
        /// By one PUT to a signed address.
        Direct = "direct",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct UnfinishedUpload {
    pub id: Uuid,
    pub kind: UploadKind,
    pub filename: String,
    pub folder_id: Option<Uuid>,
    /// `None`: to be declared.
    pub size_bytes: Option<i64>,
    /// Bytes that are safe. Those of a direct upload count once all are.
    pub offset_bytes: i64,
    /// True for a direct upload with all its bytes that was not completed.
    pub is_received: bool,
    pub created_at: i64,
    pub expires_at: i64,
}

/// Returns a page of those that have not expired by `now_ms`.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    page: Page,
    now_ms: i64,
) -> Result<Vec<UnfinishedUpload>, Error> {
    page.read(query_as(LIST).bind(account_id).bind(now_ms), db)
        .await
}
