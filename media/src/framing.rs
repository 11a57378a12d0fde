//! Framing of messages between the service and processes that read foreign bytes (gateways, live workers): a length of four bytes,
//! a kind and fields, big-endian.
//!
//! Pure. Neither side trusts the other, the service least of all: a frame is bounded, its fields are checked, and nothing is
//! allocated by a declared length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf as _, Bytes, BytesMut};

/// Error of a frame that breaks the rules: the connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of the process's socket is malformed: {0}")]
pub struct Malformed(pub &'static str);

/// A frame in the making.
pub struct Frame<'a> {
    pub out: &'a mut Vec<u8>,
    pub start: usize,
}

impl<'a> Frame<'a> {
    pub fn begin(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        Self { out, start }
    }

    pub fn end(self) {
        let len = self.out.len() - self.start - 4;
        let len = u32::try_from(len).expect("frames are bounded by their fields");
        self.out[self.start..self.start + 4].copy_from_slice(&len.to_be_bytes());
    }

    pub fn byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    pub fn number(&mut self, number: u32) {
        self.bytes(&number.to_be_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Appends a text, truncated at 65 535 bytes, far above every text's bound.
    pub fn text(&mut self, text: &str) {
        let len = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.bytes(&len.to_be_bytes());
        self.bytes(&text.as_bytes()[..len.into()]);
    }

    pub fn socket(&mut self, address: SocketAddr) {
        self.address(address.ip());
        self.number(address.port().into());
    }

    pub fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => {
                self.byte(4);
                self.bytes(&address.octets());
            }
            IpAddr::V6(address) => {
                self.byte(6);
                self.bytes(&address.octets());
            }
        }
    }
}

/// Takes the fields of the next whole frame of at most `most` bytes off `input`; `None` until there is one.
pub fn next_frame(input: &mut BytesMut, most: usize) -> Result<Option<Fields>, Malformed> {
    let Some(len) = input.first_chunk::<4>() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes(*len) as usize;
    if len == 0 || len > most {
        return Err(Malformed("length"));
    }
    if input.len() < 4 + len {
        return Ok(None);
    }
    input.advance(4);
    Ok(Some(Fields(input.split_to(len).freeze())))
}

/// Remaining bytes of a frame.
pub struct Fields(pub Bytes);

impl Fields {
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let array = *self.0.first_chunk::<N>().ok_or(Malformed("too short"))?;
        self.0.advance(N);
        Ok(array)
    }

    pub fn byte(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    pub fn number(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn count(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn text(&mut self, most: usize) -> Result<String, Malformed> {
        let len = usize::from(u16::from_be_bytes(self.array()?));
        if len > most || len > self.0.len() {
            return Err(Malformed("text too long"));
        }
        let bytes = self.0.split_to(len);
        let text = std::str::from_utf8(&bytes).map_err(|_| Malformed("text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub fn address(&mut self) -> Result<IpAddr, Malformed> {
        match self.byte()? {
            4 => Ok(Ipv4Addr::from(self.array::<4>()?).into()),
            6 => Ok(Ipv6Addr::from(self.array::<16>()?).into()),
            _ => Err(Malformed("address")),
        }
    }

    /// Reads a finite number.
    pub fn float(&mut self) -> Result<f64, Malformed> {
        let float = f64::from_be_bytes(self.array()?);
        match float.is_finite() {
            true => Ok(float),
            false => Err(Malformed("number")),
        }
    }

    pub fn signed(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    pub fn flag(&mut self) -> Result<bool, Malformed> {
        Ok(self.byte()? != 0)
    }

    pub fn socket(&mut self) -> Result<SocketAddr, Malformed> {
        let address = self.address()?;
        let port = u16::try_from(self.number()?).map_err(|_| Malformed("port"))?;
        Ok(SocketAddr::new(address, port))
    }

    pub fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.0)
    }

    /// Checks that nothing is behind the last field.
    pub fn end(&self) -> Result<(), Malformed> {
        match self.0.is_empty() {
            true => Ok(()),
            false => Err(Malformed("bytes behind the last field")),
        }
    }
}
