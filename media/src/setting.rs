//! How settings are written: with units, in the configuration file and in the environment alike.

/// A `std::time::Duration` as text, for `#[serde(with = "sluice_media::setting::duration")]`.
pub mod duration {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    /// Writes the duration in its largest whole units.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}ms", duration.as_millis()))
    }

    /// Reads "200ms", "10s", "1m 30s", "2h".
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.strip_suffix("ms")
            .and_then(|n| n.parse().ok())
            .map(Duration::from_millis)
            .ok_or_else(|| D::Error::custom(text))
    }
}
