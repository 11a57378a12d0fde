//! Landlock rules of workers: no path, TCP port or signal, but folders of fonts, colour profiles and libraries to read.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

/// The newest that this was tried with; older kernels give what they have.
const NEWEST: ABI = ABI::V7;
/// Files that codecs open in the middle of a job; a machine has some of them. Files of every machine, none of a user's.
const READABLE: [&str; 14] = [
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/share/fonts",
    "/usr/share/color/icc",
    "/usr/share/fontconfig",
    "/usr/share/fonts",
    "/usr/share/ghostscript",
    "/usr/share/poppler",
    "/var/cache/fontconfig",
];

/// Refuses everything else from now on; returns the ABI in force, `None` where the kernel has none.
pub fn refuse() -> Option<u8> {
    let status = restrict().ok()?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. }
            if status.ruleset != RulesetStatus::NotEnforced =>
        {
            u8::try_from(effective_abi as i32).ok()
        }
        _ => None,
    }
}

fn restrict() -> Result<landlock::RestrictionStatus, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(
            READABLE,
            AccessFs::ReadFile | AccessFs::ReadDir,
        ))?
        .restrict_self()
}
