//! `sluice doctor` on the object store (`store.objects_url`): writing, reading, listing and deleting a small object, its
//! speed; the owner of the objects; nothing without one.

use std::time::Duration;

use sluice_store::{ObjectOwner, ObjectsReport, StoreSettings, examine_objects};
use tokio::{runtime::Builder, time::timeout};

use super::finding::Finding;
use crate::causes::WithCauses;

const CHECK: &str = "object store";
const OWNER: &str = "object owner";
/// Longest time for the whole examination.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time for a small object from which uploads and first views are slow.
const SLOW: Duration = Duration::from_secs(1);

/// Writes, reads, lists and deletes a small object, and looks for the owner.
pub(super) fn check(settings: &StoreSettings) -> Vec<Finding> {
    if settings.objects_url.is_empty() {
        return Vec::new();
    }
    match examine(settings) {
        Ok(None) => Vec::new(),
        Ok(Some(report)) => {
            let owner = report.owner.as_ref().map(judge_owner);
            [judge(&report)].into_iter().chain(owner).collect()
        }
        Err(reason) => vec![Finding::fail(
            CHECK,
            reason,
            "the service does not start before that is mended; docs/guide/cluster.md says what an object store needs",
        )],
    }
}

fn examine(settings: &StoreSettings) -> Result<Option<ObjectsReport>, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
    let examined = runtime.block_on(async { timeout(PATIENCE, examine_objects(settings)).await });
    // Threads that hang in a folder of the network are not waited for.
    runtime.shutdown_background();
    match examined {
        Ok(report) => report.map_err(|error| WithCauses(&error).to_string()),
        Err(_) => Err("store.objects_url: the object store does not answer in time".to_owned()),
    }
}

fn judge(report: &ObjectsReport) -> Finding {
    let ObjectsReport {
        place,
        is_plain_http,
        is_full,
        write_time,
        read_time,
        owner: _,
    } = report;
    let (write_ms, read_ms) = (write_time.as_millis(), read_time.as_millis());
    if *is_full {
        return Finding::fail(
            CHECK,
            format!("{place} is full: uploads fail"),
            "make space there, or raise its quota",
        );
    }
    let found =
        format!("{place}: a small object is written in {write_ms} ms and read in {read_ms} ms");
    if *write_time >= SLOW || *read_time >= SLOW {
        return Finding::warn(
            CHECK,
            format!("{found}, which is slow"),
            "use an object store that is near, and look at its load",
        );
    }
    if *is_plain_http && !is_local(place) {
        return Finding::warn(
            CHECK,
            format!("{found}, without TLS: others on the way can read and change files"),
            "use https in endpoint, unless the network between is private",
        );
    }
    Finding::ok(CHECK, found)
}

fn judge_owner(owner: &ObjectOwner) -> Finding {
    match owner {
        ObjectOwner::This(key) => {
            Finding::ok(OWNER, format!("this installation, by the object {key}"))
        }
        ObjectOwner::NotYet => Finding::ok(
            OWNER,
            "none yet: the next start makes this installation the owner",
        ),
        ObjectOwner::Rejected(reason) => Finding::fail(
            OWNER,
            reason,
            "the service does not start before that is mended; docs/guide/cluster.md says whose an object store is",
        ),
    }
}

fn is_local(place: &str) -> bool {
    ["http://127.", "http://localhost", "http://[::1]"]
        .iter()
        .any(|beginning| place.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use sluice_store::Store;

    use super::{
        super::finding::Level::{self, Fail, Ok, Warn},
        *,
    };

    fn well() -> ObjectsReport {
        ObjectsReport {
            place: "https://media.example.org/".into(),
            is_plain_http: false,
            is_full: false,
            write_time: Duration::from_millis(7),
            read_time: Duration::from_millis(2),
            owner: None,
        }
    }

    #[test]
    fn each_fact_is_judged() {
        type Change = fn(&mut ObjectsReport);
        let cases: [(Change, Level); 6] = [
            (|_| {}, Ok),
            (|it| it.is_full = true, Fail),
            (|it| it.write_time = SLOW, Warn),
            (|it| it.read_time = SLOW, Warn),
            (|it| it.is_plain_http = true, Warn),
            (
                |it| {
                    it.is_plain_http = true;
                    it.place = "http://127.0.0.1:8333/media/".into();
                },
                Ok,
            ),
        ];
        for (number, (change, expected)) in cases.into_iter().enumerate() {
            let mut report = well();
            change(&mut report);
            let finding = judge(&report);
            assert_eq!(finding.level, expected, "case {number}");
            assert_eq!(finding.advice.is_none(), expected == Ok, "case {number}");
            assert!(finding.check.len() <= 13, "{finding:?}");
        }
    }

    #[test]
    fn without_an_object_store_there_is_no_finding_and_an_unreachable_one_fails() {
        assert!(check(&StoreSettings::default()).is_empty());
        let settings = StoreSettings {
            objects_url: "s3://media?endpoint=http://127.0.0.1:1".into(),
            objects_access_key: "swordfish".into(),
            objects_secret_key: "swordfish".into(),
            ..StoreSettings::default()
        };
        let found = check(&settings);
        assert_eq!(levels(&found), [(CHECK, Fail)]);
        assert!(!format!("{found:?}").contains("swordfish"), "{found:?}");
    }

    #[test]
    fn a_folder_is_examined_and_its_owner_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let settings = |name: &str| StoreSettings {
            objects_url: format!("file://{}", folder.path().join("bucket").display()),
            ..StoreSettings::on_sqlite(&folder.path().join(name))
        };
        fs::create_dir(folder.path().join("bucket")).unwrap();
        let owner_of = |name: &str| {
            let mut found = check(&settings(name));
            assert_ne!(found[0].level, Fail, "{found:?}");
            assert_eq!(found.len(), 2, "{found:?}");
            let owner = found.remove(1);
            assert_eq!(owner.check, OWNER);
            assert!(owner.check.len() <= 13, "{owner:?}");
            (owner.level, owner.message)
        };
        let (level, message) = owner_of("first");
        assert_eq!(level, Ok);
        assert!(message.starts_with("none yet"), "{message}");
        // The doctor makes none.
        assert!(owner_of("first").1.starts_with("none yet"));

        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Store::open(&settings("first")).await.unwrap();
            store.close().await;
        });
        let (level, message) = owner_of("first");
        assert_eq!(level, Ok);
        assert!(message.contains("this installation"), "{message}");
        let (level, message) = owner_of("other");
        assert_eq!(level, Fail);
        assert!(message.contains("another installation"), "{message}");
    }

    fn levels(findings: &[Finding]) -> Vec<(&'static str, Level)> {
        let found = findings.iter();
        found
            .map(|finding| (finding.check, finding.level))
            .collect()
    }
}
