//! Files, folders, direct uploads and lineage as rows.

use serde_json::json;
use sluice_store::{
    Cursor, Error, Page, Store, blobs,
    file_filter::{Filter, Place},
    file_list::{self, Slice},
    files::{self, Facts, FilePatch},
    folder_list::{self, FolderQuery},
    folders::{self, Folder, FolderPatch, NewFolder},
    lineage::{self, Derived, DerivedKind, Lineage},
    storage::{self, Totals},
    uploads::{self, NewUpload, State, Upload},
};
use uuid::Uuid;

use crate::{
    blobs::{add_file, seal},
    support::{NOW, add_account, store},
};

pub(crate) async fn add_folder(
    store: &Store,
    account_id: Uuid,
    name: &str,
    parent_id: Option<Uuid>,
) -> Result<Folder, Error> {
    let new = NewFolder {
        name: name.into(),
        color: None,
        parent_id,
    };
    store
        .write(move |tx| Box::pin(async move { folders::create(tx, account_id, new, NOW).await }))
        .await
}

pub(crate) async fn move_folder(
    store: &Store,
    account_id: Uuid,
    id: Uuid,
    to: Option<Uuid>,
) -> Result<Folder, Error> {
    let patch = FolderPatch {
        parent_id: Some(to),
        ..FolderPatch::default()
    };
    store
        .write(move |tx| {
            Box::pin(async move { folders::patch(tx, account_id, id, patch, NOW).await })
        })
        .await
}

pub(crate) async fn change(
    store: &Store,
    account_id: Uuid,
    id: Uuid,
    patch: FilePatch,
) -> Result<files::File, Error> {
    store
        .write(move |tx| {
            Box::pin(async move { files::patch(tx, account_id, id, patch, NOW).await })
        })
        .await
}

async fn totals(store: &Store, account_id: Uuid) -> Totals {
    storage::totals(&mut store.read().await.unwrap(), account_id)
        .await
        .unwrap()
}

