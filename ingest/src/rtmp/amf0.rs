//! Reads and writes AMF0, the encoding of RTMP commands and metadata: depth and number of values.
//!
//! Reading is bounded in depth, in values and by the bytes that arrived: a declared count reserves nothing.

use crate::Error;

/// Most objects and arrays inside each other.
const MAX_DEPTH: usize = 8;
/// Most values in one message, inner ones included.
const MAX_VALUES: usize = 1024;

mod marker {
    pub(super) const NUMBER: u8 = 0x00;
    pub(super) const BOOLEAN: u8 = 0x01;
    pub(super) const STRING: u8 = 0x02;
    pub(super) const OBJECT: u8 = 0x03;
    pub(super) const NULL: u8 = 0x05;
    pub(super) const UNDEFINED: u8 = 0x06;
    pub(super) const REFERENCE: u8 = 0x07;
    pub(super) const ECMA_ARRAY: u8 = 0x08;
    pub(super) const OBJECT_END: u8 = 0x09;
    pub(super) const STRICT_ARRAY: u8 = 0x0A;
    pub(super) const DATE: u8 = 0x0B;
    pub(super) const LONG_STRING: u8 = 0x0C;
    pub(super) const UNSUPPORTED: u8 = 0x0D;
    pub(super) const XML_DOCUMENT: u8 = 0x0F;
    pub(super) const TYPED_OBJECT: u8 = 0x10;
}

/// A value, as far as commands and metadata need it: dates are numbers, references and the unsupported are null.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Number(f64),
    /// Text, malformed UTF-8 replaced.
    String(String),
    /// Properties in the order of arrival.
    Object(Vec<(String, Value)>),
    Array(Vec<Value>),
}

impl Value {
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// The first property of that name; `None` too when this is no object.
    pub fn property(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Object(properties) => properties.iter().find(|(n, _)| n == name).map(|(_, v)| v),
            _ => None,
        }
    }
}

/// Reads the values of one message, in order.
#[derive(Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    values: usize,
}

impl<'a> Reader<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            rest: payload,
            values: 0,
        }
    }

    /// The next value; `None` at the end of the message.
    pub fn next_value(&mut self) -> Result<Option<Value>, Error> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        self.value(0).map(Some)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Error> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(Error::too_large(
                "AMF0 value count",
                self.values,
                MAX_VALUES,
            ));
        }
        if depth > MAX_DEPTH {
            return Err(Error::too_large("AMF0 nesting", depth, MAX_DEPTH));
        }
        match self.u8()? {
            marker::NUMBER => self.number().map(Value::Number),
            marker::BOOLEAN => Ok(Value::Boolean(self.u8()? != 0)),
            marker::STRING => self.short_string().map(Value::String),
            marker::LONG_STRING | marker::XML_DOCUMENT => {
                let len = self.u32()?;
                self.text(len as usize).map(Value::String)
            }
            marker::OBJECT => self.properties(depth),
            marker::TYPED_OBJECT => {
                self.short_string()?;
                self.properties(depth)
            }
            marker::ECMA_ARRAY => {
                self.u32()?;
                self.properties(depth)
            }
            marker::STRICT_ARRAY => self.strict_array(depth),
            marker::DATE => {
                let milliseconds = self.number()?;
                self.take(2)?;
                Ok(Value::Number(milliseconds))
            }
            marker::REFERENCE => self.take(2).map(|_| Value::Null),
            marker::NULL | marker::UNDEFINED | marker::UNSUPPORTED => Ok(Value::Null),
            other => Err(Error::invalid("AMF0 marker", format!("{other:#04x}"))),
        }
    }

    fn properties(&mut self, depth: usize) -> Result<Value, Error> {
        let mut properties = Vec::new();
        loop {
            let name = self.short_string()?;
            if name.is_empty() && self.rest.first() == Some(&marker::OBJECT_END) {
                self.u8()?;
                return Ok(Value::Object(properties));
            }
            properties.push((name, self.value(depth + 1)?));
        }
    }

    fn strict_array(&mut self, depth: usize) -> Result<Value, Error> {
        let count = self.u32()?;
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(self.value(depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn number(&mut self) -> Result<f64, Error> {
        let bytes = self.take(8)?;
        Ok(f64::from_be_bytes(bytes.try_into().expect("took eight")))
    }

    fn short_string(&mut self) -> Result<String, Error> {
        let bytes = self.take(2)?;
        self.text(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])))
    }

    fn text(&mut self, len: usize) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(self.take(len)?).into_owned())
    }

    fn u32(&mut self) -> Result<u32, Error> {
        let bytes = self.take(4)?;
        Ok(u32::from_be_bytes(bytes.try_into().expect("took four")))
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(|| {
            let left = self.rest.len();
            Error::invalid("AMF0 value", format!("{len} bytes needed, {left} left"))
        })?;
        self.rest = rest;
        Ok(taken)
    }
}

