//! `sluice keys`: add (`--scope`, `--name`), list and revoke API keys of any account, also while the service runs.

use std::{collections::HashMap, path::Path, process::ExitCode};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use sluice_store::{
    Error as StoreError, Secret, StoreSettings,
    accounts::{self, Account},
    api_keys::{self, ApiKey, Scope},
    now_ms, write_tx,
};
use uuid::Uuid;

use super::{
    Error, block_on, load,
    records::{AccountOption, Records, day, json, table, time},
    show, shown,
};

/// Longest name of a key, in characters, as the API has it.
const MAX_NAME: usize = 120;

#[derive(Debug, Args)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// Answer with JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make an API key, which is shown once
    Add {
        #[command(flatten)]
        account: AccountOption,
        /// Scope of the key; each one includes the ones before it
        #[arg(long, value_enum, default_value_t = ScopeName::Write)]
        scope: ScopeName,
        /// By which the key is known in lists
        #[arg(long, default_value = "API key")]
        name: String,
    },
    /// Show the API keys of all accounts, or of one
    List {
        #[command(flatten)]
        account: AccountOption,
    },
    /// End an API key at once
    Revoke {
        /// The key's id, or its first characters, as `sluice keys list` shows them
        key: String,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeName {
    Read,
    Write,
    Admin,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Write => Self::Write,
            ScopeName::Admin => Self::Admin,
        }
    }
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let settings = load(settings)?.store;
    let is_json = arguments.json;
    let text = match arguments.command {
        Command::Add {
            account,
            scope,
            name,
        } => {
            let (account, key, token) = block_on(add(&settings, account, scope.into(), name))?;
            match is_json {
                true => {
                    let mut made = record(&key, &account.name);
                    made["token"] = token.expose().into();
                    json(&made)
                }
                false => format!(
                    "added {} (scope {}) to account {}\nAPI key: {}\nIt is not shown again.\n",
                    key.name,
                    key.scope.as_str(),
                    account.name,
                    token.expose()
                ),
            }
        }
        Command::List { account } => {
            let (keys, names) = block_on(list(&settings, account))?;
            let name = |key: &ApiKey| names.get(&key.account_id).cloned().unwrap_or_default();
            match is_json {
                true => json(&keys.iter().map(|key| record(key, &name(key))).collect()),
                false => list_table(&keys, name),
            }
        }
        Command::Revoke { key } => {
            let (account, key) = block_on(revoke(&settings, key))?;
            match is_json {
                true => json(&record(&key, &account.name)),
                false => format!(
                    "revoked {} ({}…) of account {}\n",
                    key.name, key.key_prefix, account.name
                ),
            }
        }
    };
    show(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn add(
    settings: &StoreSettings,
    account: AccountOption,
    scope: Scope,
    name: String,
) -> Result<(Account, ApiKey, Secret), Error> {
    let name = checked_name(&name)?.to_owned();
    write_tx!(Records(settings), |tx| {
        let account = account.find(tx).await?;
        let (key, token) = api_keys::create(tx, account.id, &name, scope, now_ms()).await?;
        Ok((account, key, token))
    })
}

fn checked_name(name: &str) -> Result<&str, Error> {
    let name = name.trim();
    let is_usable =
        (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    match is_usable {
        true => Ok(name),
        false => Err(Error::Rejected(format!(
            "--name: expected 1 to {MAX_NAME} characters without control characters"
        ))),
    }
}

/// The keys that are not revoked, and the names of all accounts.
async fn list(
    settings: &StoreSettings,
    account: AccountOption,
) -> Result<(Vec<ApiKey>, HashMap<Uuid, String>), Error> {
    let listed = Records(settings).read(async |db| {
        let account = account.find_given(db).await?;
        let keys = api_keys::all(db, account.map(|account| account.id)).await?;
        let accounts = accounts::list(db).await?.into_iter();
        let names = accounts.map(|summary| (summary.account.id, summary.account.name));
        Ok((keys, names.collect()))
    });
    listed.await
}

async fn revoke(settings: &StoreSettings, named: String) -> Result<(Account, ApiKey), Error> {
    write_tx!(Records(settings), |tx| {
        let key = find(api_keys::all(tx, None).await?, &named)?;
        let key = api_keys::revoke(tx, key.account_id, key.id, now_ms()).await?;
        Ok((accounts::get(tx, key.account_id).await?, key))
    })
}

/// The one key of this id or of these first characters.
fn find(keys: Vec<ApiKey>, named: &str) -> Result<ApiKey, StoreError> {
    let id = Uuid::try_parse(named).ok();
    let named = named.trim_end_matches('…');
    let is_meant = |key: &ApiKey| match id {
        Some(id) => key.id == id,
        None => key.key_prefix == named,
    };
    let mut found: Vec<ApiKey> = keys.into_iter().filter(is_meant).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(StoreError::Invalid(format!(
            "there is no API key `{}`: `sluice keys list` shows all; give the id or the first characters as they are shown there",
            // A whole key may have been pasted, which is a secret.
            shown(named, 12)
        ))),
        several => Err(StoreError::Invalid(format!(
            "{several} API keys begin like this: give the id, which `sluice keys list` shows"
        ))),
    }
}

fn list_table(keys: &[ApiKey], account_name: impl Fn(&ApiKey) -> String) -> String {
    let row = |key: &ApiKey| {
        [
            key.name.clone(),
            key.scope.as_str().to_owned(),
            format!("{}…", key.key_prefix),
            account_name(key),
            day(key.created_at),
            key.last_used_at.map_or_else(|| "never".to_owned(), day),
            key.id.to_string(),
        ]
    };
    let rows: Vec<_> = keys.iter().map(row).collect();
    table(
        [
            "name",
            "scope",
            "key",
            "account",
            "since",
            "last used",
            "id",
        ],
        &rows,
    )
}

fn record(key: &ApiKey, account_name: &str) -> serde_json::Value {
    json!({
        "id": key.id,
        "name": key.name,
        "scope": key.scope.as_str(),
        "keyPrefix": key.key_prefix,
        "accountId": key.account_id,
        "accountName": account_name,
        "createdAt": time(key.created_at),
        "lastUsedAt": key.last_used_at.and_then(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(prefix: &str) -> ApiKey {
        ApiKey {
            id: Uuid::now_v7(),
            account_id: Uuid::nil(),
            name: "key".to_owned(),
            scope: Scope::Read,
            key_hash: String::new(),
            key_prefix: prefix.to_owned(),
            created_at: 0,
            last_used_at: None,
            revoked_at: None,
        }
    }

    #[test]
    fn a_key_is_named_by_its_id_or_its_first_characters() {
        let keys = [
            key("svc_aaaaaaaa"),
            key("svc_bbbbbbbb"),
            key("svc_bbbbbbbb"),
        ];
        let found = |named: &str| find(keys.to_vec(), named).map(|key| key.id);
        assert_eq!(found("svc_aaaaaaaa").unwrap(), keys[0].id);
        assert_eq!(found("svc_aaaaaaaa…").unwrap(), keys[0].id);
        assert_eq!(found(&keys[2].id.to_string()).unwrap(), keys[2].id);
        let whole = "svc_aaaaaaaaSECRETSECRET";
        for (named, words) in [
            ("svc_bbbbbbbb", "2 API keys"),
            ("svc_", "no API key"),
            (whole, "no API key"),
        ] {
            let rejection = found(named).unwrap_err().to_string();
            assert!(rejection.contains(words), "{rejection}");
            assert!(!rejection.contains("SECRET"), "{rejection}");
        }
    }
}
