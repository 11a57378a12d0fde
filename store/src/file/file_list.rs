//! Lists and counts of files: filtered, ordered by time, name or size, a page at a time.
//!
//! Every order is read from an index of its own, of an account or of a folder, so that a page costs what it shows. Only a list of a
//! folder with everything below it is sorted: its files lie in many places of that index.

use sqlx::{QueryBuilder, Sqlite};
use uuid::Uuid;

use super::{file_filter::Filter, folder_totals};
use crate::{
    Connection, Error, Page,
    files::File,
    order::{Direction, Position, SortKey, Sorted},
    storage,
};

/// Order of a list of files; files that are equal in it follow their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Created,
    /// By name, without regard to case.
    Name,
    Size,
}

impl Order {
    fn column(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Name => "search_name",
            Self::Size => "size_bytes",
        }
    }

    fn index_of_account(self) -> &'static str {
        match self {
            Self::Created => "files_by_account",
            Self::Name => "files_by_account_name",
            Self::Size => "files_by_account_size",
        }
    }

    fn index_of_folder(self) -> &'static str {
        match self {
            Self::Created => "files_by_folder",
            Self::Name => "files_by_folder_name",
            Self::Size => "files_by_folder_size",
        }
    }
}

impl Sorted<Order> for File {
    fn position(&self, order: Order) -> Position {
        let key = match order {
            Order::Created => SortKey::Number(self.created_at),
            Order::Name => SortKey::Text(self.filename.to_lowercase()),
            Order::Size => SortKey::Number(self.size_bytes),
        };
        Position { key, id: self.id }
    }
}

/// A page of an ordered list.
#[derive(Clone, Debug)]
pub struct Slice {
    pub order: Order,
    pub direction: Direction,
    /// Rows at most.
    pub limit: u32,
    /// `None` for the first page.
    pub after: Option<Position>,
    /// Rows that are left out of the page's beginning.
    pub skip: u32,
}

impl From<Page> for Slice {
    /// Newest first.
    fn from(page: Page) -> Self {
        Self {
            order: Order::Created,
            direction: Direction::Descending,
            limit: page.limit,
            after: page.after.map(|cursor| Position {
                key: SortKey::Number(cursor.created_at),
                id: cursor.id,
            }),
            skip: 0,
        }
    }
}

/// Lists the files of an account that match.
///
/// Rows that are skipped cost a step of the index each. So a slice behind the middle of a list whose length is known is read
/// from its end.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &Filter,
    slice: &Slice,
) -> Result<Vec<File>, Error> {
    if slice.after.is_none() && slice.skip > 0 && is_summed(filter) {
        let total = count(db, account_id, filter).await?;
        let Some(mirrored) = Mirrored::of(slice, total) else {
            return read(db, account_id, filter, slice).await;
        };
        let mut rows = read(db, account_id, filter, &mirrored.0).await?;
        rows.reverse();
        return Ok(rows);
    }
    read(db, account_id, filter, slice).await
}

async fn read(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &Filter,
    slice: &Slice,
) -> Result<Vec<File>, Error> {
    let mut statement = statement(account_id, filter, slice);
    Ok(statement.build_query_as().fetch_all(db.sqlite()).await?)
}

/// The same rows, read in the opposite direction.
struct Mirrored(Slice);

impl Mirrored {
    /// `None` for a slice that begins before the middle.
    fn of(slice: &Slice, total: u64) -> Option<Self> {
        let skip = u64::from(slice.skip);
        if skip <= total / 2 {
            return None;
        }
        let shown = total.saturating_sub(skip).min(u64::from(slice.limit));
        let behind = total.saturating_sub(skip + shown);
        Some(Self(Slice {
            direction: slice.direction.opposite(),
            limit: u32::try_from(shown).ok()?,
            skip: u32::try_from(behind).ok()?,
            ..slice.clone()
        }))
    }
}

