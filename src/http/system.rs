//! `/api/system…`: the installation for its operators: state, log (JSON and server-sent events), doctor, settings, accounts. 404 to
//! all others.

use std::time::{Duration, Instant};

use actix_web::{HttpRequest, HttpResponse, http::header, web};
use serde::Serialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use uuid::Uuid;

use super::{
    event_stream::{self, Pieces, STILL_HERE, Waited, event, id},
    extract::{Body, InstallationCaller, PageQuery},
};
use crate::{
    application::{
        context::ServiceContext,
        error::{ApiError, ErrorBody},
        reached::Reached,
        system::{
            self, SystemRecord,
            accounts::{self, AccountAnswer, AccountChange, AccountList, AccountMade, NewAccount},
            log::{LogLines, LogQuery},
            settings::SettingList,
        },
    },
    doctor::Report,
};

/// Accounts in one answer when the client names no `limit`.
const DEFAULT_LIMIT: u32 = 100;
/// Time for which a follower of the log counts as admitted without a look.
const ADMITTED_FOR: Duration = Duration::from_secs(10);

/// Show the installation
///
/// Stage, reasons, components, workers, queues, disk by kind, database, object store, listeners, nodes. For signed-in operators; 404 to
/// others and to keys. `GET /api/changes` says by `system` when reasons differ.
#[utoipa::path(get, path = "/api/system", tag = "system", responses(
    (status = 200, description = "State of this moment; the disk's kinds are at most a minute old", body = SystemRecord),
))]
pub async fn show(
    context: web::Data<ServiceContext>,
    _caller: InstallationCaller,
) -> Result<HttpResponse, ApiError> {
    Ok(fresh(system::system(&context).await))
}

/// Show the log
///
/// The newest 5 000 lines that passed `log.filter`, secrets replaced. With `Accept: text/event-stream` the lines, and each one that
/// follows, as events `line`, whose ids are the numbers; a client that reconnects continues by `Last-Event-ID`.
#[utoipa::path(get, path = "/api/system/log", tag = "system", params(
    ("level" = Option<String>, Query, description = "`error`, `warn`, `info`, `debug` or `trace`: lines of this level and of more severe ones"),
    ("after" = Option<u64>, Query, description = "Lines after the one with this number, oldest first; without one the newest"),
    ("limit" = Option<u32>, Query, description = "1 to 5000, 500 without one"),
    ("Last-Event-ID" = Option<u64>, Header, description = "As `after`, of a client that reconnects"),
), responses(
    (status = 200, description = "Oldest first", body = LogLines),
    (status = 503, description = "As many clients follow the log as may", body = ErrorBody),
))]
pub async fn log(
    request: HttpRequest,
    context: web::Data<ServiceContext>,
    caller: InstallationCaller,
) -> Result<HttpResponse, ApiError> {
    let mut query = system::log::query(request.query_string())?;
    if !wants_events(&request) {
        return Ok(fresh(system::log::lines(context.log(), &query)));
    }
    // A number that is not reached yet is of an earlier process.
    let newest = system::log::newest(context.log());
    let last = last_event_id(&request).or(query.after);
    query.after = last.filter(|after| *after <= newest);
    let lines = Following {
        _permit: context.system.follow_log()?,
        newest: context.log().newest(),
        context,
        caller,
        query,
        admitted_at: None,
    };
    Ok(event_stream::answer(&request, lines))
}

fn wants_events(request: &HttpRequest) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/event-stream"))
}

fn last_event_id(request: &HttpRequest) -> Option<u64> {
    let id = request.headers().get("last-event-id")?;
    id.to_str().ok()?.parse().ok()
}

/// A client that follows the log. It keeps the number of its last line, and no queue grows for it: what the ring has lost
/// meanwhile is lost to it.
struct Following {
    _permit: OwnedSemaphorePermit,
    context: web::Data<ServiceContext>,
    caller: InstallationCaller,
    newest: watch::Receiver<u64>,
    query: LogQuery,
    /// Time of the last look at the credential; `None` before the first piece.
    admitted_at: Option<Instant>,
}

