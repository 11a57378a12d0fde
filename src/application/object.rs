//! JSON bodies to typed requests: camelCase and snake_case of a field, errors that name the field.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::application::{error::ApiError, field};

pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let object = match bytes {
        [] => Map::new(),
        _ => match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => object,
            Ok(_) => {
                return Err(invalid!("the body must be a JSON object"));
            }
            Err(error) => return Err(invalid!("malformed JSON: {error}")),
        },
    };
    from_object(object)
}

/// Reads an object with fields in either spelling; the error names the wrong field.
pub(crate) fn from_object<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, ApiError> {
    for (name, value) in &object {
        let is_given = !value.is_null() && value.as_str() != Some("");
        field::reject_unsupported(name, is_given)?;
    }
    let object = in_camel_case(object)?;
    serde_json::from_value(Value::Object(object.clone())).map_err(|error| {
        match culprit::<T>(object) {
            Some((field, reason)) => {
                invalid!("{field}: {}", in_plain_words(&reason))
            }
            None => ApiError::Invalid(in_plain_words(&error)),
        }
    })
}

/// Converts snake_case keys to camelCase; a field given in both spellings is rejected.
pub(crate) fn in_camel_case(object: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let mut folded = Map::with_capacity(object.len());
    for (key, value) in object {
        let name = camel_case(&key);
        if folded.insert(name, value).is_some() {
            return Err(invalid!("{key}: given twice, in two spellings"));
        }
    }
    Ok(folded)
}

/// The camelCase spelling of a name; one that has it already stays.
pub(crate) fn camel_case(key: &str) -> String {
    let mut words = key.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

/// Returns the field that cannot be read even alone; serde_json does not name it.
pub(crate) fn culprit<T: DeserializeOwned>(
    object: Map<String, Value>,
) -> Option<(String, serde_json::Error)> {
    object.into_iter().find_map(|(field, value)| {
        let alone = Map::from_iter([(field.clone(), value)]);
        let error = serde_json::from_value::<T>(Value::Object(alone)).err()?;
        (!error.to_string().starts_with("missing field")).then_some((field, error))
    })
}

pub(crate) fn in_plain_words(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace("expected i64", "expected a whole number")
        .replace("expected a boolean", "expected true or false")
        .replace("expected a sequence", "expected an array")
        .replace("expected a map", "expected an object")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Sample {
        user_name: String,
        window_seconds: Option<i64>,
        is_active: Option<bool>,
    }

    #[test]
    fn both_spellings_are_read_and_unknown_fields_ignored() {
        let expected = Sample {
            user_name: "a".into(),
            window_seconds: Some(5),
            is_active: None,
        };
        for text in [
            r#"{"userName":"a","windowSeconds":5}"#,
            r#"{"user_name":"a","window_seconds":5,"id":[1],"isActive":null}"#,
        ] {
            assert_eq!(
                parse::<Sample>(text.as_bytes()).unwrap(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn errors_name_the_field() {
        let deep = format!(r#"{{"userName":{}"#, "[".repeat(100_000));
        let cases = [
            ("", "missing field `userName`"),
            ("{}", "missing field `userName`"),
            ("[]", "the body must be a JSON object"),
            (
                "{\"userName\":",
                "malformed JSON: EOF while parsing a value at line 1 column 12",
            ),
            (
                r#"{"userName":7}"#,
                "userName: invalid type: integer `7`, expected a string",
            ),
            (
                r#"{"userName":"a","windowSeconds":"x"}"#,
                r#"windowSeconds: invalid type: string "x", expected a whole number"#,
            ),
            (
                r#"{"user_name":"a","userName":"b"}"#,
                "given twice, in two spellings",
            ),
            (&deep, "malformed JSON: recursion limit exceeded"),
        ];
        for (text, expected) in cases {
            let error = parse::<Sample>(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
