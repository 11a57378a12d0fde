//! Lists of an account with 100 000 files: what they hold after every kind of change.

use std::collections::BTreeSet;

use super::{
    tests::{DIRECTIONS, ORDERS},
    *,
};
use crate::{
    Store, StoreSettings, Tx, accounts,
    bulk::{self, TagChange},
    file_filter::FileType,
    files::{self, FilePatch},
    folders::{self, NewFolder},
    name_key,
    statement::{query, query_scalar},
};

const FILES: i64 = 100_000;
/// A unit of work has a bound in time.
const PER_UNIT: i64 = 10_000;
const NOW: i64 = 1_795_000_000_000;
/// Adds the files with these numbers, as [`made`] has them.
const ADD: &str = "WITH RECURSIVE numbers (n) AS (SELECT $5 UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < $6)
    INSERT INTO files (id, account_id, folder_id, filename, search_name, name_key, mime_type, file_type,
        size_bytes, blob_hash, role, tags, created_at, updated_at)
    SELECT unhex(substr('00000000000000000000000000000000' || (n + 1), length('' || (n + 1)) + 1)), $1,
        CASE WHEN n % 10 = 0 THEN $2 WHEN n % 10 <= 4 THEN $3 END,
        'Img ' || n, 'img ' || n, 'img ' || length('' || n) || n,
        iif(n IN (77, 5000), 'video/mp4', 'image/jpeg'), iif(n IN (77, 5000), 'video', 'image'),
        n * 7919 % 100003, (SELECT hash FROM blobs), 'uploaded',
        '[\"all\"' || iif(n % 2 = 0, ',\"even\"', '') || iif(n % 1000 = 999, ',\"rare \\\"1\\\"\"', '') || ']',
        $4 + n, 0
    FROM numbers";

/// Expected contents of a list, kept beside the database.
#[derive(Clone, Debug)]
struct Known {
    id: Uuid,
    name: String,
    folder: Option<Uuid>,
    size: i64,
    created_at: i64,
    file_type: FileType,
    tags: Vec<&'static str>,
}

struct Site {
    store: Store,
    _dir: tempfile::TempDir,
    account: Uuid,
    outer: Uuid,
    inner: Uuid,
    known: Vec<Known>,
}

/// Tags, type and folder of a file by its number.
fn made(number: i64, outer: Uuid, inner: Uuid) -> (Vec<&'static str>, FileType, Option<Uuid>) {
    let mut tags = vec!["all"];
    if number % 2 == 0 {
        tags.push("even");
    }
    if number % 1_000 == 999 {
        tags.push("rare \"1\"");
    }
    let file_type = match number {
        77 | 5_000 => FileType::Video,
        _ => FileType::Image,
    };
    let folder = match number % 10 {
        0 => Some(outer),
        1..=4 => Some(inner),
        _ => None,
    };
    (tags, file_type, folder)
}

