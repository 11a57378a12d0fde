//! Query plans of file lists: every order comes from an index, trees are walked in indexes, far pages from the end.

use super::*;
use crate::{Store, StoreSettings, file_filter::FileType, statement::query_as};

pub(super) const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];
pub(super) const ORDERS: [Order; 3] = [Order::Created, Order::Name, Order::Size];

fn slice(order: Order, direction: Direction) -> Slice {
    Slice {
        order,
        direction,
        limit: 51,
        after: None,
        skip: 99_900,
    }
}

fn after(order: Order) -> Position {
    Position {
        key: match order {
            Order::Name => SortKey::Text("m".to_owned()),
            Order::Created | Order::Size => SortKey::Number(7),
        },
        id: Uuid::nil(),
    }
}

/// Returns the steps in which SQLite answers the list.
pub(super) async fn plan(store: &Store, filter: &Filter, slice: &Slice) -> String {
    explained(store, statement(Uuid::nil(), filter, slice)).await
}

/// Returns the steps in which SQLite counts.
pub(super) async fn plan_of_count(store: &Store, filter: &Filter) -> String {
    explained(store, count_statement(Uuid::nil(), filter)).await
}

async fn explained(store: &Store, statement: Builder) -> String {
    let explained = format!("EXPLAIN QUERY PLAN {}", statement.sql());
    let mut db = store.read().await.unwrap();
    let steps: Vec<(i64, i64, i64, String)> = query_as(explained).fetch_all(&mut db).await.unwrap();
    let steps: Vec<_> = steps.into_iter().map(|(_, _, _, step)| step).collect();
    steps.join("; ")
}

async fn store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings::on_sqlite(dir.path());
    (Store::open(&settings).await.unwrap(), dir)
}

#[tokio::test]
async fn every_order_comes_from_an_index_without_a_sort() {
    let (store, _dir) = store().await;
    let conditions = Filter {
        text: Some("a".to_owned()),
        mime_prefix: Some("image/".to_owned()),
        types: FileType::ALL.to_vec(),
        tags: Vec::new(),
        created_from: Some(1),
        created_before: Some(2),
        place: Place::Anywhere,
    };
    for place in [
        Place::Anywhere,
        Place::In(None),
        Place::In(Some(Uuid::nil())),
    ] {
        let of_account = place == Place::Anywhere;
        let filters = [
            Filter::at(place),
            Filter {
                place,
                ..conditions.clone()
            },
        ];
        for (filter, order) in filters
            .iter()
            .flat_map(|it| ORDERS.map(|order| (it, order)))
        {
            for direction in DIRECTIONS {
                let mut wanted = slice(order, direction);
                for position in [None, Some(after(order))] {
                    wanted.after = position;
                    let plan = plan(&store, filter, &wanted).await;
                    let expected = index(filter, order);
                    let is_searched = plan.contains(&format!("SEARCH f USING INDEX {expected} ("));
                    assert!(is_searched, "{filter:?} {wanted:?}: {plan}");
                    let equal = if of_account {
                        "(account_id=?"
                    } else {
                        "(account_id=? AND folder_id=?"
                    };
                    assert!(plan.contains(equal), "{plan}");
                    assert!(!plan.contains("ORDER BY"), "{filter:?} {wanted:?}: {plan}");
                    // A time that is asked for may bound the index instead.
                    let begins = plan.contains(&format!("{},id)", order.column()));
                    let is_bound = wanted.after.is_some();
                    assert!(begins == is_bound || filter.has_conditions(), "{plan}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_tree_is_walked_in_indexes_and_only_its_keys_are_sorted() {
    let (store, _dir) = store().await;
    let filter = Filter::at(Place::Below(Uuid::nil()));
    for order in ORDERS {
        let plan = plan(&store, &filter, &slice(order, Direction::Ascending)).await;
        let covering = format!(
            "SEARCH f USING COVERING INDEX {} (account_id=? AND folder_id=?",
            order.index_of_folder()
        );
        assert!(plan.contains(&covering), "{plan}");
        assert!(!plan.contains("SCAN files"), "{plan}");
    }
}

#[tokio::test]
async fn types_are_counted_in_an_index_alone() {
    let (store, _dir) = store().await;
    for (place, text) in [
        (Place::Anywhere, None),
        (Place::Anywhere, Some("a".to_owned())),
        (Place::In(None), None),
        (Place::In(Some(Uuid::nil())), Some("a".to_owned())),
        (Place::Below(Uuid::nil()), None),
    ] {
        let filter = Filter {
            text,
            types: vec![FileType::Video, FileType::Other],
            ..Filter::at(place)
        };
        let plan = plan_of_count(&store, &filter).await;
        let expected = format!(
            "SEARCH f USING COVERING INDEX {} (",
            index_of_count(&filter)
        );
        assert!(plan.contains(&expected), "{filter:?}: {plan}");
    }
}

#[tokio::test]
async fn files_of_a_tag_are_found_by_the_tag_alone() {
    let (store, _dir) = store().await;
    for (place, tags) in [
        (Place::Anywhere, &["sea"][..]),
        (Place::In(None), &["sea", "sky"]),
        (Place::Below(Uuid::nil()), &["sea", "sky"]),
    ] {
        let filter = Filter {
            types: vec![FileType::Image],
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            created_from: Some(1),
            ..Filter::at(place)
        };
        let of_tag = "SEARCH t USING PRIMARY KEY (account_id=? AND tag=?";
        // Each other tag of a file is one look into the table.
        let of_other = "USING PRIMARY KEY (account_id=? AND tag=? AND created_at=? AND file_id=?)";
        let mut plans = vec![plan_of_count(&store, &filter).await];
        for order in ORDERS {
            let wanted = slice(order, Direction::Descending);
            let plan = plan(&store, &filter, &wanted).await;
            let by_ids = plan.contains("SEARCH files USING INDEX sqlite_autoindex_files_1 (id=?)");
            assert!(by_ids, "{plan}");
            plans.push(plan);
        }
        for plan in plans {
            assert!(plan.contains(of_tag), "{plan}");
            assert_eq!(plan.contains(of_other), tags.len() > 1, "{plan}");
            assert!(!plan.contains("SCAN f"), "{plan}");
            assert!(!plan.contains("SEARCH f "), "{plan}");
        }
    }
}

#[test]
fn a_slice_behind_the_middle_is_read_from_the_end() {
    let wanted = |skip, limit| Slice {
        skip,
        limit,
        ..slice(Order::Name, Direction::Ascending)
    };
    let mirrored = |skip, limit, total| Mirrored::of(&wanted(skip, limit), total).map(|it| it.0);
    assert!(mirrored(50, 10, 100).is_none());
    for (skip, limit, total, expected) in [
        (51, 10, 100, (10, 39)),
        (90, 10, 100, (10, 0)),
        (95, 10, 100, (5, 0)),
        (100, 10, 100, (0, 0)),
        (4_000_000, 10, 100, (0, 0)),
        (99_900, 51, 100_000, (51, 49)),
    ] {
        let mirrored = mirrored(skip, limit, total).unwrap();
        assert_eq!(mirrored.direction, Direction::Descending);
        assert_eq!((mirrored.limit, mirrored.skip), expected, "{skip} {total}");
    }
}
