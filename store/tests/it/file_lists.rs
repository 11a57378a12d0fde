//! Lists of files and folders in all orders, sums of folders, and changes of many files.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use serde_json::json;
use sluice_store::{
    Direction, Error, Position, Sorted as _, Store,
    bulk::{self, TagChange, Tagged},
    file_facts::{self, FileFacts},
    file_filter::{FileType, Filter, Place},
    file_list::{self, Order, Slice},
    files::{self, File, FilePatch},
    folder_list::{self, FolderOrder, FolderQuery},
    folder_totals::{self, FolderTotals, TreeTotals},
    folders::{self, PathEnd},
    selections::{self, NewSelection, Selection},
};
use uuid::Uuid;

use crate::{
    blobs::add_file,
    files::{add_folder, change, move_folder},
    support::{NOW, add_account, store},
};

const ORDERS: [Order; 3] = [Order::Created, Order::Name, Order::Size];
const DIRECTIONS: [Direction; 2] = [Direction::Ascending, Direction::Descending];

fn slice(order: Order, direction: Direction, limit: u32) -> Slice {
    Slice {
        order,
        direction,
        limit,
        after: None,
        skip: 0,
    }
}

async fn list(store: &Store, account: Uuid, filter: &Filter, slice: &Slice) -> Vec<File> {
    let mut db = store.read().await.unwrap();
    file_list::list(&mut db, account, filter, slice)
        .await
        .unwrap()
}

async fn move_file(store: &Store, account: Uuid, id: Uuid, folder: Option<Uuid>) {
    let patch = FilePatch {
        folder_id: Some(folder),
        ..FilePatch::default()
    };
    change(store, account, id, patch).await.unwrap();
}

/// A file as long as its name says, in a folder.
async fn put(store: &Store, account: Uuid, name: &str, bytes: usize, folder: Option<Uuid>) -> Uuid {
    let content = vec![b'x'; bytes];
    let id = add_file(store, account, &content, name).await.id;
    if folder.is_some() {
        move_file(store, account, id, folder).await;
    }
    id
}

