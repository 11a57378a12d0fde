//! Cursor pages of lists, newest first by `(created_at, id)`, and the rows that have such cursors. A page does not
//! depend on offsets that move.

use uuid::Uuid;

use crate::{
    Connection, Error,
    statement::{QueryAs, Record, query_as},
};

/// Rows of one statement of [`all`].
const MANY: usize = 500;

/// The last row of a page; the next page starts after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub created_at: i64,
    pub id: Uuid,
}

/// A row of a list that is paged.
pub trait Listed {
    /// Returns the cursor of a page whose last row is this one.
    fn cursor(&self) -> Cursor;
}

macro_rules! listed {
    ($($row:path),+ $(,)?) => {
        $(impl Listed for $row {
            fn cursor(&self) -> Cursor {
                Cursor {
                    created_at: self.created_at,
                    id: self.id,
                }
            }
        })+
    };
}

listed!(
    crate::api_keys::ApiKey,
    crate::audit::Entry,
    crate::delivery_keys::DeliveryKey,
    crate::files::File,
    crate::folders::Folder,
    crate::jobs::Job,
    crate::live_inputs::LiveInput,
    crate::playback_keys::PlaybackKey,
    crate::presets::Preset,
    crate::recordings::Recording,
    crate::shares::Share,
    crate::unfinished_uploads::UnfinishedUpload,
    crate::video::Stream,
    crate::webhooks::Delivery,
    crate::webhooks::Endpoint,
    crate::workflows::Workflow,
);

/// Page of a list.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Rows at most.
    pub limit: u32,
    /// `None` for the first page.
    pub after: Option<Cursor>,
}

impl Page {
    /// The first page.
    pub fn first(limit: u32) -> Self {
        Self { limit, after: None }
    }

    /// Returns the time and id that every row of the page is older than.
    pub(crate) fn before(&self) -> (i64, Uuid) {
        match self.after {
            Some(cursor) => (cursor.created_at, cursor.id),
            None => (i64::MAX, Uuid::max()),
        }
    }

    /// Reads the page by a query whose last three parameters are the time and the id of [`Page::before`] and the limit.
    pub(crate) async fn read<R>(
        &self,
        query: QueryAs<R>,
        db: &mut impl Connection,
    ) -> Result<Vec<R>, Error>
    where
        R: Record,
    {
        let (created_at, id) = self.before();
        let query = query.bind(created_at).bind(id).bind(self.limit);
        Ok(query.fetch_all(db).await?)
    }
}

/// Returns the rows of every account, in the order of their ids. They are read in pages, not in one long statement, by
/// one that has `id > $1` and `ORDER BY id LIMIT $2`.
pub(crate) async fn all<R>(
    db: &mut impl Connection,
    statement: &'static str,
) -> Result<Vec<R>, Error>
where
    R: Listed + Record,
{
    let mut rows: Vec<R> = Vec::new();
    loop {
        let after = rows.last().map_or(Uuid::nil(), |row| row.cursor().id);
        let page = query_as(statement)
            .bind(after)
            .bind(MANY as i64)
            .fetch_all(db)
            .await?;
        let is_last = page.len() < MANY;
        rows.extend(page);
        if is_last {
            return Ok(rows);
        }
    }
}
