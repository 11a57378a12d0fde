//! MCP tool calls in progress: `mcp.max_calls`, the share of one account, and cancellation (`notifications/cancelled`).

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// An API key, and the address that it is used from.
pub type Client = (Uuid, Option<IpAddr>);

/// Permits for calls, `mcp.max_calls` of them, of which one account holds at most three quarters: calls wait for runs,
/// and other accounts must get through meanwhile. This also bounds the list of the permits taken.
#[derive(Debug)]
pub struct Calls {
    permits: Arc<Semaphore>,
    most_of_account: usize,
    taken: Arc<Mutex<CallSlots>>,
}

#[derive(Debug, Default)]
struct CallSlots {
    next: u64,
    calls: Vec<Listed>,
}

#[derive(Debug)]
struct Listed {
    number: u64,
    account_id: Uuid,
    client: Client,
    request: RequestId,
    given_up: CancellationToken,
}

/// Permit of one call; dropping it frees the slot.
#[derive(Debug)]
pub struct CallPermit {
    number: u64,
    given_up: CancellationToken,
    taken: Arc<Mutex<CallSlots>>,
    _permit: OwnedSemaphorePermit,
}

impl Calls {
    pub fn new(most: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(most)),
            most_of_account: most.saturating_mul(3).div_ceil(4),
            taken: Arc::default(),
        }
    }

    /// Returns `None` when all permits are taken, or as many as the account may have.
    pub fn begin(
        &self,
        account_id: Uuid,
        client: Client,
        request: RequestId,
    ) -> Option<CallPermit> {
        let given_up = CancellationToken::new();
        let mut taken = self.taken.lock();
        let own = |call: &&Listed| call.account_id == account_id;
        if taken.calls.iter().filter(own).count() >= self.most_of_account {
            return None;
        }
        let permit = self.permits.clone().try_acquire_owned().ok()?;
        let number = taken.next;
        taken.next += 1;
        taken.calls.push(Listed {
            number,
            account_id,
            client,
            request,
            given_up: given_up.clone(),
        });
        Some(CallPermit {
            number,
            given_up,
            taken: self.taken.clone(),
            _permit: permit,
        })
    }

    /// Ends the call whose client no longer waits for the answer to its `request`. Without sessions, two programs of
    /// one machine that share a key and number their requests alike cannot be distinguished: then both waits end, and
    /// both runs continue.
    pub fn give_up(&self, client: Client, request: &RequestId) {
        let taken = self.taken.lock();
        let meant = |call: &&Listed| call.client == client && call.request == *request;
        for call in taken.calls.iter().filter(meant) {
            call.given_up.cancel();
        }
    }
}

impl CallPermit {
    /// Completes when the client has cancelled the call.
    pub async fn given_up(&self) {
        self.given_up.cancelled().await;
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut taken = self.taken.lock();
        taken.calls.retain(|call| call.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const ACCOUNT: Uuid = Uuid::from_u128(9);

    #[test]
    fn an_account_leaves_places_to_others() {
        for (most, own, others) in [(1, 1, 0), (4, 3, 1), (64, 48, 16)] {
            let calls = Calls::new(most);
            let begin = |account: u128| {
                let client = (Uuid::from_u128(account), None);
                calls.begin(Uuid::from_u128(account), client, RequestId::Number(1))
            };
            let taken: Vec<CallPermit> = (0..most).filter_map(|_| begin(1)).collect();
            assert_eq!(taken.len(), own, "of {most}");
            let left: Vec<CallPermit> = (0..most).filter_map(|_| begin(2)).collect();
            assert_eq!(left.len(), others, "of {most}");
            drop(taken);
            assert!(begin(1).is_some(), "of {most}");
        }
    }

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let calls = Calls::new(1);
        let client = (Uuid::nil(), None);
        let first = calls.begin(ACCOUNT, client, RequestId::Number(1)).unwrap();
        assert!(calls.begin(ACCOUNT, client, RequestId::Number(2)).is_none());
        drop(first);
        assert!(calls.begin(ACCOUNT, client, RequestId::Number(2)).is_some());
        assert!(calls.taken.lock().calls.is_empty());
    }

    #[test]
    fn only_the_client_of_a_call_gives_it_up() {
        let calls = Calls::new(2);
        let (ours, other) = ((Uuid::from_u128(1), None), (Uuid::from_u128(2), None));
        let place = calls.begin(ACCOUNT, ours, RequestId::Number(1)).unwrap();
        let is_given_up = || place.given_up().now_or_never().is_some();
        calls.give_up(other, &RequestId::Number(1));
        calls.give_up(ours, &RequestId::Number(2));
        calls.give_up(ours, &RequestId::String("1".into()));
        assert!(!is_given_up());
        calls.give_up(ours, &RequestId::Number(1));
        assert!(is_given_up());
    }
}
