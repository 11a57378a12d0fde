//! The index of files in `docs/architecture.md`: made of the first sentence of each file's documentation and the names of its constants, so that
//! both are true together. `make map` writes it again.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{MAY_DEPEND_ON, is_production, root, source_folder, text, tracked_files};

const PAGE: &str = "docs/architecture.md";
const BEGIN: &str = "<!-- The index is made of the files' own documentation: make map -->\n";
const END: &str = "<!-- End of the index -->\n";

/// Set by `make map`.
const WRITE: &str = "SLUICE_WRITE_MAP";

/// Longest first sentence: a line of the index is to be taken in at a glance.
const LONGEST_SENTENCE: usize = 200;

#[test]
fn the_index_of_files_is_made_of_their_documentation() {
    let page = text(PAGE);
    let (head, rest) = page.split_once(BEGIN).expect("the index begins");
    let (_, tail) = rest.split_once(END).expect("the index ends");
    let made = format!("{head}{BEGIN}\n{}{END}{tail}", index());
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(root().join(PAGE), &made).unwrap();
        return;
    }
    let differing = made.lines().zip(page.lines()).find(|(new, old)| new != old);
    assert!(
        made == page,
        "run `make map`: {PAGE} differs from the files at {differing:?}"
    );
}

/// A list for each folder, in the order of the crates.
fn index() -> String {
    let mut folders: BTreeMap<(usize, String), Vec<(String, String)>> = BTreeMap::new();
    let mut wrong = Vec::new();
    let roots = MAY_DEPEND_ON.map(|(folder, ..)| source_folder(folder));
    let roots: Vec<String> = roots.into_iter().chain(["web/src/".to_owned()]).collect();
    for path in tracked_files() {
        let name = path.to_string_lossy().into_owned();
        let place = roots
            .iter()
            .position(|root| name.starts_with(root.as_str()));
        let is_test = !is_production(&name) || name.contains(".test.") || name.contains("/mock/");
        let (Some(place), false) = (place, is_test) else {
            continue;
        };
        let (folder, file) = name.rsplit_once('/').expect("it is in a folder");
        let entry = match file.rsplit_once('.') {
            Some((_, "rs")) => Entry::of_rust(&text(&name)),
            Some((_, "ts" | "tsx" | "css")) => Entry::of_script(&text(&name)),
            _ => continue,
        };
        if entry.sentence.is_empty() || entry.sentence.chars().count() > LONGEST_SENTENCE {
            wrong.push(format!("{name}: {}", entry.sentence));
        }
        let files = folders.entry((place, folder.to_owned())).or_default();
        files.push((file.to_owned(), entry.line()));
    }
    assert_eq!(
        wrong, [""; 0],
        "documentation begins with one sentence of at most {LONGEST_SENTENCE} characters"
    );
    let mut index = String::new();
    for ((_, folder), files) in folders {
        let _ = writeln!(index, "**`{folder}/`**\n");
        for (file, line) in files {
            let _ = writeln!(index, "- `{file}` {line}");
        }
        index.push('\n');
    }
    index
}

struct Entry {
    sentence: String,
    constants: Vec<String>,
}

impl Entry {
    fn of_rust(text: &str) -> Self {
        let documentation = text
            .lines()
            .map_while(|line| line.strip_prefix("//!"))
            .map(str::trim)
            .take_while(|line| !line.is_empty());
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let code = code.unwrap_or_default();
        let is_settings = text.contains("pub struct Settings") || text.contains("impl Default for");
        let fields = code
            .lines()
            .filter(|_| is_settings)
            .filter_map(|line| line.strip_prefix("    pub ")?.split_once(':'))
            .map(|(field, _)| field)
            .filter(|field| {
                field
                    .chars()
                    .all(|it| it.is_lowercase() || "_0123456789".contains(it))
            });
        let names = code.lines().filter_map(|line| {
            let line = line
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            let name = line.trim_start_matches("pub ").strip_prefix("const ")?;
            let (name, _) = name.split_once(':')?;
            (name != "_" && !name.contains(' ')).then_some(name)
        });
        Self {
            sentence: first_sentence(documentation),
            constants: names.chain(fields).map(str::to_owned).collect(),
        }
    }

    fn of_script(text: &str) -> Self {
        let comment = text.strip_prefix("/**").or_else(|| text.strip_prefix("/*"));
        let comment = comment.and_then(|rest| rest.split_once("*/"));
        let lines = comment.map_or("", |(comment, _)| comment).lines();
        let lines = lines.map(|line| line.trim().trim_start_matches('*').trim());
        let names = text.lines().filter_map(|line| {
            let name = line.trim_start_matches("export ").strip_prefix("const ")?;
            let name = name.split([' ', ':']).next()?;
            let is_constant = name.len() > 1
                && name
                    .chars()
                    .all(|it| it.is_uppercase() || "_0123456789".contains(it));
            is_constant.then_some(name)
        });
        Self {
            sentence: first_sentence(
                lines
                    .skip_while(|line| line.is_empty())
                    .take_while(|line| !line.is_empty()),
            ),
            constants: names.map(str::to_owned).collect(),
        }
    }

    fn line(&self) -> String {
        let constants: Vec<String> = self
            .constants
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        match constants.is_empty() {
            true => self.sentence.clone(),
            false => format!("{} ({})", self.sentence, constants.join(", ")),
        }
    }
}

/// Returns the first sentence without its full stop; links of rustdoc become plain text.
fn first_sentence<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let paragraph = lines.collect::<Vec<_>>().join(" ");
    let end = paragraph.match_indices(". ").map(|(at, _)| at).find(|at| {
        let before = &paragraph[..*at];
        !["e.g", "i.e", "etc", "cf", "vs", "Nr", "No"]
            .iter()
            .any(|short| before.ends_with(short))
    });
    let sentence = paragraph[..end.unwrap_or(paragraph.len())].trim_end_matches('.');
    without_links(sentence)
}

/// Replaces `[text](address)` and `[text]` by the text.
fn without_links(sentence: &str) -> String {
    let mut plain = String::new();
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        let is_code = before.matches('`').count() % 2 == 1;
        match after.split_once(']').filter(|_| !is_code) {
            Some((inner, after)) => {
                plain.push_str(inner);
                let address = after.strip_prefix('(').and_then(|it| it.split_once(')'));
                rest = address.map_or(after, |(_, after)| after);
            }
            None => {
                plain.push('[');
                rest = after;
            }
        }
    }
    plain + rest
}
