//! Names of a workflow run's files: rename patterns (`{date}`, `{width}`, `{n}`), the definition's pattern, extension.

use sluice_media::workflow::{Facts, Kind, Names, Pattern};

use super::RunTraversal;
use crate::durable::step_error::StepError;

impl RunTraversal<'_> {
    pub(super) async fn rename(&mut self, pattern: &Pattern) -> Result<(), StepError> {
        self.buffer.filename = self.named(pattern).await?;
        Ok(())
    }

    /// Returns the name that the pattern gives the buffer.
    async fn named(&mut self, pattern: &Pattern) -> Result<String, StepError> {
        if pattern.needs_dimensions() {
            self.measure().await?;
        }
        let (run, buffer) = (&self.run, &self.buffer);
        let extension = Facts::named(&buffer.filename).extension;
        let name = pattern.apply(&Names {
            original_stem: Facts::stem(&run.input_filename),
            extension: extension.as_deref().unwrap_or_default(),
            date: &date(run.created_at),
            width: buffer.width,
            height: buffer.height,
            n: run.number,
        });
        Ok((self.services.clean)(&name))
    }

    /// Returns the name of the buffer when it is kept: by the definition's pattern, unless a rename step has named it.
    pub(super) async fn output_name(&mut self) -> Result<String, StepError> {
        let definition = self.definition.clone();
        let is_named = self
            .path
            .has(&definition, |kind| matches!(kind, Kind::Rename(_)));
        match &definition.rename_pattern {
            Some(pattern) if !is_named => self.named(pattern).await,
            _ => Ok(self.buffer.filename.clone()),
        }
    }
}

/// Shows the day in UTC: `2026-11-21`.
pub fn date(at_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(at_ms)
        .map(|at| at.strftime("%Y-%m-%d").to_string())
        .unwrap_or_default()
}
