//! Buffer of a dry run: facts that are known, and for every other one the reason why it is not.

use std::collections::BTreeMap;

use super::Premise;
use crate::{
    format::Format,
    operation::{Operation, OperationInput, renamed},
    workflow::{Facts, Field, Group, Names, Pattern, definition::Node, pattern::Placeholder},
};

/// Facts that every operation changes; it also gives the file a type and a name, which are known as far as its format is.
const CHANGED: [Field; 4] = [
    Field::SizeBytes,
    Field::Width,
    Field::Height,
    Field::Duration,
];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buffer {
    /// Facts, `None` for those that are unknown.
    pub facts: Facts,
    /// Reasons of the facts that are unknown.
    unknown: BTreeMap<Field, String>,
    /// A rename step has named it; `None`: on some paths.
    pub is_named: Option<bool>,
    /// A storage step has stored a file; `None`: on some paths.
    pub has_stored: Option<bool>,
    /// Name of the run's input.
    original: Option<String>,
}

impl Buffer {
    pub fn input(premise: &Premise) -> Self {
        let reason = |field: &Field| (*field, format!("{} is not known", field.name()));
        let mut facts = premise.facts.clone();
        for field in &premise.unknown {
            facts.clear(*field);
        }
        Self {
            original: facts.filename.clone(),
            facts,
            unknown: premise.unknown.iter().map(reason).collect(),
            is_named: Some(false),
            has_stored: Some(false),
        }
    }

    /// Returns whether it meets a condition; `None`: that depends on facts that are unknown.
    pub fn outcome(&self, group: &Group) -> Option<bool> {
        group.outcome(&self.facts, &|field| self.unknown.contains_key(&field))
    }

    /// Returns the facts that a condition uses, in words; empty for a condition that uses none.
    pub fn values(&self, group: &Group) -> String {
        let values: Vec<String> = group
            .fields()
            .into_iter()
            .map(|field| match self.unknown.get(&field) {
                Some(reason) => reason.clone(),
                None => self.facts.in_words(field),
            })
            .collect();
        values.join(", ")
    }

    pub fn name(&self) -> Option<&str> {
        self.facts.filename.as_deref()
    }

    /// Returns its name, else its type in words.
    pub fn shown_name(&self) -> String {
        let by_type = || match self.facts.mime.as_deref().map(Format::from_mime) {
            Some(Some(format)) => format!("a file of the format {}", format.name()),
            _ => "the file".to_owned(),
        };
        self.name().map_or_else(by_type, str::to_owned)
    }

    /// Returns what is known whichever of two paths was taken; they join at the node with that title.
    pub fn merged(mut self, other: Self, title: &str) -> Self {
        for (field, reason) in other.unknown {
            self.facts.clear(field);
            self.unknown.entry(field).or_insert(reason);
        }
        for &field in Field::ALL {
            if !self.unknown.contains_key(&field) && !self.facts.agree(&other.facts, field) {
                self.facts.clear(field);
                let reason = format!("{} depends on the path to `{title}`", field.name());
                self.unknown.insert(field, reason);
            }
        }
        self.is_named = same(self.is_named, other.is_named);
        self.has_stored = same(self.has_stored, other.has_stored);
        self
    }

    /// Gives it a pattern's name, as far as that is known.
    pub fn rename(&mut self, pattern: &Pattern, premise: &Premise) {
        self.is_named = Some(true);
        let is_unknown = |field| self.unknown.contains_key(&field);
        let is_measured = |placeholder, field| pattern.uses(placeholder) && is_unknown(field);
        let lacks_number = pattern.uses(Placeholder::Number)
            || is_measured(Placeholder::Width, Field::Width)
            || is_measured(Placeholder::Height, Field::Height);
        let lacks_text = is_unknown(Field::Extension)
            || (pattern.uses(Placeholder::Original) && self.original.is_none());
        if lacks_text {
            return self.forget_name();
        }
        let original = self.original.as_deref().unwrap_or_default();
        let name = pattern.apply(&Names {
            original_stem: Facts::stem(original),
            extension: self.facts.extension.as_deref().unwrap_or_default(),
            date: &premise.date,
            width: self.facts.width,
            height: self.facts.height,
            n: 1,
        });
        let named = Facts::named(&(premise.clean)(&name));
        self.take_name(named);
        if lacks_number {
            // The extension does not depend on numbers, which come before it.
            let reason = "filename has a number in it that is not known".to_owned();
            self.forget(Field::Filename, reason);
        }
    }

