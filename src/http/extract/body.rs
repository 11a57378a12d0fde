//! A JSON body: bounded in bytes and time, both spellings of a field accepted, errors that name the field.

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest, dev::Payload, http::header, web::BytesMut,
};
use futures_util::{StreamExt as _, future::LocalBoxFuture};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::http::{context::AppState, error::ApiError, field};

/// A request body. An empty one is an empty object; unknown fields are ignored, so that a record may be sent back whole.
#[derive(Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let is_json = is_json(request);
        let bytes = bytes(request, payload.take());
        Box::pin(async move {
            let bytes = bytes.await?;
            if !bytes.is_empty() && !is_json {
                return Err(ApiError::UnsupportedType(
                    "send JSON with `Content-Type: application/json`".to_owned(),
                ));
            }
            parse(&bytes).map(Self)
        })
    }
}

/// The bytes of a body of JSON: at most `http.max_json` (413), within `http.body_timeout` (408).
pub(crate) fn bytes(
    request: &HttpRequest,
    payload: Payload,
) -> impl Future<Output = Result<BytesMut, ApiError>> + use<> {
    let http = &AppState::of(request).config.http;
    let (limit, patience) = (http.max_json.as_u64(), http.body_timeout);
    let declared = declared_length(request);
    async move {
        if declared.is_some_and(|length| length > limit) {
            return Err(too_large(limit));
        }
        tokio::time::timeout(patience, read(payload, limit))
            .await
            .map_err(|_| {
                ApiError::Timeout(format!(
                    "the body did not arrive within {} s",
                    patience.as_secs()
                ))
            })?
    }
}

fn declared_length(request: &HttpRequest) -> Option<u64> {
    request
        .headers()
        .get(header::CONTENT_LENGTH)?
        .to_str()
        .ok()?
        .parse()
        .ok()
}

/// Whether the body is said to be JSON.
pub(crate) fn is_json(request: &HttpRequest) -> bool {
    let essence = request.content_type().trim().to_ascii_lowercase();
    essence == "application/json" || essence.ends_with("+json")
}

fn too_large(limit: u64) -> ApiError {
    ApiError::TooLarge(format!(
        "the body is larger than {limit} bytes (http.max_json)"
    ))
}

async fn read(mut payload: Payload, limit: u64) -> Result<BytesMut, ApiError> {
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk
            .map_err(|error| ApiError::Invalid(format!("the body could not be read: {error}")))?;
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Err(too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let object = match bytes {
        [] => Map::new(),
        _ => match serde_json::from_slice(bytes) {
            Ok(Value::Object(object)) => object,
            Ok(_) => {
                return Err(ApiError::Invalid(
                    "the body must be a JSON object".to_owned(),
                ));
            }
            Err(error) => return Err(ApiError::Invalid(format!("malformed JSON: {error}"))),
        },
    };
    from_object(object)
}

/// Reads an object, whose fields may stand in either spelling; the error names the field that is wrong.
pub(crate) fn from_object<T: DeserializeOwned>(object: Map<String, Value>) -> Result<T, ApiError> {
    for (name, value) in &object {
        let is_given = !value.is_null() && value.as_str() != Some("");
        field::refuse_unsupported(name, is_given)?;
    }
    let object = in_camel_case(object)?;
    serde_json::from_value(Value::Object(object.clone())).map_err(|error| {
        match culprit::<T>(object) {
            Some((field, reason)) => {
                ApiError::Invalid(format!("{field}: {}", in_plain_words(&reason)))
            }
            None => ApiError::Invalid(in_plain_words(&error)),
        }
    })
}

/// snake_case keys become camelCase; a field given in both spellings is refused.
fn in_camel_case(object: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let mut folded = Map::with_capacity(object.len());
    for (key, value) in object {
        let name = camel_case(&key);
        if folded.insert(name, value).is_some() {
            return Err(ApiError::Invalid(format!(
                "{key}: given twice, in two spellings"
            )));
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

/// The field that cannot be read even alone. serde_json does not say which one it was.
fn culprit<T: DeserializeOwned>(object: Map<String, Value>) -> Option<(String, serde_json::Error)> {
    object.into_iter().find_map(|(field, value)| {
        let alone = Map::from_iter([(field.clone(), value)]);
        let error = serde_json::from_value::<T>(Value::Object(alone)).err()?;
        (!error.to_string().starts_with("missing field")).then_some((field, error))
    })
}

fn in_plain_words(error: &serde_json::Error) -> String {
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
