//! Checks of single fields: length of `name` and `description`, `allowedDomains`, times, numbers, choices; every message names
//! field, value and range.

use std::fmt::Display;

use uuid::Uuid;

use crate::application::error::ApiError;

/// Longest `name`, in characters.
const MAX_NAME: usize = 120;
/// Most entries of `allowedDomains`.
const MAX_DOMAINS: usize = 25;
/// Characters of a foreign text that a message shows.
const MAX_SHOWN: usize = 60;

/// Rejects a field that clients of this interface may send and that would change what they rely on: if it were ignored
/// like an unknown one, clients would notice by addresses that do not work.
pub fn reject_unsupported(name: &str, is_given: bool) -> Result<(), ApiError> {
    match name {
        "cdnSlug" | "cdn_slug" if is_given => Err(invalid!(
            "cdnSlug is not supported: leave it out, and use /cdn/v1/{{deliveryKey}}/{{fileId}}; an alias of the delivery key may \
             be in the key's place"
        )),
        _ => Ok(()),
    }
}

/// Checks a name: 1 to 120 characters after trimming, without control characters. `None` when none was given.
pub fn name(given: Option<String>) -> Result<Option<String>, ApiError> {
    name_within(given, MAX_NAME)
}

/// [`name`] with 1 to `most` characters.
pub fn name_within(given: Option<String>, most: usize) -> Result<Option<String>, ApiError> {
    words("name", given, most)
}

