//! MCP tools `list_workflows`, `create_workflow`, `update_workflow`, `set_workflow_active`, `delete_workflow`, `lint_workflow`.

use serde::Deserialize;
use sluice_store::{Listed as _, Page};
use uuid::Uuid;

use super::{definition::work_and, *};
use crate::application::{
    page::{next_cursor, page},
    workflows::{operations, record::WorkflowRecord, request::SaveWorkflow},
};

/// Workflows of one page when the agent names no limit: each takes a line of a model's attention.
const DEFAULT_LIMIT: u32 = 50;

pub const LIST_WORKFLOWS: Tool = Tool {
    name: "list_workflows",
    title: "List workflows",
    description: "Lists the saved workflows, newest first: id, name, isActive, version, the kinds of their steps, runCount, \
        lastRunAt. With id, that one alone and its whole definition, as update_workflow takes it.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "id": schema::id("Only this workflow, with its definition."),
                "limit": schema::integer("Workflows on a page; 50 without it.", 1, Some(100)),
                "cursor": schema::text("nextCursor of the page before."),
            }),
            &[],
        )
    },
    output: Some(|| {
        schema::object(
            json!({
                "workflows": schema::list(json!({
                    "id": schema::id("Of the workflow."),
                    "name": schema::text("Its name."),
                    "isActive": json!({"type": "boolean"}),
                    "version": schema::integer("Rises with every save.", 1, None),
                    "steps": json!({"type": "array", "items": {"type": "string"}}),
                })),
                "nextCursor": schema::nullable(schema::text("Of the next page, if there is one.")),
            }),
            &["workflows", "nextCursor"],
        )
    }),
    call: |call, arguments| Box::pin(list(call, arguments)),
};

#[derive(Deserialize)]
struct List {
    id: Option<Uuid>,
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn list(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.reader()?);
    let asked: List = arguments.read()?;
    if let Some(id) = asked.id {
        let workflow = operations::show(&context, id).await?;
        return Ok(json!({"workflows": [workflow], "nextCursor": null}));
    }
    let page = asked.page()?;
    let rows = operations::list(&context, page).await?;
    let next_cursor = next_cursor(&rows, page, |row| row.cursor());
    let lines: Result<Vec<Value>, ApiError> = rows
        .into_iter()
        .map(|row| line(WorkflowRecord::of(row)?).map_err(ApiError::internal))
        .collect();
    Ok(json!({"workflows": lines?, "nextCursor": next_cursor}))
}

impl List {
    fn page(&self) -> Result<Page, ApiError> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(self.limit.map(|limit| ("limit", limit.to_string())));
        query.extend_pairs(self.cursor.as_ref().map(|cursor| ("cursor", cursor)));
        page(&query.finish(), DEFAULT_LIMIT)
    }
}

/// A workflow without its definition, but for the kinds of its nodes.
fn line(workflow: WorkflowRecord) -> serde_json::Result<Value> {
    let definition: Value = serde_json::from_str(workflow.definition.get())?;
    let nodes = definition["nodes"].as_array();
    let steps: Vec<&Value> = nodes
        .into_iter()
        .flatten()
        .map(|node| &node["data"]["kind"])
        .collect();
    Ok(json!({
        "id": workflow.id,
        "name": workflow.name,
        "isActive": workflow.is_active,
        "version": workflow.version,
        "steps": steps,
        "runCount": workflow.run_count,
        "lastRunAt": workflow.last_run_at,
    }))
}

pub const CREATE_WORKFLOW: Tool = Tool {
    name: "create_workflow",
    title: "Make a workflow",
    description: "Saves a new workflow from a definition, or from the short form (outputFormat and/or compressionMode). \
        Answers with its id and, this once, the webhookSecret that signs its webhooks. A wrong definition is rejected with all \
        its problems; lint_workflow lists them beforehand. To make and run one at once use run_workflow.",
    effect: Effect::Adds,
    reaches_out: false,
    input: || {
        schema::input(
            work_and(json!({
                "name": schema::text("1 to 80 characters."),
                "isActive": schema::flag("false makes it paused.", true),
            })),
            &["name"],
        )
    },
    output: Some(saved_schema),
    call: |call, arguments| Box::pin(create(call, arguments)),
};

pub const UPDATE_WORKFLOW: Tool = Tool {
    name: "update_workflow",
    title: "Change a workflow",
    description: "Saves a workflow again: what is left out stays, a definition replaces the whole one before (read that with \
        list_workflows and its id). Pass the version that you read, so that the save is rejected when another came in between. Runs \
        in progress keep the version they began with.",
    effect: Effect::Replaces,
    reaches_out: false,
    input: || {
        schema::input(
            work_and(json!({
                "id": schema::id("The workflow to change."),
                "version": schema::integer("The version that you read; optional.", 1, None),
                "name": schema::text("1 to 80 characters."),
                "isActive": json!({"type": "boolean", "description": "false pauses it."}),
            })),
            &["id"],
        )
    },
    output: Some(saved_schema),
    call: |call, arguments| Box::pin(update(call, arguments)),
};

