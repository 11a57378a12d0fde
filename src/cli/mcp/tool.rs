//! `filePath` of `run_workflow` in `sluice mcp`: a call with it becomes `create_upload_url` and a run on `uploadUrl`. Pure. The
//! service itself cannot open such a file.
//!
//! The second call is made when the bytes have arrived.

use serde_json::{Map, Value, json};

use super::{error::BridgeError, message::Request, roots::Roots};

const RUN: &str = "run_workflow";
const CREATE_UPLOAD: &str = "create_upload_url";
const FILE_PATH: &str = "filePath";
const UPLOAD_URL: &str = "uploadUrl";
/// Both spellings, as the service reads every argument.
const FILE_PATHS: [&str; 2] = [FILE_PATH, "file_path"];
/// The other ways to name a run's input.
const OTHER_INPUTS: [&str; 4] = ["fileId", "file_id", UPLOAD_URL, "upload_url"];

/// A call of `run_workflow` for a file of this machine.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FileCall {
    pub(super) request: Request,
    pub(super) path: String,
}

/// Kind of a request for the bridge.
#[derive(Debug, PartialEq)]
pub(super) enum Call {
    /// It is passed on unchanged.
    Plain(Request),
    File(FileCall),
}

impl Call {
    /// Distinguishes calls with a `filePath`; null and an empty text are none. The error is for the model.
    pub(super) fn of(mut request: Request) -> Result<Self, BridgeError> {
        let Some(arguments) = run_arguments(&mut request) else {
            return Ok(Self::Plain(request));
        };
        let given = FILE_PATHS.map(|name| arguments.remove(name));
        let path = match given.into_iter().flatten().next() {
            None | Some(Value::Null) => return Ok(Self::Plain(request)),
            Some(Value::String(path)) if path.is_empty() => return Ok(Self::Plain(request)),
            Some(Value::String(path)) => path,
            Some(_) => {
                return Err(BridgeError::Tool(
                    "filePath must be a text: a path".to_owned(),
                ));
            }
        };
        let is_given = |name: &str| !matches!(arguments.get(name), None | Some(Value::Null));
        if let Some(other) = OTHER_INPUTS.into_iter().find(|name| is_given(name)) {
            let text = format!("give filePath or {other}, not both: a run has one input");
            return Err(BridgeError::Tool(text));
        }
        Ok(Self::File(FileCall { request, path }))
    }
}

/// The arguments of a call of `run_workflow`.
fn run_arguments(request: &mut Request) -> Option<&mut Map<String, Value>> {
    if !request.is_tool_call() || request.body["params"]["name"] != RUN {
        return None;
    }
    request.body["params"].get_mut("arguments")?.as_object_mut()
}

impl FileCall {
    /// The call that asks for an address to send the file to. It is no matter of the client's, so it has no progress.
    pub(super) fn create_upload(&self, filename: &str, size_bytes: u64) -> Value {
        let mut params = json!({
            "name": CREATE_UPLOAD,
            "arguments": {"filename": filename, "sizeBytes": size_bytes},
        });
        if let Some(Value::Object(meta)) = self.request.body.pointer("/params/_meta") {
            let mut meta = meta.clone();
            meta.remove("progressToken");
            params["_meta"] = meta.into();
        }
        json!({
            "jsonrpc": "2.0",
            "id": self.request.id,
            "method": "tools/call",
            "params": params,
        })
    }

    /// The call as the service can carry it out.
    pub(super) fn run(&self, upload_url: &str) -> Value {
        let mut request = self.request.clone();
        if let Some(arguments) = run_arguments(&mut request) {
            arguments.insert(UPLOAD_URL.to_owned(), upload_url.into());
        }
        request.body
    }
}

/// The address in the answer to [`FileCall::create_upload`], or what the tool says instead.
pub(super) fn upload_url(answer: &Value) -> Result<String, BridgeError> {
    if let Some(error) = answer.get("error") {
        let text = error["message"].as_str().unwrap_or("it says no more");
        return Err(BridgeError::Tool(text.to_owned()));
    }
    let result = &answer["result"];
    if result["isError"] == true {
        let text = result.pointer("/content/0/text").and_then(Value::as_str);
        let text = text.unwrap_or("the service has no address for the file");
        return Err(BridgeError::Tool(text.to_owned()));
    }
    let url = result["structuredContent"][UPLOAD_URL].as_str();
    url.map(str::to_owned).ok_or_else(|| {
        let text = "the service gave no address to send the file to: it may be of another version";
        BridgeError::Tool(text.to_owned())
    })
}

