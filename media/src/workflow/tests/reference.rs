//! `docs/reference/workflows.md` says what the code says.

use serde_json::Value;

use super::{super::*, check};
use crate::{
    operation::FieldInfo,
    workflow::{legacy, pattern::Placeholder},
};

const REFERENCE: &str = include_str!("../../../../docs/reference/workflows.md");

/// The text under a heading, up to the next one of its level or a higher one.
fn section(heading: &str) -> &'static str {
    let level = heading.split(' ').next().expect("a heading has a level");
    let (_, rest) = REFERENCE
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no {heading}"));
    let ends = ["\n## ".to_owned(), format!("\n{level} ")];
    let end = ends.iter().filter_map(|end| rest.find(end)).min();
    &rest[..end.unwrap_or(rest.len())]
}

/// The rows of the tables in a text, their heads left out.
fn rows(text: &str) -> Vec<String> {
    text.lines()
        .filter(|line| line.starts_with("| `"))
        .map(str::to_owned)
        .collect()
}

/// The first cell of each row, without its quotes.
fn names(text: &str) -> Vec<String> {
    let name = |row: &String| row.split('`').nth(1).unwrap_or_default().to_owned();
    rows(text).iter().map(name).collect()
}

fn quoted<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(" ")
}

fn field_row(field: &FieldInfo) -> String {
    let name = match field.alias {
        Some(alias) => format!("`{}` (or `{alias}`)", field.name),
        None => format!("`{}`", field.name),
    };
    let default = match &field.default {
        Some(Value::String(text)) => format!("`{text}`"),
        Some(value) => format!("`{value}`"),
        None => "–".to_owned(),
    };
    format!(
        "| {name} | {} | {default} | {} |",
        field.allowed, field.summary
    )
}

/// Every kind but the example operation, which no program has.
fn kinds() -> impl Iterator<Item = KindInfo> {
    super::super::kinds().filter(|info| info.kind != "fade")
}

#[test]
fn every_kind_is_reported_with_its_fields() {
    let documented: Vec<&str> = section("## Kinds of nodes")
        .lines()
        .filter_map(|line| line.strip_prefix("### `"))
        .map(|line| line.trim_end_matches('`'))
        .collect();
    let known: Vec<&str> = kinds().map(|info| info.kind).collect();
    assert_eq!(documented, known);
    for info in kinds() {
        let text = section(&format!("### `{}`", info.kind));
        let expected: Vec<String> = info.fields.iter().map(field_row).collect();
        assert_eq!(
            rows(text),
            expected,
            "{}:\n{}\n",
            info.kind,
            expected.join("\n")
        );
        assert!(
            text.contains(info.summary),
            "{}: {}",
            info.kind,
            info.summary
        );
        for class in &info.accepts {
            assert!(text.contains(class), "{}: {class}", info.kind);
        }
    }
}

#[test]
fn every_property_operator_and_word_is_reported_with_its_spellings() {
    let fields: Vec<String> = Field::ALL
        .iter()
        .map(|field| {
            let kind = if field.is_number() { "number" } else { "text" };
            format!(
                "| `{}` | {} | {kind} |",
                field.name(),
                quoted(field.spellings().iter().copied())
            )
        })
        .collect();
    let documented: Vec<String> = rows(section("### Properties"))
        .iter()
        .map(|row| row.split(" | ").take(3).collect::<Vec<_>>().join(" | ") + " |")
        .collect();
    assert_eq!(documented, fields, "\n{}\n", fields.join("\n"));

    let operators: Vec<String> = Operator::all()
        .map(|operator| {
            format!(
                "| `{}` | {} |",
                operator.name(),
                quoted(operator.spellings())
            )
        })
        .collect();
    let documented = rows(section("### Operators"));
    assert_eq!(documented, operators, "\n{}\n", operators.join("\n"));

    let words: Vec<String> = legacy::WORDS
        .iter()
        .map(|[name, field, operator, value]| {
            format!("| `{name}` | `{field}` `{operator}` `{value}` |")
        })
        .collect();
    assert_eq!(
        rows(section("### Older forms")),
        words,
        "\n{}\n",
        words.join("\n")
    );
}

#[test]
fn every_placeholder_template_and_limit_is_reported() {
    let placeholders: Vec<String> = Placeholder::ALL
        .iter()
        .map(|placeholder| format!("{{{}}}", placeholder.name()))
        .collect();
    assert_eq!(names(section("## Names of results")), placeholders);
    let templates: Vec<&str> = Template::ALL
        .iter()
        .map(|template| template.name())
        .collect();
    assert_eq!(names(section("## Short forms")), templates);
    let limits = section("## Limits");
    for limit in [
        MAX_NODES,
        MAX_EDGES,
        MAX_ID_CHARS,
        MAX_GROUP_DEPTH,
        MAX_CONDITIONS,
        MAX_EXPRESSIONS,
    ] {
        assert!(limits.contains(&format!("| {limit}")), "{limit}");
    }
    assert_eq!(MAX_EXPRESSION_CHARS_IN_ALL, 2_000);
    assert!(limits.contains("| 1 000; 2 000 |"));
}

#[test]
fn every_problem_is_reported_by_its_severity() {
    for (heading, severity) in [
        ("### Errors", Severity::Error),
        ("### Warnings", Severity::Warning),
    ] {
        let known: Vec<&str> = Code::ALL
            .iter()
            .filter(|code| code.severity() == severity)
            .map(|code| code.name())
            .collect();
        assert_eq!(names(section(heading)), known, "{heading}");
    }
}

#[test]
fn the_examples_are_audio() {
    let mut definitions = 0;
    for (index, block) in REFERENCE.split("```json\n").skip(1).enumerate() {
        let (text, _) = block.split_once("```").expect("a block ends");
        let example: Value =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("example {index}: {error}"));
        if example.get("nodes").is_some() {
            assert_eq!(check(&example).problems, [], "example {index}");
            definitions += 1;
        }
    }
    assert!(definitions >= 1);
}
