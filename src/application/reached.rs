//! Base address under which a caller reached the service, its own address, and `upgradeUrl` (`http.upgrade_url`).

use std::net::IpAddr;

use super::{address::PublicAddress, context::Platform};

/// Page of the dashboard that shows what an account has used, and its plan.
const USAGE_PAGE: &str = "/app/settings/usage";

/// Public address for answers to a request, and the client's own address.
#[derive(Clone, Debug)]
pub struct Reached {
    pub address: PublicAddress,
    pub client: Option<IpAddr>,
}

impl Reached {
    /// Returns where a larger plan is offered (`upgradeUrl`).
    pub fn upgrade_url(&self, platform: &Platform) -> String {
        match platform.config.http.upgrade_url.as_str() {
            "" => format!("{}{USAGE_PAGE}", self.address.origin()),
            set => set.to_owned(),
        }
    }
}
