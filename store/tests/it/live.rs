//! Live inputs and broadcasts.

use std::collections::HashSet;

use sluice_store::{
    Cursor, Error, Page, Secret, Store, broadcasts,
    broadcasts::{BroadcastState, Lost, Totals},
    credentials,
    live_connections::{self, LiveConnection},
    live_inputs::{self, Latency, LiveInput, LiveInputPatch, NewLiveInput, RecordMode},
    outputs::{self, NewOutput, Output, OutputLimits, OutputPatch},
    write_tx,
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

async fn add_input(store: &Store, account: Uuid, created_at: i64) -> (LiveInput, Secret) {
    store
        .write(move |tx| {
            Box::pin(live_inputs::create(
                tx,
                account,
                NewLiveInput::default(),
                created_at,
            ))
        })
        .await
        .unwrap()
}

async fn patched(
    store: &Store,
    account: Uuid,
    id: Uuid,
    patch: LiveInputPatch,
) -> Result<LiveInput, Error> {
    store
        .write(move |tx| Box::pin(live_inputs::patch(tx, account, id, patch, NOW + 1)))
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_is_made_with_the_defaults_of_the_interface() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (input, stream_key) = add_input(&store, account, NOW).await;
    assert_eq!(input.input_slug.len(), 12);
    assert!(credentials::is_playback_id(&input.playback_id));
    assert!(stream_key.expose().starts_with("svc_live_"));
    assert!(input.accepts_stream_key(stream_key.expose()));
    assert!(
        !input.accepts_stream_key(&input.stream_key_hash),
        "the stored hash is no key"
    );
    let expected = LiveInput {
        id: input.id,
        account_id: account,
        name: "Live input".into(),
        input_slug: input.input_slug.clone(),
        playback_id: input.playback_id.clone(),
        enabled: true,
        reconnect_window_s: 60,
        require_signed_playback: false,
        allowed_domains: Vec::new(),
        record_mode: RecordMode::Off,
        latency: Latency::Low,
        pull_url: None,
        stream_key_hash: credentials::hash(stream_key.expose()),
        stream_key_prefix: stream_key.expose()[..12].to_owned(),
        stream_key_id: input.stream_key_id,
        last_target_duration_s: None,
        last_started_at: None,
        last_ended_at: None,
        created_at: NOW,
        updated_at: NOW,
        fence: 0,
    };
    assert_eq!(input, expected);
    let mut reader = store.read().await.unwrap();
    let found = [
        live_inputs::get(&mut reader, account, input.id).await.ok(),
        live_inputs::by_id(&mut reader, input.id).await.unwrap(),
        live_inputs::by_slug(&mut reader, &input.input_slug)
            .await
            .unwrap(),
        live_inputs::by_playback_id(&mut reader, &input.playback_id)
            .await
            .unwrap(),
    ];
    assert!(
        found.iter().all(|found| found.as_ref() == Some(&expected)),
        "{found:?}"
    );
    assert_eq!(live_inputs::by_slug(&mut reader, "").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_what_it_names() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (mut expected, _) = add_input(&store, account, NOW).await;
    type Change = fn(&mut LiveInputPatch, &mut LiveInput);
    let changes: [(&str, Change); 11] = [
        ("nothing", |_, _| {}),
        ("name", |patch, input| {
            input.name = "Ünïcode 🎬 '; DROP TABLE live_inputs".into();
            patch.name = Some(input.name.clone());
        }),
        ("empty name", |patch, input| {
            input.name = String::new();
            patch.name = Some(String::new());
        }),
        ("disabled", |patch, input| {
            input.enabled = false;
            patch.enabled = Some(false);
        }),
        ("window", |patch, input| {
            input.reconnect_window_s = 0;
            patch.reconnect_window_s = Some(0);
        }),
        ("signed", |patch, input| {
            input.require_signed_playback = true;
            patch.require_signed_playback = Some(true);
        }),
        ("domains", |patch, input| {
            input.allowed_domains = vec!["example.org".into(), "*.example.net".into()];
            patch.allowed_domains = Some(input.allowed_domains.clone());
        }),
        ("no domains", |patch, input| {
            input.allowed_domains = Vec::new();
            patch.allowed_domains = Some(Vec::new());
        }),
        ("recording and latency", |patch, input| {
            (input.record_mode, input.latency) = (RecordMode::Automatic, Latency::Standard);
            (patch.record_mode, patch.latency) =
                (Some(RecordMode::Automatic), Some(Latency::Standard));
        }),
        ("pull address", |patch, input| {
            input.pull_url = Some("rtsp://camera".into());
            patch.pull_url = Some(input.pull_url.clone());
        }),
        ("no pull address", |patch, input| {
            input.pull_url = None;
            patch.pull_url = Some(None);
        }),
    ];
    expected.updated_at = NOW + 1;
    for (what, change) in changes {
        let mut patch = LiveInputPatch::default();
        change(&mut patch, &mut expected);
        assert_eq!(
            patched(&store, account, expected.id, patch).await.unwrap(),
            expected,
            "{what}"
        );
    }
    let too_long = LiveInputPatch {
        reconnect_window_s: Some(1801),
        ..LiveInputPatch::default()
    };
    let refused = patched(&store, account, expected.id, too_long).await;
    assert!(
        matches!(refused, Err(Error::Database(_))),
        "the schema is the last guard: {refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_accounts_input_is_not_found() {
    let (store, _folder) = store().await;
    let owner = add_account(&store, "owner").await.unwrap();
    let stranger = add_account(&store, "stranger").await.unwrap();
    let (input, stream_key) = add_input(&store, owner, NOW).await;
    for (account, id) in [
        (stranger, input.id),
        (owner, Uuid::now_v7()),
        (owner, Uuid::nil()),
    ] {
        let results = [
            live_inputs::get(&mut store.read().await.unwrap(), account, id).await,
            patched(&store, account, id, LiveInputPatch::default()).await,
            store
                .write(move |tx| {
                    Box::pin(
                        async move { Ok(live_inputs::rotate_key(tx, account, id, NOW).await?.0) },
                    )
                })
                .await,
            store
                .write(move |tx| Box::pin(live_inputs::delete(tx, account, id)))
                .await,
        ];
        for result in results {
            assert!(
                matches!(result, Err(Error::NotFound("live input"))),
                "{result:?}"
            );
        }
    }
    let (rotated, new_key) = store
        .write(move |tx| Box::pin(live_inputs::rotate_key(tx, owner, input.id, NOW)))
        .await
        .unwrap();
    assert!(rotated.accepts_stream_key(new_key.expose()));
    assert!(
        !rotated.accepts_stream_key(stream_key.expose()),
        "the old key is worthless"
    );
    assert_eq!(
        (rotated.input_slug, rotated.playback_id),
        (input.input_slug, input.playback_id)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_hold_their_place_while_rows_come_and_go() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let other = add_account(&store, "there").await.unwrap();
    let mut inputs = Vec::new();
    // Many of one millisecond, so that the id decides.
    for n in 0..23 {
        inputs.push(add_input(&store, account, NOW + n / 8).await.0);
        add_input(&store, other, NOW + n / 8).await;
    }
    inputs.sort_by_key(|input| std::cmp::Reverse((input.created_at, input.id)));

    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = Page { limit: 5, after };
        let rows = live_inputs::list(&mut store.read().await.unwrap(), account, page)
            .await
            .unwrap();
        let Some(last) = rows.last() else { break };
        after = Some(Cursor {
            created_at: last.created_at,
            id: last.id,
        });
        // Rows that are added and deleted on pages already read move nothing.
        let gone = rows[0].id;
        add_input(&store, account, NOW + 1_000).await;
        store
            .write(move |tx| Box::pin(live_inputs::delete(tx, account, gone)))
            .await
            .unwrap();
        seen.extend(rows);
    }
    assert_eq!(seen, inputs);
    for limit in [0, 1, 100] {
        let rows = live_inputs::list(
            &mut store.read().await.unwrap(),
            account,
            Page::first(limit),
        )
        .await
        .unwrap();
        assert_eq!(rows.len(), (limit as usize).min(23), "limit {limit}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_inputs_are_read_for_the_start() {
    let (store, _folder) = store().await;
    assert_eq!(
        live_inputs::all(&mut store.read().await.unwrap())
            .await
            .unwrap(),
        []
    );
    let account = add_account(&store, "here").await.unwrap();
    let ids: HashSet<Uuid> = store
        .write(move |tx| {
            Box::pin(async move {
                let mut ids = HashSet::new();
                for _ in 0..1_000 {
                    ids.insert(
                        live_inputs::create(tx, account, NewLiveInput::default(), NOW)
                            .await?
                            .0
                            .id,
                    );
                }
                Ok(ids)
            })
        })
        .await
        .unwrap();
    let all = live_inputs::all(&mut store.read().await.unwrap())
        .await
        .unwrap();
    assert_eq!(all.len(), 1_000);
    assert_eq!(
        all.iter().map(|input| input.id).collect::<HashSet<_>>(),
        ids
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_leaves_its_marks_on_the_input() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let run = store
        .write(move |tx| {
            Box::pin(async move {
                Ok([
                    live_inputs::set_started(tx, id, NOW + 1).await?,
                    live_inputs::set_ended(tx, id, "b1", NOW + 9).await?,
                    live_inputs::set_target_duration(tx, id, 3).await?,
                    live_inputs::set_started(tx, id, NOW + 20).await?,
                    live_inputs::raise_fence(tx, id, 1).await?,
                ])
            })
        })
        .await
        .unwrap();
    let marks = run.map(|input| {
        (
            input.last_started_at,
            input.last_ended_at,
            input.last_target_duration_s,
            input.fence,
        )
    });
    let expected = [
        (Some(NOW + 1), None, None, 0),
        (Some(NOW + 1), Some(NOW + 9), None, 0),
        (Some(NOW + 1), Some(NOW + 9), Some(3), 0),
        (Some(NOW + 20), None, Some(3), 0),
        (Some(NOW + 20), None, Some(3), 1),
    ];
    assert_eq!(marks, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_was_replaced_cannot_write() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let begin =
        |fence| store.write(move |tx| Box::pin(broadcasts::begin(tx, "b1", id, fence, NOW)));
    let end = |fence| store.write(move |tx| Box::pin(broadcasts::end(tx, "b1", fence, NOW + 5)));

    assert!(matches!(end(0).await, Err(Error::NotFound("broadcast"))));
    begin(0).await.unwrap();
    begin(0).await.unwrap();
    begin(1).await.unwrap();
    for refused in [begin(0).await.err(), end(0).await.err()] {
        assert!(matches!(refused, Some(Error::Conflict(_))), "{refused:?}");
    }
    let on_air = broadcasts::live(&mut store.read().await.unwrap())
        .await
        .unwrap();
    assert_eq!(on_air.len(), 1);
    assert_eq!(on_air[0].state, BroadcastState::Live);
    let ended = end(1).await.unwrap();
    assert_eq!(
        (ended.state, ended.ended_at),
        (BroadcastState::Ended, Some(NOW + 5))
    );
    assert_eq!(
        broadcasts::live(&mut store.read().await.unwrap())
            .await
            .unwrap(),
        []
    );

    store
        .write(move |tx| Box::pin(live_inputs::delete(tx, account, id)))
        .await
        .unwrap();
    let gone = broadcasts::get(&mut store.read().await.unwrap(), "b1").await;
    assert!(
        matches!(gone, Err(Error::NotFound("broadcast"))),
        "{gone:?}"
    );
    assert!(matches!(begin(1).await, Err(Error::NotFound("live input"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn broadcasts_that_no_one_continues_are_ended() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let lost = i64::from(broadcasts::MOST_ENDED) + 7;
    store
        .write(move |tx| {
            Box::pin(async move {
                for number in 0..lost {
                    broadcasts::begin(tx, &format!("lost-{number}"), id, 0, NOW).await?;
                }
                broadcasts::begin(tx, "kept", id, 0, NOW).await?;
                broadcasts::begin(tx, "over", id, 0, NOW).await?;
                broadcasts::end(tx, "over", 0, NOW + 1).await
            })
        })
        .await
        .unwrap();
    let end_lost = |keep: &'static [&'static str]| {
        let keep: Vec<String> = keep.iter().map(ToString::to_string).collect();
        store.write(move |tx| {
            Box::pin(async move { broadcasts::end_lost(tx, Lost::OfAll, &keep, NOW + 9).await })
        })
    };
    let keep: &[&str] = &["kept", "unknown", "quo'te\""];
    let bound = u64::from(broadcasts::MOST_ENDED);
    for ended in [bound, 7, 0] {
        assert_eq!(end_lost(keep).await.unwrap(), ended);
    }
    let mut reader = store.read().await.unwrap();
    let live = broadcasts::live(&mut reader).await.unwrap();
    assert_eq!(live.len(), 1);
    assert_eq!(live[0].id, "kept");
    for (id, ended_at) in [("lost-3", NOW + 9), ("over", NOW + 1)] {
        let broadcast = broadcasts::get(&mut reader, id).await.unwrap();
        assert_eq!(broadcast.state, BroadcastState::Ended, "{id}");
        assert_eq!(broadcast.ended_at, Some(ended_at), "{id}");
    }
    let newest = broadcasts::list(&mut reader, id, 2, 0).await.unwrap();
    let ids: Vec<_> = newest.iter().map(|it| (&*it.id, it.ended_at)).collect();
    assert_eq!(ids, [("over", Some(NOW + 1)), ("lost-999", Some(NOW + 9))]);
    let count = broadcasts::count(&mut reader, id).await.unwrap();
    assert_eq!(count, bound + 7 + 2);
    drop(reader);
    assert_eq!(end_lost(&[]).await.unwrap(), 1, "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn totals_add_up_and_a_lost_broadcast_ends_when_it_was_last_seen() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let add = |bytes, peak_viewers, at| {
        let totals = Totals {
            bytes,
            peak_viewers,
        };
        store.write(move |tx| Box::pin(broadcasts::add_totals(tx, "b1", 0, totals, at)))
    };
    store
        .write(move |tx| Box::pin(broadcasts::begin(tx, "b1", id, 0, NOW)))
        .await
        .unwrap();
    add(10, None, NOW + 1).await.unwrap();
    add(20, Some(3), NOW + 2).await.unwrap();
    add(30, Some(2), NOW + 3).await.unwrap();
    add(0, None, NOW + 4).await.unwrap();
    store
        .write(move |tx| Box::pin(broadcasts::end_lost(tx, Lost::OfAll, &[], NOW + 99)))
        .await
        .unwrap();
    let row = broadcasts::get(&mut store.read().await.unwrap(), "b1").await;
    let row = row.unwrap();
    assert_eq!((row.bytes, row.peak_viewers), (60, Some(3)));
    assert_eq!(row.ended_at, Some(NOW + 4));

    const KEPT_MS: i64 = 400 * 24 * 3_600 * 1_000;
    for (now_ms, left) in [(NOW + 4 + KEPT_MS, 1), (NOW + 5 + KEPT_MS, 0)] {
        store.sweep(now_ms).await.unwrap();
        let mut reader = store.read().await.unwrap();
        assert_eq!(broadcasts::count(&mut reader, id).await.unwrap(), left);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_taken_out_once_and_survives_its_input() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let connection = LiveConnection {
        input_id: id,
        id: Uuid::now_v7(),
        account_id: account,
        broadcast_id: "b1".into(),
        payload: serde_json::json!({"name": "Stage"}),
    };
    let open = || {
        let connection = connection.clone();
        store
            .write(move |tx| Box::pin(async move { live_connections::open(tx, &connection).await }))
    };
    let (this, other) = (connection.id, Uuid::now_v7());
    let take_this =
        |this| store.write(move |tx| Box::pin(live_connections::take_this(tx, id, this)));
    let take_of = |broadcast: &'static str| {
        store.write(move |tx| Box::pin(live_connections::take_of_broadcast(tx, id, broadcast)))
    };
    let take_lost = |keep: &'static str| {
        store.write(move |tx| {
            Box::pin(async move {
                live_connections::take_lost(tx, Lost::OfAll, &[keep.to_owned()]).await
            })
        })
    };

    open().await.unwrap();
    assert_eq!(take_this(other).await.unwrap(), None);
    assert_eq!(take_this(this).await.unwrap(), Some(connection.clone()));
    assert_eq!(take_this(this).await.unwrap(), None);

    open().await.unwrap();
    assert_eq!(take_of("b2").await.unwrap(), []);
    let over = take_of("b1").await.unwrap();
    assert_eq!(over, std::slice::from_ref(&connection));

    open().await.unwrap();
    assert_eq!(take_lost("b1").await.unwrap(), []);
    store
        .write(move |tx| Box::pin(live_inputs::delete(tx, account, id)))
        .await
        .unwrap();
    let lost = take_lost("quo'te\"").await.unwrap();
    assert_eq!(lost, std::slice::from_ref(&connection));
    let followed = write_tx!(store, |tx| {
        live_connections::take_followed(tx, id, None).await
    });
    assert_eq!(followed.unwrap(), []);
}

/// Encoders of one input that reached two nodes before each knew of the other.
#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_input_to_two_nodes_are_taken_out_one_by_one() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let id = add_input(&store, account, NOW).await.0.id;
    let nodes = [Uuid::from_u128(1), Uuid::from_u128(2)];
    let both = ["b1", "b2"].map(|broadcast| LiveConnection {
        input_id: id,
        id: Uuid::now_v7(),
        account_id: account,
        broadcast_id: broadcast.into(),
        payload: serde_json::json!({"name": "Stage"}),
    });
    let begin = async || {
        let both = both.clone();
        let begun = write_tx!(store, |tx| {
            for (connection, node) in both.iter().zip(nodes) {
                broadcasts::begin(tx, &connection.broadcast_id, id, 0, NOW).await?;
                broadcasts::set_node(tx, &connection.broadcast_id, node).await?;
                live_connections::open(tx, connection).await?;
            }
            Ok(())
        });
        begun.unwrap();
    };
    let take_lost = async |of: Lost| {
        let lost = write_tx!(store, |tx| live_connections::take_lost(tx, of, &[]).await);
        lost.unwrap()
    };
    let take_followed = async |node: Option<Uuid>| {
        let followed = write_tx!(store, |tx| {
            live_connections::take_followed(tx, id, node).await
        });
        followed.unwrap()
    };
    let [first, second] = &both;

    begin().await;
    for connection in [first, second] {
        let this = connection.id;
        let taken = write_tx!(store, |tx| live_connections::take_this(tx, id, this).await);
        assert_eq!(taken.unwrap().as_ref(), Some(connection));
    }

    begin().await;
    let over = write_tx!(store, |tx| {
        live_connections::take_of_broadcast(tx, id, "b1").await
    });
    assert_eq!(over.unwrap(), std::slice::from_ref(first));
    let lost = take_lost(Lost::OfNode(nodes[0])).await;
    assert_eq!(lost, [], "the other node's is no part of this one's end");
    let lost = take_lost(Lost::OfNode(nodes[1])).await;
    assert_eq!(lost, std::slice::from_ref(second));

    begin().await;
    let lost = take_lost(Lost::OfNode(nodes[0])).await;
    assert_eq!(lost, std::slice::from_ref(first));
    let followed = take_followed(Some(nodes[0])).await;
    assert_eq!(followed, [], "it goes on, on the other node");
    let followed = take_followed(Some(nodes[1])).await;
    assert_eq!(followed, std::slice::from_ref(second));

    begin().await;
    assert_eq!(
        take_followed(None).await.len(),
        2,
        "of a service that is alone"
    );

    // The end of a connection to a broadcast that is over comes with the next connection at the latest.
    begin().await;
    let ended = write_tx!(store, |tx| broadcasts::end(tx, "b2", 0, NOW + 1).await);
    ended.unwrap();
    let followed = take_followed(Some(Uuid::from_u128(3))).await;
    assert_eq!(followed, std::slice::from_ref(second));
    assert_eq!(take_lost(Lost::OfAll).await, std::slice::from_ref(first));
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_are_bounded_and_go_with_their_input() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let (one, _) = add_input(&store, account, NOW).await;
    let (other, _) = add_input(&store, account, NOW).await;
    let limits = OutputLimits {
        of_input: 2,
        in_all: 3,
    };
    let add = async |input_id| {
        let new = NewOutput {
            input_id,
            url: "rtmp://cdn.test/live/key".into(),
            enabled: true,
        };
        store
            .write(move |tx| Box::pin(outputs::create(tx, new, limits, NOW)))
            .await
    };
    let first = add(one.id).await.unwrap();
    let second = add(one.id).await.unwrap();
    assert!(matches!(add(one.id).await, Err(Error::Conflict(_))));
    add(other.id).await.unwrap();
    assert!(matches!(add(other.id).await, Err(Error::Conflict(_))));
    assert!(!format!("{first:?}").contains("live/key"));

    let id = first.id;
    let patch = OutputPatch {
        enabled: Some(false),
        ..OutputPatch::default()
    };
    let (input, elsewhere) = (one.id, other.id);
    let theirs = patch.clone();
    let refused = store
        .write(move |tx| Box::pin(outputs::patch(tx, elsewhere, id, theirs, NOW + 1)))
        .await;
    assert!(matches!(refused, Err(Error::NotFound("output"))));
    let patched = store
        .write(move |tx| Box::pin(outputs::patch(tx, input, id, patch, NOW + 1)))
        .await
        .unwrap();
    let expected = Output {
        enabled: false,
        updated_at: NOW + 1,
        ..first
    };
    assert_eq!(patched, expected);
    let mut db = store.read().await.unwrap();
    let listed = outputs::list(&mut db, one.id).await.unwrap();
    assert_eq!(listed, [second, patched]);
    drop(db);

    store
        .write(move |tx| Box::pin(live_inputs::delete(tx, account, input)))
        .await
        .unwrap();
    let mut db = store.read().await.unwrap();
    let left = outputs::all(&mut db).await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].input_id, other.id);
}
