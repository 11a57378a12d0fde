//! Regular expressions of conditions (`matches`): largest compiled size, case, when one is compiled.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};

/// Largest compiled expression; one that repeats a lot (`\w{1000}`) needs more and is rejected.
pub(super) const MAX_BYTES: usize = 1 << 20;

/// A regular expression, which compares without case.
#[derive(Clone, Debug)]
pub(in crate::workflow) struct Expression {
    text: String,
    /// `None` inside: it does not compile.
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    /// Compiles it into at most so many bytes.
    pub(super) fn compiled(text: &str, most_bytes: usize) -> Result<Self, regex::Error> {
        let compiled = compile(text, most_bytes)?;
        Ok(Self {
            text: text.to_owned(),
            compiled: Some(compiled).into(),
        })
    }

    /// Returns an expression that compiled before; it is compiled again at its first use.
    pub(super) fn saved(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            compiled: OnceLock::new(),
        }
    }

    /// Nothing matches one that does not compile any more.
    pub(super) fn is_match(&self, text: &str) -> bool {
        let compiled = self
            .compiled
            .get_or_init(|| compile(&self.text, MAX_BYTES).ok());
        compiled.as_ref().is_some_and(|regex| regex.is_match(text))
    }
}

/// Expressions of the same text are equal.
impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn compile(text: &str, bytes: usize) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text)
        .case_insensitive(true)
        .size_limit(bytes)
        .dfa_size_limit(bytes)
        .build()
}
