//! Reads values of JSON answers that must be present and of one type.

use serde_json::Value;

use super::Failure;

pub fn text(value: &Value) -> Result<String, Failure> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| format!("{value} is no text").into())
}

pub fn number(value: &Value) -> Result<u64, Failure> {
    let number = value.as_u64();
    number.ok_or_else(|| format!("{value} is no number").into())
}

pub fn list(value: &Value) -> Result<Vec<Value>, Failure> {
    let list = value.as_array().cloned();
    list.ok_or_else(|| format!("{value} is no list").into())
}

/// Returns that field of each entry of a list.
pub fn each(value: &Value, field: &str) -> Result<Vec<Value>, Failure> {
    let entries = list(value)?;
    Ok(entries.iter().map(|entry| entry[field].clone()).collect())
}
