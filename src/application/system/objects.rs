//! Object store as the node that answers uses it (`objects` of `GET /api/system`): place, failure, requests, cache, the last
//! search for strays.

use serde::Serialize;
use sluice_store::{Store, blob::ObjectStatistics};
use utoipa::ToSchema;

use crate::application::answer::Timestamp;

/// Object store with its cache. Counts are those of the node that answers, since its start.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectStoreRecord {
    /// Address of the bucket with the beginning of the keys, or the folder; without access keys.
    place: String,
    /// Why requests fail now; null while they do not.
    failure: Option<String>,
    sent: ObjectRequests,
    fetched: ObjectRequests,
    /// Objects that were missing, or had other bytes than were stored.
    damaged: u64,
    cache: ObjectCacheRecord,
    /// The last search for objects without a row; null before the first one. Of a cluster one node searches.
    last_search: Option<StraySearchRecord>,
}

/// Requests that send or fetch objects.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct ObjectRequests {
    /// With those that failed.
    requests: u64,
    /// Those that failed, after all tries.
    failures: u64,
    bytes: u64,
}

/// Copies of stored bytes in the data folder.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct ObjectCacheRecord {
    /// Bytes on the disk.
    bytes: u64,
    /// The most that they may be (`store.cache`).
    bound: u64,
    /// Files and pieces that were found in it.
    hits: u64,
    /// Files and pieces that were fetched from the object store.
    misses: u64,
}

/// Search of a part of the object store for objects that no row names.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
struct StraySearchRecord {
    at: Timestamp,
    /// Objects that were deleted.
    deleted: u64,
}

/// Returns the object store; `None` without one.
pub(super) fn objects(store: &Store) -> Option<ObjectStoreRecord> {
    let (place, statistics) = (store.object_place()?, store.objects()?);
    Some(record(place, store.object_failure(), statistics))
}

fn record(place: String, failure: Option<String>, objects: ObjectStatistics) -> ObjectStoreRecord {
    ObjectStoreRecord {
        place,
        failure,
        sent: ObjectRequests {
            requests: objects.sends,
            failures: objects.failed_sends,
            bytes: objects.sent_bytes,
        },
        fetched: ObjectRequests {
            requests: objects.fetches,
            failures: objects.failed_fetches,
            bytes: objects.fetched_bytes,
        },
        damaged: objects.damaged,
        cache: ObjectCacheRecord {
            bytes: objects.cached_bytes,
            bound: objects.cache_bound_bytes,
            hits: objects.hits,
            misses: objects.fills,
        },
        last_search: objects.last_search.map(|search| StraySearchRecord {
            at: Timestamp(search.at_ms),
            deleted: search.deleted,
        }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use sluice_store::blob::StraySearch;

    use super::*;

    #[test]
    fn counts_are_shown_by_kind() {
        let statistics = ObjectStatistics {
            hits: 1,
            fills: 2,
            fetches: 3,
            failed_fetches: 4,
            fetched_bytes: 5,
            sends: 6,
            failed_sends: 7,
            sent_bytes: 8,
            damaged: 9,
            cached_bytes: 10,
            cache_bound_bytes: 11,
            removed_bytes: 12,
            last_search: Some(StraySearch {
                at_ms: 1_000,
                deleted: 13,
            }),
        };
        let place = "https://s3.internal/media/sluice/";
        let shown = record(place.into(), Some("away".into()), statistics);
        let expected = json!({
            "place": place,
            "failure": "away",
            "sent": {"requests": 6, "failures": 7, "bytes": 8},
            "fetched": {"requests": 3, "failures": 4, "bytes": 5},
            "damaged": 9,
            "cache": {"bytes": 10, "bound": 11, "hits": 1, "misses": 2},
            "lastSearch": {"at": "1970-01-01T00:00:01.000Z", "deleted": 13},
        });
        assert_eq!(serde_json::to_value(shown).unwrap(), expected);
    }
}
