//! AWS Signature Version 4 in the header `Authorization`, with the hash of the body among what is signed.
//!
//! In the header, not in the query as rusty-s3 signs: every client of S3 signs so, hence every server takes it for every
//! request; the server compares the body with its hash before it stores it, over plain HTTP as well; and the logs of proxies have
//! no signature. <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>

use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use rusty_s3::Credentials;
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::credentials::hexadecimal;

/// Returns the value of `X-Amz-Date`.
pub(super) fn date(now: Timestamp) -> String {
    now.strftime("%Y%m%dT%H%M%SZ").to_string()
}

/// Returns the value of `X-Amz-Content-Sha256`.
pub(super) fn payload_hash(body: &[u8]) -> String {
    hexadecimal(&Sha256::digest(body))
}

/// Returns the value of `Authorization`.
///
/// The query of `url` must be sorted and encoded as RFC 3986 has it. `headers` are those to sign: lower-case names in their
/// order, values without spaces around them.
pub(super) fn authorization(
    credentials: &Credentials,
    region: &str,
    method: &str,
    url: &Url,
    headers: &[(&str, &str)],
    payload_hash: &str,
    now: Timestamp,
) -> String {
    let mut canonical = format!(
        "{method}\n{}\n{}\n",
        url.path(),
        url.query().unwrap_or_default()
    );
    for (name, value) in headers {
        canonical.push_str(&format!("{name}:{value}\n"));
    }
    let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    canonical.push_str(&format!("\n{names}\n{payload_hash}"));

    let day = now.strftime("%Y%m%d").to_string();
    let scope = format!("{day}/{region}/s3/aws4_request");
    let to_sign = format!(
        "AWS4-HMAC-SHA256\n{}\n{scope}\n{}",
        date(now),
        hexadecimal(&Sha256::digest(canonical.as_bytes()))
    );
    let mut key = format!("AWS4{}", credentials.secret()).into_bytes();
    for part in [day.as_str(), region, "s3", "aws4_request", &to_sign] {
        key = mac(&key, part);
    }
    format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={}",
        credentials.key(),
        hexadecimal(&key)
    )
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Examples of the page above.
    #[test]
    fn signatures_are_those_of_amazons_examples() {
        let credentials = Credentials::new(
            "AKIAIOSFODNN7EXAMPLE",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        );
        let now: Timestamp = "2013-05-24T00:00:00Z".parse().unwrap();
        let (hash, date) = (payload_hash(b""), date(now));
        assert_eq!(date, "20130524T000000Z");
        let host = ("host", "examplebucket.s3.amazonaws.com");
        let rest = [
            ("x-amz-content-sha256", hash.as_str()),
            ("x-amz-date", date.as_str()),
        ];
        let cases = [
            (
                "test.txt",
                vec![host, ("range", "bytes=0-9"), rest[0], rest[1]],
                "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
            ),
            (
                "?max-keys=2&prefix=J",
                vec![host, rest[0], rest[1]],
                "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
            ),
        ];
        for (target, headers, signature) in cases {
            let url = format!("https://examplebucket.s3.amazonaws.com/{target}");
            let url = url.parse().unwrap();
            let value = authorization(&credentials, "us-east-1", "GET", &url, &headers, &hash, now);
            let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,SignedHeaders={},Signature={signature}",
                names.join(";")
            );
            assert_eq!(value, expected);
        }
    }
}
