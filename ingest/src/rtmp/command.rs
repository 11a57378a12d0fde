//! RTMP commands and their answers (RTMP 1.0 §7.2, enhanced RTMP v2): `connect`, `onStatus`, offered codecs
//! (`fourCcList`), longest names.
//!
//! Texts that a client sends are bounded here before other code sees them.

use crate::Error;

use super::{
    amf0::{self, Value},
    writer::Writer,
};

/// Most bytes of a name that a client chooses.
pub(crate) const MAX_NAME: usize = 256;
/// Arguments after the command object that are read; no command of ours has more.
const MAX_ARGUMENTS: usize = 4;

/// Codecs of enhanced RTMP that are carried.
const VIDEO_FOURCCS: [&str; 3] = ["avc1", "hvc1", "av01"];
const AUDIO_FOURCCS: [&str; 3] = ["mp4a", "Opus", ".mp3"];
/// FourCcInfoMask: this end passes the codec on.
const CAN_FORWARD: f64 = 4.0;
/// CapsExMask: ModEx packets (4) with nanosecond offsets (8).
const CAPS_EX: f64 = 12.0;

/// Command as it was sent. It may hold a stream key, and must not be shown.
pub(crate) struct Command {
    pub(crate) name: String,
    pub(crate) transaction: f64,
    pub(crate) object: Value,
    pub(crate) arguments: Vec<Value>,
}

impl Command {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut values = amf0::Reader::new(payload);
        let Some(Value::String(name)) = values.next_value()? else {
            return Err(Error::invalid("command", "its name is no text"));
        };
        let Some(Value::Number(transaction)) = values.next_value()? else {
            return Err(Error::invalid("command", "its transaction is no number"));
        };
        let object = values.next_value()?.unwrap_or(Value::Null);
        let mut arguments = Vec::new();
        while arguments.len() < MAX_ARGUMENTS
            && let Some(value) = values.next_value()?
        {
            arguments.push(value);
        }
        Ok(Self {
            name,
            transaction,
            object,
            arguments,
        })
    }

    /// The text at this place among the arguments; empty when there is none.
    pub(crate) fn text(&self, index: usize) -> &str {
        self.arguments
            .get(index)
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The stream id that `deleteStream` names.
    pub(crate) fn stream_id(&self) -> Option<u32> {
        self.arguments
            .first()
            .and_then(Value::as_number)
            .map(|n| n as u32)
    }
}

/// Properties that a client sends in `connect`.
#[derive(Debug)]
pub(crate) struct Connect {
    /// Application without query and slash at either end; `None` when longer than [`MAX_NAME`].
    pub(crate) app: Option<String>,
    pub(crate) flash_version: Option<String>,
    speaks: Enhanced,
}

/// The properties of enhanced RTMP that a client sent and that are answered in kind.
#[derive(Clone, Copy, Debug, Default)]
struct Enhanced {
    fourcc_list: bool,
    video_info: bool,
    audio_info: bool,
    caps: bool,
}

impl Connect {
    pub(crate) fn parse(object: &Value) -> Result<Self, Error> {
        let app = object
            .property("app")
            .and_then(Value::as_str)
            .ok_or_else(|| Error::invalid("connect", "it names no application"))?;
        let has = |name: &str| object.property(name).is_some();
        Ok(Self {
            app: bounded_name(app).map(|app| app.trim_matches('/').to_owned()),
            flash_version: object
                .property("flashVer")
                .and_then(Value::as_str)
                .and_then(bounded_text),
            speaks: Enhanced {
                fourcc_list: has("fourCcList"),
                video_info: has("videoFourCcInfoMap"),
                audio_info: has("audioFourCcInfoMap"),
                caps: has("capsEx"),
            },
        })
    }

    /// Writes `_result` of `connect`.
    pub(crate) fn accept(&self, transaction: f64, writer: &mut Writer) {
        writer.command(0, |c| {
            c.string("_result").number(transaction);
            c.object(|o| {
                o.name("fmsVer").string("FMS/3,0,1,123");
                o.name("capabilities").number(31.0);
            });
            c.object(|o| {
                o.name("level").string("status");
                o.name("code").string("NetConnection.Connect.Success");
                o.name("description").string("connected");
                o.name("objectEncoding").number(0.0);
                self.speaks.answer(o);
            });
        });
    }
}

