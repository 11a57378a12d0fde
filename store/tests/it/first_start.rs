//! The first start of an empty database.

use sluice_store::{
    Bootstrap, Error, Page, Secret, accounts, api_keys, bootstrap, credentials,
    first_credentials_shown, live_inputs,
    sessions::{self, NewSession},
    users, welcome_codes,
};

use crate::support::{NOW, count_accounts, store};

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_database_is_given_all_that_a_newcomer_needs() {
    let (store, _folder) = store().await;
    let first = bootstrap(&store, Bootstrap::default(), NOW)
        .await
        .unwrap()
        .expect("was empty");

    let mut reader = store.read().await.unwrap();
    let account = accounts::first(&mut reader).await.unwrap().unwrap();
    assert_eq!(account.plan, "unlimited");
    let user = users::by_username(&mut reader, "Admin")
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (user.username.as_str(), user.role, user.is_operator),
        ("admin", users::Role::Admin, true)
    );
    let code = first.welcome_code.as_ref().expect("no password was fixed");
    let welcome = welcome_codes::user_of(&mut reader, code, NOW).await;
    assert_eq!(welcome.unwrap(), Some(user.id));
    assert!(credentials::verify_password(
        &first.admin_password,
        &user.password_hash
    ));
    assert!(!credentials::verify_password(
        &Secret::new("guess"),
        &user.password_hash
    ));
    let key = api_keys::authenticate(&mut reader, first.api_key.expose())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (key.scope, key.account_id),
        (api_keys::Scope::Admin, account.id)
    );
    let inputs = live_inputs::list(&mut reader, account.id, Page::first(10))
        .await
        .unwrap();
    assert_eq!(inputs, std::slice::from_ref(&first.live_input));
    assert_eq!(inputs[0].name, "My first stream");
    assert!(inputs[0].accepts_stream_key(first.stream_key.expose()));

    let shown = format!("{first:?}");
    for secret in [
        &first.admin_password,
        &first.api_key,
        &first.stream_key,
        code,
    ] {
        assert!(!shown.contains(secret.expose()), "{shown}");
    }
    drop(reader);
    first_credentials_shown(&store).await.unwrap();
    assert!(
        bootstrap(&store, Bootstrap::default(), NOW)
            .await
            .unwrap()
            .is_none(),
        "only once"
    );
    assert_eq!(count_accounts(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_were_not_shown_are_replaced_by_the_next_start() {
    let (store, _folder) = store().await;
    let start = async |now| bootstrap(&store, Bootstrap::default(), now).await.unwrap();
    let lost = start(NOW).await.expect("was empty");
    let first = start(NOW + 1).await.expect("were not shown");
    assert_eq!(count_accounts(&store).await, 1);
    assert_eq!(first.live_input.id, lost.live_input.id);
    let mut reader = store.read().await.unwrap();
    let user = users::by_username(&mut reader, "admin").await.unwrap();
    let hash = user.unwrap().password_hash;
    let input = live_inputs::by_id(&mut reader, first.live_input.id).await;
    let input = input.unwrap().unwrap();
    for (credentials, is_in_force) in [(&first, true), (&lost, false)] {
        let verified = credentials::verify_password(&credentials.admin_password, &hash);
        let key = api_keys::authenticate(&mut reader, credentials.api_key.expose()).await;
        let takes_key = input.accepts_stream_key(credentials.stream_key.expose());
        let code = credentials.welcome_code.as_ref().unwrap();
        let welcome = welcome_codes::user_of(&mut reader, code, NOW).await;
        assert_eq!(
            [
                verified,
                key.unwrap().is_some(),
                takes_key,
                welcome.unwrap().is_some()
            ],
            [is_in_force; 4]
        );
    }
    drop(reader);
    first_credentials_shown(&store).await.unwrap();
    assert!(start(NOW + 2).await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_fixed_key_serves_both_starts() {
    let (store, _folder) = store().await;
    let api_key = format!("svc_{}", "A1b".repeat(20).split_at(43).0);
    for now in [NOW, NOW + 1] {
        let fixed = Bootstrap {
            api_key: Some(Secret::new(&api_key)),
            ..Bootstrap::default()
        };
        let first = bootstrap(&store, fixed, now).await.unwrap();
        assert_eq!(first.expect("not shown").api_key.expose(), api_key);
    }
}

/// A use shows that they were read: they must keep working.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_in_use_are_never_replaced() {
    for what in ["password", "session", "key"] {
        let (store, _folder) = store().await;
        let first = bootstrap(&store, Bootstrap::default(), NOW).await.unwrap();
        let first = first.unwrap();
        let key = first.api_key.clone();
        let used = store.write(move |tx| {
            Box::pin(async move {
                let user = users::by_username(tx, "admin").await?.expect("was made");
                match what {
                    "password" => {
                        let hash = credentials::hash_password(&Secret::new("other"))?;
                        users::set_password(tx, user.id, hash, NOW + 1).await
                    }
                    "session" => {
                        let new = NewSession {
                            user_id: user.id,
                            lifetime_ms: 1_000,
                            network: None,
                            user_agent: None,
                        };
                        sessions::create(tx, new, NOW + 1).await.map(drop)
                    }
                    _ => {
                        let key = api_keys::authenticate(tx, key.expose()).await?;
                        api_keys::touch(tx, key.expect("was made").id, NOW + 1).await
                    }
                }
            })
        });
        used.await.unwrap();
        let again = bootstrap(&store, Bootstrap::default(), NOW + 2).await;
        assert!(again.unwrap().is_none(), "{what}");
        let mut reader = store.read().await.unwrap();
        let key = api_keys::authenticate(&mut reader, first.api_key.expose()).await;
        assert!(key.unwrap().is_some(), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_can_fix_the_first_credentials() {
    let (store, _folder) = store().await;
    let api_key = format!("svc_{}", "A1b".repeat(20).split_at(43).0);
    let fixed = Bootstrap {
        admin_password: Some(Secret::new("päss wörd")),
        api_key: Some(Secret::new(&api_key)),
        plan: Some("pro".to_owned()),
    };
    let first = bootstrap(&store, fixed, NOW).await.unwrap().unwrap();
    assert_eq!(first.admin_password.expose(), "päss wörd");
    assert!(
        first.welcome_code.is_none(),
        "its use would replace the password"
    );
    let mut reader = store.read().await.unwrap();
    let account = accounts::first(&mut reader).await.unwrap().unwrap();
    assert_eq!(account.plan, "pro");
    assert!(
        api_keys::authenticate(&mut reader, &api_key)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_cannot_be_used_leave_the_database_empty() {
    let (store, _folder) = store().await;
    let cases = [
        (Some(""), None),
        (Some("fine"), Some("svc_short")),
        (None, Some("")),
        (
            None,
            Some("svc_pub_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        ),
    ];
    for (admin_password, api_key) in cases {
        let fixed = Bootstrap {
            admin_password: admin_password.map(Secret::new),
            api_key: api_key.map(Secret::new),
            plan: None,
        };
        let refused = bootstrap(&store, fixed, NOW).await;
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{admin_password:?} {api_key:?}: {refused:?}"
        );
        assert_eq!(count_accounts(&store).await, 0);
    }
}
