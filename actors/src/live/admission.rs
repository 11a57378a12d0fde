//! Two encoders with one stream key: the newest takes over; one that was displaced a moment ago is rejected
//! (`live.displaced_for`, `live.fresh_for`).
//!
//! A pure decision. An encoder that was displaced a moment ago is rejected only while its successor is sending: else two
//! encoders with one key would displace each other for ever.

use std::{collections::VecDeque, net::IpAddr, time::Duration};

use sluice_ingest::publish::{Protocol, PublishRequest};

/// Displaced publishers that are remembered for an input.
const REMEMBERED: usize = 8;

/// Identity by which a returning publisher is the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    address: IpAddr,
    encoder: Option<String>,
    protocol: Protocol,
}

impl From<&PublishRequest> for Identity {
    fn from(request: &PublishRequest) -> Self {
        Self {
            address: request.remote.ip(),
            encoder: request.encoder.clone(),
            protocol: request.protocol,
        }
    }
}

/// The publishers that lost the input to a newer one.
#[derive(Clone, Debug, Default)]
pub(super) struct Displaced(VecDeque<(Identity, i64)>);

impl Displaced {
    /// Remembers a publisher that was sending when a newer one took over.
    pub fn remember(&mut self, identity: Identity, now_ms: i64) {
        self.0.retain(|(known, _)| *known != identity);
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((identity, now_ms));
    }

    /// Returns the addresses from which publishers of this protocol were displaced less than `within` ago.
    pub fn addresses(&self, protocol: Protocol, now_ms: i64, within: Duration) -> Vec<IpAddr> {
        self.0
            .iter()
            .filter(|(known, at_ms)| {
                known.protocol == protocol && now_ms - at_ms < within.as_millis() as i64
            })
            .map(|(known, _)| known.address)
            .collect()
    }

    /// Returns whether this publisher was displaced less than `within` ago.
    pub fn contains(&self, identity: &Identity, now_ms: i64, within: Duration) -> bool {
        self.0
            .iter()
            .any(|(known, at_ms)| known == identity && now_ms - at_ms < within.as_millis() as i64)
    }
}

/// The publisher that has the input now.
#[derive(Clone, Copy, Debug)]
pub(super) struct CurrentPublisher {
    /// Age of its newest media; `None` before the first.
    pub media_age_ms: Option<i64>,
}

/// Returns whether a publisher is rejected because it and the current one would displace each other without end.
pub(super) fn would_flap(
    displaced: &Displaced,
    identity: &Identity,
    current: Option<CurrentPublisher>,
    now_ms: i64,
    within: Duration,
    fresh: Duration,
) -> bool {
    let sending = current
        .and_then(|current| current.media_age_ms)
        .is_some_and(|age| age < fresh.as_millis() as i64);
    sending && displaced.contains(identity, now_ms, within)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(last: u8) -> Identity {
        Identity {
            address: IpAddr::from([10, 0, 0, last]),
            encoder: Some("obs".into()),
            protocol: Protocol::Rtmp,
        }
    }

    #[test]
    fn only_a_displaced_publisher_against_a_sending_one_is_refused() {
        let mut displaced = Displaced::default();
        displaced.remember(identity(1), 0);
        let cases = [
            (
                identity(1),
                Some(100),
                1_000,
                true,
                "displaced, the newer one sends",
            ),
            (
                identity(2),
                Some(100),
                1_000,
                false,
                "never displaced: newest takes over",
            ),
            (
                identity(1),
                Some(2_000),
                1_000,
                false,
                "the newer one is silent",
            ),
            (
                identity(1),
                None,
                1_000,
                false,
                "the newer one has sent nothing",
            ),
            (identity(1), Some(100), 60_000, false, "displaced long ago"),
        ];
        for (who, media_age_ms, now_ms, refused, why) in cases {
            let current = Some(CurrentPublisher { media_age_ms });
            let (within, fresh) = (Duration::from_secs(60), Duration::from_secs(2));
            assert_eq!(
                would_flap(&displaced, &who, current, now_ms, within, fresh),
                refused,
                "{why}"
            );
        }
    }

    #[test]
    fn memory_of_displaced_publishers_is_bounded() {
        let mut displaced = Displaced::default();
        (0..100).for_each(|last| displaced.remember(identity(last), 0));
        assert_eq!(displaced.0.len(), REMEMBERED);
    }
}
