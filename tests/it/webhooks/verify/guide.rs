//! The receivers of the guide: taken out of its text, and made to run.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::support::{Failure, document::blocks, media::target_folder};

pub(super) const GUIDE: &str = include_str!("../../../../docs/guide/webhooks.md");

/// Folder of Go below target, as unpacked by `scripts/install.sh test`.
const UNPACKED_GO: &str = "tools/go/usr/lib/go-1.19";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    Node,
    Python,
    Go,
    Php,
}

/// A receiver as the guide has it.
pub(super) struct Example {
    pub(super) language: Language,
    pub(super) text: String,
}

impl Language {
    pub(super) const ALL: [Self; 4] = [Self::Node, Self::Python, Self::Go, Self::Php];

    pub(super) fn example(self, guide: &str) -> Result<Example, Failure> {
        let tag = match self {
            Self::Node => "js",
            Self::Python => "python",
            Self::Go => "go",
            Self::Php => "php",
        };
        Ok(Example {
            language: self,
            text: block(guide, tag)?,
        })
    }

    /// The file that the example's first line speaks of.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Node => "receiver.mjs",
            Self::Python => "receiver.py",
            Self::Go => "receiver.go",
            Self::Php => "receiver.php",
        }
    }

    /// Returns the command that runs it in this folder; `None` when the runtime is missing, which Node's and Python's
    /// may not.
    pub(super) async fn command(
        self,
        folder: &Path,
        port: u16,
    ) -> Result<Option<Command>, Failure> {
        let address = format!("127.0.0.1:{port}");
        let mut command = match self {
            Self::Node => program("node", &[self.file()]),
            Self::Python => program("python3", &[self.file()]),
            Self::Php if has("php", "--version").await => {
                program("php", &["-S", &address, self.file()])
            }
            Self::Php => return Ok(None),
            Self::Go => match go().await {
                Some(go) => compile(go, folder).await?,
                None => return Ok(None),
            },
        };
        command.current_dir(folder).env("PORT", port.to_string());
        Ok(Some(command))
    }
}

fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments);
    command
}

/// The one fenced block of this language.
pub(super) fn block(text: &str, tag: &str) -> Result<String, Failure> {
    let blocks = blocks(text, tag);
    match <[String; 1]>::try_from(blocks) {
        Ok([block]) => Ok(block),
        Err(blocks) => Err(format!("{} blocks of {tag}, expected one", blocks.len()).into()),
    }
}

async fn has(program: &str, question: &str) -> bool {
    let mut command = Command::new(program);
    let asked = command
        .arg(question)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    asked.status().await.is_ok_and(|status| status.success())
}

/// The compiler, of the machine or unpacked for tests.
async fn go() -> Option<Command> {
    if has("go", "version").await {
        return Some(Command::new("go"));
    }
    let root: PathBuf = target_folder().join(UNPACKED_GO);
    let program = root.join("bin/go");
    program.exists().then(|| {
        let mut command = Command::new(program);
        command.env("GOROOT", root);
        command
    })
}

async fn compile(mut go: Command, folder: &Path) -> Result<Command, Failure> {
    let built = go
        .args(["build", "-o", "receiver", "receiver.go"])
        .current_dir(folder)
        .env("GOCACHE", target_folder().join("tools/go-cache"))
        .env("GOPROXY", "off")
        .kill_on_drop(true)
        .output()
        .await?;
    if !built.status.success() {
        return Err(String::from_utf8_lossy(&built.stderr).into());
    }
    Ok(Command::new(folder.join("receiver")))
}
