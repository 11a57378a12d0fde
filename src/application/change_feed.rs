//! Feeds the directories and caches of a node from the change log of its cluster: kinds that are followed, what is read again
//! after a change, the pause after a failure.
//!
//! A use case applies what it commits on its own node at once. The log brings the changes of all nodes, this one's too: the rows
//! that it names are read again, under the lock that the use cases of the resource hold from a commit until it is applied. So it
//! does not matter in which order both come, and what was applied already changes nothing. Rows that cannot be read stay noted
//! and are read after a pause. A service that has its database alone has no such task.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    pin::pin,
    time::Duration,
};

use sluice_store::changes::{Action, Change, Everything, EverythingFollower, Kind};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::{
    context::AppContext,
    delivery,
    error::ApiError,
    live_inputs::{notify, outputs},
    playback_token::TokenKeys,
};

/// Pause before rows are read again that could not be read.
const READ_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Rows of a kind that are noted one by one; beyond them the kind is read as a whole.
const MOST_ROWS: usize = 16_384;

/// The kinds whose rows are kept in memory.
const FOLLOWED: [Kind; 11] = [
    Kind::Account,
    Kind::User,
    Kind::Session,
    Kind::File,
    Kind::Share,
    Kind::LiveInput,
    Kind::Output,
    Kind::Stream,
    Kind::DeliveryKey,
    Kind::PlaybackKey,
    Kind::Preset,
];

/// Follows the log until `stop`; returns at once when the service is alone.
pub async fn follow(app: AppContext, stop: CancellationToken) {
    let store = &app.platform.store;
    if !store.cluster().is_solo() {
        let follower = store.follow_everything();
        run(&app, follower, stop).await;
    }
}

/// Feeds from a follower until `stop`.
pub(crate) async fn run(
    app: &AppContext,
    mut follower: EverythingFollower,
    stop: CancellationToken,
) {
    let mut stale = Stale::default();
    let mut is_failing = false;
    loop {
        if stale.is_empty() || is_failing {
            tokio::select! {
                news = follower.next() => stale.note(news),
                () = sleep(READ_AGAIN_AFTER), if is_failing => {}
                () = stop.cancelled() => return,
            }
        }
        let mut later = Stale::default();
        let failure = {
            let mut reading = pin!(stale.read_again(app));
            loop {
                tokio::select! {
                    failure = &mut reading => break failure,
                    // Taken meanwhile, so that a long read does not make this follower lag.
                    news = follower.next() => later.note(news),
                    () = stop.cancelled() => return,
                }
            }
        };
        stale.add(later);
        if let Some(error) = &failure
            && !is_failing
        {
            warn!(%error, "what other nodes changed is not read for the moment");
        }
        is_failing = failure.is_some();
    }
}

/// Rows that are to be read again, by kind.
#[derive(Debug, Default)]
struct Stale(HashMap<Kind, Rows>);

/// Rows of a kind.
#[derive(Debug, Default)]
struct Rows {
    /// Any row may have changed.
    all: bool,
    /// Accounts any of whose rows may have changed.
    accounts: BTreeSet<Uuid>,
    /// By the row's id: its account, and what happened to it.
    ids: BTreeMap<Uuid, (Uuid, Action)>,
}

static NO_ROWS: Rows = Rows {
    all: false,
    accounts: BTreeSet::new(),
    ids: BTreeMap::new(),
};

impl Rows {
    fn note(&mut self, account_id: Uuid, change: Change) {
        match change.id {
            Some(id) => self.note_row(id, account_id, change.action),
            None => {
                self.accounts.insert(account_id);
            }
        }
    }

    fn note_row(&mut self, id: Uuid, account_id: Uuid, action: Action) {
        let known = self.ids.entry(id).or_insert((account_id, action));
        known.1 = merged(known.1, action);
        if self.ids.len() > MOST_ROWS {
            self.ids.clear();
            self.all = true;
        }
    }

    fn add(&mut self, later: Self) {
        self.all |= later.all;
        self.accounts.extend(later.accounts);
        for (id, (account_id, action)) in later.ids {
            self.note_row(id, account_id, action);
        }
    }

    /// Returns whether rows are to be read that no id names.
    fn is_broad(&self) -> bool {
        self.all || !self.accounts.is_empty()
    }

