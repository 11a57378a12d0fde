//! `formats` and `resizePresets` of `GET /api/catalogue`: file formats and named sizes.

use serde::Serialize;
use sluice_media::{format::Format, operation::SizePreset};
use utoipa::ToSchema;

/// A format that files are read in.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FormatRecord {
    /// The word on the wire, and the extension of files that the service names.
    name: &'static str,
    mime: &'static str,
    /// Other extensions and spellings.
    aliases: &'static [&'static str],
    /// `raster`, `vector`, `document`, `video`, `audio` or `archive`.
    class: &'static str,
    /// True when operations can write it.
    is_written: bool,
    has_alpha: bool,
    /// True when it keeps animation.
    can_animate: bool,
}

/// A named size of `resizePreset`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResizePresetRecord {
    name: &'static str,
    /// `original`, `inside`, `cover` (cropped) or `canvas` (exactly that size).
    fit: &'static str,
    /// Pixels; null: as it comes, or from the fields of `takes`.
    width: Option<u32>,
    height: Option<u32>,
    /// Fields without which it is rejected.
    needs: &'static [&'static str],
    /// Fields that change its sides.
    takes: &'static [&'static str],
}

impl From<Format> for FormatRecord {
    fn from(format: Format) -> Self {
        Self {
            name: format.name(),
            mime: format.mime(),
            aliases: format.aliases(),
            class: format.class().name(),
            is_written: format.is_written(),
            has_alpha: format.has_alpha(),
            can_animate: format.can_animate(),
        }
    }
}

impl From<&SizePreset> for ResizePresetRecord {
    fn from(preset: &SizePreset) -> Self {
        Self {
            name: preset.name,
            fit: preset.shape.name(),
            width: preset.width,
            height: preset.height,
            needs: preset.needs,
            takes: preset.takes,
        }
    }
}
