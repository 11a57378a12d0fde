//! Fields of video streams and their ranges: `profile`, `renditions`, `segmentDuration`, `tokenTtlSeconds`, `captions`; playback
//! tokens.

use serde::{Deserialize, Serialize};
use sluice_actors::video::{SEGMENT_DURATION_S, StreamSettings};
use sluice_media::{
    av::ladder::{BITRATES, HEIGHTS, Profile, Rung, SEGMENT_DURATIONS},
    captions::language_tag,
};
use sluice_store::video::{Access, CustomRendition, StreamPatch};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    error::ApiError,
    field::{self, given, wrong},
};

/// Longest `title`, in characters.
const MAX_TITLE: usize = 200;
/// Longest `label` of captions, in characters.
const MAX_LABEL: usize = 100;
/// Range of the lifetime of tokens, in seconds.
const TTL_S: std::ops::RangeInclusive<u32> = 60..=604_800;
/// Lifetime in seconds of a token when neither its request nor the stream names one.
pub(crate) const DEFAULT_TOKEN_TTL_S: u32 = 3_600;

/// A video stream to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NewStreamRequest {
    /// A stored video or audio file.
    #[schema(required, value_type = Uuid)]
    source_file_id: Option<Uuid>,
    /// 1 to 200 characters; the file's name without one.
    title: Option<String>,
    /// `basic` (360 and 480 lines), `standard` (those and 720, the usual one), `hd` (1080 too), `source_max` (up to the
    /// source's own), or `custom`. Never above the source.
    #[schema(example = "standard")]
    profile: Option<String>,
    /// Renditions of the profile `custom`; of no other one.
    renditions: Option<Vec<RenditionRequest>>,
    /// Seconds, 2 to 12; 6 without one.
    segment_duration: Option<i64>,
    /// `public` (without one), or `signed`: playback needs a token.
    #[schema(example = "public")]
    access: Option<String>,
    /// Lifetime in seconds of tokens whose request names none: 60 to 604800, 3600 without one.
    token_ttl_seconds: Option<i64>,
    /// At most 25 hosts, exact or `*.example.org`, whose pages may play; empty: everyone.
    allowed_domains: Option<Vec<String>>,
    /// At most 32 (`vod.max_captions`), one for each language.
    captions: Option<Vec<CaptionRequest>>,
}

/// A rendition of the profile `custom`.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenditionRequest {
    /// Pixels of the short edge, 90 to 4320. One above the source is left out.
    #[schema(required, value_type = i64)]
    height: Option<i64>,
    /// Bits per second, 50000 to 80000000; chosen by size and frame rate without one.
    bitrate: Option<i64>,
}

/// Captions of a stream: a stored file or an address with WebVTT or SubRip (SRT).
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CaptionRequest {
    /// BCP 47, such as `de` or `pt-BR`.
    #[schema(required, value_type = String, example = "en")]
    language: Option<String>,
    /// 1 to 100 characters, for the player's menu; the language without one.
    label: Option<String>,
    /// True when players show them without being asked to; `false` without one.
    #[serde(alias = "is_default")]
    is_default: Option<bool>,
    /// A stored file.
    #[serde(alias = "file_id")]
    file_id: Option<Uuid>,
    /// In place of `fileId`: the address (http or https) that the service fetches them from.
    url: Option<String>,
    /// In place of `fileId`: the captions themselves, WebVTT or SubRip (SRT).
    content: Option<String>,
}

/// The fields to change.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeStream {
    /// 1 to 200 characters.
    title: Option<String>,
    /// `public` or `signed`; at once.
    access: Option<String>,
    /// 60 to 604800; null: the usual one.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    token_ttl_seconds: Option<Option<i64>>,
    /// At most 25 hosts, exact or `*.example.org`; empty: everyone.
    allowed_domains: Option<Vec<String>>,
}

/// A token to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PlaybackTokenRequest {
    /// Seconds, 60 to 604800; without one the video stream's `tokenTtlSeconds`, else an hour.
    expires_in: Option<i64>,
    /// Hosts as in the stream's `allowedDomains`: the token plays on their pages only.
    allowed_domains: Option<Vec<String>>,
}

/// A checked request for a stream.
#[derive(Debug)]
pub(crate) struct StreamRequest {
    pub source_file_id: Uuid,
    pub title: Option<String>,
    pub profile: String,
    pub custom_renditions: Vec<CustomRendition>,
    pub segment_duration_s: u32,
    pub access: Access,
    pub token_ttl_s: Option<u32>,
    pub allowed_domains: Vec<String>,
    pub captions: Vec<CaptionSpec>,
}