fn saved_schema() -> Value {
    let workflow = schema::object(
        json!({
            "id": schema::id("Of the workflow."),
            "name": schema::text("Its name."),
            "isActive": json!({"type": "boolean"}),
            "version": schema::integer("Rises with every save.", 1, None),
            "definition": json!({"type": "object"}),
        }),
        &["id", "name", "isActive", "version", "definition"],
    );
    schema::object(json!({ "workflow": workflow }), &["workflow"])
}

async fn create(call: &Call, arguments: Arguments) -> Outcome {
    save(call, arguments.read()?).await
}

async fn update(call: &Call, arguments: Arguments) -> Outcome {
    let request: SaveWorkflow = arguments.read()?;
    if request.id.is_none() {
        let text = "id is missing: the workflow to change".to_owned();
        return Err(CallError::Arguments(text));
    }
    save(call, request).await
}

async fn save(call: &Call, request: SaveWorkflow) -> Outcome {
    let context = call.agent.workflows(&call.agent.writer()?);
    let saved = operations::create_or_replace(&context, request).await?;
    Ok(json!({ "workflow": saved.workflow }))
}

pub const SET_WORKFLOW_ACTIVE: Tool = Tool {
    name: "set_workflow_active",
    title: "Pause or resume a workflow",
    description: "Pauses a workflow (isActive false: new runs are rejected, its folder trigger is silent, runs that were \
        accepted continue) or resumes it.",
    effect: Effect::Sets,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "id": schema::id("The workflow."),
                "isActive": json!({"type": "boolean", "description": "false pauses, true resumes."}),
            }),
            &["id", "isActive"],
        )
    },
    output: Some(saved_schema),
    call: |call, arguments| Box::pin(set_active(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SetActive {
    id: Uuid,
    is_active: bool,
}

async fn set_active(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.writer()?);
    let SetActive { id, is_active } = arguments.read()?;
    let workflow = operations::set_active(&context, id, is_active).await?;
    Ok(json!({ "workflow": workflow }))
}

pub const DELETE_WORKFLOW: Tool = Tool {
    name: "delete_workflow",
    title: "Delete a workflow",
    description: "Deletes a workflow with its versions and its run history; unfinished runs are cancelled. Files that runs \
        stored stay. Without confirm: true nothing is deleted, and the answer lists what would be: show that to your user first.",
    effect: Effect::Deletes,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "id": schema::id("The workflow."),
                "confirm": schema::flag("true deletes; false only lists what would be deleted.", false),
            }),
            &["id"],
        )
    },
    output: Some(|| {
        schema::object(
            json!({
                "deleted": json!({"type": "boolean"}),
                "workflow": schema::object(json!({"id": schema::id("Of the workflow."), "name": schema::text("Its name.")}), &[]),
                "versions": schema::integer("Versions that go with it.", 0, None),
                "runs": schema::integer("Runs that it ever had; those in the history go with it.", 0, None),
                "unfinishedRuns": json!({"type": "array", "items": {"type": "string"}, "description": "Of the newest 50 runs, those that are cancelled."}),
                "next": schema::text("What to do now."),
            }),
            &[
                "deleted",
                "workflow",
                "versions",
                "runs",
                "unfinishedRuns",
                "next",
            ],
        )
    }),
    call: |call, arguments| Box::pin(delete(call, arguments)),
};

#[derive(Deserialize)]
struct Delete {
    id: Uuid,
    #[serde(default)]
    confirm: bool,
}

async fn delete(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.writer()?);
    let Delete { id, confirm } = arguments.read()?;
    let workflow = operations::show(&context, id).await?;
    let versions = operations::versions(&context, id).await?.len();
    let runs = operations::runs(&context, id, None).await?;
    let unfinished: Vec<Uuid> = runs
        .iter()
        .filter(|run| run.completed_at.is_none())
        .map(|run| run.id)
        .collect();
    if confirm {
        operations::delete(&context, id).await?;
    }
    Ok(json!({
        "deleted": confirm,
        "workflow": {"id": id, "name": workflow.name},
        "versions": versions,
        "runs": workflow.run_count,
        "unfinishedRuns": unfinished,
        "next": match confirm {
            true => "It is gone. Files that its runs stored are still there.",
            false => "Nothing was deleted. Call again with confirm: true to delete it; files that its runs stored stay.",
        },
    }))
}

pub const LINT_WORKFLOW: Tool = Tool {
    name: "lint_workflow",
    title: "Check a definition",
    description: "Checks a definition, or a short form, without saving it: all problems at once, each with severity (error: \
        would be rejected; warning: probably not what you mean), nodeId, field, code and a message that says what to change.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || schema::input(definition::work(), &[]),
    output: Some(|| {
        schema::object(
            json!({
                "valid": json!({"type": "boolean"}),
                "problems": schema::list(json!({
                    "severity": schema::word("Errors come first.", &["error", "warning"]),
                    "nodeId": schema::nullable(schema::text("The node it is about.")),
                    "code": schema::text("Stable."),
                    "message": schema::text("What to change."),
                })),
            }),
            &["valid", "problems"],
        )
    }),
    call: |call, arguments| Box::pin(lint(call, arguments)),
};

async fn lint(call: &Call, arguments: Arguments) -> Outcome {
    let context = call.agent.workflows(&call.agent.reader()?);
    shown(operations::lint(&context, arguments.read()?).await?)
}
