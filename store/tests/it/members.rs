//! Invitations, the last admin and operator, when users were last seen.

use sluice_store::{
    Error, Secret, Store,
    credentials::{self, PasswordHash},
    invitations::{self, Invitation, Invitee, NewInvitation},
    sessions::{self, NewSession},
    users::{self, NewUser, Role, User},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, store};

const HOUR: i64 = 60 * 60 * 1000;
const WEEK: i64 = 7 * 24 * HOUR;

fn a_hash() -> PasswordHash {
    credentials::hash_password(&Secret::new("secret")).unwrap()
}

fn new_invitation(account_id: Uuid, role: Role) -> NewInvitation {
    NewInvitation {
        account_id,
        role,
        note: Some("Ann".into()),
        created_by: "admin".into(),
        created_by_user: None,
        lifetime_ms: HOUR,
    }
}

async fn invite(store: &Store, account_id: Uuid, most: u32) -> Result<(Invitation, Secret), Error> {
    let new = new_invitation(account_id, Role::Viewer);
    store
        .write(move |tx| Box::pin(invitations::create(tx, new, most, NOW)))
        .await
}

async fn redeem(
    store: &Store,
    code: &Secret,
    username: &str,
    most: u32,
    now: i64,
) -> Result<Option<(Invitation, User)>, Error> {
    let (code, password_hash) = (code.clone(), a_hash());
    let username = username.to_owned();
    store
        .write(move |tx| {
            Box::pin(async move {
                let invitee = Invitee {
                    username,
                    password_hash,
                };
                invitations::redeem(tx, &code, invitee, most, now).await
            })
        })
        .await
}

async fn add_user(store: &Store, account_id: Uuid, name: &str, role: Role, operator: bool) -> User {
    let new = NewUser {
        account_id,
        username: name.into(),
        role,
        is_operator: operator,
        password_hash: a_hash(),
    };
    let made = store
        .write(move |tx| Box::pin(users::create(tx, new, NOW)))
        .await;
    made.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_used_once_and_in_time() {
    let (store, _folder) = store().await;
    let account = add_account(&store, "here").await.unwrap();
    let other = add_account(&store, "there").await.unwrap();
    let (made, code) = invite(&store, account, 2).await.unwrap();
    let typed = Secret::new(code.expose().to_lowercase().replace('-', " "));
    let found = async |code: &Secret, now| {
        let mut db = store.read().await.unwrap();
        invitations::of_code(&mut db, code, now).await.unwrap()
    };
    assert_eq!(found(&typed, NOW).await.as_ref(), Some(&made));
    assert_eq!(found(&code, NOW + HOUR).await, None, "expired");
    assert_eq!(found(&Secret::new("nonsense"), NOW).await, None);

    add_user(&store, other, "taken", Role::Member, false).await;
    let taken = redeem(&store, &code, "taken", 10, NOW).await;
    assert!(matches!(taken, Err(Error::Conflict(_))), "{taken:?}");
    let full = redeem(&store, &code, "ann", 0, NOW).await;
    assert!(matches!(full, Err(Error::Conflict(_))), "{full:?}");
    let (_, user) = redeem(&store, &code, "Ann", 10, NOW)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (
            user.account_id,
            &*user.username,
            user.role,
            user.is_operator
        ),
        (account, "ann", Role::Viewer, false)
    );
    assert!(
        redeem(&store, &code, "bob", 10, NOW)
            .await
            .unwrap()
            .is_none()
    );

    let mut db = store.read().await.unwrap();
    let listed = invitations::list(&mut db, account).await.unwrap();
    assert_eq!(
        (listed[0].used_at, listed[0].used_by.as_deref()),
        (Some(NOW), Some("ann"))
    );
    assert!(invitations::list(&mut db, other).await.unwrap().is_empty());
    drop(db);

    // A used one does not count.
    invite(&store, account, 2).await.unwrap();
    let (second, _) = invite(&store, account, 2).await.unwrap();
    let third = invite(&store, account, 2).await;
    assert!(matches!(third, Err(Error::Conflict(_))), "{third:?}");
    let revoke = async |account, id| {
        store
            .write(move |tx| Box::pin(invitations::revoke(tx, account, id)))
            .await
    };
    for (account, id) in [(other, second.id), (account, made.id)] {
        let rejected = revoke(account, id).await;
        assert!(matches!(rejected, Err(Error::NotFound(_))), "{rejected:?}");
    }
    revoke(account, second.id).await.unwrap();
    invite(&store, account, 2).await.unwrap();

    store.sweep(NOW + HOUR + WEEK - 1).await.unwrap();
    let count = async || {
        let mut db = store.read().await.unwrap();
        invitations::list(&mut db, account).await.unwrap().len()
    };
    assert_eq!(count().await, 3, "listed for a week after their expiry");
    store.sweep(NOW + HOUR + WEEK).await.unwrap();
    assert_eq!(count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_keeps_an_admin_and_the_installation_an_operator() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let admin = add_user(&store, here, "admin", Role::Admin, true).await;
    // An admin of another account does not help, an operator of one does.
    let stranger = add_user(&store, there, "stranger", Role::Admin, false).await;
    let check = async |user: &User, kept| {
        let mut db = store.read().await.unwrap();
        users::check_last(&mut db, user, kept).await.is_ok()
    };
    for (kept, allowed) in [
        (None, false),
        (Some((Role::Member, true)), false),
        (Some((Role::Admin, false)), false),
        (Some((Role::Admin, true)), true),
    ] {
        assert_eq!(check(&admin, kept).await, allowed, "{kept:?}");
    }
    let second = add_user(&store, here, "second", Role::Admin, false).await;
    assert!(check(&admin, Some((Role::Member, true))).await);
    assert!(!check(&admin, None).await, "the last operator");
    assert!(check(&second, None).await);
    assert!(!check(&stranger, None).await);
    add_user(&store, there, "ops", Role::Viewer, true).await;
    assert!(check(&admin, None).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_an_account_know_when_they_were_last_seen() {
    let (store, _folder) = store().await;
    let here = add_account(&store, "here").await.unwrap();
    let there = add_account(&store, "there").await.unwrap();
    let ann = add_user(&store, here, "ann", Role::Member, false).await;
    add_user(&store, there, "bob", Role::Member, false).await;
    assert_eq!(ann.last_seen_at, None);
    let new = NewSession {
        user_id: ann.id,
        lifetime_ms: HOUR,
        network: None,
        user_agent: None,
    };
    let seen = async || {
        let mut db = store.read().await.unwrap();
        let users = users::list_of_account(&mut db, here, 10).await.unwrap();
        assert_eq!(users.len(), 1);
        users[0].last_seen_at
    };
    let (session, _) = store
        .write(move |tx| Box::pin(sessions::create(tx, new, NOW)))
        .await
        .unwrap();
    assert_eq!(seen().await, Some(NOW));
    store
        .write(move |tx| Box::pin(sessions::touch(tx, session.id, NOW + HOUR)))
        .await
        .unwrap();
    store
        .write(move |tx| Box::pin(sessions::end(tx, ann.id, session.id)))
        .await
        .unwrap();
    assert_eq!(
        seen().await,
        Some(NOW + HOUR),
        "also once the session is over"
    );
    let mut db = store.read().await.unwrap();
    let strange = users::of_account(&mut db, there, ann.id).await;
    assert!(matches!(strange, Err(Error::NotFound("user"))));
}