impl Site {
    async fn open() -> Self {
        let (store, dir) = empty_store().await;
        let opened = store.write(|tx| {
            Box::pin(async move {
                let account = accounts::create(tx, "a", NOW).await?.id;
                let stranger = accounts::create(tx, "b", NOW).await?.id;
                let new = |name: &str, parent_id| NewFolder {
                    name: name.to_owned(),
                    color: None,
                    parent_id,
                };
                let outer = folders::create(tx, account, new("outer", None), NOW).await?;
                let inner =
                    folders::create(tx, account, new("inner", Some(outer.id)), NOW).await?;
                add_blob(tx).await?;
                // Another account's file with the same tags.
                query(
                    "INSERT INTO files (id, account_id, filename, search_name, mime_type, size_bytes, blob_hash, role, tags,
                         created_at, updated_at)
                     SELECT $1, $2, 'x', 'x', 'video/mp4', 1, hash, 'uploaded', '[\"rare \\\"1\\\"\"]', 0, 0 FROM blobs",
                )
                .bind(Uuid::max())
                .bind(stranger)
                .execute(tx)
                .await?;
                Ok((account, outer.id, inner.id))
            })
        });
        let (account, outer, inner) = opened.await.unwrap();
        for from in (0..FILES).step_by(PER_UNIT as usize) {
            let added = store.write(move |tx| {
                Box::pin(async move {
                    query(ADD)
                        .bind(account)
                        .bind(outer)
                        .bind(inner)
                        .bind(NOW)
                        .bind(from)
                        .bind(from + PER_UNIT)
                        .execute(tx)
                        .await?;
                    let bytes = (from..from + PER_UNIT).map(size).sum();
                    storage::add(tx, account, PER_UNIT, bytes).await
                })
            });
            added.await.unwrap();
        }
        let known = (0..FILES).map(|number| {
            let (tags, file_type, folder) = made(number, outer, inner);
            Known {
                id: id(number),
                name: format!("Img {number}"),
                folder,
                size: size(number),
                created_at: NOW + number,
                file_type,
                tags,
            }
        });
        let known = known.collect();
        Self {
            store,
            _dir: dir,
            account,
            outer,
            inner,
            known,
        }
    }

    /// Returns the files that match, in ascending order.
    fn expected(&self, filter: &Filter, order: Order) -> Vec<Uuid> {
        let is_there = |it: &&Known| match filter.place {
            Place::Anywhere => true,
            Place::In(folder) => it.folder == folder,
            Place::Below(_) => [Some(self.outer), Some(self.inner)].contains(&it.folder),
        };
        let matches = |it: &&Known| {
            filter
                .tags
                .iter()
                .all(|tag| it.tags.contains(&tag.as_str()))
                && (filter.types.is_empty() || filter.types.contains(&it.file_type))
                && filter
                    .text
                    .as_ref()
                    .is_none_or(|text| it.name.to_lowercase().contains(text))
        };
        let mut found: Vec<&Known> = self.known.iter().filter(is_there).filter(matches).collect();
        match order {
            Order::Created => found.sort_by_key(|it| (it.created_at, it.id)),
            Order::Size => found.sort_by_key(|it| (it.size, it.id)),
            Order::Name => found.sort_by_cached_key(|it| {
                let (text, number) = it.name.split_once(' ').unwrap();
                (text.to_lowercase(), number.parse::<u64>().unwrap(), it.id)
            }),
        }
        found.into_iter().map(|it| it.id).collect()
    }

    /// Compares the list with what is known, in every order.
    async fn check(&self, filter: &Filter) {
        for order in ORDERS {
            let mut expected = self.expected(filter, order);
            for direction in DIRECTIONS {
                self.check_list(filter, order, direction, &expected).await;
                expected.reverse();
            }
        }
    }

    /// Reads two pages from the beginning by their cursors, and one from the middle.
    async fn check_list(
        &self,
        filter: &Filter,
        order: Order,
        direction: Direction,
        expected: &[Uuid],
    ) {
        let mut db = self.store.read().await.unwrap();
        let mut slice = Slice {
            order,
            direction,
            limit: 40,
            after: None,
            skip: 0,
        };
        let mut found = Vec::new();
        for _ in 0..2 {
            let page = list(&mut db, self.account, filter, &slice).await.unwrap();
            found.extend(page.iter().map(|file| file.id));
            let Some(last) = page.last() else { break };
            slice.after = Some(last.position(order));
        }
        let first = &expected[..expected.len().min(80)];
        assert_eq!(found, first, "{filter:?} {order:?} {direction:?}");
        let skip = expected.len() / 2;
        let middle = Slice {
            after: None,
            skip: u32::try_from(skip).unwrap(),
            ..slice
        };
        let page = list(&mut db, self.account, filter, &middle).await.unwrap();
        let found: Vec<Uuid> = page.iter().map(|file| file.id).collect();
        let rest: Vec<Uuid> = expected[skip..].iter().take(40).copied().collect();
        assert_eq!(found, rest, "{filter:?} {order:?} {direction:?}");
        let counted = count(&mut db, self.account, filter).await.unwrap();
        assert_eq!(counted, expected.len() as u64, "{filter:?}");
    }

    async fn check_all(&self) {
        let tagged = |tags: &[&str], place| Filter {
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
            ..Filter::at(place)
        };
        let typed = |types: &[FileType], place| Filter {
            types: types.to_vec(),
            ..Filter::at(place)
        };
        let mut searched = tagged(&["rare \"1\""], Place::Anywhere);
        searched.text = Some("99".to_owned());
        let mut both = tagged(&["all", "even"], Place::Below(self.outer));
        both.types = vec![FileType::Video];
        for filter in [
            Filter::default(),
            tagged(&["none"], Place::Anywhere),
            tagged(&["rare \"1\""], Place::Anywhere),
            tagged(&["even", "rare \"1\""], Place::Anywhere),
            tagged(&["all"], Place::In(Some(self.inner))),
            tagged(&["new"], Place::Anywhere),
            searched,
            both,
            typed(&[FileType::Audio, FileType::Other], Place::Anywhere),
            typed(&[FileType::Video], Place::Anywhere),
            typed(&[FileType::Video], Place::Below(self.outer)),
            typed(&[FileType::Image], Place::In(None)),
        ] {
            self.check(&filter).await;
        }
        self.check_rows_of_tags().await;
    }

    /// The table of tags has the rows that the files' own tags ask for.
    async fn check_rows_of_tags(&self) {
        let mut db = self.store.read().await.unwrap();
        let wrong: Vec<String> = query_scalar(
            "SELECT hex(file_id) || tag FROM (
                 SELECT account_id, tag, created_at, file_id, folder_id, size_bytes, file_type, name_key FROM file_tags
                 EXCEPT SELECT f.account_id, j.value, f.created_at, f.id, f.folder_id, f.size_bytes, f.file_type, f.name_key
                 FROM files f, json_each(f.tags) j) wrong LIMIT 3",
        )
        .fetch_all(&mut db)
        .await
        .unwrap();
        assert_eq!(wrong, [""; 0]);
        let [in_table, in_files]: [i64; 2] = [
            query_scalar("SELECT count(*) FROM file_tags")
                .fetch_one(&mut db)
                .await
                .unwrap(),
            query_scalar("SELECT count(*) FROM files f, json_each(f.tags) j")
                .fetch_one(&mut db)
                .await
                .unwrap(),
        ];
        assert_eq!(in_table, in_files);
    }

    async fn patch(&mut self, number: i64, patch: FilePatch, known: impl FnOnce(&mut Known)) {
        let (account, id) = (self.account, id(number));
        let patched = self.store.write(move |tx| {
            Box::pin(async move { files::patch(tx, account, id, patch, NOW).await })
        });
        patched.await.unwrap();
        known(self.known_mut(id));
    }

    fn known_mut(&mut self, id: Uuid) -> &mut Known {
        self.known.iter_mut().find(|it| it.id == id).unwrap()
    }
}