    /// Accounts with rows that were there before they were changed.
    fn accounts_of_changed(&self) -> BTreeSet<Uuid> {
        let rows = self.ids.values();
        let changed = rows.filter(|(_, action)| *action != Action::Created);
        let changed = changed.map(|(account_id, _)| *account_id);
        changed.chain(self.accounts.iter().copied()).collect()
    }
}

/// Merges what happened to a row: what is deleted once may be replaced by another under its id, but is never forgotten.
fn merged(first: Action, next: Action) -> Action {
    match (first, next) {
        (Action::Deleted, _) | (_, Action::Deleted) => Action::Deleted,
        (Action::Created, _) | (_, Action::Created) => Action::Created,
        (Action::Changed, Action::Changed) => Action::Changed,
    }
}

impl Stale {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, kind: Kind) -> &Rows {
        self.0.get(&kind).unwrap_or(&NO_ROWS)
    }

    fn rows(&mut self, kind: Kind) -> &mut Rows {
        self.0.entry(kind).or_default()
    }

    fn note(&mut self, news: Everything) {
        let changes = match news {
            Everything::Changes(changes) => changes,
            Everything::Lost => {
                for kind in FOLLOWED {
                    self.rows(kind).all = true;
                }
                return;
            }
        };
        for (account_id, change) in changes {
            if FOLLOWED.contains(&change.kind) {
                self.rows(change.kind).note(account_id, change);
            }
        }
    }

    fn add(&mut self, later: Self) {
        for (kind, rows) in later.0 {
            self.rows(kind).add(rows);
        }
    }

    /// Reads the rows and applies them; keeps the kinds that could not be read, and returns why.
    async fn read_again(&mut self, app: &AppContext) -> Option<ApiError> {
        if self.is_empty() {
            return None;
        }
        self.forget_credentials(app);
        let (live, delivery, tokens, files, shares) = tokio::join!(
            self.read_live(app),
            self.read_delivery(app),
            self.read_tokens(app),
            self.compare_files(app),
            self.look_at_shares(app),
        );
        self.forget_streams(app);
        let done: [(&[Kind], Result<(), ApiError>); 6] = [
            (
                &[Kind::Account, Kind::User, Kind::Session, Kind::Stream],
                Ok(()),
            ),
            (&[Kind::LiveInput, Kind::Output], live),
            (&[Kind::DeliveryKey, Kind::Preset], delivery),
            (&[Kind::PlaybackKey], tokens),
            (&[Kind::File], files),
            (&[Kind::Share], shares),
        ];
        let mut failure = None;
        for (kinds, outcome) in done {
            match outcome {
                Ok(()) => self.0.retain(|kind, _| !kinds.contains(kind)),
                Err(error) => failure = Some(error),
            }
        }
        failure
    }

    /// Has suspensions and plans looked at, and sessions that may have ended.
    fn forget_credentials(&self, app: &AppContext) {
        let accounts = self.of(Kind::Account);
        if accounts.is_broad() || !accounts.ids.is_empty() {
            app.platform.suspensions.look_now();
        }
        for account_id in accounts.accounts_of_changed() {
            app.files.images.meter().account_changed(account_id);
        }
        let sessions = &app.playback_tokens.owner_sessions;
        for kind in [Kind::Account, Kind::User, Kind::Session] {
            let rows = self.of(kind);
            if rows.all {
                sessions.forget(None);
            }
            for account_id in rows.accounts_of_changed() {
                sessions.forget(Some(account_id));
            }
        }
    }

    /// Inputs come first: the outputs of one that is not known have no place for their status.
    async fn read_live(&self, app: &AppContext) -> Result<(), ApiError> {
        let (inputs, of_inputs) = (self.of(Kind::LiveInput), self.of(Kind::Output));
        if inputs.all {
            notify::read_all_again(&app.live, None).await?;
        } else {
            for account_id in &inputs.accounts {
                notify::read_all_again(&app.live, Some(*account_id)).await?;
            }
            for id in inputs.ids.keys() {
                notify::read_again(&app.live, *id).await?;
            }
        }
        if of_inputs.is_broad() {
            return outputs::read_all_again(&app.live).await;
        }
        for id in of_inputs.ids.keys() {
            outputs::read_again(&app.live, *id).await?;
        }
        Ok(())
    }

    async fn read_delivery(&self, app: &AppContext) -> Result<(), ApiError> {
        let (keys, presets) = (self.of(Kind::DeliveryKey), self.of(Kind::Preset));
        if keys.is_broad() || presets.is_broad() {
            return delivery::read_all_again(&app.delivery).await;
        }
        for id in keys.ids.keys() {
            delivery::read_key_again(&app.delivery, *id).await?;
        }
        for (id, (account_id, _)) in &presets.ids {
            delivery::read_preset_again(&app.delivery, *account_id, *id).await?;
        }
        Ok(())
    }

    async fn read_tokens(&self, app: &AppContext) -> Result<(), ApiError> {
        let keys = self.of(Kind::PlaybackKey);
        if keys.is_broad() {
            return TokenKeys::read_all_again(&app.playback_tokens).await;
        }
        for id in keys.ids.keys() {
            TokenKeys::read_again(&app.playback_tokens, *id).await?;
        }
        Ok(())
    }

    /// Purges images of files that are gone or are seen otherwise now.
    async fn compare_files(&self, app: &AppContext) -> Result<(), ApiError> {
        let (files, images) = (self.of(Kind::File), &app.files.images);
        if files.all {
            images.forget_files(None);
        }
        for account_id in &files.accounts {
            images.forget_files(Some(*account_id));
        }
        let mut changed = Vec::new();
        for (id, (_, action)) in &files.ids {
            match action {
                Action::Deleted => {
                    images.purge_here(*id).await;
                }
                Action::Created | Action::Changed => changed.push(*id),
            }
        }
        Ok(images.files_changed(&changed).await?)
    }

    /// Ends the requests under links that are gone. A change of a link that is there is of its counts.
    async fn look_at_shares(&self, app: &AppContext) -> Result<(), ApiError> {
        let links = self.of(Kind::Share);
        let mut actions = links.ids.values().map(|(_, action)| *action);
        if links.is_broad() || actions.any(|action| action != Action::Changed) {
            let shares = &app.shares.shares;
            shares.links_changed(&app.platform.store).await?;
        }
        Ok(())
    }

    fn forget_streams(&self, app: &AppContext) {
        let streams = self.of(Kind::Stream);
        if streams.is_broad() {
            app.video.streams.changed(None);
        } else if !streams.ids.is_empty() {
            let ids: Vec<Uuid> = streams.ids.keys().copied().collect();
            app.video.streams.changed(Some(&ids));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: Kind, id: u128, action: Action) -> (Uuid, Change) {
        let change = Change {
            kind,
            id: Some(Uuid::from_u128(id)),
            action,
        };
        (Uuid::from_u128(99), change)
    }

    #[test]
    fn changes_are_noted_by_kind_and_no_deletion_is_forgotten() {
        use Action::{Changed, Created, Deleted};
        let mut stale = Stale::default();
        stale.note(Everything::Changes(vec![
            change(Kind::File, 1, Created),
            change(Kind::File, 1, Changed),
            change(Kind::File, 2, Changed),
            change(Kind::Share, 3, Deleted),
            change(Kind::Usage, 4, Changed),
        ]));
        stale.note(Everything::Changes(vec![
            change(Kind::File, 2, Deleted),
            change(Kind::Share, 3, Created),
        ]));
        let actions = |kind| -> Vec<Action> {
            let rows = stale.of(kind).ids.values();
            rows.map(|(_, action)| *action).collect()
        };
        assert_eq!(actions(Kind::File), [Created, Deleted]);
        assert_eq!(actions(Kind::Share), [Deleted]);
        assert!(!stale.0.contains_key(&Kind::Usage));
    }

    #[test]
    fn what_is_lost_is_read_as_a_whole() {
        let mut stale = Stale::default();
        stale.note(Everything::Lost);
        assert!(FOLLOWED.iter().all(|kind| stale.of(*kind).is_broad()));
        let mut stale = Stale::default();
        let rows = (0..=MOST_ROWS as u128).map(|id| change(Kind::Stream, id, Action::Changed));
        stale.note(Everything::Changes(rows.collect()));
        let streams = stale.of(Kind::Stream);
        assert!(streams.all && streams.ids.is_empty());
    }

    #[test]
    fn an_account_with_a_lost_kind_is_among_the_changed() {
        let mut rows = Rows::default();
        let account = Uuid::from_u128(1);
        let lost = Change {
            kind: Kind::Session,
            id: None,
            action: Action::Changed,
        };
        rows.note(account, lost);
        let (other, created) = change(Kind::Session, 2, Action::Created);
        rows.note(other, created);
        assert_eq!(rows.accounts_of_changed(), BTreeSet::from([account]));
    }
}
