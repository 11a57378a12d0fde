//! `sluice accounts`: list, create, `set-plan`, `suspend` and `resume` accounts.
//!
//! Everything works beside a running service. Its API follows at once; see [`crate::application::suspension`] for the rest.

use std::{path::Path, process::ExitCode};

use clap::{Args, Subcommand};
use serde_json::json;
use sluice_store::{
    StoreSettings, accounts,
    accounts::{Account, Summary},
    now_ms, write_tx,
};

use super::{
    Error, block_on, load,
    records::{Records, day, find_account, json, table, time},
    show,
};
use crate::config::Config;

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
    /// Show all accounts
    List,
    /// Make an account; `sluice users add` and `sluice keys add` give access to it
    Create {
        name: String,
        /// A plan of the settings [default: account.plan]
        #[arg(long)]
        plan: Option<String>,
    },
    /// Put an account on another plan
    SetPlan {
        /// The account's name or id
        account: String,
        /// A plan of the settings
        plan: String,
    },
    /// Reject an account's requests, encoders, viewers and image deliveries; nothing of it is deleted
    Suspend {
        /// The account's name or id
        account: String,
    },
    /// Put a suspended account in force again
    Resume {
        /// The account's name or id
        account: String,
    },
}

pub(super) fn run(arguments: Arguments, settings: Option<&Path>) -> Result<ExitCode, Error> {
    let config = load(settings)?;
    let is_json = arguments.json;
    let text = match arguments.command {
        Command::List => {
            let accounts = block_on(list(&config.store))?;
            match is_json {
                true => json(&accounts.iter().map(summary_record).collect()),
                false => list_table(&accounts, &config),
            }
        }
        Command::Create { name, plan } => {
            let plan = plan.unwrap_or_else(|| config.account.plan.clone());
            config.check_plan(&plan).map_err(Error::Rejected)?;
            let account = block_on(create(&config.store, name, plan))?;
            let said = format!(
                "made account {} (plan {}, id {})\n\
                 give access to it: sluice users add NAME --account {}, sluice keys add --account {}\n",
                account.name, account.plan, account.id, account.id, account.id
            );
            answer(&account, is_json, said)
        }
        Command::SetPlan { account, plan } => {
            config.check_plan(&plan).map_err(Error::Rejected)?;
            let account = block_on(set_plan(&config.store, account, plan))?;
            let said = format!("account {} has the plan {}\n", account.name, account.plan);
            answer(&account, is_json, said)
        }
        Command::Suspend { account } => {
            let account = block_on(set_suspended(&config.store, account, true))?;
            let said = format!(
                "account {} is suspended; `sluice accounts resume` ends that\n",
                account.name
            );
            answer(&account, is_json, said)
        }
        Command::Resume { account } => {
            let account = block_on(set_suspended(&config.store, account, false))?;
            let said = format!("account {} is in force\n", account.name);
            answer(&account, is_json, said)
        }
    };
    show(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn answer(account: &Account, is_json: bool, said: String) -> String {
    match is_json {
        true => json(&record(account)),
        false => said,
    }
}

async fn list(settings: &StoreSettings) -> Result<Vec<Summary>, Error> {
    let listed = Records(settings).read(async |db| accounts::list(db).await);
    listed.await
}

/// Makes an account. Names are unique among accounts made here, so that commands can be given them.
async fn create(settings: &StoreSettings, name: String, plan: String) -> Result<Account, Error> {
    write_tx!(Records(settings), |tx| {
        accounts::create_named(tx, &name, &plan, now_ms()).await
    })
}

async fn set_plan(settings: &StoreSettings, named: String, plan: String) -> Result<Account, Error> {
    write_tx!(Records(settings), |tx| {
        let account = find_account(tx, &named).await?;
        accounts::set_plan(tx, account.id, &plan, now_ms()).await?;
        accounts::get(tx, account.id).await
    })
}

async fn set_suspended(
    settings: &StoreSettings,
    named: String,
    is_suspended: bool,
) -> Result<Account, Error> {
    write_tx!(Records(settings), |tx| {
        let account = find_account(tx, &named).await?;
        accounts::set_suspended(tx, account.id, is_suspended, now_ms()).await
    })
}

fn status(account: &Account) -> &'static str {
    match account.is_suspended() {
        true => "suspended",
        false => "active",
    }
}

fn list_table(accounts: &[Summary], config: &Config) -> String {
    let row = |summary: &Summary| {
        let account = &summary.account;
        let plan = match config.plans.contains_key(&account.plan) {
            true => account.plan.clone(),
            false => format!("{} (not in the settings)", account.plan),
        };
        [
            account.name.clone(),
            plan,
            status(account).to_owned(),
            summary.users.to_string(),
            summary.keys.to_string(),
            day(account.created_at),
            account.id.to_string(),
        ]
    };
    let rows: Vec<_> = accounts.iter().map(row).collect();
    table(
        ["name", "plan", "status", "users", "keys", "since", "id"],
        &rows,
    )
}

fn record(account: &Account) -> serde_json::Value {
    json!({
        "id": account.id,
        "name": account.name,
        "plan": account.plan,
        "status": status(account),
        "suspendedAt": account.suspended_at.and_then(time),
        "createdAt": time(account.created_at),
    })
}

fn summary_record(summary: &Summary) -> serde_json::Value {
    let mut record = record(&summary.account);
    record["users"] = summary.users.into();
    record["keys"] = summary.keys.into();
    record
}
