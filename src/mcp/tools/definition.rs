//! MCP tool `list_operations`, and the schema of workflow definitions as models read it.

use sluice_media::workflow::kinds;

use super::*;

/// The schema of a definition.
pub fn schema() -> Value {
    let kinds: Vec<&str> = kinds().map(|info| info.kind).collect();
    let node = schema::object(
        json!({
            "id": schema::text("Unique among the nodes."),
            "data": schema::object(
                json!({
                    "kind": schema::word("Action of the step.", &kinds),
                    "title": schema::text("Shown in logs."),
                    "config": json!({
                        "type": "object",
                        "description": "The fields of the kind, as list_operations lists them, for instance {\"resizeWidth\": 800} for resize, {\"format\": \"webp\"} for convert, {\"folderId\": …} for storage.",
                    }),
                }),
                &["kind"],
            ),
        }),
        &["id", "data"],
    );
    let edge = schema::object(
        json!({
            "source": schema::text("Id of the node before."),
            "target": schema::text("Id of the node after."),
            "kind": schema::word("true or false on the edges of a branch; default otherwise.", &["default", "true", "false"]),
        }),
        &["source", "target"],
    );
    let mut whole = schema::object(
        json!({
            "nodes": json!({"type": "array", "items": node, "description": "At most 50, exactly one of them of kind upload, where every run begins."}),
            "edges": json!({"type": "array", "items": edge, "description": "One from each node but the last; from a branch one true and one false. No cycles."}),
            "branchConditions": json!({"type": "object", "description": "For the id of each branch node its condition group: {logic: and|or, negate?, conditions: [{field, operator, value?, negate?}], groups?: [group]}. Fields: mime, filename, extension, size_bytes, width, height, duration, upload_source. Operators: equals, not_equals, contains, starts_with, ends_with, matches, gt, gte, lt, lte, is_empty, is_not_empty."}),
            "uploadGate": json!({"type": "object", "description": "A condition group that the uploaded file must meet; otherwise the run ends with every step skipped."}),
            "renamePattern": schema::text("Names outputs, for instance {original}-{width}; also {format}, {height}, {date}, {n}."),
            "webhookUrl": schema::text("Where webhook nodes without a url post."),
            "trigger": json!({"type": "object", "description": "{\"folderId\": id}: every file that is uploaded into this folder runs the workflow."}),
        }),
        &["nodes", "edges"],
    );
    whole["description"] = json!(
        "A graph: upload → steps → storage (keeps the result as a file) and/or webhook. Without a storage node the run's output is a temporary download."
    );
    whole
}

/// The fields of a workflow that say what it does: a definition, or the short form in its place.
pub fn work() -> Value {
    json!({
        "definition": schema(),
        "outputFormat": schema::text("Short form in place of definition: convert to this format, for instance webp."),
        "compressionMode": json!({
            "type": ["string", "integer"],
            "description": "Short form: compress, by high, balanced or ultra, or with the encoder's quality 1 to 100.",
        }),
        "template": schema::word(
            "Short form: which steps; found from the other two without it.",
            &["convert-post", "compress-post", "convert-compress-post"],
        ),
    })
}

/// The fields of [`work`] and these.
pub fn work_and(others: Value) -> Value {
    let mut all = schema::as_object(others);
    all.extend(schema::as_object(work()));
    Value::Object(all)
}

pub const LIST_OPERATIONS: Tool = Tool {
    name: "list_operations",
    title: "List the kinds of steps",
    description: "Lists the kinds that a workflow's nodes can have, each with what it does, what files it takes (accepts; \
        empty: any) and the fields of its config: name, type, allowed values, default.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        let kind = schema::text("Only this kind, for instance resize.");
        schema::input(json!({ "kind": kind }), &[])
    },
    output: Some(|| {
        schema::object(
            json!({
                "operations": schema::list(json!({
                    "kind": schema::text("Value of data.kind of a node."),
                    "summary": schema::text("Summary of the step."),
                    "accepts": json!({"type": "array", "items": {"type": "string"}}),
                    "fields": json!({"type": "array", "items": {"type": "object"}}),
                })),
            }),
            &["operations"],
        )
    }),
    call: |_, arguments| Box::pin(std::future::ready(list_operations(arguments))),
};

#[derive(serde::Deserialize)]
struct ListOperations {
    kind: Option<String>,
}

fn list_operations(arguments: Arguments) -> Outcome {
    let ListOperations { kind } = arguments.read()?;
    let wanted = kind.map(|kind| kind.replace('-', "_"));
    let operations: Vec<_> = kinds()
        .filter(|info| wanted.as_ref().is_none_or(|wanted| info.kind == wanted))
        .collect();
    if operations.is_empty() {
        let known: Vec<&str> = kinds().map(|info| info.kind).collect();
        let text = format!("there is no such kind: use one of {}", known.join(", "));
        return Err(CallError::Api(ApiError::Invalid(text)));
    }
    shown(json!({ "operations": operations }))
}
