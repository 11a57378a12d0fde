//! `GET /api/folders`: query (`parentId`, `q`, `sort`, `totals`, `limit`, `cursor`) and answer.

use serde::Serialize;
use sluice_store::{
    Direction, Sorted as _,
    folder_list::{self, FolderOrder, FolderQuery},
};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use super::record::{FolderRecord, records_of};
use crate::application::{
    context::Platform,
    error::ApiError,
    field,
    files::{list_query::searched, request::id_or_top},
    object::camel_case,
    order::{self, SortedBy, read_position, write_position},
    page::{WHOLE_LIST, row_count},
};

#[derive(Serialize, ToSchema)]
pub struct FolderList {
    folders: Vec<FolderRecord>,
    #[serde(rename = "nextCursor")]
    next_cursor: Option<String>,
}

/// Query of a list of folders.
#[derive(Debug)]
struct ListedFolders {
    wanted: FolderQuery,
    with_totals: bool,
}

/// Lists the folders of the account that match a query.
pub(crate) async fn listed(
    platform: &Platform,
    account_id: Uuid,
    query: &str,
) -> Result<FolderList, ApiError> {
    let ListedFolders {
        mut wanted,
        with_totals,
    } = ListedFolders::parse(query)?;
    let limit = wanted.limit as usize;
    wanted.limit += 1;
    let mut db = platform.store.read().await?;
    let mut found = folder_list::list(&mut db, account_id, &wanted).await?;
    let has_more = found.len() > limit;
    found.truncate(limit);
    let last = found.last().filter(|_| has_more);
    let next_cursor = last.map(|last| {
        let position = last.position(wanted.order);
        write_position(position, sorted_by(wanted.order))
    });
    Ok(FolderList {
        folders: records_of(&mut db, account_id, found, with_totals).await?,
        next_cursor,
    })
}

impl ListedFolders {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let (mut parent, mut text, mut with_totals) = (None, None, false);
        let (mut folder_order, mut direction) = (FolderOrder::Created, None);
        let (mut limit, mut cursor) = (WHOLE_LIST, None);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match camel_case(&name).as_str() {
                "parentId" => parent = Some(id_or_top("parentId", &value)?),
                "totals" => with_totals = field::flag("totals", &value)?,
                "limit" => limit = row_count(&value)?,
                _ if value.is_empty() => {}
                "q" => text = Some(searched(&value)?),
                "sort" => folder_order = order_of(&value)?,
                "order" => direction = Some(order::direction(&value)?),
                "cursor" => cursor = Some(value.into_owned()),
                _ => {}
            }
        }
        let after = match cursor {
            Some(text) => Some(read_position(&text, sorted_by(folder_order))?),
            None => None,
        };
        let usual = match folder_order {
            FolderOrder::Created => Direction::Descending,
            FolderOrder::Name => Direction::Ascending,
        };
        Ok(Self {
            wanted: FolderQuery {
                parent,
                text,
                order: folder_order,
                direction: direction.unwrap_or(usual),
                limit,
                after,
            },
            with_totals,
        })
    }
}

fn sorted_by(order: FolderOrder) -> SortedBy {
    match order {
        FolderOrder::Created => SortedBy::Time,
        FolderOrder::Name => SortedBy::Name,
    }
}

fn order_of(text: &str) -> Result<FolderOrder, ApiError> {
    match text {
        "created" => Ok(FolderOrder::Created),
        "name" => Ok(FolderOrder::Name),
        other => Err(field::wrong("sort", "created or name", other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read() {
        let id = Uuid::now_v7();
        let text = format!("parent_id={id}&q=A%CC%88&sort=name&totals=true&limit=7");
        let ListedFolders {
            wanted,
            with_totals,
        } = ListedFolders::parse(&text).unwrap();
        assert_eq!(wanted.parent, Some(Some(id)));
        assert_eq!(wanted.text.as_deref(), Some("Ä"));
        assert_eq!(
            (wanted.order, wanted.direction, wanted.limit),
            (FolderOrder::Name, Direction::Ascending, 7)
        );
        assert!(with_totals);
        let usual = ListedFolders::parse("parentId=null").unwrap().wanted;
        assert_eq!(
            (usual.parent, usual.order, usual.direction, usual.limit),
            (
                Some(None),
                FolderOrder::Created,
                Direction::Descending,
                WHOLE_LIST
            )
        );
        for (query, named) in [
            ("parentId=x", "parentId must be"),
            ("sort=size", "sort must be created or name"),
            ("order=x", "order must be asc or desc"),
            ("totals=1", "totals must be true or false"),
            ("limit=0", "limit must be 1 to 100"),
            ("sort=name&cursor=x", "cursor must be"),
        ] {
            let error = ListedFolders::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
