//! Image delivery: published variants, single flight, memory and disk tiers.

mod settings;

pub use settings::CdnSettings;

/// The handle of image delivery for the façade. Clones share it; it exists before the actors run.
#[derive(Clone, Debug)]
pub struct Images {}

impl Images {
    pub fn new(
        _settings: CdnSettings,
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