fn names(files: &[File]) -> Vec<&str> {
    files.iter().map(|file| file.filename.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_order_is_read_whole_by_pages_and_by_offsets() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    put(&store, stranger, "foreign", 3, None).await;
    let outer = add_folder(&store, account, "outer", None).await.unwrap().id;
    let inner = add_folder(&store, account, "inner", Some(outer))
        .await
        .unwrap()
        .id;
    let beside = add_folder(&store, account, "beside", None)
        .await
        .unwrap()
        .id;
    for (name, bytes, folder) in [
        ("b.txt", 5, None),
        ("A.txt", 5, Some(outer)),
        ("Ünder.txt", 1, Some(inner)),
        ("über.txt", 9, Some(inner)),
        ("a.txt", 7, Some(outer)),
        ("c.txt", 0, Some(beside)),
        ("b.txt", 5, Some(outer)),
    ] {
        put(&store, account, name, bytes, folder).await;
    }

    let everything = Filter::default();
    let by_name = list(
        &store,
        account,
        &everything,
        &slice(Order::Name, Direction::Ascending, 9),
    )
    .await;
    let expected = [
        "A.txt",
        "a.txt",
        "b.txt",
        "b.txt",
        "c.txt",
        "über.txt",
        "Ünder.txt",
    ];
    assert_eq!(names(&by_name), expected);
    let by_size = list(
        &store,
        account,
        &everything,
        &slice(Order::Size, Direction::Descending, 9),
    )
    .await;
    let sizes: Vec<i64> = by_size.iter().map(|file| file.size_bytes).collect();
    assert_eq!(sizes, [9, 7, 5, 5, 5, 1, 0]);

    for (place, count) in [
        (Place::Anywhere, 7),
        (Place::In(None), 1),
        (Place::In(Some(outer)), 3),
        (Place::Below(outer), 5),
        (Place::Below(Uuid::now_v7()), 0),
    ] {
        for (order, direction) in ORDERS
            .iter()
            .flat_map(|order| DIRECTIONS.map(|it| (*order, it)))
        {
            let filter = Filter::at(place);
            let mut db = store.read().await.unwrap();
            let counted = file_list::count(&mut db, account, &filter).await.unwrap();
            drop(db);
            let whole = list(&store, account, &filter, &slice(order, direction, 100)).await;
            assert_eq!((whole.len(), counted), (count, count as u64), "{place:?}");
            let keys: Vec<Position> = whole.iter().map(|file| file.position(order)).collect();
            let mut pages = Vec::new();
            let mut page = slice(order, direction, 2);
            loop {
                let some = list(&store, account, &filter, &page).await;
                let Some(last) = some.last() else { break };
                page.after = Some(last.position(order));
                pages.extend(some.iter().map(|file| file.position(order)));
            }
            assert_eq!(pages, keys, "{place:?} {order:?} {direction:?}");
            for skip in 0..=count + 1 {
                let wanted = Slice {
                    skip: skip as u32,
                    ..slice(order, direction, 3)
                };
                let some = list(&store, account, &filter, &wanted).await;
                let expected = keys.iter().skip(skip).take(3).cloned().collect::<Vec<_>>();
                let found: Vec<_> = some.iter().map(|file| file.position(order)).collect();
                assert_eq!(found, expected, "{place:?} {order:?} {direction:?} {skip}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conditions_leave_out_what_does_not_match() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let folder = add_folder(&store, account, "in", None).await.unwrap().id;
    let tagged = put(&store, account, "sea.txt", 1, Some(folder)).await;
    put(&store, account, "plain.txt", 1, None).await;
    let patch = FilePatch {
        tags: Some(vec!["Sea \"1\"".into(), "ü".into()]),
        ..FilePatch::default()
    };
    let tagged = change(&store, account, tagged, patch).await.unwrap();
    let with = |change: fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    let mut in_time = Filter::at(Place::Below(folder));
    in_time.created_from = Some(tagged.created_at);
    in_time.created_before = Some(tagged.created_at + 1);
    let mut too_late = in_time.clone();
    too_late.created_from = Some(tagged.created_at + 1);
    for (filter, expected) in [
        (with(|it| it.tags = vec!["ü".into()]), 1),
        (with(|it| it.tags = vec!["ü".into(), "Sea \"1\"".into()]), 1),
        (with(|it| it.tags = vec!["sea".into()]), 0),
        (with(|it| it.types = vec![FileType::Image]), 0),
        (
            with(|it| it.types = vec![FileType::Image, FileType::Document]),
            2,
        ),
        (with(|it| it.types = vec![FileType::Other]), 0),
        (in_time, 1),
        (too_late, 0),
    ] {
        for order in ORDERS {
            let found = list(
                &store,
                account,
                &filter,
                &slice(order, Direction::Ascending, 9),
            )
            .await;
            let mut db = store.read().await.unwrap();
            let counted = file_list::count(&mut db, account, &filter).await.unwrap();
            assert_eq!(
                (found.len(), counted),
                (expected, expected as u64),
                "{filter:?}"
            );
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add(usize, usize),
    Move(usize, usize),
    Delete(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..4_usize, 0..50_usize).prop_map(|(place, bytes)| Step::Add(place, bytes)),
        (0..20_usize, 0..4_usize).prop_map(|(file, place)| Step::Move(file, place)),
        (0..20_usize).prop_map(Step::Delete),
    ];
    proptest::collection::vec(step, 1..25)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// Sums that are kept are those that would be counted.
    #[test]
    fn sums_of_folders_follow_every_change(steps in steps()) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let (store, _folder) = store().await;
            let account = add_account(&store, "a").await.unwrap();
            let outer = add_folder(&store, account, "outer", None).await.unwrap().id;
            let inner = add_folder(&store, account, "inner", Some(outer)).await.unwrap().id;
            let beside = add_folder(&store, account, "beside", None).await.unwrap().id;
            let places = [None, Some(outer), Some(inner), Some(beside)];
            let mut known: Vec<(Uuid, usize, i64)> = Vec::new();
            for step in steps {
                match step {
                    Step::Add(place, bytes) => {
                        let id = put(&store, account, "x", bytes, places[place]).await;
                        known.push((id, place, bytes as i64));
                    }
                    Step::Move(file, place) if file < known.len() => {
                        move_file(&store, account, known[file].0, places[place]).await;
                        known[file].1 = place;
                    }
                    Step::Delete(file) if file < known.len() => {
                        let (id, ..) = known.remove(file);
                        let deleted = store.write(move |tx| Box::pin(files::delete(tx, account, id)));
                        deleted.await.unwrap();
                    }
                    Step::Move(..) | Step::Delete(_) => {}
                }
            }
            let sum = |wanted: &[usize]| {
                let found = known.iter().filter(|(_, place, _)| wanted.contains(place));
                found.fold(FolderTotals::default(), |sum, (_, _, bytes)| FolderTotals {
                    files: sum.files + 1,
                    bytes: sum.bytes + bytes,
                })
            };
            let mut db = store.read().await.unwrap();
            for (index, place) in places.into_iter().enumerate() {
                let within = folder_totals::within(&mut db, account, place).await.unwrap();
                assert_eq!(within, sum(&[index]));
            }
            let tree = folder_totals::tree(&mut db, account, outer, 2).await.unwrap();
            let FolderTotals { files, bytes } = sum(&[1, 2]);
            assert_eq!(tree, Some(TreeTotals { folders: 2, files, bytes }));
            let too_many = folder_totals::tree(&mut db, account, outer, 1).await.unwrap();
            assert_eq!(too_many, None);
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_listed_in_both_orders_with_their_marks() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let root = add_folder(&store, account, "Root", None).await.unwrap();
    let mut ids = HashMap::new();
    for name in ["b", "A", "Ä", "a"] {
        let folder = add_folder(&store, account, name, Some(root.id))
            .await
            .unwrap();
        ids.insert(name, folder.id);
    }
    let deep = add_folder(&store, account, "deep", Some(ids["b"]))
        .await
        .unwrap();
    let wanted = FolderQuery {
        parent: Some(Some(root.id)),
        text: None,
        order: FolderOrder::Name,
        direction: Direction::Ascending,
        limit: 3,
        after: None,
    };
    let read = async |wanted: &FolderQuery| {
        let mut db = store.read().await.unwrap();
        folder_list::list(&mut db, account, wanted).await.unwrap()
    };
    let first = read(&wanted).await;
    let shown: Vec<&str> = first.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(shown, ["A", "a", "b"]);
    let after = Some(first[2].position(FolderOrder::Name));
    let rest = read(&FolderQuery {
        after,
        ..wanted.clone()
    })
    .await;
    assert_eq!(rest.iter().map(|it| it.id).collect::<Vec<_>>(), [ids["Ä"]]);
    for (text, parent, expected) in [
        ("ä", None, vec![ids["Ä"]]),
        ("E", None, vec![deep.id]),
        ("e", Some(Some(root.id)), vec![]),
    ] {
        let wanted = FolderQuery {
            text: Some(text.into()),
            parent,
            ..wanted.clone()
        };
        let found = read(&wanted).await;
        assert_eq!(found.iter().map(|it| it.id).collect::<Vec<_>>(), expected);
    }

    let mut db = store.read().await.unwrap();
    let marks = folder_list::marks(&mut db, &[root.id, deep.id, Uuid::now_v7()], NOW)
        .await
        .unwrap();
    assert_eq!(marks.len(), 2);
    assert!(marks[&root.id].has_children && !marks[&deep.id].has_children);
    let path = folder_list::path(&mut db, account, deep.id).await.unwrap();
    let path: Vec<&str> = path.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(path, ["Root", "b", "deep"]);
}

async fn ensure(
    store: &Store,
    account: Uuid,
    parent: Option<Uuid>,
    names: &[&str],
) -> Result<PathEnd, Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let ensured = store.write(move |tx| {
        Box::pin(async move { folders::ensure_path(tx, account, parent, &names, NOW).await })
    });
    ensured.await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_is_made_once_however_many_ask() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let asked = (0..20).map(|_| ensure(&store, account, None, &["Spring", "Behind", "B"]));
    let ends: Vec<PathEnd> = futures_util::future::try_join_all(asked).await.unwrap();
    let ids: HashSet<Uuid> = ends.iter().map(|end| end.folder.id).collect();
    let created: u32 = ends.iter().map(|end| end.created).sum();
    assert_eq!((ids.len(), created), (1, 3));

    // Names are compared exactly, and the oldest of equal ones counts.
    let top = ends[0].folder.parent_id;
    let other = ensure(&store, account, top, &["b"]).await.unwrap();
    assert_eq!(other.created, 1);
    add_folder(&store, account, "B", top).await.unwrap();
    let again = ensure(&store, account, top, &["B"]).await.unwrap();
    assert_eq!((again.folder.id, again.created), (ends[0].folder.id, 0));

    let foreign = ensure(&store, stranger, top, &["x"]).await;
    assert!(
        matches!(foreign, Err(Error::NotFound("folder"))),
        "{foreign:?}"
    );
    let too_deep = ensure(&store, account, top, &["x"; 100]).await;
    assert!(matches!(too_deep, Err(Error::Conflict(_))), "{too_deep:?}");
    let left = ensure(&store, account, top, &["x"]).await.unwrap();
    assert_eq!(
        left.created, 1,
        "nothing of the path that was too deep is left"
    );
    move_folder(&store, account, left.folder.id, None)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn many_files_are_changed_and_others_left_out() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let folder = add_folder(&store, account, "in", None).await.unwrap().id;
    let foreign = put(&store, stranger, "foreign", 3, None).await;
    let (one, other) = (
        put(&store, account, "one", 1, None).await,
        put(&store, account, "other", 2, None).await,
    );
    let ids = vec![one, foreign, Uuid::now_v7(), other];

    let wanted = ids.clone();
    let moved = store.write(move |tx| {
        Box::pin(async move { bulk::move_to(tx, account, &wanted, Some(folder), NOW).await })
    });
    assert_eq!(moved.await.unwrap(), HashSet::from([one, other]));
    let wanted = ids.clone();
    let nowhere = store.write(move |tx| {
        let gone = Some(Uuid::now_v7());
        Box::pin(async move { bulk::move_to(tx, account, &wanted, gone, NOW).await })
    });
    assert!(matches!(nowhere.await, Err(Error::NotFound("folder"))));

    for (added, most, expected) in [("sea", 1, Tagged::Done), ("sky", 1, Tagged::TooMany)] {
        let wanted = ids.clone();
        let tagged = store.write(move |tx| {
            let change = TagChange {
                added: vec![added.to_owned()],
                removed: Vec::new(),
                most,
            };
            Box::pin(async move { bulk::tag(tx, account, &wanted, &change, NOW).await })
        });
        let expected = HashMap::from([(one, expected), (other, expected)]);
        assert_eq!(tagged.await.unwrap(), expected);
    }
    let mut db = store.read().await.unwrap();
    assert_eq!(
        files::get(&mut db, account, one).await.unwrap().tags,
        ["sea"]
    );
    assert!(
        files::get(&mut db, stranger, foreign)
            .await
            .unwrap()
            .tags
            .is_empty()
    );
    let known = bulk::existing(&mut db, account, &ids).await.unwrap();
    assert_eq!(known, HashSet::from([one, other]));
    drop(db);

    for expected in [HashSet::from([one, other]), HashSet::new()] {
        let wanted = ids.clone();
        let deleted = store
            .write(move |tx| Box::pin(async move { bulk::delete(tx, account, &wanted).await }));
        assert_eq!(deleted.await.unwrap(), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_go_with_their_file() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let file = put(&store, account, "song", 1, None).await;
    let read = async || {
        file_facts::of(&mut store.read().await.unwrap(), file)
            .await
            .unwrap()
    };
    assert_eq!(read().await, None);
    let silent = FileFacts {
        facts: None,
        has_picture: false,
    };
    let shown = FileFacts {
        facts: Some(json!({"container": "MP3"})),
        has_picture: true,
    };
    for found in [&silent, &shown] {
        let (recorded, gone) = (found.clone(), Uuid::now_v7());
        let write = store.write(move |tx| {
            Box::pin(async move {
                file_facts::record(tx, gone, &recorded).await?;
                file_facts::record(tx, file, &recorded).await
            })
        });
        write.await.unwrap();
        assert_eq!(read().await.as_ref(), Some(found));
        let mut db = store.read().await.unwrap();
        let without = file_facts::without_picture(&mut db, &[file, gone])
            .await
            .unwrap();
        assert_eq!(without.contains(&file), !found.has_picture);
    }
    let deleted = store.write(move |tx| Box::pin(files::delete(tx, account, file)));
    deleted.await.unwrap();
    assert_eq!(read().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn selections_end_in_time_and_by_number() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let make = async |expires_at: i64| -> Selection {
        let new = NewSelection {
            name: "spring".to_owned(),
            files: vec![Uuid::max(), Uuid::nil()],
            folders: vec![Uuid::nil()],
            expires_at,
        };
        let made = store.write(move |tx| {
            Box::pin(async move { selections::create(tx, account, new, 2, NOW).await })
        });
        made.await.unwrap()
    };
    let read = async |id: Uuid, at: i64| {
        let mut db = store.read().await.unwrap();
        selections::by_id(&mut db, id, at).await.unwrap()
    };
    let first = make(NOW + 10).await;
    assert_eq!(read(first.id, NOW + 9).await.as_ref(), Some(&first));
    assert_eq!(read(first.id, NOW + 10).await, None);
    let (second, third) = (make(NOW + 10).await, make(NOW + 20).await);
    assert_eq!(read(first.id, NOW).await, None, "the oldest one ended");
    assert!(read(second.id, NOW).await.is_some());
    store.sweep(NOW + 15).await.unwrap();
    assert_eq!(read(second.id, NOW).await, None);
    assert_eq!(read(third.id, NOW).await, Some(third));
}
