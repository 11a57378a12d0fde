//! Replays the seeds of every fuzz target, so that a fixed defect stays fixed.

use std::{collections::BTreeSet, fs, path::Path};

use sluice::fuzzing::targets;

use crate::support::Failure;

/// Fewer targets than this mean that some went missing from their lists.
const TARGETS: usize = 30;

#[test]
fn every_target_takes_its_seeds() -> Result<(), Failure> {
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds");
    let targets = targets();
    assert!(targets.len() >= TARGETS, "{} targets", targets.len());
    for target in &targets {
        let folder = seeds.join(target.name);
        let mut count = 0;
        for seed in fs::read_dir(&folder).map_err(|error| format!("{folder:?}: {error}"))? {
            let bytes = fs::read(seed?.path())?;
            (target.run)(&bytes);
            // Cut anywhere, an input is another one.
            (target.run)(&bytes[..bytes.len() / 2]);
            count += 1;
        }
        assert!(count > 0, "{folder:?} is empty");
    }
    let names: BTreeSet<&str> = targets.iter().map(|target| target.name).collect();
    assert_eq!(names.len(), targets.len(), "a name is taken twice");
    for folder in fs::read_dir(&seeds)? {
        let name = folder?.file_name();
        assert!(
            names.contains(&*name.to_string_lossy()),
            "seeds of no target: {name:?}"
        );
    }
    Ok(())
}
