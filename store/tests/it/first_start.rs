//! The first start of an empty database.

use sluice_store::{
    Bootstrap, Error, Page, Secret, accounts, api_keys, bootstrap, credentials, live_inputs, users,
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
        (user.username.as_str(), user.role),
        ("admin", users::Role::Admin)
    );
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
    for secret in [&first.admin_password, &first.api_key, &first.stream_key] {
        assert!(!shown.contains(secret.expose()), "{shown}");
    }
    drop(reader);
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
async fn the_operator_can_fix_the_first_credentials() {
    let (store, _folder) = store().await;
    let api_key = format!("svc_{}", "A1b".repeat(20).split_at(43).0);
    let fixed = Bootstrap {
        admin_password: Some(Secret::new("päss wörd")),
        api_key: Some(Secret::new(&api_key)),
    };
    let first = bootstrap(&store, fixed, NOW).await.unwrap().unwrap();
    assert_eq!(first.admin_password.expose(), "päss wörd");
    let mut reader = store.read().await.unwrap();
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
        };
        let refused = bootstrap(&store, fixed, NOW).await;
        assert!(
            matches!(refused, Err(Error::Invalid(_))),
            "{admin_password:?} {api_key:?}: {refused:?}"
        );
        assert_eq!(count_accounts(&store).await, 0);
    }
}
