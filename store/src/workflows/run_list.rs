//! Runs of all workflows of an account: filters, order by time or duration, counts by status. A page is read along one index.

use sqlx::FromRow;
use uuid::Uuid;

use super::{Run, RunStatus, Trigger};
use crate::{
    Connection, Error, like,
    order::{Direction, Position, SortKey, Sorted},
    statement::Builder,
};

/// Order of a list of runs; runs that are equal in it follow by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunOrder {
    /// By the time at which they were made.
    #[default]
    Created,
    /// By the time between begin and end; runs that have not begun or not ended count as the shortest.
    Duration,
}

impl RunOrder {
    fn expression(self) -> &'static str {
        match self {
            Self::Created => "created_at",
            Self::Duration => "coalesce(completed_at - started_at, -1)",
        }
    }
}

impl Sorted<RunOrder> for Run {
    fn position(&self, order: RunOrder) -> Position {
        let key = match order {
            RunOrder::Created => self.created_at,
            RunOrder::Duration => self
                .completed_at
                .zip(self.started_at)
                .map_or(-1, |(ended, began)| ended - began),
        };
        Position {
            key: SortKey::Number(key),
            id: self.id,
        }
    }
}

/// Runs to be listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub workflow_id: Option<Uuid>,
    pub status: Option<RunStatus>,
    pub trigger: Option<Trigger>,
    /// Made at this time or later.
    pub since: Option<i64>,
    /// Made before this time.
    pub until: Option<i64>,
    /// Part of the input's name or of the workflow's present name, without case of ASCII letters.
    pub text: Option<String>,
}

/// A page of an ordered list.
#[derive(Clone, Debug)]
pub struct RunSlice {
    pub order: RunOrder,
    pub direction: Direction,
    /// Rows at most.
    pub limit: u32,
    /// `None` for the first page.
    pub after: Option<Position>,
}

/// Numbers of runs by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromRow)]
pub struct StatusCounts {
    pub queued: i64,
    pub processing: i64,
    pub completed: i64,
    pub failed: i64,
    pub cancelled: i64,
}

/// Lists the runs of an account that match.
pub async fn list(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &RunFilter,
    slice: &RunSlice,
) -> Result<Vec<Run>, Error> {
    let mut statement = statement(account_id, filter, slice);
    Ok(statement.build_query_as().fetch_all(db).await?)
}

/// Counts the runs of an account that match, whatever their status.
pub async fn count(
    db: &mut impl Connection,
    account_id: Uuid,
    filter: &RunFilter,
) -> Result<StatusCounts, Error> {
    let mut statement = count_statement(account_id, filter);
    Ok(statement.build_query_as().fetch_one(db).await?)
}

fn statement(account_id: Uuid, filter: &RunFilter, slice: &RunSlice) -> Builder {
    let mut statement = Builder::new("SELECT * FROM workflow_runs INDEXED BY ");
    statement.push(index(filter, slice.order));
    push_conditions(&mut statement, account_id, filter);
    if filter.workflow_id.is_some() && slice.order == RunOrder::Duration {
        // The index by duration begins with the account.
        statement.push(" AND account_id = ").push_bind(account_id);
    }
    if let Some(status) = filter.status {
        statement.push(" AND status = ").push_bind(status);
    }
    let (key, direction) = (slice.order.expression(), slice.direction.sql());
    if let Some(after) = &slice.after {
        push_after(&mut statement, key, slice.direction, after);
    }
    statement.push(format!(
        " ORDER BY {key} {direction}, id {direction} LIMIT "
    ));
    statement.push_bind(slice.limit);
    statement
}

fn count_statement(account_id: Uuid, filter: &RunFilter) -> Builder {
    let mut statement = Builder::new(
        "SELECT count(*) FILTER (WHERE status = 'queued') AS queued, count(*) FILTER (WHERE status = 'processing') AS processing,
             count(*) FILTER (WHERE status = 'completed') AS completed, count(*) FILTER (WHERE status = 'failed') AS failed,
             count(*) FILTER (WHERE status = 'cancelled') AS cancelled
         FROM workflow_runs INDEXED BY ",
    );
    let any_status = RunFilter {
        status: None,
        ..filter.clone()
    };
    statement.push(index(&any_status, RunOrder::Created));
    push_conditions(&mut statement, account_id, filter);
    statement
}

