//! Users, sessions and API keys.

use sluice_store::{
    Cursor, Error, Page, Secret, Store, api_keys,
    api_keys::Scope,
    credentials::{self, PasswordHash},
    sessions,
    users::{self, NewUser, Role},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

const HOUR: i64 = 60 * 60 * 1000;

async fn add_user(
    store: &Store,
    account_id: Uuid,
    username: &str,
    password_hash: PasswordHash,
) -> Result<users::User, Error> {
    let new = NewUser {
        account_id,
        username: username.into(),
        role: Role::Member,
        password_hash,
    };
    store
        .write(move |tx| Box::pin(users::create(tx, new, NOW)))
        .await
}

fn a_hash() -> PasswordHash {
    credentials::hash_password(&Secret::new("secret")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_username_is_unique_in_the_installation_whatever_its_case() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let hash = a_hash();
    let cases: [(Uuid, &str, Result<&str, &str>); 9] = [
        (here, "Maria", Ok("maria")),
        (here, "maria", Err("there is a user maria already")),
        (there, " MARIA ", Err("there is a user maria already")),
        (there, "maria@example.org", Ok("maria@example.org")),
        (here, "", Err("username: expected")),
        (here, "   ", Err("username: expected")),
        (here, "two words", Err("username: expected")),
        (here, "märia", Err("username: expected")),
        (Uuid::now_v7(), "orphan", Err("the database failed")),
    ];
    for (account, username, expected) in cases {
        let result = add_user(&store, account, username, hash.clone()).await;
        match (result, expected) {
            (Ok(user), Ok(stored)) => assert_eq!(user.username, stored),
            (Err(error), Err(text)) => {
                assert!(error.to_string().contains(text), "{username}: {error}")
            }
            (result, expected) => panic!("{username}: {result:?}, expected {expected:?}"),
        }
    }
    let names: Vec<_> = users::list(&mut store.read().await.unwrap())
        .await
        .unwrap()
        .into_iter()
        .map(|user| user.username)
        .collect();
    assert_eq!(names, ["maria", "maria@example.org"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_by_time_by_sign_out_and_by_a_new_password() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let user = add_user(&store, account, "maria", a_hash()).await.unwrap();
    let open = || store.write(move |tx| Box::pin(sessions::create(tx, user.id, HOUR, NOW)));
    let is_known = async |token: &Secret, now_ms: i64| {
        let mut reader = store.read().await.unwrap();
        sessions::authenticate(&mut reader, token.expose(), now_ms)
            .await
            .unwrap()
            .is_some()
    };

    let (session, token) = open().await.unwrap();
    assert!(session.accepts_csrf(credentials::csrf_token(&token).expose()));
    assert!(!session.accepts_csrf(token.expose()));
    assert!(is_known(&token, NOW + HOUR - 1).await);
    assert!(!is_known(&token, NOW + HOUR).await, "expired");
    assert!(
        !is_known(&credentials::session_token(), NOW).await,
        "unknown"
    );
    assert!(
        !is_known(&Secret::new("' OR 1 = 1 --"), NOW).await,
        "malformed"
    );

    assert!(!session.is_due_to_slide(NOW + HOUR / 2, HOUR));
    assert!(session.is_due_to_slide(NOW + HOUR / 2 + 1, HOUR));
    let hash = session.token_hash.clone();
    store
        .write(move |tx| {
            Box::pin(async move { sessions::slide(tx, &hash, HOUR, NOW + HOUR / 2).await })
        })
        .await
        .unwrap();
    assert!(is_known(&token, NOW + HOUR).await, "slid");
    let hash = session.token_hash.clone();
    store
        .write(move |tx| {
            Box::pin(async move { sessions::slide(tx, &hash, HOUR, NOW + 9 * HOUR).await })
        })
        .await
        .unwrap();
    assert!(
        !is_known(&token, NOW + 9 * HOUR).await,
        "an ended session stays ended"
    );

    let (signed_out, signed_out_token) = open().await.unwrap();
    store
        .write(move |tx| {
            Box::pin(async move { sessions::delete(tx, &signed_out.token_hash).await })
        })
        .await
        .unwrap();
    assert!(!is_known(&signed_out_token, NOW).await);
    assert!(is_known(&token, NOW).await, "the other one continues");

    let new_hash = a_hash();
    store
        .write(move |tx| Box::pin(users::set_password(tx, user.id, new_hash, NOW)))
        .await
        .unwrap();
    assert!(!is_known(&token, NOW).await, "a new password ends all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_deletes_expired_sessions_only() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let user = add_user(&store, account, "maria", a_hash()).await.unwrap();
    store
        .write(move |tx| {
            Box::pin(async move {
                for n in 0..700 {
                    sessions::create(tx, user.id, HOUR, NOW + n).await?;
                }
                Ok(())
            })
        })
        .await
        .unwrap();
    assert_eq!(store.sweep(NOW + HOUR - 1).await.unwrap(), 0);
    assert_eq!(store.sweep(NOW + HOUR + 649).await.unwrap(), 650);
    assert_eq!(store.sweep(NOW + 2 * HOUR).await.unwrap(), 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_is_known_by_its_hash_until_it_is_revoked() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let stranger = add_account(&store, "there").await.unwrap();
    let create =
        |scope| store.write(move |tx| Box::pin(api_keys::create(tx, account, "a key", scope, NOW)));
    let (key, token) = create(Scope::Write).await.unwrap();
    let (other, _) = create(Scope::Read).await.unwrap();
    assert!(key.scope >= Scope::Read && key.scope >= Scope::Write && key.scope < Scope::Admin);
    assert_eq!(key.key_prefix, token.expose()[..12]);
    assert!(!format!("{key:?}").contains(&token.expose()[12..]));

    let same_token = token.clone();
    let again = store
        .write(move |tx| {
            Box::pin(async move {
                api_keys::create_from(tx, account, "again", Scope::Read, &same_token, NOW).await
            })
        })
        .await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");

    let mut reader = store.read().await.unwrap();
    let mut wrong = token.expose().to_owned();
    wrong.pop();
    for (presented, known) in [
        (token.expose(), true),
        (&wrong, false),
        ("", false),
        ("svc_", false),
        (&key.key_hash, false),
    ] {
        let found = api_keys::authenticate(&mut reader, presented)
            .await
            .unwrap();
        assert_eq!(found.is_some(), known, "{presented}");
    }
    drop(reader);

    assert!(key.is_due_to_touch(NOW));
    store
        .write(move |tx| Box::pin(api_keys::touch(tx, key.id, NOW)))
        .await
        .unwrap();
    let touched = api_keys::authenticate(&mut store.read().await.unwrap(), token.expose())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(touched.last_used_at, Some(NOW));
    assert!(!touched.is_due_to_touch(NOW + 4 * 60_000));
    assert!(touched.is_due_to_touch(NOW + 5 * 60_000));

    let revoke =
        |account| store.write(move |tx| Box::pin(api_keys::revoke(tx, account, key.id, NOW)));
    assert!(
        matches!(revoke(stranger).await, Err(Error::NotFound(_))),
        "another's"
    );
    revoke(account).await.unwrap();
    assert!(
        matches!(revoke(account).await, Err(Error::NotFound(_))),
        "twice"
    );
    let mut reader = store.read().await.unwrap();
    assert_eq!(
        api_keys::authenticate(&mut reader, token.expose())
            .await
            .unwrap(),
        None
    );
    let listed = api_keys::list(&mut reader, account, Page::first(10))
        .await
        .unwrap();
    assert_eq!(
        listed.iter().map(|key| key.id).collect::<Vec<_>>(),
        [other.id]
    );
    let after = Some(Cursor {
        created_at: other.created_at,
        id: other.id,
    });
    assert_eq!(
        api_keys::list(&mut reader, account, Page { limit: 10, after })
            .await
            .unwrap(),
        []
    );
}
