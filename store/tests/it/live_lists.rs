//! Lists about live inputs: the inputs themselves, and who published to them.

use sluice_store::{
    Listed, Page, Store,
    input_list::{self, Counts, OnAir, Query, Sort, Status},
    live_inputs::{self, LiveInput, LiveInputPatch, NewLiveInput},
    publisher_connections::{self, End, PublisherConnection},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

/// Makes inputs with these names, one each second.
async fn add_inputs(store: &Store, account: Uuid, names: &[&str]) -> Vec<LiveInput> {
    let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
    store
        .write(move |tx| {
            Box::pin(async move {
                let mut inputs = Vec::new();
                for (name, at_ms) in names.into_iter().zip((NOW..).step_by(1_000)) {
                    let new = NewLiveInput {
                        name,
                        ..NewLiveInput::default()
                    };
                    inputs.push(live_inputs::create(tx, account, new, at_ms).await?.0);
                }
                Ok(inputs)
            })
        })
        .await
        .unwrap()
}

fn query(sort: Sort, descending: bool) -> Query {
    Query {
        sort,
        descending,
        limit: 100,
        ..Query::default()
    }
}

fn air(input: &LiveInput, is_live: bool, viewers: u64) -> OnAir {
    OnAir {
        input_id: input.id,
        is_live,
        viewers,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_on_air_is_sorted_narrowed_and_counted_with_the_rows() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let other = add_account(&store, "there").await.unwrap();
    let inputs = add_inputs(&store, account, &["d", "B", "c", "a", "e"]).await;
    let others = add_inputs(&store, other, &["f"]).await;
    let [d, b, c, _, e] = &inputs[..] else {
        panic!("five inputs");
    };
    let (b_id, c_id, d_id, e_id) = (b.id, c.id, d.id, e.id);
    store
        .write(move |tx| {
            Box::pin(async move {
                live_inputs::set_started(tx, d_id, NOW).await?;
                for (id, at_ms) in [(c_id, NOW), (b_id, NOW + 5)] {
                    live_inputs::set_started(tx, id, at_ms).await?;
                    live_inputs::set_ended(tx, id, "b1", at_ms + 10).await?;
                }
                let off = LiveInputPatch {
                    enabled: Some(false),
                    ..LiveInputPatch::default()
                };
                live_inputs::patch(tx, account, e_id, off, NOW).await
            })
        })
        .await
        .unwrap();
    let on_air = [air(d, true, 3), air(e, false, 7), air(&others[0], true, 9)];
    let names = async |query: Query| -> String {
        let mut db = store.read().await.unwrap();
        let rows = input_list::list(&mut db, account, &query, &on_air).await;
        rows.unwrap().into_iter().map(|input| input.name).collect()
    };
    for (sort, descending, expected) in [
        (Sort::Created, true, "eacBd"),
        (Sort::Created, false, "dBcae"),
        (Sort::Name, false, "aBcde"),
        (Sort::Name, true, "edcBa"),
        (Sort::LastLive, true, "deBca"),
        (Sort::LastLive, false, "cBeda"),
        (Sort::Viewers, true, "edacB"),
        (Sort::Viewers, false, "Bcade"),
    ] {
        let sorted = names(query(sort, descending)).await;
        assert_eq!(sorted, expected, "{sort:?}, descending: {descending}");
    }
    for (status, enabled, expected) in [
        (Some(Status::Live), None, "d"),
        (Some(Status::Reconnecting), None, "e"),
        (Some(Status::Idle), None, "acB"),
        (None, Some(false), "e"),
        (Some(Status::Live), Some(false), ""),
    ] {
        let narrowed = Query {
            status,
            enabled,
            ..query(Sort::Created, true)
        };
        assert_eq!(names(narrowed.clone()).await, expected);
        let mut db = store.read().await.unwrap();
        let counts = input_list::count(&mut db, account, &narrowed, &on_air).await;
        let expected = Counts {
            total: 5,
            live: 1,
            reconnecting: 1,
            disabled: 1,
            fitting: expected.len() as i64,
        };
        assert_eq!(counts.unwrap(), expected);
        assert_eq!(expected.idle(), 3);
    }
    let page = Query {
        limit: 2,
        offset: 3,
        ..query(Sort::Name, false)
    };
    assert_eq!(names(page).await, "de");
    let after = Query {
        after: Some(c.cursor()),
        ..query(Sort::Created, true)
    };
    assert_eq!(names(after).await, "Bd");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_finds_parts_of_names_and_whole_slugs_and_playback_ids() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let inputs = add_inputs(&store, account, &["Main stage", "100%_a\\b", "Bühne"]).await;
    let found = async |text: &str| -> Vec<String> {
        let query = Query {
            text: Some(text.to_owned()),
            ..query(Sort::Name, false)
        };
        let mut db = store.read().await.unwrap();
        let counts = input_list::count(&mut db, account, &query, &[])
            .await
            .unwrap();
        let rows = input_list::list(&mut db, account, &query, &[])
            .await
            .unwrap();
        assert_eq!(counts.total as usize, rows.len());
        rows.into_iter().map(|input| input.name).collect()
    };
    for (text, expected) in [
        ("MAIN", "Main stage"),
        ("%_", "100%_a\\b"),
        ("a\\b", "100%_a\\b"),
        ("ühn", "Bühne"),
        (&inputs[0].input_slug, "Main stage"),
        (&inputs[2].playback_id, "Bühne"),
    ] {
        assert_eq!(found(text).await, [expected], "{text}");
    }
    assert_eq!(found("%").await, ["100%_a\\b"]);
    assert!(found("zzzzzzzzzzzzz").await.is_empty());
    assert!(found(&inputs[0].input_slug[1..]).await.is_empty());
}

fn connection(input: &LiveInput, connected_at: i64) -> PublisherConnection {
    PublisherConnection {
        id: Uuid::now_v7(),
        input_id: input.id,
        broadcast_id: "9f31c04ab7de".into(),
        protocol: "srt".into(),
        remote_address: "203.0.113.7".into(),
        encoder: Some("x".repeat(500)),
        connected_at,
        disconnected_at: None,
        reason: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_kept_with_their_first_end_and_swept_by_age() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let inputs = add_inputs(&store, account, &["a", "b"]).await;
    let rows: Vec<_> = (0..5)
        .map(|n| connection(&inputs[0], NOW + n * 10))
        .collect();
    let (opened, other) = (rows.clone(), connection(&inputs[1], NOW));
    store
        .write(move |tx| {
            Box::pin(async move {
                for row in opened.iter().chain([&other, &opened[0]]) {
                    publisher_connections::open(tx, row).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    let close = |id: Uuid, reason: &'static str, at_ms: Option<i64>| {
        let end = End {
            reason,
            encoder: None,
            at_ms,
        };
        store.write(move |tx| Box::pin(publisher_connections::close(tx, id, end, NOW + 1_000)))
    };
    close(rows[0].id, "dropped", Some(NOW + 5)).await.unwrap();
    close(rows[0].id, "ended", Some(NOW + 9)).await.unwrap();
    close(rows[1].id, "interrupted", None).await.unwrap();
    close(rows[2].id, "ended", Some(NOW - 5)).await.unwrap();
    close(Uuid::now_v7(), "ended", None).await.unwrap();

    let list = async |page: Page| {
        let mut db = store.read().await.unwrap();
        publisher_connections::list(&mut db, inputs[0].id, page)
            .await
            .unwrap()
    };
    let all = list(Page::first(100)).await;
    let ends: Vec<_> = all
        .iter()
        .rev()
        .map(|row| (row.reason.as_deref(), row.disconnected_at))
        .collect();
    assert_eq!(
        ends,
        [
            (Some("dropped"), Some(NOW + 5)),
            (Some("interrupted"), Some(NOW + 1_000)),
            (Some("ended"), Some(NOW + 20)),
            (None, None),
            (None, None),
        ],
        "no end before its beginning"
    );
    assert_eq!(all[0].encoder.as_ref().unwrap().len(), 200);
    let first = list(Page::first(2)).await;
    let second = Page {
        limit: 2,
        after: Some(first[1].cursor()),
    };
    assert_eq!([first, list(second).await].concat(), all[..4]);

    const KEPT_MS: i64 = 400 * 24 * 60 * 60 * 1000;
    let swept = store.sweep(NOW + 1_000 + KEPT_MS).await.unwrap();
    assert_eq!(swept, 2);
    assert_eq!(
        list(Page::first(100)).await.len(),
        3,
        "what is connected stays"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_key_is_shown_again_until_another_one_replaces_it() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let made = store.write(move |tx| {
        Box::pin(live_inputs::create(
            tx,
            account,
            NewLiveInput::default(),
            NOW,
        ))
    });
    let (input, key) = made.await.unwrap();
    let shown = async |input: &LiveInput| {
        let mut db = store.read().await.unwrap();
        live_inputs::stream_key(&mut db, input).await.unwrap()
    };
    assert_eq!(shown(&input).await, Some(key.clone()));
    let id = input.id;
    let rotate = store.write(move |tx| Box::pin(live_inputs::rotate_key(tx, account, id, NOW)));
    let (rotated, new_key) = rotate.await.unwrap();
    assert_ne!(new_key, key);
    assert_eq!(shown(&rotated).await, Some(new_key));

    let made_before = LiveInput {
        stream_key_id: None,
        ..rotated.clone()
    };
    assert_eq!(shown(&made_before).await, None);
    // As after a restore into an installation with another key.
    let of_another_key = LiveInput {
        stream_key_id: Some(Uuid::now_v7()),
        ..rotated
    };
    assert_eq!(shown(&of_another_key).await, None);
}
