//! Lists and counts of files: filtered, ordered by time, name or size, a page at a time.
//!
//! Every order is read from an index of its own, of an account or of a folder, so that a page costs what it shows. Types are
//! compared inside of these indexes, and names where the order is by name or the list is a whole account's by time. Two lists are sorted, of which only ids and keys go through the sorter: that of a
//! folder with everything below it, whose files lie in many places of the index, and that of a tag, which is read from the table of
//! tags (`file_tags`, kept by triggers) and costs as much as there are files with the tag.

use std::borrow::Cow;

use uuid::Uuid;

use super::{
    file_filter::{Filter, Place},
    folder_totals,
};
use crate::{
    Connection, Error, Page,
    files::File,
    name_key::name_key,
    order::{Direction, Position, SortKey, Sorted},
    statement::{Builder, query_scalar},
    storage,
};

/// Files with a tag up to which they are counted to find the rarest one.
const MOST_COUNTED: u32 = 10_000;

/// Order of a list of files; files that are equal in it follow their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    #[default]
    Created,
    /// By name as people read it (`name_key.rs`).
    Name,
    Size,
}

impl Order {
    fn column(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Name => "name_key",
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
            Order::Name => SortKey::Text(name_key(&self.filename)),
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
    let filter = rarest_tag_first(db, account_id, filter).await?;
    let mut statement = statement(account_id, &filter, slice);
    Ok(statement.build_query_as().fetch_all(db).await?)
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

/// Puts the tag that the fewest files have first: the list is read by that one.
async fn rarest_tag_first<'f>(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &'f Filter,
) -> Result<Cow<'f, Filter>, Error> {
    if filter.tags.len() < 2 {
        return Ok(Cow::Borrowed(filter));
    }
    let mut counted = Vec::with_capacity(filter.tags.len());
    for tag in &filter.tags {
        let files: i64 = query_scalar(
            "SELECT count(*) FROM (SELECT 1 FROM file_tags WHERE account_id = $1 AND tag = $2 LIMIT $3) some_rows",
        )
        .bind(account_id)
        .bind(tag)
        .bind(MOST_COUNTED)
        .fetch_one(db)
        .await?;
        counted.push((files, tag.clone()));
    }
    counted.sort_by_key(|(files, _)| *files);
    let tags = counted.into_iter().map(|(_, tag)| tag).collect();
    Ok(Cow::Owned(Filter {
        tags,
        ..filter.clone()
    }))
}

fn statement(account_id: Uuid, filter: &Filter, slice: &Slice) -> Builder {
    let (key, direction) = (slice.order.column(), slice.direction.sql());
    let (alias, id) = match filter.tags.is_empty() {
        true => ("f", "f.id"),
        false => ("t", "t.file_id"),
    };
    let is_sorted = filter.tree().is_some() || !filter.tags.is_empty();
    let mut statement = Builder::new("");
    push_tree(&mut statement, filter);
    statement.push(match is_sorted {
        // Only ids and keys go through the sorter.
        true => format!("SELECT * FROM files WHERE id IN (SELECT {id} "),
        false => "SELECT f.* ".to_owned(),
    });
    push_source(
        &mut statement,
        account_id,
        filter,
        index(filter, slice.order),
    );
    if let Some(after) = &slice.after {
        let comparison = slice.direction.comparison();
        statement.push(format!(" AND ({alias}.{key}, {id}) {comparison} ("));
        match &after.key {
            SortKey::Number(number) => statement.push_bind(*number),
            SortKey::Text(text) => statement.push_bind(text.clone()),
        };
        statement.push(", ").push_bind(after.id).push(")");
    }
    statement.push(" ORDER BY ");
    if !is_sorted && filter.folder() == Some(None) {
        // PostgreSQL finds the order in the index only when it names the folder, which is NULL here.
        statement.push(format_args!("{alias}.folder_id {direction}, "));
    }
    statement.push(format_args!(
        "{alias}.{key} {direction}, {id} {direction} LIMIT "
    ));
    statement.push_bind(slice.limit);
    statement.push(" OFFSET ").push_bind(slice.skip);
    if is_sorted {
        statement.push(format!(") ORDER BY {key} {direction}, id {direction}"));
    }
    statement
}