    /// Forgets name and extension.
    pub fn forget_name(&mut self) {
        for field in [Field::Filename, Field::Extension] {
            self.forget(field, format!("{} is not known", field.name()));
        }
    }

    /// Does an operation, and returns that in words; the reason where it cannot be done on such a file.
    pub fn operate(&mut self, operation: &Operation, node: &Node) -> Result<String, String> {
        let formats = self.formats()?;
        let inputs = |format| {
            let source = OperationInput::new(format, self.name().unwrap_or("file"));
            let others = node
                .stored_files()
                .map(|_| OperationInput::new(Format::Png, "image.png"));
            std::iter::once(source).chain(others).collect::<Vec<_>>()
        };
        let mut results = Vec::new();
        let mut rejection = None;
        for format in formats {
            match operation.task(&inputs(format)) {
                Ok(_) => results.push(operation.output_format(format)),
                Err(failure) => rejection = rejection.or(Some(failure.message)),
            }
        }
        let Some(first) = results.first().copied() else {
            return Err(
                rejection.unwrap_or_else(|| "no file is of a type that it takes".to_owned())
            );
        };
        if matches!(operation, Operation::Inspect(_)) {
            return Ok("finds the facts of the file".to_owned());
        }
        let format = first.filter(|_| results.iter().all(|result| *result == first));
        self.change(format, &node.title);
        Ok(format!("makes {}", self.shown_name()))
    }

    /// Returns the reason why no video stream can be made of it.
    pub fn stream(&self) -> Result<(), String> {
        let formats = self.formats()?;
        match formats.iter().any(|format| format.class().is_timed()) {
            true => Ok(()),
            false => Err(format!(
                "a video stream is made of video or audio, and this is {}",
                formats[0].name()
            )),
        }
    }

    /// Returns the formats that it may have; the reason when it has none.
    fn formats(&self) -> Result<Vec<Format>, String> {
        match &self.facts.mime {
            None => Ok(Format::ALL.to_vec()),
            Some(mime) => match Format::from_mime(mime) {
                Some(format) => Ok(vec![format]),
                None => Err(format!("{} is of no type that is known", self.shown_name())),
            },
        }
    }

    /// Becomes the result of an operation, of that format if it is known.
    fn change(&mut self, format: Option<Format>, title: &str) {
        for field in CHANGED {
            self.forget(
                field,
                format!("{} is known only after `{title}`", field.name()),
            );
        }
        let Some(format) = format else {
            for field in [Field::Mime, Field::Filename, Field::Extension] {
                self.forget(
                    field,
                    format!("{} is known only after `{title}`", field.name()),
                );
            }
            return;
        };
        self.unknown.remove(&Field::Mime);
        self.facts.mime = Some(format.mime().to_owned());
        match self.facts.filename.clone() {
            Some(name) => self.take_name(Facts::named(&renamed(&name, format))),
            None => self.change_extension(format),
        }
    }

    /// Changes the extension of a name that is not known, as [`renamed`] does.
    fn change_extension(&mut self, format: Format) {
        let own = self.facts.extension.as_deref();
        let keeps_own = own.is_some_and(|own| Format::parse(own) == Some(format));
        // A file of the same format keeps its own spelling, which may be another one.
        let may_keep_own =
            self.unknown.contains_key(&Field::Extension) && !format.aliases().is_empty();
        if !keeps_own && !may_keep_own {
            self.unknown.remove(&Field::Extension);
            self.facts.extension = Some(format.extension().to_owned());
        }
    }

    fn take_name(&mut self, named: Facts) {
        self.unknown.remove(&Field::Filename);
        self.unknown.remove(&Field::Extension);
        (self.facts.filename, self.facts.extension) = (named.filename, named.extension);
    }

    fn forget(&mut self, field: Field, reason: String) {
        self.facts.clear(field);
        self.unknown.insert(field, reason);
    }
}

fn same(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    one.filter(|_| one == other)
}
