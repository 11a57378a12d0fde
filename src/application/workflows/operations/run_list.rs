//! List of runs over all workflows: `workflowId`, `status`, `trigger`, `since`, `until`, `q`, `sort`, `order`; counts by status.

use serde::Serialize;
use sluice_store::{
    Direction, Sorted,
    workflows::{
        RunStatus, Trigger, get,
        run_list::{self, RunFilter, RunOrder, RunSlice, StatusCounts},
    },
};
use url::form_urlencoded;
use utoipa::ToSchema;

use super::runs::DEFAULT_LIMIT;
use crate::application::{
    error::ApiError,
    field,
    object::camel_case,
    order::{SortedBy, direction, read_position, write_position},
    page::row_count,
    workflows::{
        operations::RequestContext,
        run_record::{self, RunRecord},
    },
};

/// Longest `q`, in characters.
const MAX_TEXT: usize = 120;

/// A page of runs of all workflows.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunPage {
    /// With their outputs and their logs but for facts.
    runs: Vec<RunRecord>,
    counts: StatusTotals,
    next_cursor: Option<String>,
}

/// Numbers of runs that fit the query, whatever their status.
#[derive(Serialize, ToSchema)]
pub struct StatusTotals {
    queued: i64,
    processing: i64,
    completed: i64,
    failed: i64,
    cancelled: i64,
    /// All of them together.
    total: i64,
}

impl From<StatusCounts> for StatusTotals {
    fn from(counts: StatusCounts) -> Self {
        Self {
            queued: counts.queued,
            processing: counts.processing,
            completed: counts.completed,
            failed: counts.failed,
            cancelled: counts.cancelled,
            total: counts.queued
                + counts.processing
                + counts.completed
                + counts.failed
                + counts.cancelled,
        }
    }
}

/// Wanted runs.
#[derive(Debug)]
pub(crate) struct RunQuery {
    filter: RunFilter,
    slice: RunSlice,
}

impl RunQuery {
    /// Reads the query of a list; an error names the parameter and what is allowed.
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let (mut filter, mut order) = (RunFilter::default(), RunOrder::default());
        let (mut cursor, mut direction_given, mut limit) = (None, None, DEFAULT_LIMIT);
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            if value.is_empty() {
                continue;
            }
            match &*camel_case(&name) {
                "workflowId" => {
                    let id = field::id("workflowId", "the id of a workflow", &value)?;
                    filter.workflow_id = Some(id);
                }
                "status" => {
                    let words: Vec<&str> = RunStatus::ALL.iter().map(|it| it.as_str()).collect();
                    filter.status =
                        field::choice("status", Some(&value), &words, RunStatus::parse)?;
                }
                "trigger" => {
                    let words: Vec<&str> = Trigger::ALL.iter().map(|it| it.as_str()).collect();
                    filter.trigger =
                        field::choice("trigger", Some(&value), &words, Trigger::parse)?;
                }
                "since" => filter.since = Some(field::time("since", &value)?),
                "until" => filter.until = Some(field::time("until", &value)?),
                "q" => filter.text = field::words("q", Some(value.into_owned()), MAX_TEXT)?,
                "sort" => {
                    let words = ["created", "duration"];
                    order = field::choice("sort", Some(&value), &words, sort)?.unwrap_or_default();
                }
                "order" => direction_given = Some(direction(&value)?),
                "limit" => limit = row_count(&value)?,
                "cursor" => cursor = Some(value.into_owned()),
                _ => {}
            }
        }
        let after = cursor.map(|text| read_position(&text, sorted_by(order)));
        Ok(Self {
            filter,
            slice: RunSlice {
                order,
                direction: direction_given.unwrap_or(Direction::Descending),
                limit,
                after: after.transpose()?,
            },
        })
    }
}

fn sort(word: &str) -> Option<RunOrder> {
    match word {
        "created" => Some(RunOrder::Created),
        "duration" => Some(RunOrder::Duration),
        _ => None,
    }
}

fn sorted_by(order: RunOrder) -> SortedBy {
    match order {
        RunOrder::Created => SortedBy::Time,
        RunOrder::Duration => SortedBy::Duration,
    }
}

/// Lists runs of all workflows of the account. 404 for a workflow that it does not have.
pub(crate) async fn all_runs(
    context: &RequestContext,
    query: RunQuery,
) -> Result<RunPage, ApiError> {
    let RunQuery { filter, mut slice } = query;
    let limit = slice.limit as usize;
    // One row more than the page: it shows that another page follows.
    slice.limit += 1;
    let mut db = context.handles.store.read().await?;
    if let Some(id) = filter.workflow_id {
        get(&mut db, context.account_id, id).await?;
    }
    let mut runs = run_list::list(&mut db, context.account_id, &filter, &slice).await?;
    let counts = run_list::count(&mut db, context.account_id, &filter).await?;
    drop(db);
    let has_more = runs.len() > limit;
    runs.truncate(limit);
    let last = runs.last().filter(|_| has_more);
    let next_cursor =
        last.map(|run| write_position(run.position(slice.order), sorted_by(slice.order)));
    Ok(RunPage {
        runs: run_record::records(&context.handles, &context.reached, runs).await?,
        counts: counts.into(),
        next_cursor,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_wrong_values_are_named() {
        let read = RunQuery::parse("workflow_id=0196f2ad-0000-7000-8000-000000000000&status=failed&trigger=folder&since=1&until=2&q=%20beach%20&sort=duration&order=asc&limit=7&cursor=").unwrap();
        assert_eq!(read.filter.status, Some(RunStatus::Failed));
        assert_eq!(read.filter.trigger, Some(Trigger::Folder));
        assert_eq!(
            (read.filter.since, read.filter.until),
            (Some(1_000), Some(2_000))
        );
        assert_eq!(read.filter.text.as_deref(), Some("beach"));
        assert_eq!(
            (read.slice.order, read.slice.limit),
            (RunOrder::Duration, 7)
        );
        assert_eq!(read.slice.direction, Direction::Ascending);
        let usual = RunQuery::parse("status=&unknown=1").unwrap();
        assert_eq!(usual.filter, RunFilter::default());
        assert_eq!(usual.slice.limit, DEFAULT_LIMIT);
        for (query, name) in [
            ("workflowId=x", "workflowId"),
            ("status=done", "status"),
            ("trigger=cron", "trigger"),
            ("since=yesterday", "since"),
            ("sort=name", "sort"),
            ("order=up", "order"),
            ("limit=101", "limit"),
            (
                "sort=duration&cursor=5-0196f2ad000070008000000000000000",
                "cursor",
            ),
        ] {
            let error = RunQuery::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