/// Captions as a request names them.
#[derive(Debug)]
pub(crate) struct CaptionSpec {
    pub said: CaptionFacts,
    pub origin: CaptionOrigin,
}

/// Language, label and default flag of captions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CaptionFacts {
    pub language: String,
    pub label: String,
    pub is_default: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CaptionOrigin {
    Stored(Uuid),
    /// Its address.
    Named(String),
    /// The text itself.
    Sent(String),
}

/// Requested token.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TokenSpec {
    /// Seconds.
    pub expires_in: Option<u32>,
    pub domains: Vec<String>,
}

impl NewStreamRequest {
    pub(crate) fn checked(self, settings: &StreamSettings) -> Result<StreamRequest, ApiError> {
        let source_file_id = self.source_file_id.ok_or_else(|| {
            invalid!("sourceFileId is missing: name a stored video or audio file")
        })?;
        let names = Profile::NAMES;
        let known = |text: &str| names.into_iter().find(|profile| *profile == text);
        let profile = field::choice("profile", self.profile.as_deref(), &names, known)?
            .unwrap_or(Profile::default().name());
        let rungs = rungs(self.renditions.unwrap_or_default())?;
        Profile::parse(profile, &rungs, settings.max_renditions)
            .map_err(|error| ApiError::Invalid(error.message))?;
        Ok(StreamRequest {
            source_file_id,
            title: title(self.title)?,
            custom_renditions: rungs.into_iter().map(custom_rendition).collect(),
            profile: profile.to_owned(),
            segment_duration_s: field::within(
                "segmentDuration",
                self.segment_duration,
                SEGMENT_DURATIONS,
            )?
            .unwrap_or(SEGMENT_DURATION_S),
            access: access(self.access.as_deref())?.unwrap_or(Access::Public),
            token_ttl_s: ttl("tokenTtlSeconds", self.token_ttl_seconds)?,
            allowed_domains: field::allowed_domains(self.allowed_domains)?.unwrap_or_default(),
            captions: captions(self.captions.unwrap_or_default(), settings.max_captions)?,
        })
    }
}

impl StreamRequest {
    /// Separates the captions, which are read one by one before anything is made, from the rest.
    pub(crate) fn without_captions(mut self) -> (Vec<CaptionSpec>, Self) {
        (std::mem::take(&mut self.captions), self)
    }
}

impl ChangeStream {
    pub(crate) fn checked(self) -> Result<StreamPatch, ApiError> {
        let token_ttl_s = match self.token_ttl_seconds {
            Some(given) => Some(ttl("tokenTtlSeconds", given)?),
            None => None,
        };
        Ok(StreamPatch {
            title: title(self.title)?,
            access: access(self.access.as_deref())?,
            token_ttl_s,
            allowed_domains: field::allowed_domains(self.allowed_domains)?,
        })
    }
}

impl PlaybackTokenRequest {
    pub(crate) fn checked(self) -> Result<TokenSpec, ApiError> {
        Ok(TokenSpec {
            expires_in: ttl("expiresIn", self.expires_in)?,
            domains: field::allowed_domains(self.allowed_domains)?.unwrap_or_default(),
        })
    }
}

impl CaptionRequest {
    /// Checks captions; `field` is the entry's name in messages with a point behind it, or nothing.
    pub(crate) fn checked(self, field: &str) -> Result<CaptionSpec, ApiError> {
        let origin = match (self.file_id, self.url, self.content) {
            (Some(id), None, None) => CaptionOrigin::Stored(id),
            (None, Some(url), None) => CaptionOrigin::Named(url),
            (None, None, Some(text)) => CaptionOrigin::Sent(text),
            _ => {
                return Err(invalid!(
                    "{field}content, {field}fileId or {field}url must be given, and only one of them: WebVTT or SubRip text, a \
                     stored file of it, or its address"
                ));
            }
        };
        let said = CaptionFacts::checked(
            field,
            self.language.as_deref(),
            self.label,
            self.is_default.unwrap_or(false),
        )?;
        Ok(CaptionSpec { said, origin })
    }
}

impl CaptionFacts {
    pub(crate) fn checked(
        field: &str,
        language: Option<&str>,
        label: Option<String>,
        is_default: bool,
    ) -> Result<Self, ApiError> {
        let given = language.unwrap_or_default();
        let language = language_tag(given).ok_or_else(|| {
            wrong(
                format_args!("{field}language"),
                "a language tag (BCP 47) such as de or pt-BR",
                given,
            )
        })?;
        let label = field::words(&format!("{field}label"), label, MAX_LABEL)?;
        Ok(Self {
            label: label.unwrap_or_else(|| language.clone()),
            language,
            is_default,
        })
    }
}