/// Returns the index that has the rows in this order, and in it all that is filtered by. SQLite would choose a shorter one and
/// read every row.
fn index(filter: &RunFilter, order: RunOrder) -> &'static str {
    let needs_row = filter.text.is_some() || filter.trigger.is_some();
    match order {
        RunOrder::Duration => "workflow_runs_by_duration",
        RunOrder::Created if filter.workflow_id.is_some() => "workflow_runs_by_workflow",
        RunOrder::Created if filter.status.is_some() && !needs_row => "workflow_runs_by_status",
        RunOrder::Created => "workflow_runs_by_account",
    }
}

/// Adds all conditions but the status. A workflow's own index begins with its id, which belongs to the account or to nothing.
fn push_conditions(statement: &mut Builder, account_id: Uuid, filter: &RunFilter) {
    match filter.workflow_id {
        Some(workflow_id) => {
            statement
                .push(" WHERE workflow_id = (SELECT id FROM workflows WHERE id = ")
                .push_bind(workflow_id)
                .push(" AND account_id = ")
                .push_bind(account_id)
                .push(" AND deleted_at IS NULL)");
        }
        None => {
            statement
                .push(" WHERE account_id = ")
                .push_bind(account_id)
                .push(" AND workflow_id NOT IN (SELECT id FROM workflows WHERE account_id = ")
                .push_bind(account_id)
                .push(" AND deleted_at IS NOT NULL)");
        }
    }
    if let Some(trigger) = filter.trigger {
        statement.push(" AND \"trigger\" = ").push_bind(trigger);
    }
    if let Some(since) = filter.since {
        statement.push(" AND created_at >= ").push_bind(since);
    }
    if let Some(until) = filter.until {
        statement.push(" AND created_at < ").push_bind(until);
    }
    if let Some(text) = &filter.text {
        statement
            .push(" AND (input_filename LIKE ")
            .push_bind(like::anywhere(text))
            .push(" ESCAPE '\\' OR workflow_id IN (SELECT id FROM workflows WHERE account_id = ")
            .push_bind(account_id)
            .push(" AND deleted_at IS NULL AND name LIKE ")
            .push_bind(like::anywhere(text))
            .push(" ESCAPE '\\'))");
    }
}

/// Begins after a row. The key alone is compared too: SQLite seeks along an index over an expression by that only.
fn push_after(statement: &mut Builder, key: &'static str, direction: Direction, after: &Position) {
    let SortKey::Number(number) = after.key else {
        return;
    };
    let comparison = direction.comparison();
    statement
        .push(format!(" AND {key} {comparison}= "))
        .push_bind(number)
        .push(format!(" AND ({key}, id) {comparison} ("))
        .push_bind(number)
        .push(", ")
        .push_bind(after.id)
        .push(")");
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Statements of every index, for the test of query plans.
    pub(in crate::workflows) fn statements() -> Vec<String> {
        let account = Uuid::now_v7();
        let filters = [
            RunFilter::default(),
            RunFilter {
                workflow_id: Some(Uuid::now_v7()),
                status: Some(RunStatus::Failed),
                ..RunFilter::default()
            },
            RunFilter {
                status: Some(RunStatus::Failed),
                since: Some(1),
                until: Some(2),
                ..RunFilter::default()
            },
            RunFilter {
                status: Some(RunStatus::Failed),
                trigger: Some(Trigger::Api),
                text: Some("a".into()),
                ..RunFilter::default()
            },
        ];
        let mut statements = Vec::new();
        for filter in &filters {
            for order in [RunOrder::Created, RunOrder::Duration] {
                for direction in [Direction::Ascending, Direction::Descending] {
                    for after in [None, Some(Uuid::nil())] {
                        let slice = RunSlice {
                            order,
                            direction,
                            limit: 50,
                            after: after.map(|id| Position {
                                key: SortKey::Number(5),
                                id,
                            }),
                        };
                        statements.push(statement(account, filter, &slice).sql().to_owned());
                    }
                }
            }
            statements.push(count_statement(account, filter).sql().to_owned());
        }
        statements
    }
}
