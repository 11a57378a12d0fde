//! Name and value pairs of an image address's query or a preset: percent-decoding, longest query.

use serde_json::{Map, Value};

use super::FieldError;
use crate::operation::shorten;

/// The longest query that is read. Addresses in pages may carry trackers.
const MAX_QUERY_BYTES: usize = 4096;

/// The decoded pairs of a query, in its order.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, FieldError> {
    if query.len() > MAX_QUERY_BYTES {
        return Err(FieldError::new(
            "query",
            format!(
                "the query must have at most {MAX_QUERY_BYTES} bytes, got {}",
                query.len()
            ),
        ));
    }
    // `+` is a blank, and a broken escape stays as it is (URL Standard §5.1).
    let pairs = form_urlencoded::parse(query.as_bytes());
    Ok(pairs.into_owned().collect())
}

/// The pairs of a preset's object, in the same words as a query's.
pub(super) fn pairs_of_json(
    params: &Map<String, Value>,
) -> Result<Vec<(String, String)>, FieldError> {
    params
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => {
                    let name = shorten(name);
                    return Err(FieldError::new(
                        &name,
                        format!("{name} must be text, a number or a boolean"),
                    ));
                }
            };
            Ok((name.clone(), text))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_like_a_form() {
        let pairs = pairs("&w=1%30&%66p=0.5%2C+1&x&%zz=%&y=%ff=").expect("a short query");
        let expected = [
            ("w", "10"),
            ("fp", "0.5, 1"),
            ("x", ""),
            ("%zz", "%"),
            ("y", "\u{fffd}="),
        ];
        assert_eq!(
            pairs,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert!(super::pairs(&"x".repeat(4097)).is_err());
    }
}
