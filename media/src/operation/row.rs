//! Row of the operation table: name, fields, number of files, accepted classes; list fields with one value for each
//! file.

use serde_json::Value;

use super::{
    effect::Effect,
    field::Field,
    params::{FieldError, Params},
};
use crate::{
    format::{Class, Format},
    task::{Failure, FailureCode},
};

/// An operation.
#[derive(Debug)]
pub struct Row {
    /// Name over HTTP, with hyphens.
    pub tool: &'static str,
    /// Kind as a workflow's node, with underscores; `None`: not one file in and one file out.
    pub node: Option<&'static str>,
    pub fields: &'static [Field],
    /// Parameters of delivery URLs that do the same.
    pub effects: &'static [Effect],
    /// Least number of files for one operation, a watermark's own image counted.
    pub min_files: usize,
    pub max_files: usize,
    /// Classes that it accepts. (An archive means its members, see
    /// [`Operation::opens_archives`](super::Operation::opens_archives).)
    pub accepts: &'static [Class],
    pub summary: &'static str,
}

impl Row {
    /// An operation on one file that no delivery URL performs, with what every operation has to name.
    pub(super) const fn of_one_file(
        tool: &'static str,
        accepts: &'static [Class],
        summary: &'static str,
    ) -> Self {
        Self {
            tool,
            node: None,
            fields: &[],
            effects: &[],
            min_files: 1,
            max_files: 1,
            accepts,
            summary,
        }
    }

    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Checks whether it can be done on a file of that format.
    pub(super) fn check(&self, source: Format) -> Result<(), Failure> {
        let class = source.class();
        if self.accepts.contains(&class) {
            return Ok(());
        }
        let takes: Vec<&str> = self.accepts.iter().map(|class| class.noun()).collect();
        let takes = match takes.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} or {last}", others.join(", "))
            }
            _ => takes.concat(),
        };
        Err(Failure::new(
            FailureCode::UnsupportedType,
            format!(
                "{} takes {takes}, and {} is {}",
                self.tool,
                source.name(),
                class.noun()
            ),
        ))
    }

    /// The fields that came as lists, each with one value per file.
    pub(super) fn lists(
        &self,
        params: &Params,
        file_count: usize,
    ) -> Result<Vec<(&'static Field, Vec<Value>)>, FieldError> {
        let mut lists = Vec::new();
        for field in self.fields {
            let plural = field.plural();
            let Some(values) = params.list(&plural) else {
                // Where singular and plural are one word, a single value is no list.
                if params.get(&plural).is_some() && plural != field.name {
                    return Err(FieldError::new(
                        &plural,
                        format!("{plural} must be a JSON array with one value for each file"),
                    ));
                }
                continue;
            };
            if values.len() != file_count {
                return Err(FieldError::new(
                    &plural,
                    format!(
                        "{plural} must have one value for each of {file_count} files, got {}",
                        values.len()
                    ),
                ));
            }
            lists.push((field, values));
        }
        Ok(lists)
    }
}
