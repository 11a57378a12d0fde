//! Users, sessions and API keys.

use sluice_store::{
    Cursor, Error, Page, Secret, Store, api_keys,
    api_keys::Scope,
    credentials::{self, PasswordHash},
    sessions::{self, NewSession},
    users::{self, NewUser, Role},
    welcome_codes,
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
        is_operator: false,
        password_hash,
    };
    store
        .write(move |tx| Box::pin(users::create(tx, new, NOW)))
        .await
}

fn a_hash() -> PasswordHash {
    credentials::hash_password(&Secret::new("secret")).unwrap()
}

fn a_session(user_id: Uuid) -> NewSession {
    NewSession {
        user_id,
        lifetime_ms: HOUR,
        network: Some("203.0.113.7".into()),
        user_agent: None,
    }
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
    let open = || store.write(move |tx| Box::pin(sessions::create(tx, a_session(user.id), NOW)));
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
async fn a_user_sees_and_ends_their_own_sessions_and_has_a_bounded_number() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let user = add_user(&store, account, "maria", a_hash()).await.unwrap();
    let other = add_user(&store, account, "olga", a_hash()).await.unwrap();
    let open = async |user_id, now_ms| {
        let opened = store.write(move |tx| {
            Box::pin(async move {
                let made = sessions::create(tx, a_session(user_id), now_ms).await?;
                sessions::keep_newest(tx, user_id, 3).await?;
                Ok(made.0)
            })
        });
        opened.await.unwrap()
    };
    let listed = async |now_ms| {
        let mut reader = store.read().await.unwrap();
        let sessions = sessions::list(&mut reader, user.id, 10, now_ms).await;
        let ids = sessions.unwrap().into_iter().map(|session| session.id);
        ids.collect::<Vec<_>>()
    };
    let foreign = open(other.id, NOW).await;
    let mut opened = Vec::new();
    for at in 0..3 {
        opened.push(open(user.id, NOW + at).await.id);
    }
    let [first, second, third] = opened[..] else {
        panic!("three were opened");
    };
    assert_eq!(listed(NOW).await, [third, second, first]);
    assert!(!foreign.is_due_to_touch(NOW + 299_999));
    assert!(foreign.is_due_to_touch(NOW + 300_000));
    store
        .write(move |tx| Box::pin(sessions::touch(tx, first, NOW + 300_000)))
        .await
        .unwrap();
    assert_eq!(listed(NOW).await, [first, third, second]);
    let fourth = open(user.id, NOW + 300_001).await.id;
    assert_eq!(listed(NOW).await, [fourth, first, third], "bounded by use");
    assert_eq!(listed(NOW + HOUR + 2).await, [fourth], "the others expired");

    let end = |user_id, id| store.write(move |tx| Box::pin(sessions::end(tx, user_id, id)));
    let refused = end(user.id, foreign.id).await;
    assert!(matches!(refused, Err(Error::NotFound(_))), "{refused:?}");
    end(user.id, first).await.unwrap();
    assert_eq!(listed(NOW).await, [fourth, third]);
    assert!(end(user.id, first).await.is_err(), "twice");
    end(other.id, foreign.id).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_welcome_code_is_good_for_one_user_until_it_expires() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let user = add_user(&store, account, "maria", a_hash()).await.unwrap();
    let make = async |now_ms| {
        let made = store.write(move |tx| {
            Box::pin(async move { welcome_codes::create(tx, user.id, now_ms).await })
        });
        made.await.unwrap()
    };
    let user_of = async |code: &Secret, now_ms| {
        let mut reader = store.read().await.unwrap();
        let found = welcome_codes::user_of(&mut reader, code, now_ms).await;
        found.unwrap()
    };
    let replaced = make(NOW).await;
    let code = make(NOW).await;
    assert_eq!(user_of(&code, NOW).await, Some(user.id));
    let typed = Secret::new(code.expose().to_lowercase().replace('-', " "));
    assert_eq!(user_of(&typed, NOW).await, Some(user.id));
    for wrong in [&replaced, &credentials::welcome_code(), &Secret::new("x")] {
        assert_eq!(user_of(wrong, NOW).await, None, "{}", wrong.expose());
    }
    let last = NOW + welcome_codes::LIFETIME_MS;
    assert_eq!(user_of(&code, last - 1).await, Some(user.id));
    assert_eq!(user_of(&code, last).await, None, "expired");

    let hash = a_hash();
    store
        .write(move |tx| Box::pin(users::set_password(tx, user.id, hash, NOW)))
        .await
        .unwrap();
    assert_eq!(user_of(&code, NOW).await, None, "another password");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_is_changed_and_the_flag_only_when_it_is_given() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let user = add_user(&store, account, "maria", a_hash()).await.unwrap();
    let set = async |role, is_operator| {
        let set =
            store.write(move |tx| Box::pin(users::set_role(tx, user.id, role, is_operator, NOW)));
        let user = set.await.unwrap();
        (user.role, user.is_operator)
    };
    assert_eq!(set(Role::Viewer, None).await, (Role::Viewer, false));
    assert_eq!(set(Role::Viewer, Some(true)).await, (Role::Viewer, true));
    assert_eq!(set(Role::Admin, None).await, (Role::Admin, true));
    assert_eq!(set(Role::Member, Some(false)).await, (Role::Member, false));
    let scopes = [Role::Viewer, Role::Member, Role::Admin].map(Role::scope);
    assert_eq!(scopes, [Scope::Read, Scope::Write, Scope::Admin]);
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
                    sessions::create(tx, a_session(user.id), NOW + n).await?;
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
