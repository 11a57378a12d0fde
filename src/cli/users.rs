//! `sluice users`: who may sign in to the dashboard.
//!
//! Everything works beside a running service, which sees a change with its next look at the database.

use std::{
    io::{self, BufRead},
    path::Path,
    process::ExitCode,
};

use clap::{Args, Subcommand, ValueEnum};
use sluice_store::{
    Secret, Store, StoreSettings, accounts,
    credentials::{self, PasswordHash},
    now_ms,
    users::{self, NewUser, Role, User},
};

use super::{Error, block_on, load, open_to_read, show};

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
        #[arg(long, value_enum, default_value_t = RoleName::Member)]
        role: RoleName,
        #[command(flatten)]
        password: PasswordSource,
    },
    /// Set another password and end the user's sessions
    ResetPassword {
        name: String,
        #[command(flatten)]
        password: PasswordSource,
    },
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
    Admin,
    Member,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Admin => Self::Admin,
            RoleName::Member => Self::Member,
        }
    }
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let settings = load(settings)?.store;
    let text = match arguments.command {
        Command::List => table(&block_on(list(&settings))?),
        Command::Add {
            name,
            role,
            password,
        } => {
            let password = Password::obtain(&password)?;
            let user = block_on(add(&settings, name, role.into(), password.hash()?))?;
            format!(
                "added {} ({})\n{}",
                user.username,
                user.role.as_str(),
                password.shown_once()
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

    /// Nothing when its owner typed it.
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

async fn list(settings: &StoreSettings) -> Result<Vec<User>, Error> {
    let store = open_to_read(&settings.data_dir).await?;
    let users = users::list(&mut store.read().await?).await;
    store.close().await;
    Ok(users?)
}

async fn add(
    settings: &StoreSettings,
    name: String,
    role: Role,
    password_hash: PasswordHash,
) -> Result<User, Error> {
    let store = open_to_change(settings).await?;
    let added = store
        .write(move |tx| {
            Box::pin(async move {
                let account = accounts::first(tx)
                    .await?
                    .ok_or(sluice_store::Error::NotFound("account"))?;
                let new = NewUser {
                    account_id: account.id,
                    username: name,
                    role,
                    password_hash,
                };
                users::create(tx, new, now_ms()).await
            })
        })
        .await;
    store.close().await;
    Ok(added?)
}

/// Gives the name as it is stored.
async fn reset(
    settings: &StoreSettings,
    name: String,
    password_hash: PasswordHash,
) -> Result<String, Error> {
    let store = open_to_change(settings).await?;
    let changed = store
        .write(move |tx| {
            Box::pin(async move {
                let user = users::by_username(tx, &name)
                    .await?
                    .ok_or(sluice_store::Error::NotFound("user"))?;
                users::set_password(tx, user.id, password_hash, now_ms()).await?;
                Ok(user.username)
            })
        })
        .await;
    store.close().await;
    Ok(changed?)
}

/// Opens the database that is there; a first one is the service's to make, with its first credentials.
async fn open_to_change(settings: &StoreSettings) -> Result<Store, Error> {
    open_to_read(&settings.data_dir).await?.close().await;
    Ok(Store::open_beside(settings).await?)
}

/// One line for each user under a heading.
fn table(users: &[User]) -> String {
    let width = users
        .iter()
        .map(|user| user.username.len())
        .chain(["name".len()])
        .max()
        .unwrap_or_default();
    let mut text = format!("{:width$}  role    since\n", "name");
    for user in users {
        let since = jiff::Timestamp::from_millisecond(user.created_at).map_or_else(
            |_| "unknown".to_owned(),
            |at| at.strftime("%Y-%m-%d").to_string(),
        );
        text += &format!(
            "{:width$}  {:6}  {since}\n",
            user.username,
            user.role.as_str()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use sluice_store::{Bootstrap, bootstrap};

    use super::*;

    fn hash(password: &str) -> PasswordHash {
        credentials::hash_password(&Secret::new(password)).unwrap()
    }

    async fn verify(settings: &StoreSettings, name: &str, password: &str) -> bool {
        let users = list(settings).await.unwrap();
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
        let refused = list(&settings).await.unwrap_err();
        assert!(
            refused.to_string().contains("start the service once"),
            "{refused}"
        );
        assert!(!settings.data_dir.exists(), "looking makes no folder");

        let service = Store::open(&settings).await.unwrap();
        bootstrap(&service, Bootstrap::default(), now_ms())
            .await
            .unwrap();
        assert_eq!(list(&settings).await.unwrap().len(), 1);
        add(&settings, "beside".into(), Role::Member, hash("x"))
            .await
            .unwrap();
        let seen = users::list(&mut service.read().await.unwrap()).await;
        assert_eq!(seen.unwrap().len(), 2, "the service sees the change");
        service.close().await;

        add(&settings, "Bo".into(), Role::Member, hash("first"))
            .await
            .unwrap();
        assert!(
            add(&settings, "bo".into(), Role::Member, hash("x"))
                .await
                .is_err(),
            "a name twice"
        );
        assert!(verify(&settings, "bo", "first").await);
        assert_eq!(
            reset(&settings, "BO".into(), hash("second")).await.unwrap(),
            "bo"
        );
        assert!(verify(&settings, "bo", "second").await);
        assert!(reset(&settings, "nobody".into(), hash("x")).await.is_err());

        let shown = table(&list(&settings).await.unwrap());
        assert!(
            shown.starts_with("name    role    since\nadmin   admin   20"),
            "{shown}"
        );
    }
}
