//! Findings of the doctor (`ok`, `warn`, `fail`) and their report as text and JSON.

use serde::Serialize;
use utoipa::ToSchema;

/// Judgement of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = DoctorLevel)]
pub enum Level {
    Ok,
    /// Works, but not as well as it could.
    Warn,
    /// The service does not start, or its main job does not work.
    Fail,
}

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = DoctorFinding)]
pub struct Finding {
    /// Subject, such as `disk`.
    pub check: &'static str,
    pub level: Level,
    pub message: String,
    /// The change to make; `None` where none is needed.
    pub advice: Option<String>,
}

impl Finding {
    pub(crate) fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self {
            check,
            level: Level::Ok,
            message: message.into(),
            advice: None,
        }
    }

    pub(super) fn warn(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warn,
            advice: Some(advice.into()),
            ..Self::ok(check, message)
        }
    }

    pub(super) fn fail(
        check: &'static str,
        message: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(check, message, advice)
        }
    }
}

/// All findings in the order of the checks.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = DoctorReport)]
pub struct Report {
    /// True when no check failed; warnings may remain.
    pub ok: bool,
    pub checks: Vec<Finding>,
}

impl Report {
    pub(crate) fn new(checks: Vec<Finding>) -> Self {
        Self {
            ok: checks.iter().all(|finding| finding.level < Level::Fail),
            checks,
        }
    }

    /// Formats a line for each finding, its advice below it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for finding in &self.checks {
            let level = match finding.level {
                Level::Ok => "ok  ",
                Level::Warn => "warn",
                Level::Fail => "FAIL",
            };
            text += &format!("{level}  {:13} {}\n", finding.check, finding.message);
            if let Some(advice) = &finding.advice {
                text += &format!("{:20}→ {advice}\n", "");
            }
        }
        let count = |level| {
            self.checks
                .iter()
                .filter(|finding| finding.level == level)
                .count()
        };
        text + &format!(
            "{} failed, {} warnings\n",
            count(Level::Fail),
            count(Level::Warn)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_no_failure() {
        let report = Report::new(vec![
            Finding::ok("disk", "much"),
            Finding::warn("clock", "odd", "set it"),
        ]);
        assert!(report.ok);
        assert!(
            report
                .text()
                .contains("warn  clock         odd\n                    → set it\n")
        );
        assert!(report.text().ends_with("0 failed, 1 warnings\n"));
        assert!(!Report::new(vec![Finding::fail("disk", "full", "free some")]).ok);
    }
}
