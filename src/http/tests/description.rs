//! `docs/reference/openapi.json`: the API's description in the repository. The front end's types are made from it, and a review of
//! a change sees in it what changes for clients.

use serde_json::Value;

use crate::{config::Config, http::docs};

const PATH: &str = "docs/reference/openapi.json";
/// Set by `make openapi`.
const WRITE: &str = "SLUICE_WRITE_OPENAPI";
/// Tool and parameter of the operation that is built into tests only.
const EXAMPLE: &str = "fade";

#[test]
fn the_description_in_the_repository_is_the_programs() {
    let mut document = serde_json::to_value(docs::document(&Config::default())).unwrap();
    leave_out_example(&mut document);
    let described = format!("{document:#}\n");
    assert!(described.len() < 1 << 20, "{} bytes", described.len());
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(PATH, described).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(PATH).unwrap_or_default();
    let mut lines = kept.lines().zip(described.lines()).zip(1..);
    let difference = lines.find(|((kept, described), _)| kept != described);
    assert!(
        kept == described,
        "{PATH} differs from the program: run `make openapi`; first difference: {difference:?}"
    );
}

fn leave_out_example(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(leave_out_example),
        Value::Array(items) => {
            items.retain(|item| item["name"] != EXAMPLE);
            items.iter_mut().for_each(leave_out_example);
        }
        Value::String(text) => {
            let begin = text.find(&format!("**{EXAMPLE}**: "));
            if let Some(begin) = begin {
                let rest = &text[begin + 2..];
                let end = rest.find("\n\n**").map(|at| begin + 2 + at + 2);
                text.replace_range(begin..end.unwrap_or(text.len()), "");
            }
        }
        _ => {}
    }
}

#[test]
fn the_example_is_left_out_and_nothing_else() {
    let mut value = serde_json::json!({
        "parameters": [{"name": "w"}, {"name": "fade"}, {"name": "fadeIn"}],
        "description": "**crop**: a\n\n- `x`: y\n\n**fade**: b\n\n- `amount`: z\n\n**flip**: c\n\n",
        "last": "**crop**: a\n\n**fade**: b\n\n",
    });
    leave_out_example(&mut value);
    let expected = serde_json::json!({
        "parameters": [{"name": "w"}, {"name": "fadeIn"}],
        "description": "**crop**: a\n\n- `x`: y\n\n**flip**: c\n\n",
        "last": "**crop**: a\n\n",
    });
    assert_eq!(value, expected);
}
