//! Language tags of captions (BCP 47, RFC 5646 §2.1): which are well-formed, their conventional case, their longest
//! length.

/// Longest accepted tag, in characters; RFC 5646 §4.4.1 requires 35 at least.
const LONGEST: usize = 35;

/// Returns the tag in conventional case (RFC 5646 §2.1.1: `de`, `zh-Hant-TW`, `es-419`); `None` when it is not
/// well-formed. Grandfathered tags are rejected.
pub fn language_tag(text: &str) -> Option<String> {
    if text.len() > LONGEST || !text.is_ascii() {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let mut subtags = lower.split('-').peekable();
    let primary = subtags.next().filter(|subtag| is_letters(subtag, 2..=8))?;
    let mut tag = primary.to_owned();
    let mut push = |subtag: &str| {
        tag.push('-');
        tag.push_str(subtag);
    };
    if primary.len() <= 3 {
        for _ in 0..3 {
            if let Some(extended) = subtags.next_if(|subtag| is_letters(subtag, 3..=3)) {
                push(extended);
            }
        }
    }
    if let Some(script) = subtags.next_if(|subtag| is_letters(subtag, 4..=4)) {
        push(&format!(
            "{}{}",
            script[..1].to_ascii_uppercase(),
            &script[1..]
        ));
    }
    if let Some(region) = subtags.next_if(|subtag| is_region(subtag)) {
        push(&region.to_ascii_uppercase());
    }
    while let Some(variant) = subtags.next_if(|subtag| is_variant(subtag)) {
        push(variant);
    }
    while let Some(singleton) = subtags.next() {
        let shortest = if singleton == "x" { 1 } else { 2 };
        if singleton.len() != 1 || !is_alphanumeric(singleton, 1..=1) {
            return None;
        }
        push(singleton);
        let mut count = 0;
        while let Some(subtag) = subtags.next_if(|subtag| is_alphanumeric(subtag, shortest..=8)) {
            push(subtag);
            count += 1;
        }
        if count == 0 {
            return None;
        }
    }
    Some(tag)
}

type Lengths = std::ops::RangeInclusive<usize>;

fn is_letters(subtag: &str, lengths: Lengths) -> bool {
    lengths.contains(&subtag.len()) && subtag.bytes().all(|byte| byte.is_ascii_alphabetic())
}

fn is_alphanumeric(subtag: &str, lengths: Lengths) -> bool {
    lengths.contains(&subtag.len()) && subtag.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_region(subtag: &str) -> bool {
    is_letters(subtag, 2..=2)
        || (subtag.len() == 3 && subtag.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_variant(subtag: &str) -> bool {
    let begins_with_digit = subtag.starts_with(|first: char| first.is_ascii_digit());
    is_alphanumeric(subtag, 5..=8) || (begins_with_digit && is_alphanumeric(subtag, 4..=4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn well_formed_tags_get_their_usual_case() {
        let cases = [
            ("de", "de"),
            ("EN-us", "en-US"),
            ("zh-hANT-tw", "zh-Hant-TW"),
            ("zh-yue-hk", "zh-yue-HK"),
            ("es-419", "es-419"),
            ("sl-rozaj-biske-1994", "sl-rozaj-biske-1994"),
            ("de-CH-x-phonebk", "de-CH-x-phonebk"),
            ("en-a-bbb-x-a", "en-a-bbb-x-a"),
            ("tlh", "tlh"),
        ];
        for (given, expected) in cases {
            assert_eq!(language_tag(given).as_deref(), Some(expected), "{given}");
        }
    }

    #[test]
    fn everything_else_is_none() {
        let odd = [
            "",
            "d",
            "-",
            "de-",
            "-de",
            "de--CH",
            "de_CH",
            "de-C",
            "dé",
            "de-x",
            "x-private",
            "i-klingon",
            "de-CH-DE",
            "../de",
            "de/..",
            "de.vtt",
            "12",
            "en-1234567890",
            "de-a",
            "abcdefghi",
            "en-aaaaa-bbbbb-ccccc-ddddd-eeeee-fffff",
        ];
        for text in odd {
            assert_eq!(language_tag(text), None, "{text:?}");
        }
    }
}