/// Writes values one after the other.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn null(&mut self) -> &mut Self {
        self.bytes.push(marker::NULL);
        self
    }

    pub fn number(&mut self, number: f64) -> &mut Self {
        self.bytes.push(marker::NUMBER);
        self.bytes.extend(number.to_be_bytes());
        self
    }

    pub fn boolean(&mut self, value: bool) -> &mut Self {
        self.bytes.extend([marker::BOOLEAN, u8::from(value)]);
        self
    }

    /// Writes a text; beyond 65 535 bytes it is truncated.
    pub fn string(&mut self, text: &str) -> &mut Self {
        self.bytes.push(marker::STRING);
        self.raw_string(text)
    }

    /// Writes an object whose properties `fill` writes by [`Writer::name`] and a value each.
    pub fn object(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.bytes.push(marker::OBJECT);
        fill(self);
        self.bytes.extend([0, 0, marker::OBJECT_END]);
        self
    }

    /// Writes an ECMA array, as metadata uses; `fill` as of [`Writer::object`]. Its count is a hint that no reader
    /// relies on.
    pub fn ecma_array(&mut self, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.bytes.push(marker::ECMA_ARRAY);
        self.bytes.extend([0; 4]);
        fill(self);
        self.bytes.extend([0, 0, marker::OBJECT_END]);
        self
    }

    /// Writes a property's name inside [`Writer::object`].
    pub fn name(&mut self, name: &str) -> &mut Self {
        self.raw_string(name)
    }

    pub fn strings(&mut self, items: &[&str]) -> &mut Self {
        self.bytes.push(marker::STRICT_ARRAY);
        let count = u32::try_from(items.len()).expect("a handful");
        self.bytes.extend(count.to_be_bytes());
        for item in items {
            self.string(item);
        }
        self
    }

    fn raw_string(&mut self, text: &str) -> &mut Self {
        let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.bytes.extend(len.to_be_bytes());
        self.bytes.extend(&text.as_bytes()[..usize::from(len)]);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Value>, Error> {
        let mut reader = Reader::new(bytes);
        let mut values = Vec::new();
        while let Some(value) = reader.next_value()? {
            values.push(value);
        }
        Ok(values)
    }

    #[test]
    fn hostile_values_are_errors() {
        let nested_objects = b"\x03\x00\x01a".repeat(75_000);
        let nested_arrays = b"\x0A\x00\x00\x00\x01".repeat(60_000);
        let mut many_values = b"\x0A\x00\x00\xFF\xFF".to_vec();
        many_values.extend([marker::NULL; 0xFFFF]);
        let cases: [(&str, &[u8]); 9] = [
            ("300 kB of nested objects", &nested_objects),
            ("300 kB of nested arrays", &nested_arrays),
            ("65 535 values", &many_values),
            ("strict array of 2^32", b"\x0A\xFF\xFF\xFF\xFF\x05"),
            ("long string of 4 GB", b"\x0C\xFF\xFF\xFF\xFFabc"),
            ("short string cut off", b"\x02\x00\x05ab"),
            ("number cut off", b"\x00\x3F\xF0"),
            ("object without end", b"\x03\x00\x01a\x05"),
            ("AMF3 switch", b"\x11\x01"),
        ];
        for (name, bytes) in cases {
            assert!(read(bytes).is_err(), "{name}");
        }
    }

    #[test]
    fn depth_eight_is_allowed_and_nine_is_not() {
        for (depth, allowed) in [(8, true), (9, false)] {
            let mut bytes = b"\x0A\x00\x00\x00\x01".repeat(depth);
            bytes.push(marker::NULL);
            assert_eq!(read(&bytes).is_ok(), allowed, "depth {depth}");
        }
    }

    #[test]
    fn values_are_read() {
        let bytes = b"\x08\x00\x00\x00\x09\x00\x01k\x01\x01\x00\x00\x09\
            \x10\x00\x01T\x00\x01s\x02\x00\x01\xFF\x00\x00\x09\
            \x0B\x3F\xF0\0\0\0\0\0\0\0\0\x07\0\x01\x06\x0D";
        let expected = vec![
            Value::Object(vec![("k".into(), Value::Boolean(true))]),
            Value::Object(vec![("s".into(), Value::String("\u{FFFD}".into()))]),
            Value::Number(1.0),
            Value::Null,
            Value::Null,
            Value::Null,
        ];
        assert_eq!(read(bytes).unwrap(), expected);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut writer = Writer::new();
        writer.string("_result").number(1.5).null().object(|o| {
            o.name("list").strings(&["avc1", "hvc1"]);
        });
        writer.ecma_array(|o| {
            o.name("stereo").boolean(true);
        });
        let expected = vec![
            Value::String("_result".into()),
            Value::Number(1.5),
            Value::Null,
            Value::Object(vec![(
                "list".into(),
                Value::Array(vec![
                    Value::String("avc1".into()),
                    Value::String("hvc1".into()),
                ]),
            )]),
            Value::Object(vec![("stereo".into(), Value::Boolean(true))]),
        ];
        assert_eq!(read(&writer.into_bytes()).unwrap(), expected);
    }
}
