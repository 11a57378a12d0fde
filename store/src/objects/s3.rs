//! S3-compatible object store: requests, repetitions, the meaning of answers.
//!
//! Every request may be repeated, since no key is written with two contents.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use hyper::{
    HeaderMap, Method, Request, StatusCode,
    header::{AUTHORIZATION, CONTENT_LENGTH, DATE, HOST, USER_AGENT},
};
use jiff::Timestamp;
use rusty_s3::{Bucket, Credentials, S3Action as _, actions::ListObjectsV2};
use tokio::time::{Instant, sleep_until, timeout_at};
use tracing::{debug, warn};
use url::{Position, Url};

use super::{
    MAX_OBJECT, MOST_LISTED, ObjectEntry,
    connection::{Answer, Connections},
    failure::Failure,
    limits::Limits,
    sign,
};
use crate::{Error, StoreSettings, now_ms};

const TRIES: u32 = 3;
/// Bytes of the answers to writes and deletions.
const MAX_RECEIPT: usize = 64 << 10;
/// Bytes of a list of 1000 objects: about 400 for each, and more where servers add owners and checksums.
const MAX_LIST: usize = 4 << 20;
/// Pages without an object of the list that is asked for, as servers may send between two with some.
const MOST_EMPTY_PAGES: usize = 100;
/// Bodies from this size on are hashed on a thread that may block.
const LARGE: usize = 64 << 10;
/// Bytes of an answer's body within which the code of a failure is.
const CODE_WITHIN: usize = 4 << 10;
/// Characters of a server's explanation.
const LONGEST_EXPLANATION: usize = 300;

const CHECK_RIGHTS: &str = "give the key the rights s3:GetObject, s3:PutObject, s3:DeleteObject and s3:ListBucket on the bucket and its objects";
const CHECK_BUCKET: &str = "make the bucket, or correct its name in store.objects_url";
const CHECK_PLACE: &str = "correct endpoint, region and style in store.objects_url";
const CHECK_KEYS: &str = "correct store.objects_access_key and store.objects_secret_key (or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN)";
/// Codes of requests whose time is too far from the server's.
const OTHER_TIME: [&str; 2] = ["RequestTimeTooSkewed", "RequestExpired"];
/// Seconds by which clocks may differ without another signature: servers allow fifteen minutes.
const MOST_SKEW_S: u64 = 60;
const CHECK_CLOCK: &str = "set the clock of this machine, for instance by NTP";

pub(super) struct S3 {
    bucket: Bucket,
    prefix: String,
    credentials: Credentials,
    connections: Connections,
    limits: Limits,
    /// Seconds by which the object store's clock is ahead of the machine's; 0 until it rejects a request for its time.
    ahead_s: AtomicI64,
}

/// Request without signature.
struct Call {
    method: Method,
    url: Url,
    body: Bytes,
    max_answer: usize,
}

/// Time of a request, its repetitions included: `store.objects_timeout`, and more for the bytes that have moved, so that a slow
/// line is no failure.
struct Time {
    started: Instant,
    limits: Limits,
    /// Bytes of the bodies of requests and answers so far.
    moved: Arc<AtomicU64>,
    /// Greatest number of bytes for which there is more time.
    most: u64,
}

impl Time {
    fn of(call: &Call, limits: Limits) -> Self {
        Self {
            started: Instant::now(),
            limits,
            moved: Arc::default(),
            most: (call.body.len() + call.max_answer) as u64,
        }
    }

    fn allowed(&self) -> Duration {
        let moved = self.moved.load(Relaxed).min(self.most);
        let for_bytes = Duration::from_millis(moved.saturating_mul(1000) / self.limits.pace);
        self.limits.patience + for_bytes
    }
}

impl S3 {
    pub(super) fn new(
        settings: &StoreSettings,
        bucket: Bucket,
        prefix: String,
        limits: Limits,
    ) -> Result<Self, Error> {
        let at_once = settings.objects_connections;
        Ok(Self {
            credentials: credentials(settings)?,
            connections: Connections::new(bucket.base_url(), at_once, limits)?,
            bucket,
            prefix,
            limits,
            ahead_s: AtomicI64::new(0),
        })
    }

    /// Returns the bucket's address and the prefix, for people.
    pub(super) fn place(&self) -> String {
        format!("{}{}", self.bucket.base_url(), self.prefix)
    }

