//! Strict reader of playlist attribute lists (RFC 8216 §4.2) for tests.

/// The attributes of a tag. Reading one removes it, so that [`Attributes::finish`] finds unknown ones.
#[derive(Debug)]
pub struct Attributes<'a> {
    left: Vec<(&'a str, Value<'a>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value<'a> {
    Quoted(&'a str),
    Plain(&'a str),
}

impl<'a> Attributes<'a> {
    pub fn parse(mut text: &'a str) -> Result<Self, String> {
        let mut left: Vec<(&str, Value<'_>)> = Vec::new();
        loop {
            let (name, rest) = text.split_once('=').ok_or("an attribute without a value")?;
            let known = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '-';
            if name.is_empty() || !name.chars().all(known) {
                return Err(format!("attribute name {name:?}"));
            }
            if left.iter().any(|(earlier, _)| *earlier == name) {
                return Err(format!("attribute {name} twice"));
            }
            let (value, rest) = value(rest)?;
            left.push((name, value));
            match rest.strip_prefix(',') {
                Some(rest) => text = rest,
                None if rest.is_empty() => return Ok(Self { left }),
                None => return Err(format!("{rest:?} after attribute {name}")),
            }
        }
    }

    fn take(&mut self, name: &str) -> Option<Value<'a>> {
        let at = self.left.iter().position(|(there, _)| *there == name)?;
        Some(self.left.remove(at).1)
    }

    pub fn quoted(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Quoted(text)) if !text.is_empty() => Ok(Some(text)),
            Some(value) => Err(format!("{name} is no quoted text: {value:?}")),
        }
    }

    /// Returns an enumerated string or a number unchanged.
    pub fn plain(&mut self, name: &str) -> Result<Option<&'a str>, String> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Plain(text)) => Ok(Some(text)),
            Some(value) => Err(format!("{name} is quoted: {value:?}")),
        }
    }

    /// Reads `YES`; anything else is an error, `NO` too, because the service leaves the attribute out.
    pub fn yes(&mut self, name: &str) -> Result<bool, String> {
        match self.plain(name)? {
            None => Ok(false),
            Some("YES") => Ok(true),
            Some(other) => Err(format!("{name}={other}")),
        }
    }

    pub fn decimal(&mut self, name: &str) -> Result<Option<f64>, String> {
        self.plain(name)?.map(decimal).transpose()
    }

    pub fn integer(&mut self, name: &str) -> Result<Option<u64>, String> {
        self.plain(name)?.map(integer).transpose()
    }

    pub fn finish(self) -> Result<(), String> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => Err(format!("attribute {name} is not expected")),
        }
    }
}

fn value(text: &str) -> Result<(Value<'_>, &str), String> {
    if let Some(text) = text.strip_prefix('"') {
        let (inside, rest) = text
            .split_once('"')
            .ok_or("a quoted text without its end")?;
        return Ok((Value::Quoted(inside), rest));
    }
    let (inside, rest) = text.split_at(text.find(',').unwrap_or(text.len()));
    if inside.is_empty() || inside.contains(|c: char| c == '"' || c.is_whitespace()) {
        return Err(format!("value {inside:?}"));
    }
    Ok((Value::Plain(inside), rest))
}

/// Parses a decimal integer of at most 20 digits (RFC 8216 §4.2).
pub fn integer(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| format!("{text:?} is no decimal integer"))
}

/// Parses a non-negative decimal number: digits, and at most one point between digits.
pub fn decimal(text: &str) -> Result<f64, String> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    integer(whole)?;
    integer(fraction)?;
    text.parse()
        .map_err(|_| format!("{text:?} is no decimal number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_lists_are_refused() {
        let cases = [
            "", "A", "=1", "a=1", "A=", "A=1,", "A=1,A=2", "A=\"x", "A=\"x\"y", "A= 1", "A=1, B=2",
            "A=x\"y\"",
        ];
        for text in cases {
            assert!(Attributes::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn values_keep_their_type() {
        let parse = || Attributes::parse("URI=\"a,b=c\",DURATION=1.25,N=7,KEY=YES").unwrap();
        let mut list = parse();
        assert_eq!(list.quoted("URI"), Ok(Some("a,b=c")));
        assert_eq!(list.decimal("DURATION"), Ok(Some(1.25)));
        assert_eq!(list.integer("N"), Ok(Some(7)));
        assert_eq!(list.yes("KEY"), Ok(true));
        assert_eq!(list.yes("OTHER"), Ok(false));
        assert_eq!(list.finish(), Ok(()));
        assert!(parse().plain("URI").is_err());
        assert!(parse().quoted("N").is_err());
        assert!(parse().integer("DURATION").is_err());
        assert!(parse().finish().is_err());
        for text in ["", "-1", "1e3", ".5", "1.", "1.2.3", "+1", "0x1"] {
            assert!(decimal(text).is_err(), "{text}");
        }
    }
}