fn title(given: Option<String>) -> Result<Option<String>, ApiError> {
    field::words("title", given, MAX_TITLE)
}

fn access(given: Option<&str>) -> Result<Option<Access>, ApiError> {
    field::choice("access", given, &["public", "signed"], Access::parse)
}

fn ttl(field: &str, given: Option<i64>) -> Result<Option<u32>, ApiError> {
    field::within(field, given, TTL_S)
}

fn rungs(given: Vec<RenditionRequest>) -> Result<Vec<Rung>, ApiError> {
    let mut rungs: Vec<Rung> = Vec::with_capacity(given.len());
    for (index, RenditionRequest { height, bitrate }) in given.into_iter().enumerate() {
        let name = format!("renditions[{index}].height");
        let height =
            field::within(&name, height, HEIGHTS)?.ok_or_else(|| invalid!("{name} is missing"))?;
        if rungs.iter().any(|other| other.height == height) {
            return Err(invalid!(
                "{name} must be another one than before, got {height} twice"
            ));
        }
        let name = format!("renditions[{index}].bitrate");
        rungs.push(Rung {
            height,
            bitrate: field::within(&name, bitrate, BITRATES)?,
        });
    }
    Ok(rungs)
}

fn custom_rendition(Rung { height, bitrate }: Rung) -> CustomRendition {
    CustomRendition { height, bitrate }
}