    pub(super) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Failure> {
        let call = Call {
            body: bytes,
            ..self.call(Method::PUT, key, MAX_RECEIPT)
        };
        match self.run(call).await {
            Ok(_) => Ok(()),
            Err(Failure::Missing) => Err(Failure::rejected("has no such bucket", CHECK_BUCKET)),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Bytes, Failure> {
        self.run(self.call(Method::GET, key, MAX_OBJECT)).await
    }

    pub(super) async fn delete(&self, key: &str) -> Result<(), Failure> {
        match self.run(self.call(Method::DELETE, key, MAX_RECEIPT)).await {
            Ok(_) | Err(Failure::Missing) => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    pub(super) async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<ObjectEntry>, Failure> {
        let mut token = None;
        for _ in 0..MOST_EMPTY_PAGES {
            let (entries, next) = self.list_page(prefix, after, token).await?;
            if !entries.is_empty() || next.is_none() {
                return Ok(entries);
            }
            token = next;
        }
        Err(Failure::Transient(
            "lists no object on many pages".to_owned(),
        ))
    }

    /// Lists a page, and returns the token of the next one.
    async fn list_page(
        &self,
        prefix: &str,
        after: Option<&str>,
        token: Option<String>,
    ) -> Result<(Vec<ObjectEntry>, Option<String>), Failure> {
        let mut action = self.bucket.list_objects_v2(None);
        action.with_prefix(format!("{}{prefix}", self.prefix));
        action.with_max_keys(MOST_LISTED);
        match (token, after) {
            (Some(token), _) => action.with_continuation_token(token),
            (None, Some(after)) => action.with_start_after(format!("{}{after}", self.prefix)),
            (None, None) => {}
        }
        let call = Call {
            method: Method::GET,
            // Without credentials the action is an address with its query.
            url: action.sign(Duration::ZERO),
            body: Bytes::new(),
            max_answer: MAX_LIST,
        };
        let body = match self.run(call).await {
            Err(Failure::Missing) => {
                return Err(Failure::rejected("has no such bucket", CHECK_BUCKET));
            }
            body => body?,
        };
        read_list(&body, &self.prefix, prefix, after)
    }

    fn call(&self, method: Method, key: &str, max_answer: usize) -> Call {
        Call {
            method,
            url: self.bucket.object_url(&format!("{}{key}", self.prefix)),
            body: Bytes::new(),
            max_answer,
        }
    }

    /// Sends a request until it succeeds, for [`TRIES`] times and its [`Time`] at most.
    async fn run(&self, call: Call) -> Result<Bytes, Failure> {
        let payload_hash = hash(call.body.clone()).await?;
        let time = Time::of(&call, self.limits);
        let mut last = None;
        let mut pause = self.limits.first_pause;
        for _ in 1..TRIES {
            let reason = match self.attempt_within(&time, &call, &payload_hash).await {
                Err(Failure::Transient(reason)) => reason,
                done => return done,
            };
            let until = Instant::now() + jittered(pause);
            if until >= time.started + time.allowed() {
                return Err(Failure::Transient(last.unwrap_or(reason)));
            }
            let path = call.url.path();
            debug!(method = %call.method, path, reason, "repeating a request to the object store");
            last = Some(reason);
            sleep_until(until).await;
            pause *= 2;
        }
        self.attempt_within(&time, &call, &payload_hash).await
    }

    async fn attempt_within(
        &self,
        time: &Time,
        call: &Call,
        payload_hash: &str,
    ) -> Result<Bytes, Failure> {
        let mut attempt = pin!(self.attempt(call, payload_hash, &time.moved));
        loop {
            let allowed = time.allowed();
            match timeout_at(time.started + allowed, &mut attempt).await {
                Ok(done) => return done,
                // Bytes have moved since.
                Err(_) if time.allowed() > allowed => {}
                Err(_) => {
                    return Err(Failure::Transient(format!(
                        "did not answer within {allowed:?} (store.objects_timeout, and one second for each {} KiB that moved)",
                        self.limits.pace >> 10
                    )));
                }
            }
        }
    }

    async fn attempt(
        &self,
        call: &Call,
        payload_hash: &str,
        moved: &Arc<AtomicU64>,
    ) -> Result<Bytes, Failure> {
        let ahead_s = self.ahead_s.load(Relaxed);
        let now = Timestamp::now();
        let request = self.request(call, payload_hash, shifted(now, ahead_s))?;
        let exchange = self.connections.exchange(&request, call.max_answer, moved);
        let answer = exchange.await?;
        if is_for_its_time(&answer)
            && let Some(found_s) =
                answer_date(&answer.headers).map(|date| seconds_between(now, date))
            && found_s.abs_diff(ahead_s) > MOST_SKEW_S
        {
            self.ahead_s.store(found_s, Relaxed);
            warn!(
                seconds = found_s,
                "the object store's clock is ahead of this machine's by so much, requests go by it: set both by NTP"
            );
            return Err(Failure::Transient("goes by another clock".to_owned()));
        }
        judge(answer)
    }

    fn request(
        &self,
        call: &Call,
        payload_hash: &str,
        now: Timestamp,
    ) -> Result<Request<Bytes>, Failure> {
        let host = host_of(&call.url);
        let date = sign::date(now);
        let mut signed = vec![
            ("host", host.as_str()),
            ("x-amz-content-sha256", payload_hash),
            ("x-amz-date", date.as_str()),
        ];
        let token = self.credentials.token().filter(|token| !token.is_empty());
        signed.extend(token.map(|token| ("x-amz-security-token", token)));
        let authorization = sign::authorization(
            &self.credentials,
            self.bucket.region(),
            call.method.as_str(),
            &call.url,
            &signed,
            payload_hash,
            now,
        );
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.url[Position::BeforePath..Position::AfterQuery])
            .header(HOST, host.as_str())
            .header(USER_AGENT, "sluice")
            .header(AUTHORIZATION, authorization);
        for (name, value) in signed.into_iter().skip(1) {
            request = request.header(name, value);
        }
        if call.method == Method::PUT {
            request = request.header(CONTENT_LENGTH, call.body.len());
        }
        let request = request.body(call.body.clone());
        request.map_err(|_| Failure::rejected("has a key that no header can carry", CHECK_KEYS))
    }
}

/// Returns whether a request was rejected because its time is too far from the server's.
fn is_for_its_time(answer: &Answer) -> bool {
    let text = String::from_utf8_lossy(code_part(answer));
    element(&text, "Code").is_some_and(|code| OTHER_TIME.contains(&code))
}

/// Returns the part of an answer in which the code of a failure is; nothing of a success, whose body may be a piece.
fn code_part(answer: &Answer) -> &[u8] {
    let length = match answer.status.is_success() {
        true => 0,
        false => answer.body.len().min(CODE_WITHIN),
    };
    &answer.body[..length]
}

/// Returns the time of `Date` (RFC 9110, section 6.6.1).
fn answer_date(headers: &HeaderMap) -> Option<Timestamp> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(date.timestamp())
}

fn seconds_between(from: Timestamp, to: Timestamp) -> i64 {
    to.as_second() - from.as_second()
}

/// The time itself where the sum is none that a clock can have.
fn shifted(time: Timestamp, seconds: i64) -> Timestamp {
    let shifted = Timestamp::from_second(time.as_second().saturating_add(seconds));
    shifted.unwrap_or(time)
}

fn credentials(settings: &StoreSettings) -> Result<Credentials, Error> {
    if !settings.objects_access_key.is_empty() {
        return Ok(Credentials::new(
            &settings.objects_access_key,
            &settings.objects_secret_key,
        ));
    }
    Credentials::from_env().ok_or_else(|| {
        Error::Unsupported(
            "store.objects_url has no keys: set store.objects_access_key and store.objects_secret_key, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                .into(),
        )
    })
}

/// Returns the value of `Host`, as it is signed.
fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

async fn hash(body: Bytes) -> Result<String, Failure> {
    if body.len() < LARGE {
        return Ok(sign::payload_hash(&body));
    }
    let hashed = tokio::task::spawn_blocking(move || sign::payload_hash(&body)).await;
    hashed.map_err(|_| Failure::Transient("is not asked while the service stops".to_owned()))
}

/// Takes between half of the pause and all of it.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

/// Tells success from failure, and one failure from another.
fn judge(answer: Answer) -> Result<Bytes, Failure> {
    let Answer {
        status,
        headers,
        body,
    } = answer;
    match status {
        // No part was asked for.
        StatusCode::PARTIAL_CONTENT => Err(Failure::Transient(
            "answers with a part of an object".to_owned(),
        )),
        _ if status.is_success() => Ok(body),
        _ => Err(judge_failure(status, &headers, &body)),
    }
}

/// Sorts failures by the codes of <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>, and those of MinIO, Ceph
/// and SeaweedFS.
fn judge_failure(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(body);
    let code = element(&text, "Code").unwrap_or_default();
    let reason = match element(&text, "Message") {
        Some(message) => format!("answers {status}, {code}: {message}"),
        None => format!("answers {status} {code}"),
    };
    let reason: String = reason
        .trim_end()
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(LONGEST_EXPLANATION)
        .collect();
    match code {
        "QuotaExceeded"
        | "XMinioStorageFull"
        | "XMinioAdminBucketQuotaExceeded"
        | "InsufficientCapacity" => return Failure::Full,
        "NoSuchBucket" => return Failure::rejected(reason, CHECK_BUCKET),
        code if OTHER_TIME.contains(&code) => return Failure::rejected(reason, CHECK_CLOCK),
        "InvalidAccessKeyId"
        | "SignatureDoesNotMatch"
        | "ExpiredToken"
        | "InvalidToken"
        | "TokenRefreshRequired" => return Failure::rejected(reason, CHECK_KEYS),
        "SlowDown"
        | "Throttling"
        | "ThrottlingException"
        | "RequestTimeout"
        | "InternalError"
        | "ServiceUnavailable"
        | "OperationAborted" => return Failure::Transient(reason),
        _ => {}
    }
    match status {
        StatusCode::NOT_FOUND => Failure::Missing,
        StatusCode::INSUFFICIENT_STORAGE => Failure::Full,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::rejected(reason, CHECK_RIGHTS),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Failure::Transient(reason),
        StatusCode::NOT_IMPLEMENTED => Failure::rejected(reason, CHECK_PLACE),
        _ if status.is_server_error() => Failure::Transient(reason),
        _ => {
            let region = headers.get("x-amz-bucket-region");
            match region.and_then(|region| region.to_str().ok()) {
                Some(region) => Failure::rejected(
                    format!("{reason} (the bucket is in the region {region:.40})"),
                    CHECK_PLACE,
                ),
                None => Failure::rejected(reason, CHECK_PLACE),
            }
        }
    }
}

/// Returns the text of the first element of that name.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (text, _) = rest.split_once(&format!("</{name}>"))?;
    Some(text.trim())
}

/// Reads a page of a list. Servers that ignore `prefix` or `start-after` do no harm.
fn read_list(
    body: &[u8],
    own_prefix: &str,
    prefix: &str,
    after: Option<&str>,
) -> Result<(Vec<ObjectEntry>, Option<String>), Failure> {
    let unreadable = |reason: String| {
        Failure::rejected(
            format!("answers with a list that cannot be read: {reason}"),
            CHECK_PLACE,
        )
    };
    let text = std::str::from_utf8(body).map_err(|error| unreadable(error.to_string()))?;
    let page =
        ListObjectsV2::parse_response(text).map_err(|error| unreadable(error.to_string()))?;
    let mut entries = Vec::with_capacity(page.contents.len());
    for content in page.contents {
        let Some(key) = content.key.strip_prefix(own_prefix) else {
            continue;
        };
        // Some servers list folders as objects.
        let is_wanted =
            key.starts_with(prefix) && !key.ends_with('/') && after.is_none_or(|after| key > after);
        if !is_wanted {
            continue;
        }
        let modified = content.last_modified.as_deref();
        let modified = modified.and_then(|text| text.parse::<Timestamp>().ok());
        entries.push(ObjectEntry {
            key: key.to_owned(),
            size: content.size.unwrap_or_default(),
            modified_ms: modified.map_or_else(now_ms, Timestamp::as_millisecond),
        });
    }
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    entries.truncate(MOST_LISTED);
    Ok((entries, page.next_continuation_token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_sorted_by_code_and_status() {
        let failure = |status: u16, code: &str| {
            let body = format!("<Error><Code>{code}</Code><Message>a\nb</Message></Error>");
            let body = if code.is_empty() { "" } else { body.as_str() };
            let status = StatusCode::from_u16(status).unwrap();
            judge_failure(status, &HeaderMap::new(), body.as_bytes())
        };
        for (status, code) in [
            (500, ""),
            (502, ""),
            (503, "SlowDown"),
            (429, ""),
            (400, "RequestTimeout"),
        ] {
            let failure = failure(status, code);
            assert!(matches!(failure, Failure::Transient(_)), "{failure:?}");
        }
        for (status, code, expected) in [
            (403, "AccessDenied", CHECK_RIGHTS),
            (403, "", CHECK_RIGHTS),
            (403, "SignatureDoesNotMatch", CHECK_KEYS),
            (403, "RequestTimeTooSkewed", CHECK_CLOCK),
            (404, "NoSuchBucket", CHECK_BUCKET),
            (301, "PermanentRedirect", CHECK_PLACE),
            (400, "AuthorizationHeaderMalformed", CHECK_PLACE),
            (501, "NotImplemented", CHECK_PLACE),
        ] {
            let Failure::Rejected { reason, advice } = failure(status, code) else {
                panic!("{status} {code}");
            };
            assert_eq!(advice, expected, "{status} {code}");
            assert!(reason.contains(&status.to_string()), "{reason}");
            assert!(!reason.contains('\n') && reason.contains(code), "{reason}");
        }
        assert_eq!(failure(404, "NoSuchKey"), Failure::Missing);
        assert_eq!(failure(404, ""), Failure::Missing);
        assert_eq!(failure(507, ""), Failure::Full);
        assert_eq!(failure(403, "QuotaExceeded"), Failure::Full);
    }

    #[test]
    fn only_the_beginning_of_a_failure_is_searched_for_its_code() {
        let answer = |status: u16, body: Vec<u8>| Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: body.into(),
        };
        let explained = b"<Error><Code>RequestTimeTooSkewed</Code></Error>";
        assert!(is_for_its_time(&answer(403, explained.to_vec())));
        assert!(!is_for_its_time(&answer(403, b"<Error>".to_vec())));
        let long = [explained.as_slice(), &[b'x'; 64 << 10]].concat();
        let failed = answer(403, long.clone());
        assert!(is_for_its_time(&failed));
        assert_eq!(code_part(&failed).len(), CODE_WITHIN);
        // Stored bytes that look like a failure.
        let read = answer(200, long);
        assert!(!is_for_its_time(&read));
        assert!(code_part(&read).is_empty());
    }

    #[test]
    fn a_request_has_more_time_for_its_bytes_up_to_a_bound() {
        let settings = StoreSettings::default();
        let call = Call {
            method: Method::PUT,
            url: "http://127.0.0.1/b/01/0".parse().unwrap(),
            body: Bytes::from_static(&[0; 60 << 10]),
            max_answer: 4 << 10,
        };
        let time = Time::of(&call, Limits::of(&settings));
        // Eight pieces at a time share 256 KiB/s.
        for (moved, seconds) in [(0, 20), (32 << 10, 21), (64 << 10, 22), (1 << 40, 22)] {
            time.moved.store(moved, Relaxed);
            assert_eq!(time.allowed(), Duration::from_secs(seconds), "{moved}");
        }
    }

    #[test]
    fn a_long_explanation_is_cut() {
        let body = format!("<Code>A</Code><Message>{}</Message>", "x".repeat(10_000));
        let failure = judge_failure(StatusCode::BAD_REQUEST, &HeaderMap::new(), body.as_bytes());
        let Failure::Rejected { reason, .. } = failure else {
            panic!("{failure:?}");
        };
        assert_eq!(reason.len(), LONGEST_EXPLANATION);
    }

    #[test]
    fn a_list_has_what_was_asked_for_in_order() {
        let xml = |key: &str| {
            format!(
                "<Contents><Key>{key}</Key><LastModified>2024-05-06T07:08:09.010Z</LastModified><Size>7</Size></Contents>"
            )
        };
        let keys = ["p/b/2", "p/b/0", "p/b/1", "p/c/0", "q/b/3", "p/b/4/"];
        let body = format!(
            r#"<?xml version="1.0" encoding="UTF-8"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>true</IsTruncated>{}<NextContinuationToken>t+/=</NextContinuationToken></ListBucketResult>"#,
            keys.map(xml).concat()
        );
        let (entries, next) = read_list(body.as_bytes(), "p/", "b/", Some("b/0")).unwrap();
        let found: Vec<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(found, ["b/1", "b/2"]);
        assert_eq!(entries[0].size, 7);
        assert_eq!(entries[0].modified_ms, 1_714_979_289_010);
        assert_eq!(next.as_deref(), Some("t+/="));
        for wrong in ["", "<html>", "<ListBucketResult>"] {
            assert!(
                read_list(wrong.as_bytes(), "", "", None).is_err(),
                "{wrong}"
            );
        }
    }
}