/// Checks a text: 1 to `most` characters after trimming, without control characters. `None` when none was given.
pub fn words(field: &str, given: Option<String>, most: usize) -> Result<Option<String>, ApiError> {
    let Some(given) = given else { return Ok(None) };
    let text = given.trim();
    let length = text.chars().count();
    if !(1..=most).contains(&length) {
        return Err(invalid!(
            "{field} must have 1 to {most} characters, got {length}"
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(invalid!("{field} must not hold control characters"));
    }
    Ok(Some(text.to_owned()))
}

/// Checks a description: at most `most` characters, in lines, without other control characters. `None` when none was
/// given; null and blanks empty it.
pub fn description(
    given: Option<Option<String>>,
    most: usize,
) -> Result<Option<Option<String>>, ApiError> {
    let Some(text) = given else { return Ok(None) };
    let text = text.filter(|text| !text.trim().is_empty());
    let length = text.as_ref().map_or(0, |text| text.chars().count());
    if length > most {
        return Err(invalid!(
            "description must have at most {most} characters, got {length}"
        ));
    }
    let is_odd = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    match text.as_ref().is_some_and(|text| text.contains(is_odd)) {
        false => Ok(Some(text)),
        true => Err(invalid!(
            "description must not hold control characters other than line breaks and tabs"
        )),
    }
}

/// Reads one of `allowed` by `parse`.
pub fn choice<T>(
    field: &str,
    given: Option<&str>,
    allowed: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, ApiError> {
    let Some(given) = given else { return Ok(None) };
    match parse(given) {
        Some(value) => Ok(Some(value)),
        None => Err(wrong(field, allowed.join(" or "), given)),
    }
}

/// Checks a whole number of `range`.
pub fn within(
    field: &str,
    given: Option<i64>,
    range: std::ops::RangeInclusive<u32>,
) -> Result<Option<u32>, ApiError> {
    let Some(given) = given else { return Ok(None) };
    match u32::try_from(given) {
        Ok(value) if range.contains(&value) => Ok(Some(value)),
        _ => Err(invalid!(
            "{field} must be {} to {}, got {given}",
            range.start(),
            range.end()
        )),
    }
}

/// Checks at most 25 hosts, each exact or `*.` and a domain; kept in lower case, each once.
pub fn allowed_domains(given: Option<Vec<String>>) -> Result<Option<Vec<String>>, ApiError> {
    let Some(given) = given else { return Ok(None) };
    if given.len() > MAX_DOMAINS {
        return Err(invalid!(
            "allowedDomains must have at most {MAX_DOMAINS} entries, got {}",
            given.len()
        ));
    }
    let mut domains: Vec<String> = Vec::with_capacity(given.len());
    for (index, text) in given.iter().enumerate() {
        let domain = text.trim().to_ascii_lowercase();
        if !is_host(domain.strip_prefix("*.").unwrap_or(&domain)) {
            return Err(wrong(
                format_args!("allowedDomains[{index}]"),
                "a host such as example.org or *.example.org",
                text,
            ));
        }
        if !domains.contains(&domain) {
            domains.push(domain);
        }
    }
    Ok(Some(domains))
}

/// Returns whether the text is a DNS name or an IPv4 address (RFC 1123 §2.1), or an IPv6 address in brackets.
fn is_host(host: &str) -> bool {
    if let Some(v6) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return v6.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    (1..=253).contains(&host.len()) && host.split('.').all(is_label)
}

/// Deserializes an `Option<Option<T>>` of a change: a present field is `Some`, null included.
pub fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Converts Unix seconds to milliseconds.
pub(crate) fn unix_ms(seconds: i64) -> Option<i64> {
    (seconds >= 0).then(|| seconds.checked_mul(1_000))?
}

/// Reads a time, as ISO 8601 with an offset or in Unix seconds, as milliseconds since 1970.
pub(crate) fn time_of(text: &str) -> Option<i64> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(seconds) => unix_ms(seconds),
        Err(_) => text
            .parse::<jiff::Timestamp>()
            .ok()
            .map(|time| time.as_millisecond()),
    }
}

/// Reads a parameter by [`time_of`]; the error names it.
pub(crate) fn time(field: &str, text: &str) -> Result<i64, ApiError> {
    time_of(text).ok_or_else(|| {
        wrong(
            field,
            "ISO 8601 such as 2026-11-20T12:00:00Z, or Unix seconds",
            text,
        )
    })
}

/// Reads an id; `expected` says of what.
pub(crate) fn id(field: &str, expected: &str, text: &str) -> Result<Uuid, ApiError> {
    Uuid::try_parse(text).map_err(|_| wrong(field, expected, text))
}

/// Reads a query's flag: `true`, `false`, or nothing for false.
pub(crate) fn flag(field: &str, text: &str) -> Result<bool, ApiError> {
    match text {
        "true" => Ok(true),
        "false" | "" => Ok(false),
        other => Err(wrong(field, "true or false", other)),
    }
}

/// Rejects the value of a field that must be something else.
pub(crate) fn wrong(field: impl Display, expected: impl Display, got: &str) -> ApiError {
    invalid!("{field} must be {expected}, got `{}`", shorten(got))
}

/// Foreign text, shortened for a message.
pub(crate) fn shorten(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(MAX_SHOWN)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_bounded() {
        assert_eq!(name(None).unwrap(), None);
        assert_eq!(
            name(Some(" Bühne 1 ".into())).unwrap().as_deref(),
            Some("Bühne 1")
        );
        assert!(name(Some("ü".repeat(120))).is_ok());
        let cases = [
            ("  ".to_owned(), "name must have 1 to 120 characters, got 0"),
            (
                "ü".repeat(121),
                "name must have 1 to 120 characters, got 121",
            ),
            (
                "a\u{7}b".to_owned(),
                "name must not hold control characters",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(name(Some(given)).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn descriptions_are_text_of_a_bounded_length() {
        let said = |text: &str| description(Some(Some(text.to_owned())), 9);
        assert_eq!(description(None, 9).unwrap(), None);
        assert_eq!(description(Some(None), 9).unwrap(), Some(None));
        assert_eq!(said(" \n").unwrap(), Some(None));
        assert_eq!(said("ü\r\n\tü").unwrap(), Some(Some("ü\r\n\tü".into())));
        for (odd, expected) in [
            (
                "0123456789",
                "description must have at most 9 characters, got 10",
            ),
            (
                "a\0b",
                "description must not hold control characters other than line breaks and tabs",
            ),
        ] {
            assert_eq!(said(odd).unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn numbers_choices_and_flags_name_their_range() {
        assert_eq!(within("w", Some(1800), 0..=1800).unwrap(), Some(1800));
        for odd in [-1, 1801, i64::MAX] {
            let error = within("reconnectWindowSeconds", Some(odd), 0..=1800)
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                format!("reconnectWindowSeconds must be 0 to 1800, got {odd}")
            );
        }
        let parse = |text: &str| (text == "low").then_some(());
        let error = choice("latency", Some("fa\nst"), &["standard", "low"], parse)
            .unwrap_err()
            .to_string();
        assert_eq!(error, "latency must be standard or low, got `fast`");
        assert!(flag("total", "true").unwrap() && !flag("total", "").unwrap());
        let error = flag("total", "yes").unwrap_err().to_string();
        assert_eq!(error, "total must be true or false, got `yes`");
    }

    #[test]
    fn domains_are_hosts_without_scheme_port_or_path() {
        let given = [
            "Example.org",
            "*.example.org",
            "localhost",
            "192.0.2.1",
            "[2001:db8::1]",
            "example.org",
        ];
        let domains = allowed_domains(Some(given.map(String::from).to_vec()))
            .unwrap()
            .unwrap();
        assert_eq!(
            domains,
            [
                "example.org",
                "*.example.org",
                "localhost",
                "192.0.2.1",
                "[2001:db8::1]"
            ]
        );
        for odd in [
            "",
            "*",
            "*.",
            "a..b",
            "https://a",
            "a:80",
            "a/b",
            "-a",
            "a b",
            "*.*.a",
            "é.org",
        ] {
            let error = allowed_domains(Some(vec!["ok.org".into(), odd.into()]))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with("allowedDomains[1] must be a host"),
                "{odd}: {error}"
            );
        }
        assert!(allowed_domains(Some(vec!["a.org".into(); 26])).is_err());
    }
}