impl Enhanced {
    fn answer(self, properties: &mut amf0::Writer) {
        if self.fourcc_list {
            let all = [VIDEO_FOURCCS, AUDIO_FOURCCS].concat();
            properties.name("fourCcList").strings(&all);
        }
        for (sent, name, fourccs) in [
            (self.video_info, "videoFourCcInfoMap", VIDEO_FOURCCS),
            (self.audio_info, "audioFourCcInfoMap", AUDIO_FOURCCS),
        ] {
            if sent {
                properties.name(name).object(|map| {
                    for fourcc in fourccs {
                        map.name(fourcc).number(CAN_FORWARD);
                    }
                });
            }
        }
        if self.caps {
            properties.name("capsEx").number(CAPS_EX);
        }
    }
}

/// Writes `_result` without a value.
pub(crate) fn result_null(writer: &mut Writer, transaction: f64) {
    writer.command(0, |c| {
        c.string("_result").number(transaction).null().null();
    });
}

/// Writes `_result` with a number: the id of a created stream.
pub(crate) fn result_number(writer: &mut Writer, transaction: f64, number: f64) {
    writer.command(0, |c| {
        c.string("_result")
            .number(transaction)
            .null()
            .number(number);
    });
}

/// Writes `_error` for a call that is not known.
pub(crate) fn error(writer: &mut Writer, transaction: f64) {
    writer.command(0, |c| {
        c.string("_error").number(transaction).null().object(|o| {
            o.name("level").string("error");
            o.name("code").string("NetConnection.Call.Failed");
            o.name("description").string("no such call");
        });
    });
}

/// Writes `onFCPublish`, for which FMLE-like clients wait.
pub(crate) fn on_fc_publish(writer: &mut Writer, stream: &str) {
    writer.command(0, |c| {
        c.string("onFCPublish").number(0.0).null().object(|o| {
            o.name("code").string("NetStream.Publish.Start");
            o.name("description").string(stream);
        });
    });
}

/// Writes `onStatus` on a message stream.
pub(crate) fn on_status(
    writer: &mut Writer,
    stream_id: u32,
    level: &str,
    code: &str,
    description: &str,
) {
    writer.command(stream_id, |c| {
        c.string("onStatus").number(0.0).null().object(|o| {
            o.name("level").string(level);
            o.name("code").string(code);
            o.name("description").string(description);
        });
    });
}

/// Returns a name without its query and surrounding white space; `None` when it is too long or holds control
/// characters.
pub(crate) fn bounded_name(text: &str) -> Option<String> {
    let name = text.split('?').next().unwrap_or_default().trim();
    let fits = name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned())
}

/// Returns a text for people, truncated and without control characters; `None` when nothing is left.
pub(crate) fn bounded_text(text: &str) -> Option<String> {
    let mut kept = String::new();
    for character in text.trim().chars().filter(|c| !c.is_control()) {
        if kept.len() + character.len_utf8() > MAX_NAME {
            break;
        }
        kept.push(character);
    }
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned_or_refused() {
        let long = "a".repeat(MAX_NAME + 1);
        let cases: [(&str, Option<&str>); 7] = [
            ("", Some("")),
            (" slug.svc_live_key\n", Some("slug.svc_live_key")),
            ("slug.key?token=1&x=?", Some("slug.key")),
            ("../../etc/passwd", Some("../../etc/passwd")),
            ("a\0b", None),
            ("a\nb", None),
            (&long, None),
        ];
        for (name, expected) in cases {
            assert_eq!(bounded_name(name).as_deref(), expected, "{name:?}");
        }
    }

    #[test]
    fn texts_are_cut_at_a_character() {
        let long = "é".repeat(MAX_NAME);
        let cut = bounded_text(&long).unwrap();
        assert_eq!(cut.len(), MAX_NAME);
        assert_eq!(bounded_text("\u{7}\n"), None);
        assert_eq!(bounded_text(" OBS\u{1b}[31m ").as_deref(), Some("OBS[31m"));
    }

    #[test]
    fn applications_lose_slashes_and_queries() {
        for (given, expected) in [
            ("live", "live"),
            ("live/", "live"),
            ("/live?x=/y", "live"),
            ("live/instance", "live/instance"),
        ] {
            let object = Value::Object(vec![("app".into(), Value::String(given.into()))]);
            let connect = Connect::parse(&object).unwrap();
            assert_eq!(connect.app.as_deref(), Some(expected));
        }
        assert!(Connect::parse(&Value::Null).is_err());
    }

    #[test]
    fn commands_need_a_name_and_a_transaction() {
        for payload in [&b""[..], b"\x05", b"\x02\0\x01a", b"\x02\0\x01a\x05"] {
            assert!(Command::parse(payload).is_err(), "{payload:?}");
        }
    }
}
