//! Lists of folders by time or name, the path to a folder, and whether a folder has children or a link.

use std::collections::HashMap;

use uuid::Uuid;

use crate::{
    Connection, Error, Page,
    folders::{Folder, MAX_DEPTH},
    name_key::name_key,
    order::{Direction, Position, SortKey, Sorted},
    rows,
    statement::{Builder, query_as},
};

/// Order of a list of folders; folders that are equal in it follow their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FolderOrder {
    #[default]
    Created,
    /// By name as people read it (`name_key.rs`).
    Name,
}

impl FolderOrder {
    fn column(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Name => "name_key",
        }
    }
}

impl Sorted<FolderOrder> for Folder {
    fn position(&self, order: FolderOrder) -> Position {
        let key = match order {
            FolderOrder::Created => SortKey::Number(self.created_at),
            FolderOrder::Name => SortKey::Text(name_key(&self.name)),
        };
        Position { key, id: self.id }
    }
}

/// A page of an ordered list of folders.
#[derive(Clone, Debug)]
pub struct FolderQuery {
    /// Only the folders in this one, `Some(None)` being the top.
    pub parent: Option<Option<Uuid>>,
    /// The name contains this, in any case.
    pub text: Option<String>,
    pub order: FolderOrder,
    pub direction: Direction,
    /// Rows at most.
    pub limit: u32,
    /// `None` for the first page.
    pub after: Option<Position>,
}

impl FolderQuery {
    /// The folders in a folder, newest first.
    pub fn newest(parent: Option<Option<Uuid>>, page: Page) -> Self {
        Self {
            parent,
            text: None,
            order: FolderOrder::Created,
            direction: Direction::Descending,
            limit: page.limit,
            after: page.after.map(|cursor| Position {
                key: SortKey::Number(cursor.created_at),
                id: cursor.id,
            }),
        }
    }

    /// Returns the index that has the rows in this order.
    fn index(&self) -> &'static str {
        match (self.parent, self.order) {
            (Some(_), FolderOrder::Created) => "folders_by_place",
            (Some(_), FolderOrder::Name) => "folders_by_place_name",
            (None, FolderOrder::Created) => "folders_by_account",
            (None, FolderOrder::Name) => "folders_by_account_name",
        }
    }
}

/// Lists the folders of an account that match.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    wanted: &FolderQuery,
) -> Result<Vec<Folder>, Error> {
    let (key, direction) = (wanted.order.column(), wanted.direction.sql());
    let mut statement = Builder::new("SELECT * FROM folders INDEXED BY ");
    statement
        .push(wanted.index())
        .push(" WHERE account_id = ")
        .push_bind(account_id);
    // PostgreSQL finds the folder in an index only by `=` and `IS NULL`.
    match wanted.parent {
        None => &mut statement,
        Some(None) => statement.push(" AND parent_id IS NULL"),
        Some(Some(parent)) => statement.push(" AND parent_id = ").push_bind(parent),
    };
    if let Some(text) = &wanted.text {
        statement.push(" AND instr(search_name, ");
        statement.push_bind(text.to_lowercase()).push(") > 0");
    }
    if let Some(after) = &wanted.after {
        let comparison = wanted.direction.comparison();
        statement.push(format!(" AND ({key}, id) {comparison} ("));
        match &after.key {
            SortKey::Number(number) => statement.push_bind(*number),
            SortKey::Text(text) => statement.push_bind(text.clone()),
        };
        statement.push(", ").push_bind(after.id).push(")");
    }
    statement.push(" ORDER BY ");
    if wanted.parent == Some(None) {
        // PostgreSQL finds the order in the index only when it names the folder, which is NULL here.
        statement.push(format_args!("parent_id {direction}, "));
    }
    statement.push(format_args!("{key} {direction}, id {direction} LIMIT "));
    statement.push_bind(wanted.limit);
    Ok(statement.build_query_as().fetch_all(db).await?)
}

/// Folder of a path.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct PathFolder {
    pub id: Uuid,
    pub name: String,
}

/// Returns the path to a folder and the folder itself, outermost first; empty for a folder that does not exist.
pub async fn path(
    db: &mut impl Connection,
    account_id: Uuid,
    folder_id: Uuid,
) -> Result<Vec<PathFolder>, Error> {
    Ok(query_as(
        "WITH RECURSIVE above (id, depth) AS (
             SELECT $1, 0 UNION ALL
             SELECT f.parent_id, depth + 1 FROM folders f JOIN above a ON f.id = a.id
             WHERE f.parent_id IS NOT NULL AND depth < $3)
         SELECT f.id, f.name FROM above a JOIN folders f ON f.id = a.id WHERE f.account_id = $2 ORDER BY a.depth DESC",
    )
    .bind(folder_id)
    .bind(account_id)
    .bind(MAX_DEPTH)
    .fetch_all(db)
    .await?)
}

/// Contents and visibility of a folder, as a list shows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FolderMarks {
    /// True when there are folders in it.
    pub has_children: bool,
    /// True when it has a link that has not expired.
    pub is_shared: bool,
}

/// Returns the marks of folders by their ids.
pub async fn marks(
    db: &mut impl Connection,
    folder_ids: &[Uuid],
    now_ms: i64,
) -> Result<HashMap<Uuid, FolderMarks>, Error> {
    let found: Vec<(Uuid, bool, bool)> = query_as(
        "SELECT f.id, EXISTS (SELECT 1 FROM folders c WHERE c.parent_id = f.id),
             EXISTS (SELECT 1 FROM shares s
                 WHERE s.folder_id = f.id AND (s.expires_at IS NULL OR s.expires_at > $2) LIMIT 1 OFFSET 0)
         FROM json_each($1) j CROSS JOIN folders f ON f.id = unhex(j.value)",
    )
    .bind(rows::ids(folder_ids)?)
    .bind(now_ms)
    .fetch_all(db)
    .await?;
    let marks = found.into_iter().map(|(id, has_children, is_shared)| {
        let marks = FolderMarks {
            has_children,
            is_shared,
        };
        (id, marks)
    });
    Ok(marks.collect())
}
