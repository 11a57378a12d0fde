//! Address of the object store (`store.objects_url`): `s3://BUCKET/PREFIX?endpoint=…` or `file:///FOLDER`.

use std::path::PathBuf;

use rusty_s3::{Bucket, UrlStyle};
use url::Url;

use crate::Error;

const LONGEST_PREFIX: usize = 200;

/// Place of an object store.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    S3 {
        bucket: Bucket,
        /// Beginning of all keys: empty, or with a `/` at its end.
        prefix: String,
    },
    /// Folder that every node of the service sees.
    Folder(PathBuf),
}

impl Address {
    /// Reads an address; `None` for an empty one. The error names the part that is wrong and never shows the address, which may
    /// have a secret.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Error> {
        const FORMS: &str = "s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION&style=path, file:///FOLDER, or empty";
        if text.is_empty() {
            return Ok(None);
        }
        let url = Url::parse(text).map_err(|_| invalid(FORMS))?;
        match url.scheme() {
            "s3" => parse_s3(&url).map(Some),
            "file" => parse_folder(&url).map(Some),
            _ => Err(invalid(FORMS)),
        }
    }
}

fn parse_s3(url: &Url) -> Result<Address, Error> {
    if has_credentials(url) || url.port().is_some() || url.fragment().is_some() {
        return Err(invalid(
            "s3://BUCKET without user, port or #: keys belong in store.objects_access_key and store.objects_secret_key, the port in endpoint",
        ));
    }
    let name = url.host_str().unwrap_or_default();
    if !is_bucket_name(name) {
        return Err(invalid(
            "a bucket's name of 3 to 63 letters, digits, `.`, `-` and `_` after s3://",
        ));
    }
    let mut prefix = url.path().trim_matches('/').to_owned();
    if !prefix.is_empty() {
        if !is_key(&prefix) || prefix.len() > LONGEST_PREFIX {
            return Err(invalid(
                "a prefix of up to 200 letters, digits, `.`, `-`, `_` and single `/`",
            ));
        }
        prefix.push('/');
    }
    let (mut endpoint, mut region, mut style) = (None, "us-east-1".to_owned(), None);
    for (parameter, value) in url.query_pairs() {
        match &*parameter {
            "endpoint" => endpoint = Some(parse_endpoint(&value)?),
            "region" => region = parse_region(&value)?,
            "style" => style = Some(parse_style(&value)?),
            _ => {
                return Err(invalid("no parameters but endpoint, region and style"));
            }
        }
    }
    // Amazon's certificates have the names of buckets; servers under one name or number do not.
    let style = style.unwrap_or(match endpoint {
        None => UrlStyle::VirtualHost,
        Some(_) => UrlStyle::Path,
    });
    let endpoint = match endpoint {
        Some(endpoint) => endpoint,
        None => parse_endpoint(&format!("https://s3.{region}.amazonaws.com"))?,
    };
    let bucket = Bucket::new(endpoint, style, name.to_owned(), region).map_err(|_| {
        invalid("style=path, unless BUCKET.HOST is a name that leads to the endpoint")
    })?;
    Ok(Address::S3 { bucket, prefix })
}

fn parse_folder(url: &Url) -> Result<Address, Error> {
    let is_local = url.host_str().unwrap_or_default().is_empty();
    let folder = url.to_file_path().ok().filter(|folder| {
        is_local && url.query().is_none() && url.fragment().is_none() && folder.parent().is_some()
    });
    match folder {
        Some(folder) => Ok(Address::Folder(folder)),
        None => Err(invalid(
            "file:/// and the path of a folder other than /, with `?`, `#` and `%` as %3F, %23 and %25",
        )),
    }
}

fn parse_endpoint(text: &str) -> Result<Url, Error> {
    let endpoint = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.host_str().is_some()
            && !has_credentials(url)
            && url.query().is_none()
            && url.fragment().is_none()
    });
    endpoint.ok_or_else(|| {
        invalid("endpoint=https://HOST:PORT or endpoint=http://HOST:PORT, without user, ? and #")
    })
}

fn parse_region(text: &str) -> Result<String, Error> {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    match (1..=64).contains(&text.len()) && text.bytes().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err(invalid("region=us-east-1 or another region's name")),
    }
}

fn parse_style(text: &str) -> Result<UrlStyle, Error> {
    match text {
        "path" => Ok(UrlStyle::Path),
        "virtual" => Ok(UrlStyle::VirtualHost),
        _ => Err(invalid("style=path or style=virtual")),
    }
}

fn has_credentials(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    (3..=63).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with('.')
}

/// Returns whether a key means the same to every server and file system: no character that one of them would escape, and no
/// segment that is empty or begins with a dot.
pub(super) fn is_key(key: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    key.split('/').all(|segment| {
        !segment.is_empty() && !segment.starts_with('.') && segment.bytes().all(is_allowed)
    })
}

fn invalid(allowed: &str) -> Error {
    Error::Invalid(format!("store.objects_url: expected {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match Address::parse(text).unwrap() {
            Some(Address::S3 { bucket, prefix }) => {
                format!("{} {} {prefix}", bucket.base_url(), bucket.region())
            }
            Some(Address::Folder(folder)) => folder.display().to_string(),
            None => String::new(),
        }
    }

    #[test]
    fn addresses_are_read() {
        for (text, expected) in [
            ("", ""),
            (
                "s3://media",
                "https://media.s3.us-east-1.amazonaws.com/ us-east-1 ",
            ),
            (
                "s3://media/a/b/?region=eu-west-1&style=path",
                "https://s3.eu-west-1.amazonaws.com/media/ eu-west-1 a/b/",
            ),
            (
                "s3://my_Media/x?endpoint=http://127.0.0.1:8333",
                "http://127.0.0.1:8333/my_Media/ us-east-1 x/",
            ),
            (
                "s3://media?endpoint=http%3A%2F%2F[::1]:9000/s3&region=auto",
                "http://[::1]:9000/s3/media/ auto ",
            ),
            (
                "s3://media?endpoint=https://s3.example.org&style=virtual",
                "https://media.s3.example.org/ us-east-1 ",
            ),
            ("file:///mnt/shared%20media", "/mnt/shared media"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_address_is_not_shown() {
        for text in [
            "swordfish",
            "https://swordfish/bucket",
            "s3://",
            "s3://ab",
            "s3://key:swordfish@media",
            "s3://media:9000",
            "s3://media/a//b",
            "s3://media/a%20b",
            "s3://media?secret=swordfish",
            "s3://media?style=swordfish",
            "s3://media?region=sword/fish",
            "s3://media?endpoint=swordfish",
            "s3://media?endpoint=https://key:swordfish@host",
            "s3://media?endpoint=ftp://swordfish",
            "s3://media?endpoint=http://127.0.0.1:1&style=virtual",
            "file://swordfish/media",
            "file:///",
            "file:///media?swordfish",
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.starts_with("store.objects_url: expected "), "{error}");
            assert!(!error.contains("swordfish"), "{error}");
        }
    }

    #[test]
    fn keys_are_plain() {
        for key in ["b/0198/0-12ab", "b/0198/t12", "probe/a-b_c.d"] {
            assert!(is_key(key), "{key}");
        }
        for key in [
            "", "/", "a/", "/a", "a//b", "..", "a/../b", "a/.b", "a b", "ä", "a%b",
        ] {
            assert!(!is_key(key), "{key}");
        }
    }
}