async fn empty_store() -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let settings = StoreSettings::without_reserve(dir.path());
    (Store::open(&settings).await.unwrap(), dir)
}

/// The one blob that all files have.
async fn add_blob(tx: &mut Tx<'_>) -> Result<(), Error> {
    query("INSERT INTO blobs (hash, size_bytes, crc32, created_at) VALUES ($1, 1, 0, 0)")
        .bind(&[0_u8; 32][..])
        .execute(tx)
        .await?;
    Ok(())
}

fn size(number: i64) -> i64 {
    number * 7919 % 100_003
}

/// Returns the id whose digits are those of the next number.
fn id(number: i64) -> Uuid {
    format!("{:032}", number + 1).parse().unwrap()
}

fn ids(numbers: impl IntoIterator<Item = i64>) -> Vec<Uuid> {
    numbers.into_iter().map(id).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_of_a_hundred_thousand_files_follow_every_change() {
    let mut site = Site::open().await;
    site.check_all().await;
    let account = site.account;

    let renamed = FilePatch {
        filename: Some("Img 4000000".to_owned()),
        ..FilePatch::default()
    };
    site.patch(999, renamed, |it| it.name = "Img 4000000".to_owned())
        .await;
    let retagged = FilePatch {
        tags: Some(vec!["all".to_owned(), "new".to_owned()]),
        ..FilePatch::default()
    };
    site.patch(1_999, retagged, |it| it.tags = vec!["all", "new"])
        .await;
    let emptied = FilePatch {
        tags: Some(Vec::new()),
        folder_id: Some(Some(site.outer)),
        ..FilePatch::default()
    };
    let outer = site.outer;
    site.patch(2_999, emptied, |it| {
        it.tags.clear();
        it.folder = Some(outer);
    })
    .await;
    let described = FilePatch {
        description: Some(Some("a view".to_owned())),
        ..FilePatch::default()
    };
    site.patch(3_999, described, |_| {}).await;

    let some = ids((5_000..5_100).chain([999]));
    let (moved, tagged, deleted) = (some.clone(), some.clone(), ids(5_050..5_099));
    let inner = site.inner;
    let changed = site.store.write(move |tx| {
        Box::pin(async move {
            let change = TagChange {
                added: vec!["new".to_owned()],
                removed: vec!["even".to_owned()],
                most: 50,
            };
            bulk::move_to(tx, account, &moved, Some(inner), NOW).await?;
            bulk::tag(tx, account, &tagged, &change, NOW).await?;
            bulk::delete(tx, account, &deleted).await
        })
    });
    assert_eq!(changed.await.unwrap().len(), 49);
    let gone: BTreeSet<Uuid> = ids(5_050..5_099).into_iter().collect();
    for id in some {
        let known = site.known_mut(id);
        known.folder = Some(inner);
        known.tags.retain(|tag| *tag != "even");
        known.tags.push("new");
    }
    site.known.retain(|it| !gone.contains(&it.id));

    // In turns as the service takes them: a unit of thousands of statements takes more than its share of time.
    let mut gone: BTreeSet<Uuid> = BTreeSet::new();
    for _ in 0..30 {
        let turn = site.store.write(move |tx| {
            Box::pin(async move { folders::delete_turn(tx, account, inner, 100).await })
        });
        gone.extend(turn.await.unwrap().files);
    }
    assert_eq!(gone.len(), 3_000);
    site.known.retain(|it| !gone.contains(&it.id));
    site.check_all().await;
}

/// Keys of rows from before there were any are written at the start, also where a tag's rows have them.
#[tokio::test]
async fn names_without_a_key_get_one() {
    let (store, _dir) = empty_store().await;
    let added = store.write(|tx| {
        Box::pin(async move {
            accounts::create(tx, "a", 0).await?;
            add_blob(tx).await?;
            let text = "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2499)
                INSERT INTO files (id, account_id, filename, search_name, mime_type, size_bytes, blob_hash, role, tags,
                    created_at, updated_at)
                SELECT unhex(substr('00000000000000000000000000000000' || n, length('' || n) + 1)), a.id, 'B' || n, 'b' || n,
                    'text/plain', 1, b.hash, 'uploaded', '[\"sea\"]', 0, 0
                FROM numbers, accounts a, blobs b;
                INSERT INTO folders (id, account_id, name, created_at, updated_at) SELECT id, id, 'Ä10', 0, 0 FROM accounts";
            crate::statement::script(tx, text).await?;
            Ok(())
        })
    });
    added.await.unwrap();
    name_key::fill(&store).await.unwrap();
    let filled = store.write(|tx| {
        Box::pin(async move {
            let files: Vec<String> = query_scalar("SELECT name_key FROM files ORDER BY id")
                .fetch_all(tx)
                .await?;
            let tags: Vec<String> = query_scalar("SELECT name_key FROM file_tags ORDER BY file_id")
                .fetch_all(tx)
                .await?;
            let folder: String = query_scalar("SELECT search_name || name_key FROM folders")
                .fetch_one(tx)
                .await?;
            Ok((files, tags, folder))
        })
    });
    let (files, tags, folder) = filled.await.unwrap();
    assert_eq!((files.len(), &files[10]), (2_500, &"b210".to_owned()));
    assert_eq!(files, tags);
    assert_eq!(folder, "ä10ä210");
}
