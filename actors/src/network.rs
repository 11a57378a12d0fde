//! Client networks: an IPv4 address or an IPv6 /64 counts as one client; limit on what a client or account has in progress
//! at a time.

use std::{collections::HashMap, hash::Hash, net::IpAddr, sync::Arc};

use parking_lot::Mutex;

/// The network that counts as one client: an IPv4 address, or an IPv6 /64, which one customer of a provider has at least.
pub fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() >> 64 << 64).into()),
        v4 => v4,
    }
}

/// A bounded number of permits for each key, such as a client's network or an account.
#[derive(Debug)]
pub struct KeyedLimit<K: Eq + Hash> {
    most: usize,
    /// Keys that hold permits, and how many.
    taken: Mutex<HashMap<K, usize>>,
}

/// Limit for each client network.
pub type NetworkLimit = KeyedLimit<IpAddr>;

impl<K: Copy + Eq + Hash> KeyedLimit<K> {
    /// Makes a limit of `most` permits for each key.
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self {
            most,
            taken: Mutex::default(),
        })
    }

    /// Takes a permit; `None` when the key holds all of its permits.
    pub fn take(self: &Arc<Self>, key: K) -> Option<KeyedPermit<K>> {
        let mut taken = self.taken.lock();
        let count = taken.get(&key).copied().unwrap_or_default();
        if count >= self.most {
            return None;
        }
        taken.insert(key, count + 1);
        Some(KeyedPermit {
            limit: self.clone(),
            key,
        })
    }

    /// Returns whether no key holds a permit.
    pub fn is_empty(&self) -> bool {
        self.taken.lock().is_empty()
    }
}

impl NetworkLimit {
    /// Takes a permit for the client's network; `None` when it holds all of its permits.
    pub fn take_for(self: &Arc<Self>, client: IpAddr) -> Option<KeyedPermit<IpAddr>> {
        self.take(client_network(client))
    }
}

/// A permit, given back when it is dropped.
#[derive(Debug)]
pub struct KeyedPermit<K: Eq + Hash> {
    limit: Arc<KeyedLimit<K>>,
    key: K,
}

impl<K: Eq + Hash> Drop for KeyedPermit<K> {
    fn drop(&mut self) {
        let mut taken = self.limit.taken.lock();
        if let Some(count) = taken.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_client_is_an_ipv4_address_or_an_ipv6_network() {
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true),
            ("2001:db8:1:2::1", "2001:db8:1:3::1", false),
        ] {
            let is_one = client_network(address(one)) == client_network(address(other));
            assert_eq!(is_one, is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_network_has_its_permits_and_no_more() {
        let limit = NetworkLimit::new(2);
        let take = |text: &str| limit.take_for(address(text));
        let (first, second) = (take("2001:db8::1"), take("2001:db8::2"));
        assert!(first.is_some() && second.is_some());
        assert!(take("2001:db8::3").is_none());
        assert!(take("2001:db8:0:1::3").is_some());
        drop(first);
        let third = take("2001:db8::3");
        assert!(third.is_some() && take("2001:db8::4").is_none());
        drop((second, third));
        assert!(
            NetworkLimit::new(0)
                .take_for(address("192.0.2.1"))
                .is_none()
        );
        assert!(limit.is_empty(), "nothing is kept");
    }
}