fn statement(account_id: Uuid, filter: &Filter, slice: &Slice) -> QueryBuilder<Sqlite> {
    let (key, direction) = (slice.order.column(), slice.direction.sql());
    let mut statement = QueryBuilder::new("");
    if let Some(root) = filter.tree() {
        push_below(&mut statement, root);
        // Only ids and keys go through the sorter.
        statement.push("SELECT * FROM files WHERE id IN (SELECT f.id ");
        push_tree(&mut statement, account_id, slice.order.index_of_folder());
    } else {
        statement
            .push("SELECT f.* FROM files f INDEXED BY ")
            .push(index(filter, slice.order))
            .push(" WHERE f.account_id = ")
            .push_bind(account_id);
        if let Some(folder) = filter.folder() {
            statement.push(" AND f.folder_id IS ").push_bind(folder);
        }
    }
    filter.push_conditions(&mut statement);
    if let Some(after) = &slice.after {
        let comparison = slice.direction.comparison();
        statement.push(format!(" AND (f.{key}, f.id) {comparison} ("));
        match &after.key {
            SortKey::Number(number) => statement.push_bind(*number),
            SortKey::Text(text) => statement.push_bind(text.clone()),
        };
        statement.push(", ").push_bind(after.id).push(")");
    }
    statement.push(format!(
        " ORDER BY f.{key} {direction}, f.id {direction} LIMIT "
    ));
    statement.push_bind(slice.limit);
    statement.push(" OFFSET ").push_bind(slice.skip);
    if filter.tree().is_some() {
        statement.push(format!(") ORDER BY {key} {direction}, id {direction}"));
    }
    statement
}

/// Returns the index that has the rows in this order. Names are compared inside of an index; SQLite would choose a shorter one
/// and read every row.
fn index(filter: &Filter, order: Order) -> &'static str {
    match (filter.folder(), order) {
        (Some(_), order) => order.index_of_folder(),
        (None, Order::Created) if filter.text.is_some() => "files_by_name",
        (None, order) => order.index_of_account(),
    }
}

/// Begins a statement with the ids of a folder and of all folders below it.
fn push_below(statement: &mut QueryBuilder<Sqlite>, root: Uuid) {
    statement.push("WITH RECURSIVE below (id) AS (SELECT ");
    statement.push_bind(root);
    statement.push(" UNION SELECT d.id FROM below b JOIN folders d ON d.parent_id = b.id) ");
}

/// CROSS JOIN keeps SQLite from walking all files of the account.
fn push_tree(statement: &mut QueryBuilder<Sqlite>, account_id: Uuid, index: &'static str) {
    statement
        .push("FROM below b CROSS JOIN files f INDEXED BY ")
        .push(index)
        .push(" ON f.folder_id = b.id WHERE f.account_id = ")
        .push_bind(account_id);
}

/// Counts the account's files that match.
pub async fn count(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &Filter,
) -> Result<u64, Error> {
    if is_summed(filter) {
        return summed(db, account_id, filter).await;
    }
    let mut statement = QueryBuilder::new("");
    if let Some(root) = filter.tree() {
        push_below(&mut statement, root);
        statement.push("SELECT count(*) ");
        push_tree(&mut statement, account_id, index_of_count(filter));
    } else {
        statement
            .push("SELECT count(*) FROM files f INDEXED BY ")
            .push(index_of_count(filter))
            .push(" WHERE f.account_id = ")
            .push_bind(account_id);
        if let Some(folder) = filter.folder() {
            statement.push(" AND f.folder_id IS ").push_bind(folder);
        }
    }
    filter.push_conditions(&mut statement);
    let count: i64 = statement
        .build_query_scalar()
        .fetch_one(db.sqlite())
        .await?;
    Ok(count.unsigned_abs())
}

/// Returns whether sums that are kept have the length of the list.
fn is_summed(filter: &Filter) -> bool {
    !filter.has_conditions() && filter.tree().is_none()
}

async fn summed(db: &mut impl Connection, account_id: Uuid, filter: &Filter) -> Result<u64, Error> {
    match filter.folder() {
        None => Ok(storage::totals(db, account_id).await?.files),
        Some(folder) => {
            let totals = folder_totals::within(db, account_id, folder).await?;
            Ok(totals.files.unsigned_abs())
        }
    }
}

/// Returns the index in which most of the conditions can be decided.
fn index_of_count(filter: &Filter) -> &'static str {
    let is_of_folder = filter.folder().is_some() || filter.tree().is_some();
    match (is_of_folder, filter.text.is_some()) {
        (true, true) => Order::Name.index_of_folder(),
        (true, false) => Order::Created.index_of_folder(),
        (false, true) => "files_by_name",
        (false, false) => Order::Created.index_of_account(),
    }
}

#[cfg(test)]
mod tests;
