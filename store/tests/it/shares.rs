//! Rows of share links: contents, counts, and end.

use sluice_store::{
    Error, Store,
    files::{self, FilePatch},
    folders,
    shares::{self, NewShare, Share, ShareChange, Totals},
};
use uuid::Uuid;

use crate::{
    blobs::add_file,
    files::{add_folder, change, move_folder},
    support::{NOW, add_account, store},
};

/// Returns default terms of a share.
fn terms(account_id: Uuid, folder_id: Uuid) -> NewShare {
    let id = Uuid::now_v7();
    NewShare {
        id,
        account_id,
        folder_id,
        token_hash: format!("hash of {id}"),
        password_hash: None,
        download_limit: None,
        allow_download: true,
        expires_at: None,
    }
}

async fn make(store: &Store, new: NewShare) -> Result<ShareChange, Error> {
    store
        .write(move |tx| Box::pin(async move { shares::create(tx, new, NOW).await }))
        .await
}

async fn is_known(store: &Store, share: &Share) -> bool {
    let mut db = store.read().await.unwrap();
    let found = shares::by_token_hash(&mut db, &share.token_hash).await;
    found.unwrap().is_some()
}

async fn put(store: &Store, account: Uuid, name: &str, folder: Uuid) -> files::File {
    let file = add_file(store, account, name.as_bytes(), name).await;
    let patch = FilePatch {
        folder_id: Some(Some(folder)),
        ..FilePatch::default()
    };
    change(store, account, file.id, patch).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_shows_its_folder_and_what_lies_below() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let folder = async |name: &str, parent| {
        let folder = add_folder(&store, account, name, parent).await;
        folder.unwrap().id
    };
    let above = folder("above", None).await;
    let shared = folder("shared", Some(above)).await;
    let inner = folder("inner", Some(shared)).await;
    let deep = folder("deep", Some(inner)).await;
    let beside = folder("beside", Some(above)).await;
    let foreign = add_folder(&store, stranger, "foreign", None).await.unwrap();
    let share = make(&store, terms(account, shared)).await.unwrap().share;

    let mut db = store.read().await.unwrap();
    for (id, expected) in [
        (shared, Some(vec!["shared"])),
        (inner, Some(vec!["shared", "inner"])),
        (deep, Some(vec!["shared", "inner", "deep"])),
        (above, None),
        (beside, None),
        (foreign.id, None),
        (Uuid::now_v7(), None),
    ] {
        let path = shares::path(&mut db, &share, id).await.unwrap();
        let names = path.map(|path| path.into_iter().map(|it| it.name).collect::<Vec<_>>());
        let names: Option<Vec<&str>> = names
            .as_ref()
            .map(|names| names.iter().map(String::as_str).collect());
        assert_eq!(names, expected);
    }
    drop(db);

    let inside = put(&store, account, "inside", shared).await;
    let below = put(&store, account, "below", deep).await;
    let outside = put(&store, account, "outside", beside).await;
    let at_the_top = add_file(&store, account, b"top", "top").await;
    let theirs = put(&store, stranger, "theirs", foreign.id).await;
    let mut db = store.read().await.unwrap();
    for (file, is_shown) in [
        (&inside, true),
        (&below, true),
        (&outside, false),
        (&at_the_top, false),
        (&theirs, false),
    ] {
        let found = shares::file(&mut db, &share, file.id).await.unwrap();
        assert_eq!(found.is_some(), is_shown, "{}", file.filename);
    }
    let totals = shares::totals(&mut db, shared, 1_000).await.unwrap();
    let sizes = (inside.size_bytes + below.size_bytes, inside.size_bytes);
    let expected = Totals {
        files: 2,
        bytes: sizes.0,
        folders: 2,
        is_exact: true,
    };
    assert_eq!(totals, expected);
    let bounded = shares::totals(&mut db, shared, 1).await.unwrap();
    let expected = Totals {
        files: 1,
        bytes: sizes.1,
        folders: 2,
        is_exact: false,
    };
    assert_eq!(bounded, expected);
    let empty = shares::totals(&mut db, Uuid::now_v7(), 9).await.unwrap();
    assert_eq!((empty.files, empty.bytes, empty.folders), (0, 0, 0));
    drop(db);

    // What is moved out is no longer shown, and what is moved in is.
    move_folder(&store, account, inner, Some(beside))
        .await
        .unwrap();
    let mut db = store.read().await.unwrap();
    assert!(
        shares::file(&mut db, &share, below.id)
            .await
            .unwrap()
            .is_none()
    );
    assert!(shares::path(&mut db, &share, deep).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_has_one_link_which_goes_with_it() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let stranger = add_account(&store, "b").await.unwrap();
    let folder = add_folder(&store, account, "x", None).await.unwrap().id;
    let inner = add_folder(&store, account, "y", Some(folder))
        .await
        .unwrap()
        .id;

    let first = make(&store, terms(account, folder)).await.unwrap();
    assert!(first.replaced.is_none());
    let second = make(&store, terms(account, folder)).await.unwrap();
    assert_eq!(second.replaced.unwrap().id, first.share.id);
    let within = make(&store, terms(account, inner)).await.unwrap().share;
    assert!(!is_known(&store, &first.share).await && is_known(&store, &second.share).await);
    for (account_id, folder_id) in [(stranger, folder), (account, Uuid::now_v7())] {
        let refused = make(&store, terms(account_id, folder_id)).await;
        assert!(matches!(refused, Err(Error::NotFound("folder"))));
    }

    let hashes = [&first.share, &second.share, &within].map(|share| share.token_hash.clone());
    let gone = async || {
        let mut db = store.read().await.unwrap();
        shares::gone(&mut db, &hashes).await.unwrap()
    };
    assert_eq!(gone().await, hashes[..1]);
    let emptied = store.write(move |tx| {
        Box::pin(async move { folders::delete_turn(tx, account, folder, 9).await })
    });
    assert!(emptied.await.unwrap().is_gone);
    assert_eq!(gone().await, hashes);
}

#[tokio::test(flavor = "multi_thread")]
async fn links_count_up_to_their_bound_and_expire() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "a").await.unwrap();
    let folder = add_folder(&store, account, "x", None).await.unwrap().id;
    let new = NewShare {
        download_limit: Some(2),
        expires_at: Some(NOW + 10),
        ..terms(account, folder)
    };
    let id = make(&store, new).await.unwrap().share.id;
    let take = async || {
        let taking = store
            .write(move |tx| Box::pin(async move { shares::take_download(tx, id).await }))
            .await;
        taking.unwrap()
    };
    assert_eq!(
        [take().await, take().await, take().await],
        [true, true, false]
    );
    store
        .write(move |tx| Box::pin(async move { shares::count(tx, id, 7, 0).await }))
        .await
        .unwrap();
    let found = async |now| {
        let mut db = store.read().await.unwrap();
        shares::of_folder(&mut db, account, folder, now)
            .await
            .unwrap()
    };
    let share = found(NOW + 9).await.unwrap();
    assert_eq!((share.view_count, share.download_count), (7, 2));
    assert!(share.is_used_up() && found(NOW + 10).await.is_none());

    store.sweep(NOW + 9).await.unwrap();
    assert!(is_known(&store, &share).await);
    store.sweep(NOW + 10).await.unwrap();
    assert!(!is_known(&store, &share).await && !take().await);
}
