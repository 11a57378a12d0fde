//! Settings of a node (`[cluster]`): `listen`, `advertise`, `roles`, `name`; defaults and checks.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::Role;

/// The longest `cluster.name`.
const MOST_OF_NAME: usize = 64;

/// Settings of a node of a cluster. Without `listen` the service is alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClusterSettings {
    /// Address on which other nodes reach this one, `HOST:PORT` with an IP address. Empty: not a node.
    pub listen: String,
    /// `HOST:PORT` by which other nodes reach `listen`; empty: `listen` itself.
    pub advertise: String,
    /// Parts of the service that the node takes.
    pub roles: Vec<Role>,
    /// Name for people; empty: the machine's.
    pub name: String,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        Self {
            listen: String::new(),
            advertise: String::new(),
            roles: Role::ALL.to_vec(),
            name: String::new(),
        }
    }
}

impl ClusterSettings {
    /// Returns whether the service is a node.
    pub fn is_node(&self) -> bool {
        !self.listen.is_empty()
    }

    /// Returns `listen` as an address; `None` when the service is not a node.
    pub fn listen_address(&self) -> Option<SocketAddr> {
        self.listen.parse().ok()
    }

    /// Returns the address for other nodes, `http://HOST:PORT`; empty when the service is not a node.
    pub(crate) fn address(&self) -> String {
        match (self.listen.as_str(), self.advertise.as_str()) {
            ("", _) => String::new(),
            (listen, "") => format!("http://{listen}"),
            (_, advertise) => format!("http://{advertise}"),
        }
    }

    /// Returns the name for people.
    pub(crate) fn name(&self) -> String {
        match self.name.as_str() {
            "" => machine_name(),
            name => name.to_owned(),
        }
    }

    /// Rejects values that cannot work, with the key's path and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        if self.name.chars().count() > MOST_OF_NAME || self.name.chars().any(char::is_control) {
            return Err(format!(
                "cluster.name: expected at most {MOST_OF_NAME} characters in one line"
            ));
        }
        if self.roles.is_empty() {
            return Err(
                "cluster.roles: expected one or more of \"api\", \"live\" and \"worker\"".into(),
            );
        }
        if !self.advertise.is_empty() && !is_host_and_port(&self.advertise) {
            return Err(format!(
                "cluster.advertise: expected HOST:PORT, for instance 10.0.0.1:8081, got `{}`",
                self.advertise
            ));
        }
        if !self.is_node() {
            return Ok(());
        }
        let Some(listen) = self.listen_address() else {
            return Err(format!(
                "cluster.listen: expected an IP address and a port, for instance 10.0.0.1:8081, got `{}`",
                self.listen
            ));
        };
        if self.advertise.is_empty() && listen.ip().is_unspecified() {
            return Err(format!(
                "cluster.advertise: set the HOST:PORT by which other nodes reach this one, since cluster.listen ({listen}) is \
                 every address of the machine"
            ));
        }
        Ok(())
    }
}

fn is_host_and_port(text: &str) -> bool {
    let is_of_host = |b: u8| b.is_ascii_alphanumeric() || b".-_[]:".contains(&b);
    match text.rsplit_once(':') {
        Some((host, port)) => {
            let has_brackets = host.starts_with('[') && host.ends_with(']');
            !host.is_empty()
                && host.bytes().all(is_of_host)
                && host.contains(':') == has_brackets
                && port.parse::<u16>().is_ok_and(|port| port > 0)
        }
        None => false,
    }
}

fn machine_name() -> String {
    let uname = rustix::system::uname();
    let name = uname.nodename().to_string_lossy();
    name.chars().take(MOST_OF_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(listen: &str, advertise: &str) -> ClusterSettings {
        ClusterSettings {
            listen: listen.into(),
            advertise: advertise.into(),
            ..ClusterSettings::default()
        }
    }

    #[test]
    fn the_defaults_are_no_node_and_have_all_roles() {
        let settings = ClusterSettings::default();
        settings.check().unwrap();
        assert!(!settings.is_node());
        assert_eq!(settings.address(), "");
        let written = serde_json::to_value(&settings).unwrap();
        let expected = serde_json::json!({
            "listen": "", "advertise": "", "roles": ["api", "live", "worker"], "name": "",
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn the_address_for_others_is_the_listener_unless_another_is_given() {
        for (listen, advertise, expected) in [
            ("10.0.0.1:8081", "", "http://10.0.0.1:8081"),
            ("[fd00::1]:8081", "", "http://[fd00::1]:8081"),
            ("0.0.0.0:8081", "node-1.lan:9000", "http://node-1.lan:9000"),
            ("0.0.0.0:8081", "[fd00::1]:9000", "http://[fd00::1]:9000"),
        ] {
            let settings = node(listen, advertise);
            settings.check().unwrap();
            assert_eq!(settings.address(), expected);
        }
    }

    #[test]
    fn a_wrong_value_is_rejected_with_its_key() {
        let mut no_roles = node("10.0.0.1:8081", "");
        no_roles.roles.clear();
        let long_name = ClusterSettings {
            name: "n".repeat(65),
            ..ClusterSettings::default()
        };
        for (key, settings) in [
            ("cluster.listen", node("10.0.0.1", "")),
            ("cluster.listen", node("localhost:8081", "")),
            ("cluster.advertise", node("0.0.0.0:8081", "")),
            ("cluster.advertise", node("[::]:8081", "")),
            ("cluster.advertise", node("0.0.0.0:8081", "node-1")),
            ("cluster.advertise", node("0.0.0.0:8081", "node-1:0")),
            (
                "cluster.advertise",
                node("0.0.0.0:8081", "http://node-1:80"),
            ),
            ("cluster.advertise", node("0.0.0.0:8081", "fd00::1:9000")),
            ("cluster.roles", no_roles),
            ("cluster.name", long_name),
        ] {
            let message = settings.check().unwrap_err();
            assert!(message.starts_with(key), "{message}");
        }
    }
}
