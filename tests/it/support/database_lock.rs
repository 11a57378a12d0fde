//! A database that another program has locked.

use std::{path::Path, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use super::Failure;

/// Another program's transaction, which locks the database for writers.
#[derive(Debug)]
pub struct DatabaseLock {
    holder: Child,
}

impl DatabaseLock {
    const SCRIPT: &str = "import sqlite3, sys\n\
        database = sqlite3.connect(sys.argv[1], timeout=10, isolation_level=None)\n\
        database.execute('BEGIN EXCLUSIVE')\n\
        print('locked', flush=True)\n\
        sys.stdin.read()";

    /// `None` without Python.
    pub async fn take(database: &Path) -> Result<Option<Self>, Failure> {
        let mut command = Command::new("python3");
        command.args(["-c", Self::SCRIPT]).arg(database);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let Ok(mut holder) = command.spawn() else {
            return Ok(None);
        };
        let mut said = String::new();
        let output = holder.stdout.take().expect("piped above");
        BufReader::new(output).read_line(&mut said).await?;
        match said.trim() {
            "locked" => Ok(Some(Self { holder })),
            other => Err(format!("the database is not locked: {other:?}").into()),
        }
    }

    pub async fn release(mut self) -> Result<(), Failure> {
        drop(self.holder.stdin.take());
        self.holder.wait().await?;
        Ok(())
    }
}
