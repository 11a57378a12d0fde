//! `sluice users`: add, list, `reset-password`, `set-role`, `welcome` links for users of the dashboard.
//!
//! Everything works beside a running service, which sees a change with its next look at the database.

use std::{
    collections::HashMap,
    io::{self, BufRead},
    path::Path,
    process::ExitCode,
};

use clap::{Args, Subcommand, ValueEnum};
use sluice_store::{
    Connection, Secret, StoreSettings, accounts,
    credentials::{self, PasswordHash},
    now_ms,
    users::{self, NewUser, Role, User},
    welcome_codes, write_tx,
};
use uuid::Uuid;

use super::{
    Error, block_on, load,
    records::{self, AccountOption, Records, day},
    service::browser_url,
    show, shown,
};
use crate::application::members;

/// Longest part of a name that an error shows.
const MAX_NAME_CHARS: usize = 60;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a user with a password that is shown once
    Add {
        name: String,
        /// Role of the user in the account
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
        /// Let the user see the whole installation
        #[arg(long)]
        operator: bool,
        #[command(flatten)]
        account: AccountOption,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Set another password and end the user's sessions
    ResetPassword {
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Give a user another role; sessions follow at once
    SetRole {
        name: String,
        #[arg(value_enum)]
        role: RoleName,
        /// Let the user see the whole installation, or not [default: as before]
        #[arg(long, value_name = "YES|NO", value_enum)]
        operator: Option<YesOrNo>,
    },
    /// Make a link with which a user chooses a password, once and within 24 hours
    ///
    /// The password and the sessions of the user end when the link is used.
    Welcome { name: String },
    /// Show all users
    List,
}

#[derive(Debug, Args)]
struct PasswordSource {
    /// Take the password from the first line of standard input instead of making one up
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    /// Look at everything but keys
    Viewer,
    /// Change everything but keys
    Member,
    /// Make and revoke keys, too
    Admin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum YesOrNo {
    Yes,
    No,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Admin => Self::Admin,
            RoleName::Member => Self::Member,
        }
    }
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let config = load(settings)?;
    let settings = config.store.clone();
    let text = match arguments.command {
        Command::List => {
            let (users, accounts) = block_on(list(&settings))?;
            table(&users, &accounts)
        }
        Command::Add {
            name,
            role,
            operator,
            account,
            password,
        } => {
            let password = Password::obtain(&password)?;
            let rights = Rights {
                role: role.into(),
                is_operator: operator,
            };
            let hash = password.hash()?;
            let (user, account) = block_on(add(&settings, account, name, rights, hash))?;
            format!(
                "added {} ({}) to account {account}\n{}",
                user.username,
                rights_of(&user),
                password.shown_once()
            )
        }
        Command::SetRole {
            name,
            role,
            operator,
        } => {
            let is_operator = operator.map(|operator| operator == YesOrNo::Yes);
            let user = block_on(set_role(&settings, name, role.into(), is_operator))?;
            format!("{} is {} now\n", user.username, rights_of(&user))
        }
        Command::Welcome { name } => {
            let (username, code) = block_on(welcome(&settings, name))?;
            format!(
                "{username} chooses a password at this link, once and within 24 hours:\n{}\n",
                members::welcome_url(&browser_url(&config), &code)
            )
        }
        Command::ResetPassword { name, password } => {
            let password = Password::obtain(&password)?;
            let username = block_on(reset(&settings, name, password.hash()?))?;
            format!(
                "{username} has another password, and all its sessions have ended\n{}",
                password.shown_once()
            )
        }
    };
    show(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Rights of a user.
#[derive(Clone, Copy)]
struct Rights {
    role: Role,
    is_operator: bool,
}

fn rights_of(user: &User) -> String {
    match user.is_operator {
        true => format!("{}, operator", user.role.as_str()),
        false => user.role.as_str().to_owned(),
    }
}

/// The password of the user at hand, and whether its owner knows it already.
struct Password {
    secret: Secret,
    made_up: bool,
}

impl Password {
    fn obtain(source: &PasswordSource) -> Result<Self, Error> {
        if !source.password_stdin {
            return Ok(Self {
                secret: credentials::password(),
                made_up: true,
            });
        }
        let mut line = String::new();
        io::stdin()
            .lock()
            .read_line(&mut line)
            .map_err(|source| Error::Io {
                action: "cannot read the password from standard input",
                source,
            })?;
        let secret = Secret::new(line.trim_end_matches(['\r', '\n']));
        Ok(Self {
            secret,
            made_up: false,
        })
    }

    fn hash(&self) -> Result<PasswordHash, Error> {
        Ok(credentials::hash_password(&self.secret)?)
    }

    /// Formats a password that was made up; nothing when its owner typed it.
    fn shown_once(&self) -> String {
        if self.made_up {
            format!(
                "password: {}\nIt is not shown again.\n",
                self.secret.expose()
            )
        } else {
            String::new()
        }
    }
}

/// All users, and the names of all accounts.
async fn list(settings: &StoreSettings) -> Result<(Vec<User>, HashMap<Uuid, String>), Error> {
    let listed = Records(settings).read(async |db| {
        let users = users::list(db).await?;
        let accounts = accounts::list(db).await?.into_iter();
        let names = accounts.map(|summary| (summary.account.id, summary.account.name));
        Ok((users, names.collect()))
    });
    listed.await
}

/// Gives the user and the name of its account.
async fn add(
    settings: &StoreSettings,
    account: AccountOption,
    name: String,
    rights: Rights,
    password_hash: PasswordHash,
) -> Result<(User, String), Error> {
    write_tx!(Records(settings), |tx| {
        let account = account.find(tx).await?;
        let new = NewUser {
            account_id: account.id,
            username: name,
            role: rights.role,
            is_operator: rights.is_operator,
            password_hash,
        };
        Ok((users::create(tx, new, now_ms()).await?, account.name))
    })
}

/// Gives the name as it is stored.
async fn reset(
    settings: &StoreSettings,
    name: String,
    password_hash: PasswordHash,
) -> Result<String, Error> {
    write_tx!(Records(settings), |tx| {
        let user = find(tx, &name).await?;
        users::set_password(tx, user.id, password_hash, now_ms()).await?;
        Ok(user.username)
    })
}

async fn set_role(
    settings: &StoreSettings,
    name: String,
    role: Role,
    is_operator: Option<bool>,
) -> Result<User, Error> {
    write_tx!(Records(settings), |tx| {
        let user = find(tx, &name).await?;
        users::set_role(tx, user.id, role, is_operator, now_ms()).await
    })
}

/// Gives the name as it is stored, and the code of the link.
async fn welcome(settings: &StoreSettings, name: String) -> Result<(String, Secret), Error> {
    write_tx!(Records(settings), |tx| {
        let user = find(tx, &name).await?;
        let code = welcome_codes::create(tx, user.id, now_ms()).await?;
        Ok((user.username, code))
    })
}

/// Finds a user; `Error::Invalid` says where the names are.
async fn find(db: &mut impl Connection, name: &str) -> Result<User, sluice_store::Error> {
    users::by_username(db, name).await?.ok_or_else(|| {
        sluice_store::Error::Invalid(format!(
            "there is no user `{}`: `sluice users list` shows all",
            shown(name, MAX_NAME_CHARS)
        ))
    })
}

/// Formats a line for each user under a heading.
fn table(users: &[User], accounts: &HashMap<Uuid, String>) -> String {
    let row = |user: &User| {
        [
            user.username.clone(),
            rights_of(user),
            day(user.created_at),
            accounts.get(&user.account_id).cloned().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = users.iter().map(row).collect();
    records::table(["name", "role", "since", "account"], &rows)
}

#[cfg(test)]
mod tests {
    use sluice_store::{Bootstrap, Store, bootstrap};

    use super::*;

    fn hash(password: &str) -> PasswordHash {
        credentials::hash_password(&Secret::new(password)).unwrap()
    }

    async fn verify(settings: &StoreSettings, name: &str, password: &str) -> bool {
        let (users, _) = list(settings).await.unwrap();
        let user = users.iter().find(|user| user.username == name).unwrap();
        credentials::verify_password(&Secret::new(password), &user.password_hash)
    }

    #[tokio::test]
    async fn users_are_changed_and_listed_with_the_service_or_without() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings {
            data_dir: folder.path().join("data"),
            ..StoreSettings::default()
        };
        let rejected = list(&settings).await.unwrap_err();
        assert!(
            rejected.to_string().contains("start the service once"),
            "{rejected}"
        );
        assert!(!settings.data_dir.exists(), "looking makes no folder");

        let service = Store::open(&settings).await.unwrap();
        bootstrap(&service, Bootstrap::default(), now_ms())
            .await
            .unwrap();
        assert_eq!(list(&settings).await.unwrap().0.len(), 1);
        let add = async |name: &str, password| {
            let account = AccountOption::default();
            let rights = Rights {
                role: Role::Member,
                is_operator: false,
            };
            add(&settings, account, name.into(), rights, hash(password)).await
        };
        add("beside", "x").await.unwrap();
        let seen = users::list(&mut service.read().await.unwrap()).await;
        assert_eq!(seen.unwrap().len(), 2, "the service sees the change");
        service.close().await;

        add("Bo", "first").await.unwrap();
        assert!(add("bo", "x").await.is_err(), "a name twice");
        assert!(verify(&settings, "bo", "first").await);
        assert_eq!(
            reset(&settings, "BO".into(), hash("second")).await.unwrap(),
            "bo"
        );
        assert!(verify(&settings, "bo", "second").await);
        assert!(reset(&settings, "unknown".into(), hash("x")).await.is_err());

        let (name, code) = welcome(&settings, "Beside".into()).await.unwrap();
        assert_eq!((name.as_str(), code.expose().len()), ("beside", 24));
        let viewer = set_role(&settings, "beside".into(), Role::Viewer, Some(true)).await;
        assert_eq!(rights_of(&viewer.unwrap()), "viewer, operator");
        let unknown = set_role(&settings, "x\u{7}".into(), Role::Viewer, None).await;
        let unknown = unknown.unwrap_err().to_string();
        assert!(unknown.contains("`sluice users list`"), "{unknown}");

        let (users, accounts) = list(&settings).await.unwrap();
        let shown = table(&users, &accounts);
        assert!(
            shown.starts_with(
                "name    role              since       account\nadmin   admin, operator   20"
            ),
            "{shown}"
        );
    }
}
