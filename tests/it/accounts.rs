//! Accounts, plans, keys and users from the shell, while a service runs. No test here writes to the database itself.

mod plans;
mod shell;
mod suspension;

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use crate::support::{
    Failure,
    command::{Call, sluice},
    json::text,
    server::{Api, Server},
};

/// For what the service follows within seconds, on a machine with other work.
const SOON: Duration = Duration::from_secs(30);
const DRAWING: &[u8] =
    br##"<svg xmlns="http://www.w3.org/2000/svg" width="8" height="8"><rect width="8" height="8" fill="#264653"/></svg>"##;

/// `sluice` with these arguments on the data folder of a service.
fn beside(server: &Server, arguments: &[&str]) -> Call {
    sluice(arguments).data_dir(server.data_dir())
}

async fn json_of(call: Call) -> Result<Value, Failure> {
    Ok(serde_json::from_str(&call.succeed().await?)?)
}

/// An account besides the first one, with a key of scope `admin`.
pub(crate) struct Tenant<'a> {
    server: &'a Server,
    name: String,
    pub(crate) api: Api,
}

impl<'a> Tenant<'a> {
    pub(crate) async fn on_plan(
        server: &'a Server,
        name: &str,
        plan: &str,
    ) -> Result<Self, Failure> {
        let create = ["accounts", "create", name, "--plan", plan, "--json"];
        let account = json_of(beside(server, &create)).await?;
        assert_eq!(
            (&account["name"], &account["plan"]),
            (&name.into(), &plan.into())
        );
        let add = [
            "keys",
            "add",
            "--account",
            name,
            "--scope",
            "admin",
            "--json",
        ];
        let key = text(&json_of(beside(server, &add)).await?["token"])?;
        Ok(Self {
            server,
            name: name.to_owned(),
            api: Api::new(server.base_url(), &key, server.addresses().rtmp, None),
        })
    }

    pub(crate) async fn command(&self, verb: &str, more: &[&str]) -> Result<String, Failure> {
        let arguments = [&["accounts", verb, &self.name], more].concat();
        beside(self.server, &arguments).succeed().await
    }

    async fn usage(&self) -> Result<Value, Failure> {
        let (_, usage) = self.api.call(Method::GET, "/api/usage", None).await?;
        Ok(usage)
    }
}
