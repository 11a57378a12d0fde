//! JSON access of workflow definitions: camelCase and snake_case names, ids, values in messages.

use serde_json::{Map, Value};

use crate::operation::shorten;

/// Finds a field by its camelCase name or the same in snake_case; `null` is none.
pub fn get<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object
        .get(name)
        .or_else(|| object.get(&snake_case(name)))
        .filter(|value| !value.is_null())
}

/// The first of several names that is there.
pub fn first<'a>(object: &'a Map<String, Value>, names: &[&str]) -> Option<&'a Value> {
    names.iter().find_map(|name| get(object, name))
}

/// An id: text, or a whole number, which some editors count their nodes with.
pub fn id(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

/// Text that is not blank, without the blanks around it. `Err`: it is no text.
pub fn text(value: Option<&Value>) -> Result<Option<&str>, &Value> {
    match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
        Some(other) => Err(other),
    }
}

/// Writes a value for a message.
pub fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("`{flag}`"),
        Value::Number(number) => format!("`{number}`"),
        Value::String(text) => format!("`{}`", shorten(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