/// Adds `filePath` to the input of `run_workflow` in an answer to `tools/list`.
pub(super) fn offer_file_path(answer: &mut Value, roots: &Roots) {
    let Some(tools) = answer
        .pointer_mut("/result/tools")
        .and_then(Value::as_array_mut)
    else {
        return;
    };
    let Some(run) = tools.iter_mut().find(|tool| tool["name"] == RUN) else {
        return;
    };
    if let Some(properties) = run
        .pointer_mut("/inputSchema/properties")
        .and_then(Value::as_object_mut)
    {
        let schema = json!({"type": "string", "description": description(roots)});
        properties.insert(FILE_PATH.to_owned(), schema);
    }
}

fn description(roots: &Roots) -> String {
    let purpose = "A file of this machine to run the workflow on, in place of fileId and uploadUrl; its bytes are sent \
        without passing through the conversation";
    match roots.is_empty() {
        true => format!(
            "{purpose}. No folder is allowed yet: the user allows one with `sluice mcp --root FOLDER` or mcp.roots"
        ),
        false => format!(
            "{purpose}. It must lie in one of these folders, and links are not followed: {roots}. A relative path begins \
             at the first of them"
        ),
    }
}

/// Counts progress of the run on from that of the upload, which was its first step, so that the value grows throughout
/// (MCP, "Progress").
pub(super) fn count_upload(message: &mut Value) {
    if message["method"] != "notifications/progress" {
        return;
    }
    for field in ["progress", "total"] {
        let counted = message["params"][field].as_f64();
        if let Some(count) = counted {
            message["params"][field] = (count + 1.0).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(params: Value) -> Request {
        let body = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params});
        Request {
            id: 4.into(),
            method: "tools/call".to_owned(),
            body,
        }
    }

    fn roots(folders: &[&str]) -> Roots {
        let folders: Vec<_> = folders.iter().map(Into::into).collect();
        Roots::new(&folders, None).unwrap()
    }

    #[test]
    fn only_a_run_with_a_path_is_a_files() {
        let arguments = |arguments: Value| json!({"name": RUN, "arguments": arguments});
        for (params, path) in [
            (json!({"name": RUN}), Ok(None)),
            (json!({"name": RUN, "arguments": "filePath"}), Ok(None)),
            (
                json!({"name": "other", "arguments": {"filePath": "a"}}),
                Ok(None),
            ),
            (json!(null), Ok(None)),
            (arguments(json!({"fileId": "f"})), Ok(None)),
            (
                arguments(json!({"filePath": null, "fileId": "f"})),
                Ok(None),
            ),
            (arguments(json!({"filePath": ""})), Ok(None)),
            (arguments(json!({"filePath": 7})), Err("must be a text")),
            (
                arguments(json!({"filePath": "a", "fileId": "f"})),
                Err("filePath or fileId"),
            ),
            (
                arguments(json!({"filePath": "a", "uploadUrl": "u"})),
                Err("filePath or uploadUrl"),
            ),
            (
                arguments(json!({"filePath": "a", "fileId": null})),
                Ok(Some("a")),
            ),
            (arguments(json!({"file_path": "a"})), Ok(Some("a"))),
            (
                arguments(json!({"file_path": "a", "file_id": "f"})),
                Err("filePath or file_id"),
            ),
        ] {
            let call = Call::of(request(params.clone()));
            match (call, path) {
                (Ok(Call::Plain(plain)), Ok(None)) => {
                    assert!(
                        plain.body.pointer("/params/arguments/filePath").is_none()
                            || params["name"] != RUN
                    );
                }
                (Ok(Call::File(call)), Ok(Some(path))) => assert_eq!(call.path, path),
                (Err(error), Err(words)) => assert!(error.to_string().contains(words)),
                (call, _) => panic!("{params}: {call:?}"),
            }
        }
    }

    #[test]
    fn a_files_call_becomes_two() {
        let params = json!({
            "name": RUN,
            "arguments": {"workflowId": "w", "filePath": "a.jpg"},
            "_meta": {"progressToken": 1, "io.modelcontextprotocol/protocolVersion": "2026-07-28"},
        });
        let Ok(Call::File(call)) = Call::of(request(params)) else {
            panic!("it names a file");
        };
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
        assert_eq!(
            call.create_upload("a.jpg", 9),
            json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params":
                {"name": CREATE_UPLOAD, "arguments": {"filename": "a.jpg", "sizeBytes": 9}, "_meta": meta}})
        );
        let run = call.run("http://host/up");
        assert_eq!(
            run["params"]["arguments"],
            json!({"workflowId": "w", "uploadUrl": "http://host/up"})
        );
        assert_eq!(run["params"]["_meta"]["progressToken"], 1);
        assert_eq!(run["id"], 4);
    }

    #[test]
    fn the_address_or_what_the_tool_says_is_read() {
        for (answer, expected) in [
            (
                json!({"result": {"structuredContent": {"uploadUrl": "u"}}}),
                Ok("u"),
            ),
            (
                json!({"result": {"structuredContent": {"uploadUrl": 7}}}),
                Err("another version"),
            ),
            (
                json!({"result": {"isError": true, "content": [{"type": "text", "text": "too large"}]}}),
                Err("too large"),
            ),
            (json!({"result": {"isError": true}}), Err("no address")),
            (
                json!({"error": {"code": 1, "message": "busy"}}),
                Err("busy"),
            ),
            (json!({"result": {}}), Err("another version")),
            (json!(null), Err("another version")),
        ] {
            match (upload_url(&answer), expected) {
                (Ok(url), Ok(expected)) => assert_eq!(url, expected),
                (Err(error), Err(words)) => {
                    assert!(error.to_string().contains(words), "{error}")
                }
                (read, _) => panic!("{answer}: {read:?}"),
            }
        }
    }

    #[test]
    fn the_tool_is_offered_with_its_folders() {
        let list = json!({"result": {"tools": [
            {"name": "list_workflows", "inputSchema": {"type": "object", "properties": {}}},
            {"name": RUN, "inputSchema": {"type": "object", "properties": {"fileId": {}}}},
        ]}});
        for (folders, words) in [
            (&["/srv/a", "/data"][..], "/srv/a, /data"),
            (&[], "--root FOLDER"),
        ] {
            let mut offered = list.clone();
            offer_file_path(&mut offered, &roots(folders));
            let tools = &offered["result"]["tools"];
            assert_eq!(tools[0], list["result"]["tools"][0]);
            let properties = &tools[1]["inputSchema"]["properties"];
            assert_eq!(properties["fileId"], json!({}));
            let description = properties[FILE_PATH]["description"].as_str().unwrap();
            assert!(description.contains(words), "{description}");
        }
        for mut odd in [
            json!(null),
            json!({"error": {}}),
            json!({"result": {"tools": {}}}),
            json!({"result": {"tools": [{"name": "other"}]}}),
            json!({"result": {"tools": [{"name": RUN}]}}),
            json!({"result": {"tools": [{"name": RUN, "inputSchema": true}, 7]}}),
        ] {
            let before = odd.clone();
            offer_file_path(&mut odd, &roots(&[]));
            assert_eq!(odd, before);
        }
    }

    #[test]
    fn the_upload_is_the_first_step_of_the_progress() {
        for (params, counted) in [
            (
                json!({"progress": 0, "total": 4}),
                json!({"progress": 1.0, "total": 5.0}),
            ),
            (json!({"progress": 2.5}), json!({"progress": 3.5})),
            (json!({"progress": "x"}), json!({"progress": "x"})),
        ] {
            let mut message = json!({"method": "notifications/progress", "params": params});
            count_upload(&mut message);
            assert_eq!(message["params"], counted);
        }
        let mut other = json!({"method": "notifications/message", "params": {"progress": 1}});
        count_upload(&mut other);
        assert_eq!(other["params"]["progress"], 1);
    }
}
