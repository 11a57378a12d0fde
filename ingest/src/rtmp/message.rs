//! RTMP message and event types (RTMP 1.0 §5.4, §6, §7.1).

use bytes::Bytes;

use crate::Error;

/// Message type ids.
pub mod kind {
    pub const SET_CHUNK_SIZE: u8 = 1;
    pub const ABORT: u8 = 2;
    pub const ACKNOWLEDGEMENT: u8 = 3;
    pub const USER_CONTROL: u8 = 4;
    pub const WINDOW_ACKNOWLEDGEMENT_SIZE: u8 = 5;
    pub const SET_PEER_BANDWIDTH: u8 = 6;
    pub const AUDIO: u8 = 8;
    pub const VIDEO: u8 = 9;
    pub const DATA_AMF3: u8 = 15;
    pub const COMMAND_AMF3: u8 = 17;
    pub const DATA_AMF0: u8 = 18;
    pub const COMMAND_AMF0: u8 = 20;
    pub const AGGREGATE: u8 = 22;
}

/// User control event types.
pub mod event {
    pub const STREAM_BEGIN: u16 = 0;
    pub const PING_REQUEST: u16 = 6;
    pub const PING_RESPONSE: u16 = 7;
}

/// Whole message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Timestamp with deltas added up, of 32 bits as on the wire; wraps.
    pub timestamp_ms: u32,
    /// Message type, of [`kind`] or foreign.
    pub kind: u8,
    pub stream_id: u32,
    pub payload: Bytes,
}

impl Message {
    /// Reads the 32-bit value of a protocol control message.
    pub fn control_value(&self) -> Result<u32, Error> {
        let bytes = self.payload.first_chunk::<4>().ok_or_else(|| {
            let len = self.payload.len();
            Error::invalid("control message", format!("{len} bytes where 4 are needed"))
        })?;
        Ok(u32::from_be_bytes(*bytes))
    }

    /// Returns the AMF0 payload of a command or data message. AMF3 messages have a zero byte before it and continue in
    /// AMF0.
    pub fn amf0(&self) -> &[u8] {
        match (self.kind, self.payload.split_first()) {
            (kind::COMMAND_AMF3 | kind::DATA_AMF3, Some((0, rest))) => rest,
            _ => &self.payload,
        }
    }
}