/// Adds the tables that the files are read from and what they have to match.
fn push_source(statement: &mut Builder, account_id: Uuid, filter: &Filter, index: &'static str) {
    match filter.tags.split_first() {
        Some((tag, others)) => push_tagged(statement, account_id, filter, tag, others),
        None => push_files(statement, account_id, filter, index),
    }
}

/// Files `f` of a place, from an index.
fn push_files(statement: &mut Builder, account_id: Uuid, filter: &Filter, index: &'static str) {
    match filter.tree() {
        None => statement.push("FROM files f INDEXED BY ").push(index),
        // CROSS JOIN keeps SQLite from walking all files of the account.
        Some(_) => statement
            .push("FROM below b CROSS JOIN files f INDEXED BY ")
            .push(index)
            .push(" ON f.folder_id = b.id"),
    };
    statement
        .push(" WHERE f.account_id = ")
        .push_bind(account_id);
    push_folder(statement, filter, "f");
    filter.push_conditions(statement, "f");
}

/// Rows `t` of a tag, whose files have the other tags as well.
fn push_tagged(
    statement: &mut Builder,
    account_id: Uuid,
    filter: &Filter,
    tag: &str,
    others: &[String],
) {
    statement.push("FROM file_tags t");
    if filter.reads_rows() {
        statement.push(" CROSS JOIN files f ON f.id = t.file_id");
    }
    statement
        .push(" WHERE t.account_id = ")
        .push_bind(account_id);
    statement.push(" AND t.tag = ").push_bind(tag.to_owned());
    push_folder(statement, filter, "t");
    if filter.tree().is_some() {
        statement.push(" AND t.folder_id IN (SELECT id FROM below)");
    }
    for other in others {
        statement.push(
            " AND EXISTS (SELECT 1 FROM file_tags o WHERE o.account_id = t.account_id AND o.tag = ",
        );
        statement.push_bind(other.clone());
        statement.push(" AND o.created_at = t.created_at AND o.file_id = t.file_id)");
    }
    filter.push_conditions(statement, "t");
}

/// Adds the folder that the rows are in, which PostgreSQL finds in an index only by `=` and `IS NULL`.
fn push_folder(statement: &mut Builder, filter: &Filter, alias: &str) {
    match filter.folder() {
        None => {}
        Some(None) => {
            statement.push(format_args!(" AND {alias}.folder_id IS NULL"));
        }
        Some(Some(folder)) => {
            statement.push(format_args!(" AND {alias}.folder_id = "));
            statement.push_bind(folder);
        }
    }
}

/// Returns the index that has the rows in this order. Names are compared inside of an index; SQLite would choose a shorter one
/// and read every row.
fn index(filter: &Filter, order: Order) -> &'static str {
    match (filter.place, order) {
        (Place::In(_) | Place::Below(_), order) => order.index_of_folder(),
        (Place::Anywhere, Order::Created) if filter.text.is_some() => "files_by_name",
        (Place::Anywhere, order) => order.index_of_account(),
    }
}

/// Begins a statement with the ids of the filter's folder and of all folders below it.
fn push_tree(statement: &mut Builder, filter: &Filter) {
    let Some(root) = filter.tree() else { return };
    statement.push("WITH RECURSIVE below (id) AS (SELECT ");
    statement.push_bind(root);
    statement.push(" UNION SELECT d.id FROM below b JOIN folders d ON d.parent_id = b.id) ");
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
    let filter = rarest_tag_first(db, account_id, filter).await?;
    let mut statement = count_statement(account_id, &filter);
    let count: i64 = statement.build_query_scalar().fetch_one(db).await?;
    Ok(count.unsigned_abs())
}

fn count_statement(account_id: Uuid, filter: &Filter) -> Builder {
    let mut statement = Builder::new("");
    push_tree(&mut statement, filter);
    statement.push("SELECT count(*) ");
    push_source(&mut statement, account_id, filter, index_of_count(filter));
    statement
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
    match (filter.place, filter.text.is_some()) {
        (Place::In(_) | Place::Below(_), true) => Order::Name.index_of_folder(),
        (Place::In(_) | Place::Below(_), false) => Order::Created.index_of_folder(),
        (Place::Anywhere, true) => "files_by_name",
        (Place::Anywhere, false) => Order::Created.index_of_account(),
    }
}

#[cfg(test)]
mod large_tests;
#[cfg(test)]
mod tests;
