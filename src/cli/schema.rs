//! `sluice schema`: version and schema of this program, which a running service asks of a program that has taken its place on the
//! disk (`newerProgram` of `GET /api/system`).

use std::process::ExitCode;

use super::{Error, show};
use crate::application::system::ProgramRecord;

pub(super) fn run() -> Result<ExitCode, Error> {
    let json = serde_json::to_string(&ProgramRecord::own()).expect("a record is plain data");
    show(&format!("{json}\n"))?;
    Ok(ExitCode::SUCCESS)
}
