//! Reads the code blocks and sections of documents, for tests that run their commands.

/// All fenced blocks of this language, each with its line end.
pub fn blocks(text: &str, tag: &str) -> Vec<String> {
    let opening = format!("\n```{tag}\n");
    let after_openings = text.split(&opening).skip(1);
    after_openings
        .filter_map(|rest| Some(format!("{}\n", rest.split_once("\n```\n")?.0)))
        .collect()
}

/// Returns the text from a heading of the second level, given without its `##`, to the next one.
pub fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("\n## {heading}\n"))?;
    rest.split("\n## ").next()
}