impl Pieces for Following {
    async fn next(mut self) -> Option<(String, Option<Self>)> {
        if let Some(admitted_at) = self.admitted_at {
            let waited = event_stream::wait(&self.context, self.newest.changed()).await;
            let silent = match waited {
                Waited::Happened(changed) => changed.is_err(),
                Waited::Silent => true,
                Waited::Closing => return None,
            };
            // Also while lines come all the time. Not before each: that look may write a line itself.
            if silent || admitted_at.elapsed() >= ADMITTED_FOR {
                let caller = self.caller.caller();
                if !event_stream::is_still_admitted(&self.context, caller).await {
                    return None;
                }
                self.admitted_at = Some(Instant::now());
            }
            if silent {
                return Some((STILL_HERE.to_owned(), Some(self)));
            }
        } else {
            self.admitted_at = Some(Instant::now());
        }
        // Before they are read: a line that comes in between is sent at once after these.
        let newest = *self.newest.borrow_and_update();
        let lines = system::log::lines(self.context.log(), &self.query).into_lines();
        let is_full = lines.len() == self.query.limit;
        let mut text = String::new();
        for line in lines {
            self.query.after = Some(line.number());
            text += &id(line.number());
            text += &event("line", json!(line));
        }
        match is_full {
            // There may be more.
            true => self.newest.mark_changed(),
            false => self.query.after = self.query.after.max(Some(newest)),
        }
        if text.is_empty() {
            // Lines of other levels only; a comment costs the client nothing.
            text = STILL_HERE.to_owned();
        }
        Some((text, Some(self)))
    }
}

/// Run the doctor
///
/// The checks of `sluice doctor --json`, with the settings as the next start would read them. Takes seconds; requests at the same
/// time get the same report.
#[utoipa::path(get, path = "/api/system/doctor", tag = "system", responses(
    (status = 200, description = "Findings in the order of the checks", body = Report),
    (status = 503, description = "The checks take longer than a minute", body = ErrorBody),
))]
pub async fn doctor(
    context: web::Data<ServiceContext>,
    _caller: InstallationCaller,
) -> Result<HttpResponse, ApiError> {
    Ok(fresh(system::doctor(&context).await?))
}

/// Show the settings in force
///
/// The answer of `sluice config --print`, secrets replaced, with the source of each value.
#[utoipa::path(get, path = "/api/system/settings", tag = "system", responses(
    (status = 200, description = "By their keys", body = SettingList),
))]
pub async fn settings(
    context: web::Data<ServiceContext>,
    _caller: InstallationCaller,
) -> Result<HttpResponse, ApiError> {
    let origins = &context.system.startup.origins;
    Ok(fresh(system::settings::settings(&context.config, origins)))
}

/// List accounts
#[utoipa::path(get, path = "/api/system/accounts", tag = "system", params(
    ("limit" = Option<u32>, Query, description = "1 to 100, 100 without one"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "All accounts, newest first", body = AccountList)))]
pub async fn list_accounts(
    context: web::Data<ServiceContext>,
    caller: InstallationCaller,
    PageQuery(page): PageQuery<DEFAULT_LIMIT>,
) -> Result<HttpResponse, ApiError> {
    Ok(fresh(
        accounts::list(&context, caller.caller(), page).await?,
    ))
}

/// Make an account
///
/// With `username` its first user, an admin, who chooses a password at `welcomeUrl`, once and within 24 hours.
#[utoipa::path(post, path = "/api/system/accounts", tag = "system", request_body = NewAccount, responses(
    (status = 201, description = "The account, and the link, shown once", body = AccountMade),
    (status = 409, description = "An account or a user has this name", body = ErrorBody),
))]
pub async fn create_account(
    context: web::Data<ServiceContext>,
    caller: InstallationCaller,
    reached: Reached,
    Body(new): Body<NewAccount>,
) -> Result<HttpResponse, ApiError> {
    let made = accounts::create(&context, caller.caller(), &reached, new).await?;
    Ok(HttpResponse::Created()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(made))
}

/// Change the plan of an account
///
/// Its limits hold from the next request.
#[utoipa::path(patch, path = "/api/system/accounts/{id}", tag = "system", params(("id" = Uuid, Path, description = "The account's id")),
    request_body = AccountChange, responses((status = 200, description = "The account", body = AccountAnswer)))]
pub async fn change_account(
    context: web::Data<ServiceContext>,
    caller: InstallationCaller,
    reached: Reached,
    account_id: web::Path<Uuid>,
    Body(change): Body<AccountChange>,
) -> Result<HttpResponse, ApiError> {
    let account_id = account_id.into_inner();
    let answer = accounts::change(&context, caller.caller(), &reached, account_id, change).await?;
    Ok(fresh(answer))
}

fn fresh(answer: impl Serialize) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .json(answer)
}