fn captions(given: Vec<CaptionRequest>, most: usize) -> Result<Vec<CaptionSpec>, ApiError> {
    if given.len() > most {
        return Err(invalid!(
            "captions must have at most {most} entries (vod.max_captions), got {}",
            given.len()
        ));
    }
    let mut captions: Vec<CaptionSpec> = Vec::with_capacity(given.len());
    for (index, caption) in given.into_iter().enumerate() {
        let caption = caption.checked(&format!("captions[{index}]."))?;
        let language = &caption.said.language;
        if captions
            .iter()
            .any(|other| other.said.language == *language)
        {
            return Err(invalid!(
                "captions[{index}].language must be another one than before, got `{language}` twice"
            ));
        }
        captions.push(caption);
    }
    Ok(captions)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const FILE: &str = "0193a7b0-0000-7000-8000-000000000001";

    fn read(mut body: Value) -> Result<StreamRequest, ApiError> {
        let fields = body.as_object_mut().unwrap();
        fields.entry("sourceFileId").or_insert(json!(FILE));
        let request: NewStreamRequest = crate::application::object::from_object(fields.clone())?;
        request.checked(&StreamSettings::default())
    }

    #[test]
    fn nothing_given_means_the_defaults() {
        let wanted = read(json!({})).unwrap();
        assert_eq!(
            (
                wanted.profile.as_str(),
                wanted.segment_duration_s,
                wanted.access
            ),
            ("standard", 6, Access::Public)
        );
        assert!(wanted.custom_renditions.is_empty() && wanted.captions.is_empty());
        assert_eq!((wanted.title, wanted.token_ttl_s), (None, None));
    }

    #[test]
    fn both_spellings_are_read() {
        let wanted = read(json!({
            "title": " Ein Film ", "profile": "custom", "renditions": [{"height": 360, "bitrate": 400000}, {"height": 720}],
            "segment_duration": 4, "access": "signed", "token_ttl_seconds": 60, "allowed_domains": ["Example.org"],
            "captions": [{"language": "DE-at", "file_id": FILE, "is_default": true}, {"language": "en", "label": "English", "url": "http://a/b.srt"}],
        }))
        .unwrap();
        assert_eq!(wanted.title.as_deref(), Some("Ein Film"));
        assert_eq!(
            wanted.custom_renditions,
            [
                CustomRendition {
                    height: 360,
                    bitrate: Some(400_000)
                },
                CustomRendition {
                    height: 720,
                    bitrate: None
                },
            ]
        );
        assert_eq!(
            (wanted.segment_duration_s, wanted.token_ttl_s),
            (4, Some(60))
        );
        assert_eq!(wanted.allowed_domains, ["example.org"]);
        let said: Vec<&CaptionFacts> = wanted
            .captions
            .iter()
            .map(|caption| &caption.said)
            .collect();
        assert_eq!(
            (
                said[0].language.as_str(),
                said[0].label.as_str(),
                said[0].is_default
            ),
            ("de-AT", "de-AT", true)
        );
        assert_eq!(
            (said[1].label.as_str(), said[1].is_default),
            ("English", false)
        );
        assert_eq!(
            wanted.captions[1].origin,
            CaptionOrigin::Named("http://a/b.srt".to_owned())
        );
    }

    #[test]
    fn values_out_of_range_are_named() {
        let caption =
            |caption: Value| json!({"captions": [{"language": "en", "fileId": FILE}, caption]});
        let custom = |renditions: Value| json!({"profile": "custom", "renditions": renditions});
        let nine: Vec<Value> = (90..99).map(|height| json!({"height": height})).collect();
        let cases = [
            (json!({"sourceFileId": null}), "sourceFileId is missing"),
            (
                json!({"sourceFileId": "x"}),
                "sourceFileId: UUID parsing failed",
            ),
            (
                json!({"title": " "}),
                "title must have 1 to 200 characters, got 0",
            ),
            (
                json!({"profile": "4k"}),
                "profile must be basic or standard or hd or source_max or custom, got `4k`",
            ),
            (
                json!({"renditions": [{"height": 360}]}),
                "renditions belong to profile custom, profile is standard",
            ),
            (
                json!({"profile": "custom"}),
                "profile custom needs 1 to 8 renditions, 0 came",
            ),
            (
                custom(json!(nine)),
                "profile custom needs 1 to 8 renditions, 9 came",
            ),
            (
                custom(json!([{"height": 360}, {"height": 360}])),
                "renditions[1].height must be another one",
            ),
            (
                custom(json!([{"height": 0}])),
                "renditions[0].height must be 90 to 4320, got 0",
            ),
            (
                custom(json!([{"height": 360, "bitrate": -1}])),
                "renditions[0].bitrate must be 50000 to 80000000, got -1",
            ),
            (
                custom(json!([{"bitrate": 100000}])),
                "renditions[0].height is missing",
            ),
            (
                json!({"segmentDuration": 1}),
                "segmentDuration must be 2 to 12, got 1",
            ),
            (
                json!({"segmentDuration": 13}),
                "segmentDuration must be 2 to 12, got 13",
            ),
            (
                json!({"segmentDuration": 6.5}),
                "segmentDuration: invalid type",
            ),
            (
                json!({"access": "private"}),
                "access must be public or signed, got `private`",
            ),
            (
                json!({"tokenTtlSeconds": 59}),
                "tokenTtlSeconds must be 60 to 604800, got 59",
            ),
            (
                json!({"tokenTtlSeconds": 604801}),
                "tokenTtlSeconds must be 60 to 604800",
            ),
            (
                json!({"allowedDomains": ["https://a"]}),
                "allowedDomains[0] must be a host",
            ),
            (
                json!({"allowedDomains": vec!["a.org"; 26]}),
                "allowedDomains must have at most 25 entries, got 26",
            ),
            (
                json!({"captions": vec![json!({}); 33]}),
                "captions must have at most 32 entries (vod.max_captions), got 33",
            ),
            (
                caption(json!({"fileId": FILE})),
                "captions[1].language must be a language tag (BCP 47) such as de or pt-BR, got ``",
            ),
            (
                caption(json!({"language": "../x", "fileId": FILE})),
                "captions[1].language must be a language tag",
            ),
            (
                caption(json!({"language": "EN", "fileId": FILE})),
                "captions[1].language must be another one than before",
            ),
            (
                caption(json!({"language": "de"})),
                "captions[1].fileId or captions[1].url must be given",
            ),
            (
                caption(json!({"language": "de", "fileId": FILE, "url": "http://a"})),
                "captions[1].fileId or captions[1].url must be given",
            ),
            (
                caption(json!({"language": "de", "fileId": FILE, "label": ""})),
                "captions[1].label must have 1 to 100 characters",
            ),
        ];
        for (body, expected) in cases {
            let error = read(body.clone()).expect_err(&body.to_string()).to_string();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }

    #[test]
    fn a_change_may_empty_the_time_of_tokens() {
        let patch = |body: Value| {
            let request: ChangeStream = serde_json::from_value(body).unwrap();
            request.checked()
        };
        assert_eq!(patch(json!({})).unwrap().token_ttl_s, None);
        let emptied = patch(json!({"tokenTtlSeconds": null})).unwrap();
        assert_eq!(emptied.token_ttl_s, Some(None));
        let set = patch(json!({"tokenTtlSeconds": 60, "access": "signed"})).unwrap();
        assert_eq!(
            (set.token_ttl_s, set.access),
            (Some(Some(60)), Some(Access::Signed))
        );
        assert!(patch(json!({"tokenTtlSeconds": 1})).is_err());
        let token: PlaybackTokenRequest = serde_json::from_value(json!({"expiresIn": 59})).unwrap();
        assert_eq!(
            token.checked().unwrap_err().to_string(),
            "expiresIn must be 60 to 604800, got 59"
        );
    }
}
