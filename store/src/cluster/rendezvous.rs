//! Rendezvous hashing: a key is placed on the node with the highest digest of node and key. Of n nodes one that leaves moves only
//! its own keys.

use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::Node;

/// Returns the node on which a key is placed, `None` without candidates.
pub(super) fn highest<'a>(
    candidates: impl Iterator<Item = &'a Node>,
    key: &[u8],
) -> Option<&'a Node> {
    candidates.max_by_key(|node| weight(node.id, key))
}

fn weight(node: Uuid, key: &[u8]) -> [u8; 32] {
    let digest = Sha256::new()
        .chain_update(node.as_bytes())
        .chain_update(key);
    digest.finalize().into()
}

/// Returns whether two lists say the same but for the times of renewals.
pub(super) fn is_same_list(one: &[Node], other: &[Node]) -> bool {
    let is_same = |(one, other): (&Node, &Node)| {
        one.id == other.id
            && one.state == other.state
            && one.roles == other.roles
            && one.address == other.address
            && one.name == other.name
            && one.version == other.version
            && one.schema == other.schema
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{ClusterSettings, myself},
        *,
    };

    fn nodes(count: u128) -> Vec<Node> {
        let settings = ClusterSettings::default();
        let ids = (1..=count).map(Uuid::from_u128);
        ids.map(|id| myself(id, &settings)).collect()
    }

    fn owners(nodes: &[Node]) -> Vec<Uuid> {
        let keys = (0..3_000_u32).map(u32::to_be_bytes);
        keys.map(|key| highest(nodes.iter(), &key).unwrap().id)
            .collect()
    }

    #[test]
    fn keys_are_spread_and_only_those_of_a_node_that_leaves_move() {
        let all = nodes(3);
        let before = owners(&all);
        for node in &all {
            let share = before.iter().filter(|owner| **owner == node.id).count();
            assert!((850..1_150).contains(&share), "{share}");
        }
        let after = owners(&all[..2]);
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after || *before == all[2].id);
        }
        assert!(highest([].iter(), b"key").is_none());
    }

    #[test]
    fn the_order_of_the_list_is_no_matter() {
        let mut turned = nodes(5);
        let before = owners(&turned);
        turned.reverse();
        assert_eq!(owners(&turned), before);
    }

    #[test]
    fn renewals_are_no_change_of_the_list() {
        let before = nodes(2);
        let mut after = before.clone();
        after[0].renewed_at += 1_000;
        after[0].lease_until += 1_000;
        after[1].clock_offset_ms = 3;
        assert!(is_same_list(&before, &after));
        after[1].state = super::super::NodeState::Draining;
        assert!(!is_same_list(&before, &after));
        assert!(!is_same_list(&before, &before[..1]));
    }
}
