//! Links to folders: what readers see without an account, what they never see, and how a link ends.

mod archive;
mod ends;
mod hostile;
mod reading;
mod terms;

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::{
    Failure,
    json::text,
    server::{Api, Form, Server, Settings},
};

/// For what happens at once, on a machine with other work.
const SOON: Duration = Duration::from_secs(20);

/// A service with one folder, and a link to it.
struct Shared {
    server: Server,
    api: Api,
    folder: String,
    token: String,
}

impl Shared {
    async fn open(terms: Value) -> Result<Self, Failure> {
        Self::on(Settings::new(), terms).await
    }

    async fn on(settings: Settings, terms: Value) -> Result<Self, Failure> {
        let server = settings.start().await?;
        let api = server.api();
        let folder = make_folder(&api, "Wedding & friends", None).await?;
        let token = text(&share(&api, &folder, terms).await?["token"])?;
        Ok(Self {
            server,
            api,
            folder,
            token,
        })
    }

    /// Returns a path of the reader's API; `rest` as `/zip`, `?cursor=…`.
    fn path(&self, rest: &str) -> String {
        format!("/api/share/folder/{}{rest}", self.token)
    }

    async fn list(&self, rest: &str) -> Result<Value, Failure> {
        self.api.fetch(&self.path(rest)).await?.expect(200)?.json()
    }

    async fn put(&self, name: &str, bytes: &[u8]) -> Result<String, Failure> {
        put(&self.api, &self.folder, name, bytes).await
    }

    async fn revoke(&self) -> Result<(), Failure> {
        let path = format!("/api/folders/{}/share", self.folder);
        let answer = self.api.expect(StatusCode::OK, Method::DELETE, &path, None);
        match answer.await? == json!({"success": true}) {
            true => Ok(()),
            false => Err("the link is not revoked".into()),
        }
    }

    /// Returns the link's record, as its owner sees it.
    async fn record(&self) -> Result<Value, Failure> {
        let path = format!("/api/folders/{}/share", self.folder);
        let answer = self.api.expect(StatusCode::OK, Method::GET, &path, None);
        Ok(answer.await?["share"].clone())
    }

    /// Changes the rows behind the service's back: no one waits an hour for a link to expire.
    async fn alter(&self, statement: &str) -> Result<(), Failure> {
        let script = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1], timeout=20); d.execute(sys.argv[2]); d.commit()";
        let database = self.server.data_dir().join("sluice.db");
        let status = Command::new("python3")
            .args(["-c", script])
            .arg(database)
            .arg(statement)
            .status();
        match status.await?.success() {
            true => Ok(()),
            false => Err(format!("{statement} failed").into()),
        }
    }
}

pub(crate) async fn make_folder(
    api: &Api,
    name: &str,
    parent: Option<&str>,
) -> Result<String, Failure> {
    let new = json!({"name": name, "parentId": parent});
    let path = "/api/folders";
    let answer = api.expect(StatusCode::CREATED, Method::POST, path, Some(&new));
    text(&answer.await?["folder"]["id"])
}

pub(crate) async fn share(api: &Api, folder: &str, terms: Value) -> Result<Value, Failure> {
    let path = format!("/api/folders/{folder}/share");
    let answer = api.expect(StatusCode::CREATED, Method::POST, &path, Some(&terms));
    Ok(answer.await?["share"].clone())
}

/// Stores a file in a folder; its id.
pub(crate) async fn put(
    api: &Api,
    folder: &str,
    name: &str,
    bytes: &[u8],
) -> Result<String, Failure> {
    let form = Form::new()
        .field("folderId", folder)
        .file("file", name, bytes);
    let stored = api.post_form("/api/files", form).await?.expect(201)?;
    text(&stored.json()?["file"]["id"])
}
