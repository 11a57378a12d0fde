//! The authenticated caller and its scope (`read`, `write`, `admin`, operator); 403 `insufficient_scope`. A function that takes
//! `Caller<Write>` cannot be called without a credential of that scope.

use std::{marker::PhantomData, sync::Arc};

use sluice_store::{
    Connection, Secret, accounts,
    api_keys::{self, Scope},
    audit::Actor,
    now_ms,
    sessions::{self, SignInSession},
    users::User,
};
use uuid::Uuid;

use crate::{
    application::{changes::permits::CredentialId, context::Platform, error::ApiError},
    config::Plan,
};

/// Dashboard session, found by its cookie.
#[derive(Debug)]
pub struct SignedIn {
    pub session: SignInSession,
    pub user: User,
    /// The cookie's value.
    pub token: Secret,
}

/// An authenticated caller.
#[derive(Debug)]
pub struct Identity {
    pub account_id: Uuid,
    /// Names a plan of the configuration.
    pub plan: String,
    pub is_suspended: bool,
    pub scope: Scope,
    pub credential: Credential,
}

/// The credential that the caller showed.
#[derive(Debug)]
pub enum Credential {
    /// The id of an API key.
    Key(Uuid),
    Session(Box<SignedIn>),
}

impl Identity {
    pub(crate) fn session(&self) -> Option<&SignedIn> {
        match &self.credential {
            Credential::Key(_) => None,
            Credential::Session(signed_in) => Some(signed_in),
        }
    }

    /// Returns the author of a change, for the audit log.
    pub(crate) fn actor(&self) -> Actor {
        match &self.credential {
            Credential::Key(id) => Actor::Key(*id),
            Credential::Session(signed_in) => Actor::User(signed_in.user.id),
        }
    }

    /// Returns whether each of its changes is noted in the audit log: those of a person, and of a key that may do everything. What
    /// programs with less do all day long is in the records of their resources.
    pub(crate) fn is_audited(&self) -> bool {
        self.session().is_some() || self.scope == Scope::Admin
    }

    /// 403 when its scope does not reach `needed`.
    pub(crate) fn reach(&self, needed: Scope) -> Result<(), ApiError> {
        if self.scope >= needed {
            return Ok(());
        }
        let is_session = self.session().is_some();
        Err(ApiError::InsufficientScope(match needed {
            Scope::Admin if is_session => "this needs the role admin: ask an admin of this account",
            Scope::Admin => "this needs a key with scope admin",
            Scope::Write | Scope::Read if is_session => {
                "the role viewer may only look: this needs the role member or admin"
            }
            Scope::Write | Scope::Read => {
                "this key may only read: a key with scope write is needed"
            }
        }))
    }

    /// 403 when it may not see the whole installation: a session needs an operator, a key the scope `admin`.
    pub(crate) fn operate(&self) -> Result<(), ApiError> {
        match self.session() {
            None => self.reach(Scope::Admin),
            Some(signed_in) if signed_in.user.is_operator => Ok(()),
            Some(_) => Err(ApiError::InsufficientScope(
                "this shows the whole installation: only its operators may see it",
            )),
        }
    }
}

/// Result of the admission middleware.
#[derive(Clone, Debug)]
pub enum Authentication {
    Known(Arc<Identity>),
    /// No credential came with the request.
    Missing,
    /// A credential that is unknown, revoked, expired or of another kind.
    Wrong,
}

/// Marker type: needs a credential with scope read.
#[derive(Debug)]
pub struct Read;

/// Marker type: needs a credential with scope write.
#[derive(Debug)]
pub struct Write;

/// Marker type: needs a credential with scope admin.
#[derive(Debug)]
pub struct Admin;

/// The scope of a marker type.
pub trait Needs {
    const SCOPE: Scope;
}

impl Needs for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Needs for Write {
    const SCOPE: Scope = Scope::Write;
}

impl Needs for Admin {
    const SCOPE: Scope = Scope::Admin;
}

/// A caller whose credential reaches the scope `S`.
#[derive(Debug)]
pub struct Caller<S> {
    identity: Arc<Identity>,
    scope: PhantomData<S>,
}

impl<S: Needs> Caller<S> {
    /// Makes a caller for code that reaches handlers otherwise than by a route; 403 when the scope does not suffice.
    pub(crate) fn of(identity: &Arc<Identity>) -> Result<Self, ApiError> {
        identity.reach(S::SCOPE)?;
        Ok(Self {
            identity: identity.clone(),
            scope: PhantomData,
        })
    }
}

impl<S> Clone for Caller<S> {
    fn clone(&self) -> Self {
        Self {
            identity: self.identity.clone(),
            scope: PhantomData,
        }
    }
}

impl<S> Caller<S> {
    pub fn account_id(&self) -> Uuid {
        self.identity.account_id
    }

    /// Returns the author of a change, for the audit log.
    pub(crate) fn actor(&self) -> Actor {
        self.identity.actor()
    }

    pub(crate) fn credential_id(&self) -> CredentialId {
        match &self.identity.credential {
            Credential::Key(id) => CredentialId::Key(*id),
            Credential::Session(signed_in) => {
                CredentialId::Session(signed_in.session.token_hash.clone())
            }
        }
    }

    /// Limits of the account's plan.
    pub fn plan(&self, platform: &Platform) -> Plan {
        platform.config.plan(&self.identity.plan)
    }

    /// Returns the session, when a person at the dashboard asks.
    pub(crate) fn signed_in(&self) -> Option<&SignedIn> {
        self.identity.session()
    }

    /// Returns whether it is a person at the dashboard rather than a program with an API key.
    pub fn is_session(&self) -> bool {
        self.identity.session().is_some()
    }

    /// Returns whether the credential is still valid: for answers that take long.
    pub async fn is_still_admitted(
        &self,
        db: &mut impl Connection,
    ) -> Result<bool, sluice_store::Error> {
        if accounts::get(db, self.account_id()).await?.is_suspended() {
            return Ok(false);
        }
        Ok(match &self.identity.credential {
            Credential::Key(id) => api_keys::is_in_force(db, *id).await?,
            Credential::Session(signed_in) => {
                let token = signed_in.token.expose();
                let found = sessions::authenticate(db, token, now_ms()).await?;
                // With other rights the client has to ask again.
                let known = &signed_in.user;
                found.is_some_and(|(_, user)| {
                    (user.role, user.is_operator) == (known.role, known.is_operator)
                })
            }
        })
    }

    /// The name of the account's plan.
    pub fn plan_name(&self) -> &str {
        &self.identity.plan
    }
}
