//! MCP tools `create_upload_url` and `list_files`.

use serde::Deserialize;
use url::form_urlencoded;

use super::*;
use crate::application::{files, uploads};

pub const CREATE_UPLOAD_URL: Tool = Tool {
    name: "create_upload_url",
    title: "Make an upload address",
    description: "Gives an address to which the bytes of one file are PUT (curl --upload-file FILE UPLOAD_URL; no credential \
        needed). Then pass it to run_workflow as uploadUrl. It works once and for as long as expiresInSeconds says.",
    effect: Effect::Adds,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "filename": schema::text("Name of the file with its extension, for instance photo.jpg."),
                "sizeBytes": schema::integer("Exact size of the file in bytes; the PUT must send as many.", 0, None),
                "contentType": schema::text("Media type, for instance image/jpeg. Optional: the bytes decide."),
            }),
            &["filename", "sizeBytes"],
        )
    },
    output: Some(|| {
        schema::object(
            json!({
                "uploadUrl": schema::text("Where to PUT the bytes, and what to pass to run_workflow."),
                "method": schema::text("PUT"),
                "expiresInSeconds": schema::integer("How long it works.", 0, None),
            }),
            &["uploadUrl", "method", "expiresInSeconds"],
        )
    }),
    call: |call, arguments| Box::pin(create_upload_url(call, arguments)),
};

async fn create_upload_url(call: &Call, arguments: Arguments) -> Outcome {
    let agent = &call.agent;
    let request = arguments.read()?;
    let made = uploads::make(&agent.context, &agent.writer()?, &agent.reached, request).await?;
    Ok(json!({
        "uploadUrl": made.upload.signed_url,
        "method": "PUT",
        "expiresInSeconds": made.upload.expires_in_seconds,
    }))
}

pub const LIST_FILES: Tool = Tool {
    name: "list_files",
    title: "List stored files",
    description: "Lists stored files, newest first: id (pass it to run_workflow as fileId), filename, mime_type, size_bytes, \
        and a download_url that works for minutes. Narrow it with q or mimePrefix; continue with cursor.",
    effect: Effect::Reads,
    reaches_out: false,
    input: || {
        schema::input(
            json!({
                "q": schema::text("Only files whose name contains this, in any case."),
                "mimePrefix": schema::text("Only files whose media type begins so, for instance image/."),
                "folderId": schema::text("Only files of the folder with this id; the word null: only those at the top."),
                "limit": schema::integer("Files on a page; 50 without it.", 1, Some(100)),
                "cursor": schema::text("nextCursor of the page before."),
            }),
            &[],
        )
    },
    output: Some(|| {
        schema::object(
            json!({
                "files": schema::list(json!({
                    "id": schema::id("Pass it as fileId."),
                    "filename": schema::text("Its name."),
                    "mime_type": schema::text("Its media type."),
                    "size_bytes": schema::integer("Its size.", 0, None),
                    "download_url": schema::text("Works without a credential, for minutes."),
                })),
                "nextCursor": schema::nullable(schema::text("Of the next page, if there is one.")),
            }),
            &["files", "nextCursor"],
        )
    }),
    call: |call, arguments| Box::pin(list_files(call, arguments)),
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListFiles {
    q: Option<String>,
    mime_prefix: Option<String>,
    folder_id: Option<String>,
    limit: Option<u32>,
    cursor: Option<String>,
}

impl ListFiles {
    /// Writes the query of REST's list.
    fn query(self) -> String {
        let given = [
            ("q", self.q),
            ("mimePrefix", self.mime_prefix),
            ("folderId", self.folder_id),
            ("limit", self.limit.map(|limit| limit.to_string())),
            ("cursor", self.cursor),
        ];
        let given = given
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(given)
            .finish()
    }
}

async fn list_files(call: &Call, arguments: Arguments) -> Outcome {
    let agent = &call.agent;
    let asked: ListFiles = arguments.read()?;
    let account_id = agent.reader()?.account_id();
    shown(files::list::listed(&agent.context, account_id, &agent.reached, &asked.query()).await?)
}
