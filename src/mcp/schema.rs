//! Builders of JSON Schemas for MCP tools; no schema has `anyOf` at its top. Models read them: each property says what to put
//! there. The interfaces of several models reject a top `anyOf`.

use serde_json::{Map, Value, json};

/// Returns the schema of an object with these properties and no others.
pub fn input(properties: Value, required: &[&str]) -> Value {
    let mut schema = object(properties, required);
    schema["additionalProperties"] = json!(false);
    schema
}

/// Returns the schema of an object with these properties among others, for answers: later versions may add fields.
pub fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

/// Returns the schema of a list of objects with these properties.
pub fn list(properties: Value) -> Value {
    json!({"type": "array", "items": object(properties, &[])})
}

pub fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub fn id(description: &str) -> Value {
    json!({"type": "string", "format": "uuid", "description": description})
}

pub fn flag(description: &str, default: bool) -> Value {
    json!({"type": "boolean", "description": description, "default": default})
}

pub fn integer(description: &str, least: u64, most: Option<u64>) -> Value {
    let mut schema = json!({"type": "integer", "minimum": least, "description": description});
    if let Some(most) = most {
        schema["maximum"] = json!(most);
    }
    schema
}

/// Schema of a string with a fixed set of values.
pub fn word(description: &str, words: &[&str]) -> Value {
    json!({"type": "string", "enum": words, "description": description})
}

/// Returns a schema that also allows null: for fields of answers that may be without a value.
pub fn nullable(mut schema: Value) -> Value {
    let kind = schema["type"].take();
    schema["type"] = json!([kind, "null"]);
    schema
}

/// Returns a schema as the object that it is.
pub fn as_object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
