//! Files of `web/dist` compiled in: `/assets/{file}`, `/embed/{file}`, pages, `Accept-Encoding` (Brotli, gzip), entity tags, `Cache-Control`.
//!
//! Beside a file there may be the same file in Brotli and gzip (`x.js.br`, `x.js.gz`); nothing is compressed at run time.

use std::borrow::Cow;

use actix_web::{
    HttpRequest, HttpResponse, HttpResponseBuilder,
    http::header::{self, HeaderMap},
    web::{self, Bytes},
};
use rust_embed::{EmbeddedFile, RustEmbed};

use super::bytes;
use crate::application::error::ApiError;

/// Files that `make` built from `web/`; `build.rs` puts placeholders where it has not.
#[derive(RustEmbed)]
#[folder = "web/dist"]
struct Front;

/// `Cache-Control` of pages, which are revalidated each time.
const PAGE_CACHE: &str = "no-cache";
/// `Cache-Control` of scripts and styles, whose names carry a hash of their content.
const ASSET_CACHE: &str = "public, max-age=31536000, immutable";
/// `Cache-Control` of scripts that other sites name by a fixed address.
const EMBED_CACHE: &str = "public, max-age=300";

/// Scripts and styles of the pages
///
/// In the coding of `Accept-Encoding` that is preferred, of Brotli, gzip and none.
#[utoipa::path(get, path = "/assets/{file}", tag = "pages", security(()), params(
    ("file" = String, Path, description = "As the pages name it"),
), responses((status = 200, description = "A file", body = String, content_type = "*/*")))]
pub async fn asset(
    request: HttpRequest,
    file: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    script_for_all(&request, "assets", &file, ASSET_CACHE)
}

/// Scripts for pages of other sites
///
/// `sluice-player.js` defines the element `<sluice-player>`.
#[utoipa::path(get, path = "/embed/{file}", tag = "pages", security(()), params(
    ("file" = String, Path, description = "`sluice-player.js`"),
), responses((status = 200, description = "A script", body = String, content_type = "text/javascript")))]
pub async fn embed(
    request: HttpRequest,
    file: web::Path<String>,
) -> Result<HttpResponse, ApiError> {
    script_for_all(&request, "embed", &file, EMBED_CACHE)
}