async fn names(
    store: &Store,
    account_id: Uuid,
    filter: &Filter,
    page: Page,
    skip: u32,
) -> Vec<String> {
    let mut db = store.read().await.unwrap();
    let slice = Slice {
        skip,
        ..Slice::from(page)
    };
    let found = file_list::list(&mut db, account_id, filter, &slice)
        .await
        .unwrap();
    found.into_iter().map(|file| file.filename).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_filtered_and_paged() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    add_file(&store, stranger, b"z", "foreign.txt").await;
    for name in ["one.txt", "ÜBER.txt", "three%.txt"] {
        add_file(&store, account, name.as_bytes(), name).await;
    }
    let folder = add_folder(&store, account, "in", None).await.unwrap();
    let inside = add_file(&store, account, b"in", "inside.png").await;
    let patch = FilePatch {
        folder_id: Some(Some(folder.id)),
        ..FilePatch::default()
    };
    change(&store, account, inside.id, patch).await.unwrap();

    type Case = (Filter, &'static [&'static str]);
    let text = |text: &str| Filter {
        text: Some(text.into()),
        ..Filter::default()
    };
    let cases: [Case; 8] = [
        (
            Filter::default(),
            &["inside.png", "three%.txt", "ÜBER.txt", "one.txt"],
        ),
        (
            Filter::at(Place::In(None)),
            &["three%.txt", "ÜBER.txt", "one.txt"],
        ),
        (Filter::at(Place::In(Some(folder.id))), &["inside.png"]),
        (text("über"), &["ÜBER.txt"]),
        (text("%"), &["three%.txt"]),
        (text("_"), &[]),
        (
            Filter {
                mime_prefix: Some("TEXT/".into()),
                ..Filter::default()
            },
            &["inside.png", "three%.txt", "ÜBER.txt", "one.txt"],
        ),
        (
            Filter {
                mime_prefix: Some("image/".into()),
                ..Filter::default()
            },
            &[],
        ),
    ];
    for (filter, expected) in &cases {
        assert_eq!(
            names(&store, account, filter, Page::first(10), 0).await,
            *expected,
            "{filter:?}"
        );
        let count = file_list::count(&mut store.read().await.unwrap(), account, filter)
            .await
            .unwrap();
        assert_eq!(count, expected.len() as u64, "{filter:?}");
    }
    let all = Filter::default();
    assert_eq!(
        names(&store, account, &all, Page::first(2), 1).await,
        ["three%.txt", "ÜBER.txt"]
    );
    let after = Cursor {
        created_at: inside.created_at,
        id: inside.id,
    };
    let page = Page {
        limit: 2,
        after: Some(after),
    };
    assert_eq!(
        names(&store, account, &all, page, 0).await,
        ["three%.txt", "ÜBER.txt"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names_and_nothing_of_others() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let foreign = add_folder(&store, stranger, "foreign", None).await.unwrap();
    let file = add_file(&store, account, b"x", "x.txt").await;
    let patch = FilePatch {
        filename: Some("Y.txt".into()),
        focal_point: Some(Some((0.25, 1.0))),
        description: Some(Some("a view".into())),
        tags: Some(vec!["a".into(), "ü".into()]),
        folder_id: None,
    };
    let changed = change(&store, account, file.id, patch).await.unwrap();
    assert_eq!(changed.filename, "Y.txt");
    assert_eq!(changed.focal_point(), Some((0.25, 1.0)));
    assert_eq!(changed.tags, ["a", "ü"]);
    let emptied = FilePatch {
        focal_point: Some(None),
        ..FilePatch::default()
    };
    let emptied = change(&store, account, file.id, emptied).await.unwrap();
    assert_eq!(
        (emptied.focal_point(), emptied.description.as_deref()),
        (None, Some("a view"))
    );

    let into_foreign = FilePatch {
        folder_id: Some(Some(foreign.id)),
        ..FilePatch::default()
    };
    let refused = change(&store, account, file.id, into_foreign).await;
    assert!(matches!(refused, Err(Error::NotFound("folder"))));
    let refused = change(&store, stranger, file.id, FilePatch::default()).await;
    assert!(matches!(refused, Err(Error::NotFound("file"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_have_no_cycles_and_a_depth() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let mut chain = vec![add_folder(&store, account, "0", None).await.unwrap().id];
    for depth in 1..100 {
        let parent = chain.last().copied();
        chain.push(
            add_folder(&store, account, &depth.to_string(), parent)
                .await
                .unwrap()
                .id,
        );
    }
    let deepest = chain.last().copied();
    assert!(matches!(
        add_folder(&store, account, "101", deepest).await,
        Err(Error::Conflict(_))
    ));
    for below in [chain[0], chain[1], chain[99]] {
        let refused = move_folder(&store, account, chain[0], Some(below)).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    // Two trees of 60 and 41 do not go into each other.
    move_folder(&store, account, chain[60], None).await.unwrap();
    let extra = add_folder(&store, account, "extra", None).await.unwrap();
    move_folder(&store, account, chain[0], Some(extra.id))
        .await
        .unwrap();
    let refused = move_folder(&store, account, chain[60], Some(chain[59])).await;
    assert!(matches!(refused, Err(Error::Conflict(_))));
    assert!(matches!(
        move_folder(&store, account, chain[5], Some(Uuid::nil())).await,
        Err(Error::NotFound("folder"))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_goes_with_its_contents_only_when_asked() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let outer = add_folder(&store, account, "outer", None).await.unwrap();
    let inner = add_folder(&store, account, "inner", Some(outer.id))
        .await
        .unwrap();
    let outside = add_file(&store, account, b"outside", "outside.txt").await;
    for n in 0..5_u8 {
        let file = add_file(&store, account, &[n], "f.txt").await;
        let patch = FilePatch {
            folder_id: Some(Some(inner.id)),
            ..FilePatch::default()
        };
        change(&store, account, file.id, patch).await.unwrap();
    }
    let refused = store
        .write(move |tx| {
            Box::pin(async move { folders::delete_empty(tx, account, outer.id).await })
        })
        .await;
    assert!(matches!(refused, Err(Error::Conflict(_))));

    let mut deleted = Vec::new();
    loop {
        let turn = store
            .write(move |tx| {
                Box::pin(async move { folders::delete_turn(tx, account, outer.id, 2).await })
            })
            .await
            .unwrap();
        deleted.extend(turn.files);
        if turn.is_gone {
            break;
        }
    }
    assert_eq!(deleted.len(), 5);
    assert_eq!(
        names(&store, account, &Filter::default(), Page::first(9), 0).await,
        [outside.filename]
    );
    let left = folder_list::list(
        &mut store.read().await.unwrap(),
        account,
        &FolderQuery::newest(None, Page::first(9)),
    )
    .await;
    assert!(left.unwrap().is_empty());
    assert_eq!(totals(&store, account).await, Totals { files: 1, bytes: 7 });
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_is_summed_and_bounded() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let file = add_file(&store, account, b"12345", "a").await;
    add_file(&store, account, b"12345", "b").await;
    assert_eq!(
        totals(&store, account).await,
        Totals {
            files: 2,
            bytes: 10
        }
    );
    let check = async |more, limit| {
        storage::check(&mut store.read().await.unwrap(), account, more, limit).await
    };
    check(u64::MAX, 0).await.unwrap();
    check(5, 15).await.unwrap();
    assert!(matches!(
        check(6, 15).await,
        Err(Error::OverQuota {
            used_bytes: 10,
            limit_bytes: 15
        })
    ));
    store
        .write(move |tx| Box::pin(async move { files::delete(tx, account, file.id).await }))
        .await
        .unwrap();
    assert_eq!(totals(&store, account).await, Totals { files: 1, bytes: 5 });
}

async fn add_upload(store: &Store, account_id: Uuid) -> Upload {
    let new = NewUpload {
        folder_id: None,
        filename: "u.txt".into(),
        content_type: "text/plain".into(),
        size_bytes: 4,
        expires_at: NOW + 1000,
    };
    store
        .write(move |tx| Box::pin(async move { uploads::create(tx, account_id, new, NOW).await }))
        .await
        .unwrap()
}

async fn claim(store: &Store, id: Uuid) -> Result<Upload, Error> {
    store
        .write(move |tx| Box::pin(async move { uploads::claim(tx, id).await }))
        .await
}

async fn receive(store: &Store, claimed: &Upload, bytes: &[u8]) -> Result<Upload, Error> {
    let (sealed, id, attempt) = (seal(store, bytes).await, claimed.id, claimed.attempt);
    store
        .write(move |tx| {
            Box::pin(async move {
                blobs::record(tx, &sealed, NOW).await?;
                uploads::receive(tx, id, attempt, sealed.blob().hash, "text/plain").await
            })
        })
        .await
}

async fn complete(store: &Store, account_id: Uuid, id: Uuid) -> Result<(files::File, bool), Error> {
    let facts = Facts {
        width: Some(3),
        ..Facts::default()
    };
    store
        .write(move |tx| {
            Box::pin(async move { uploads::complete(tx, account_id, id, facts, 0, NOW).await })
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_put_takes_an_upload_over() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let upload = add_upload(&store, account).await;
    assert!(matches!(
        complete(&store, account, upload.id).await,
        Err(Error::Conflict(_))
    ));
    let dead = claim(&store, upload.id).await.unwrap();
    let alive = claim(&store, upload.id).await.unwrap();
    assert!(matches!(
        receive(&store, &dead, b"dead").await,
        Err(Error::Conflict(_))
    ));
    let received = receive(&store, &alive, b"live").await.unwrap();
    assert_eq!(received.state, State::Received);

    assert!(matches!(
        complete(&store, stranger, upload.id).await,
        Err(Error::NotFound(_))
    ));
    let (file, repeated) = complete(&store, account, upload.id).await.unwrap();
    assert_eq!((file.size_bytes, file.width, repeated), (4, Some(3), false));
    let (same, repeated) = complete(&store, account, upload.id).await.unwrap();
    assert_eq!((same.id, repeated), (file.id, true));
    assert!(matches!(
        claim(&store, upload.id).await,
        Err(Error::Conflict(_))
    ));
    assert!(matches!(
        receive(&store, &alive, b"late").await,
        Err(Error::Conflict(_))
    ));

    store.sweep(NOW + 1001).await.unwrap();
    assert!(matches!(
        complete(&store, account, upload.id).await,
        Err(Error::NotFound(_))
    ));
    let kept = files::get(&mut store.read().await.unwrap(), account, file.id)
        .await
        .unwrap();
    assert_eq!(kept.id, file.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn lineage_outlives_its_source() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let source = add_file(&store, account, b"source", "s.png").await;
    let made = add_file(&store, account, b"made", "m.webp").await;
    let operation = json!({"tool": "convert", "format": "webp"});
    let row = Lineage {
        derived_kind: DerivedKind::File,
        derived_id: made.id.to_string(),
        source_file_id: Some(source.id),
        operation: operation.clone(),
        created_at: NOW,
    };
    store
        .write(move |tx| Box::pin(async move { lineage::record(tx, row).await }))
        .await
        .unwrap();
    let derived = Derived::file(made.id);
    let mut reader = store.read().await.unwrap();
    let products = lineage::products(&mut reader, source.id, 9, 0)
        .await
        .unwrap();
    assert_eq!(products.len(), 1);
    let product = products[0].file.as_ref().unwrap();
    assert_eq!((product.id, &*product.filename), (made.id, "m.webp"));
    let skipped = lineage::products(&mut reader, source.id, 9, 1).await;
    assert_eq!(skipped.unwrap(), []);
    assert_eq!(
        lineage::count_products(&mut reader, source.id)
            .await
            .unwrap(),
        1
    );
    let sources = lineage::sources(&mut reader, made.id, 9).await.unwrap();
    assert_eq!(sources[0].file.as_ref().unwrap().id, source.id);
    drop(reader);
    store
        .write(move |tx| Box::pin(async move { files::delete(tx, account, source.id).await }))
        .await
        .unwrap();
    let left = lineage::of(&mut store.read().await.unwrap(), &derived)
        .await
        .unwrap();
    assert_eq!(
        (left[0].source_file_id, &left[0].operation),
        (None, &operation)
    );
    let sources = lineage::sources(&mut store.read().await.unwrap(), made.id, 9)
        .await
        .unwrap();
    assert_eq!((sources.len(), &sources[0].file), (1, &None));
    store
        .write(move |tx| Box::pin(async move { files::delete(tx, account, made.id).await }))
        .await
        .unwrap();
    assert!(
        lineage::of(&mut store.read().await.unwrap(), &derived)
            .await
            .unwrap()
            .is_empty()
    );
}

async fn take(store: &Store, account_id: Uuid, id: Uuid) -> Result<uploads::UploadContent, Error> {
    store
        .write(move |tx| Box::pin(async move { uploads::take(tx, account_id, id).await }))
        .await
}

#[tokio::test]
async fn an_upload_can_be_used_up_without_a_file() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let other = add_account(&store, "b").await.unwrap();
    let upload = add_upload(&store, account).await;
    let claimed = claim(&store, upload.id).await.unwrap();
    let early = take(&store, account, upload.id).await;
    assert!(matches!(early, Err(Error::Conflict(_))), "{early:?}");
    let received = receive(&store, &claimed, b"1234").await.unwrap();
    for (account, id) in [(other, upload.id), (account, Uuid::now_v7())] {
        let foreign = take(&store, account, id).await;
        assert!(matches!(foreign, Err(Error::NotFound("upload"))));
    }
    let taken = take(&store, account, upload.id).await.unwrap();
    assert_eq!(Some(taken.blob), received.blob_hash);
    assert_eq!(
        (&*taken.filename, &*taken.mime_type, taken.size_bytes),
        ("u.txt", "text/plain", 4)
    );
    let again = [
        take(&store, account, upload.id).await.map(drop),
        claim(&store, upload.id).await.map(drop),
        receive(&store, &claimed, b"5678").await.map(drop),
        complete(&store, account, upload.id).await.map(drop),
    ];
    for (verb, refused) in again.into_iter().enumerate() {
        let is_refused = matches!(refused, Err(Error::Conflict(_) | Error::NotFound("file")));
        assert!(is_refused, "verb {verb}: {refused:?}");
    }
    assert_eq!(totals(&store, account).await, Totals::default());
}

#[tokio::test]
async fn a_completed_upload_cannot_be_used_up() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let upload = add_upload(&store, account).await;
    let claimed = claim(&store, upload.id).await.unwrap();
    receive(&store, &claimed, b"1234").await.unwrap();
    complete(&store, account, upload.id).await.unwrap();
    let late = take(&store, account, upload.id).await;
    assert!(matches!(late, Err(Error::Conflict(_))), "{late:?}");
}
