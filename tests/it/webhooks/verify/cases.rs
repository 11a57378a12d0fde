//! A real delivery, and what may become of one on its way.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use sluice_actors::webhooks::signature;

use crate::{
    support::{
        Failure,
        receiver::{Behaviour, Receiver, Request},
    },
    webhooks::{SOON, settings, subscribe, text},
};

/// Further from now than any default tolerance.
const HOUR_S: i64 = 3_600;
const STRANGER: &str = "whsec_C2FVsBQIhrscChlQIMV0b5sSYspob7oD";

/// Headers of a request that a verifier looks at.
const SIGNED: [&str; 6] = [
    "service-event",
    "service-timestamp",
    "service-signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

/// Requests of the service to one endpoint.
pub(super) struct Captured {
    /// The endpoint's first secret, which the verifiers have.
    pub(super) secret: String,
    /// Signed with it.
    first: Case,
    /// After a rotation: signed with the new secret and with the first one.
    rotated: Case,
}

/// A delivery as it arrives.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    pub(super) is_genuine: bool,
    /// Signed well, for a time to come.
    pub(super) is_ahead: bool,
}

impl Captured {
    /// Starts the service and a receiver, and stores files until there is all that is needed.
    pub(super) async fn from_the_service() -> Result<Self, Failure> {
        let server = settings().start().await?;
        let receiver = Receiver::start(Behaviour::status(200)).await?;
        let api = server.api();
        let endpoint = subscribe(&api, &receiver.url("/hook"), &["file.uploaded"]).await?;
        // Bytes above 0x7f, a quote, and what JSON libraries escape each in their own way.
        let name = "caf\u{e9} \u{2603} \"<&>' \u{1f600}.txt";
        api.upload(name, b"first").await?;
        receiver.wait_for(1, SOON).await?;
        let path = format!("/api/webhooks/{}/rotate-secret", endpoint.id);
        let rotated = api
            .expect(StatusCode::OK, Method::POST, &path, None)
            .await?;
        assert_ne!(text(&rotated["secret"])?, endpoint.secret);
        api.upload("second.txt", b"second").await?;
        let requests = receiver.wait_for(2, SOON).await?;
        for request in &requests {
            check_form(request)?;
        }
        Ok(Self {
            secret: endpoint.secret,
            first: Case::genuine("as it came", &requests[0]),
            rotated: Case::genuine("with two signatures", &requests[1]),
        })
    }

    pub(super) fn event_id(&self) -> String {
        self.first.header("webhook-id").to_owned()
    }

    pub(super) fn cases(&self) -> Vec<Case> {
        let first = || self.first.clone();
        let now_s = unix_seconds();
        let longer: Vec<u8> = [&first().body[..], b" "].concat();
        vec![
            first(),
            self.rotated.clone(),
            first()
                .spoilt("another body")
                .with_body(self.rotated.body.clone()),
            first().spoilt("a byte more").with_body(longer.into()),
            first()
                .spoilt("a changed byte")
                .with_body(bent(&first().body)),
            first().spoilt("no body").with_body(Bytes::new()),
            first().spoilt("no headers").without_headers(),
            first().spoilt("another secret").signed(&[STRANGER], now_s),
            first()
                .spoilt("an old delivery")
                .signed(&[&self.secret], now_s - HOUR_S),
            first()
                .spoilt("a time to come")
                .ahead()
                .signed(&[&self.secret], now_s + HOUR_S),
            first()
                .spoilt("an old hash with a new time")
                .with_time(now_s + 60),
            first()
                .spoilt("nonsense")
                .with_signatures("t=,v1=,=,", "v2,x v1,nonsense"),
            first()
                .spoilt("no hash")
                .with_signatures(&format!("t={now_s}"), "v1,"),
        ]
    }
}

impl Case {
    fn genuine(name: &'static str, request: &Request) -> Self {
        let header = |name: &str| (name.to_owned(), request.header(name).to_owned());
        Self {
            name,
            headers: SIGNED.map(header).into(),
            body: request.body.clone(),
            is_genuine: true,
            is_ahead: false,
        }
    }

    /// Empty when there is none.
    pub(super) fn header(&self, name: &str) -> &str {
        let header = self.headers.iter().find(|(own, _)| own == name);
        header.map_or("", |(_, value)| value)
    }

    fn spoilt(mut self, name: &'static str) -> Self {
        self.name = name;
        self.is_genuine = false;
        self
    }

    fn ahead(mut self) -> Self {
        self.is_ahead = true;
        self
    }

    fn with_body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// The event's id stays, which only names it.
    fn without_headers(mut self) -> Self {
        self.headers.retain(|(name, _)| name == "webhook-id");
        self
    }

    fn signed(mut self, secrets: &[&str], timestamp_s: i64) -> Self {
        let (id, event_type) = (self.header("webhook-id"), self.header("service-event"));
        let headers = signature::headers(secrets, id, event_type, timestamp_s, &self.body);
        self.headers = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        self
    }

    fn with_time(self, timestamp_s: i64) -> Self {
        let (_, hash) = self
            .header("service-signature")
            .split_once(',')
            .expect("t=…,v1=…");
        let service = format!("t={timestamp_s},{hash}");
        let standard = self.header("webhook-signature").to_owned();
        let mut case = self.with_signatures(&service, &standard);
        for (name, value) in &mut case.headers {
            if name.ends_with("-timestamp") {
                *value = timestamp_s.to_string();
            }
        }
        case
    }

    fn with_signatures(mut self, service: &str, standard: &str) -> Self {
        for (name, value) in &mut self.headers {
            match name.as_str() {
                "service-signature" => service.clone_into(value),
                "webhook-signature" => standard.clone_into(value),
                _ => {}
            }
        }
        self
    }
}

/// Checks the headers and the envelope that every delivery has.
fn check_form(request: &Request) -> Result<(), Failure> {
    let envelope: Value = request.json()?;
    assert_eq!(request.header("content-type"), "application/json");
    assert_eq!(request.header("user-agent"), "Service-Webhooks/1.0");
    assert_eq!(request.header("service-event"), "file.uploaded");
    assert_eq!(envelope["type"], "file.uploaded");
    assert_eq!(envelope["id"], request.header("webhook-id"));
    let timestamp = request.header("service-timestamp");
    assert_eq!(request.header("webhook-timestamp"), timestamp);
    let signed = format!("t={timestamp},v1=");
    assert!(request.header("service-signature").starts_with(&signed));
    let hashes = request.header("service-signature").matches(",v1=").count();
    assert_eq!(hashes, request.number + 1, "a signature for each secret");
    let hashes = request.header("webhook-signature").matches("v1,").count();
    assert_eq!(hashes, request.number + 1, "a signature for each secret");
    Ok(())
}

/// Returns the body with one bit in its middle flipped.
fn bent(body: &[u8]) -> Bytes {
    let mut bent = body.to_vec();
    let at = body.len() / 2;
    bent[at] ^= 1;
    bent.into()
}

fn unix_seconds() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or(Duration::ZERO).as_secs().cast_signed()
}