/// Answers with a file of a folder. Pages of every site may read it: the element loads hls.js as a module, and browsers load modules
/// of another origin with CORS.
fn script_for_all(
    request: &HttpRequest,
    folder: &str,
    file: &str,
    cache: &'static str,
) -> Result<HttpResponse, ApiError> {
    let is_name = !file.contains(['/', '\\']) && Coding::of_name(file) == Coding::Identity;
    let mut response = Respond::with(request, &format!("{folder}/{file}"))
        .filter(|_| is_name)
        .ok_or(ApiError::NotFound("asset"))?;
    response
        .head
        .insert_header((header::CACHE_CONTROL, cache))
        .insert_header((header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"));
    Ok(response.finish())
}

/// Returns a page that the service fills before it answers with it.
pub(super) fn frame(name: &str) -> Option<String> {
    let embedded = Front::get(name)?;
    String::from_utf8(embedded.data.into_owned()).ok()
}

/// Answers with a page as it was built, under a content security policy.
pub(super) fn page(
    request: &HttpRequest,
    name: &str,
    policy: &'static str,
) -> Result<Respond, ApiError> {
    let mut response = Respond::with(request, name).ok_or(ApiError::NotFound("page"))?;
    response
        .head
        .insert_header((header::CACHE_CONTROL, PAGE_CACHE))
        .insert_header((header::CONTENT_SECURITY_POLICY, policy));
    Ok(response)
}

/// An answer with a file, or 304 to a client that has it.
pub(super) struct Respond {
    pub head: HttpResponseBuilder,
    /// `None` with 304.
    body: Option<Bytes>,
}

impl Respond {
    /// Finds a file; `None` when there is none of that name.
    fn with(request: &HttpRequest, path: &str) -> Option<Self> {
        let plain = Front::get(path)?;
        let kind = match plain.metadata.mimetype() {
            text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
            other => other.to_owned(),
        };
        let (coding, file) = in_coding(request.headers(), path, plain);
        let tag = tag(&file);
        let is_known = bytes::is_known(request, &tag).unwrap_or(false);
        let mut head = match is_known {
            true => HttpResponse::NotModified(),
            false => HttpResponse::Ok(),
        };
        head.insert_header((header::ETAG, tag))
            .insert_header((header::VARY, "accept-encoding"));
        if !is_known {
            head.insert_header((header::CONTENT_TYPE, kind));
            if let Some(name) = coding.name() {
                head.insert_header((header::CONTENT_ENCODING, name));
            }
        }
        let body = (!is_known).then(|| match file.data {
            Cow::Borrowed(compiled_in) => Bytes::from_static(compiled_in),
            Cow::Owned(read) => Bytes::from(read),
        });
        Some(Self { head, body })
    }

    pub(super) fn finish(mut self) -> HttpResponse {
        match self.body {
            Some(body) => self.head.body(body),
            None => self.head.finish(),
        }
    }
}

/// The file in the coding that the client wants most, of those that it was built in.
fn in_coding(headers: &HeaderMap, path: &str, plain: EmbeddedFile) -> (Coding, EmbeddedFile) {
    let lines = headers.get_all(header::ACCEPT_ENCODING);
    let accepted: Vec<&str> = lines.filter_map(|line| line.to_str().ok()).collect();
    for coding in Coding::accepted(&accepted.join(",")) {
        let Some(suffix) = coding.suffix() else {
            break;
        };
        if let Some(file) = Front::get(&format!("{path}{suffix}")) {
            return (coding, file);
        }
    }
    (Coding::Identity, plain)
}

/// The entity tag of a file; other bytes have another, also those of another coding.
fn tag(file: &EmbeddedFile) -> String {
    let hash = file.metadata.sha256_hash();
    format!(
        "\"{:032x}\"",
        u128::from_be_bytes(hash[..16].try_into().expect("a SHA-256 has 32 bytes"))
    )
}

/// Content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Brotli,
    Gzip,
    Identity,
}

impl Coding {
    /// The best first.
    const ALL: [Self; 3] = [Self::Brotli, Self::Gzip, Self::Identity];

    fn of_name(file: &str) -> Self {
        let compressed = |coding: &Self| coding.suffix().is_some_and(|it| file.ends_with(it));
        let found = Self::ALL.into_iter().find(compressed);
        found.unwrap_or(Self::Identity)
    }

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some("br"),
            Self::Gzip => Some("gzip"),
            Self::Identity => None,
        }
    }

    fn suffix(self) -> Option<&'static str> {
        match self {
            Self::Brotli => Some(".br"),
            Self::Gzip => Some(".gz"),
            Self::Identity => None,
        }
    }

    /// The codings that an `Accept-Encoding` allows (RFC 9110 §12.5.3), the most wanted first and of equally wanted ones the best.
    fn accepted(header: &str) -> Vec<Self> {
        let named = |name: &str| {
            let mut members = header.split(',').map(weighted);
            members.find_map(|(coding, weight)| coding.eq_ignore_ascii_case(name).then_some(weight))
        };
        let any = named("*");
        let weight = |coding: &Self| match coding {
            Self::Brotli => named("br").or(any).unwrap_or(0),
            Self::Gzip => named("gzip").or(named("x-gzip")).or(any).unwrap_or(0),
            // Allowed unless it is excluded, and the least wanted unless it is named.
            Self::Identity => named("identity").or(any).unwrap_or(1),
        };
        let mut accepted = Self::ALL.to_vec();
        accepted.retain(|coding| weight(coding) > 0);
        accepted.sort_by_key(|coding| std::cmp::Reverse(weight(coding)));
        accepted
    }
}

/// A member of `Accept-Encoding` with its weight in thousandths; what cannot be read has weight 0.
fn weighted(member: &str) -> (&str, u16) {
    let (coding, parameter) = match member.split_once(';') {
        Some((coding, parameter)) => (coding, Some(parameter)),
        None => (member, None),
    };
    let weight = match parameter {
        None => 1.0,
        Some(parameter) => parameter
            .split_once('=')
            .filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
            .and_then(|(_, weight)| weight.trim().parse::<f32>().ok())
            .filter(|weight| (0.0..=1.0).contains(weight))
            .unwrap_or(0.0),
    };
    (coding.trim(), (weight * 1000.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::{
        Coding::{Brotli, Gzip, Identity},
        *,
    };

    #[test]
    fn the_client_chooses_the_coding_and_the_service_among_equals() {
        let cases: &[(&str, &[Coding])] = &[
            ("", &[Identity]),
            ("gzip, deflate, br, zstd", &[Brotli, Gzip, Identity]),
            ("gzip", &[Gzip, Identity]),
            ("x-gzip;q=0.1", &[Gzip, Identity]),
            ("br;q=0.5, gzip;q=0.8", &[Gzip, Brotli, Identity]),
            ("br;q=0.5, identity;q=0.8", &[Identity, Brotli]),
            ("br ; Q=1.000,identity;q=0", &[Brotli]),
            ("*", &[Brotli, Gzip, Identity]),
            ("*;q=0", &[]),
            ("br;q=0, *", &[Gzip, Identity]),
            ("gzip;q=0", &[Identity]),
            ("br;q=nan, gzip;q=2, gzip", &[Identity]),
            ("br;level=5", &[Identity]),
            (",;,=;q", &[Identity]),
            ("bro", &[Identity]),
        ];
        for (header, expected) in cases {
            assert_eq!(&Coding::accepted(header), expected, "{header}");
        }
    }

    #[test]
    fn compressed_files_are_no_addresses() {
        for (name, coding) in [
            ("app-1.js", Identity),
            ("app-1.js.br", Brotli),
            ("app-1.js.gz", Gzip),
            ("br", Identity),
        ] {
            assert_eq!(Coding::of_name(name), coding, "{name}");
        }
    }
}
