//! Conversion jobs: one actor per job under a registry, rows and leases as the truth.

mod settings;

pub use settings::ConvertSettings;

/// The handle of conversion jobs for the façade. Clones share it; it exists before the actors run.
#[derive(Clone, Debug)]
pub struct Conversions {}

impl Conversions {
    pub fn new(
        _settings: ConvertSettings,
        _store: sluice_store::Store,
        _compute: crate::compute::Compute,
    ) -> Self {
        Self {}
    }

    /// The concerns that run it.
    pub fn concerns(&self) -> Vec<crate::concern::Concern> {
        Vec::new()
    }
}
