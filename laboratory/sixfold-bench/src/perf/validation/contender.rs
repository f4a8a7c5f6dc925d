//! A device that takes part with validation, or without.

use crate::perf::device::Device;
use crate::perf::kind::Setup;
use servers::TrustAnchor;

/// Device with validation, or without.
pub struct Contender<'d> {
    /// The device.
    pub device: &'d Device,
    /// True if it validates.
    pub validates: bool,
}

impl Contender<'_> {
    /// Name in tables.
    pub fn name(&self) -> String {
        format!("{}, {}", self.device.name(), if self.validates { "validate" } else { "trust" })
    }

    /// Settings with which it is started.
    pub fn setup(&self, anchor: &TrustAnchor) -> Setup {
        Setup { trust_anchor: self.validates.then(|| anchor.clone()), ..Setup::default() }
    }
}
