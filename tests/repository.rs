//! Rules of the repository itself: which crate may know which, and what no tracked file may be or name.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Our crates, each with those of ours that it may depend on (docs: "Dependencies point one way").
const MAY_DEPEND_ON: [(&str, &str, &[&str]); 6] = [
    (
        ".",
        "sluice",
        &[
            "sluice-actors",
            "sluice-ingest",
            "sluice-media",
            "sluice-store",
            "sluice-worker",
        ],
    ),
    (
        "actors",
        "sluice-actors",
        &[
            "sluice-ingest",
            "sluice-media",
            "sluice-store",
            "sluice-worker",
        ],
    ),
    ("ingest", "sluice-ingest", &["sluice-media"]),
    ("media", "sluice-media", &[]),
    ("store", "sluice-store", &[]),
    ("worker", "sluice-worker", &["sluice-media"]),
];

/// Package registries. Each machine names its own (a mirror, say), so nothing here may. In two halves, for this file.
const REGISTRIES: [&str; 6] = [
    concat!("crates", ".io"),
    concat!("npmjs", "."),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("debian", ".org"),
    concat!("golang", ".org"),
];

/// How Cargo's lock files write "the default registry", also where a mirror stands in for it.
const LOCKED_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

const LARGEST_FILE_BYTES: u64 = 1_000_000;

/// Words of an earlier version for what `docs/glossary.md` names now, each in two halves, for this file.
const RETIRED: [&str; 26] = [
    concat!("who", "ever"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("an", "ew"),
    concat!("Con", "cern"),
    concat!("Wa", "rd"),
    concat!("Entr", "ance"),
    concat!("Do", "or"),
    concat!("She", "lf"),
    concat!("Set", "back"),
    concat!("Ha", "lt"),
    concat!("Ta", "pe"),
    concat!("Re", "el"),
    concat!("Tel", "ler"),
    concat!("Cou", "rier"),
    concat!("Mur", "mur"),
    concat!("Incum", "bent"),
    concat!("Ask", "er"),
    concat!("Under", "Way"),
    concat!("Turn", "stile"),
    concat!("Guess", "es"),
    concat!("Un", "fit"),
    concat!("Tal", "ly"),
    concat!("Refu", "sal"),
    concat!("Fami", "liar"),
    concat!("Cata", "logue"),
];

/// In code, whole words; the Unix user of the first of the two names belongs to the system.
#[test]
fn no_code_uses_a_retired_word() {
    let mut found = Vec::new();
    for path in tracked_files() {
        let name = path.to_string_lossy().into_owned();
        if !name.ends_with(".rs") || name.starts_with("vendor/") {
            continue;
        }
        let text = fs::read_to_string(root().join(&path)).expect("it is tracked");
        for (number, line) in (1..).zip(text.lines()) {
            let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '`');
            if words.any(|word| RETIRED.contains(&word)) {
                found.push(format!("{name}:{number}: {}", line.trim()));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

#[test]
fn no_crate_depends_upward() {
    let members = &manifest(".")["workspace"]["members"];
    let folders = MAY_DEPEND_ON.map(|(folder, ..)| folder);
    assert_eq!(
        *members,
        toml::Value::from(folders.to_vec()),
        "each crate has its row here"
    );
    for (folder, name, allowed) in MAY_DEPEND_ON {
        let manifest = manifest(folder);
        assert_eq!(manifest["package"]["name"].as_str(), Some(name));
        for found in our_dependencies(&manifest) {
            assert!(
                allowed.contains(&found.as_str()),
                "{name} may not depend on {found}"
            );
        }
    }
}

#[test]
fn every_kind_of_dependency_counts() {
    let manifest: toml::Table = r#"
        [dependencies]
        serde = "1"
        sluice-media.workspace = true
        [dev-dependencies]
        renamed = { path = "../store", package = "sluice-store" }
        [target.'cfg(unix)'.build-dependencies]
        sluice-actors = { path = "../actors" }
    "#
    .parse()
    .unwrap();
    let mut found = our_dependencies(&manifest);
    found.sort();
    assert_eq!(found, ["sluice-actors", "sluice-media", "sluice-store"]);
}

/// Prose and the released code of others may speak of registries.
#[test]
fn no_file_names_a_registry() {
    for path in tracked_files() {
        let is_vendored = path.components().any(|it| it.as_os_str() == "vendor");
        let is_prose = is_vendored || path.extension().is_some_and(|it| it == "md");
        let Some(bytes) = read(&path).filter(|_| !is_prose) else {
            continue;
        };
        let mut text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if path.ends_with("Cargo.lock") {
            text = text.replace(LOCKED_SOURCE, "");
        }
        for host in REGISTRIES {
            assert!(!text.contains(host), "{} names {host}", path.display());
        }
    }
}

#[test]
fn no_file_is_large() {
    for path in tracked_files() {
        let bytes = fs::metadata(root().join(&path)).map_or(0, |it| it.len());
        assert!(
            bytes <= LARGEST_FILE_BYTES,
            "{} has {bytes} bytes",
            path.display()
        );
    }
}

/// Debian's libvips brings libjpeg and libwebp of its own, and would call those of the program if it exported them.
#[test]
fn the_program_keeps_its_codecs_to_itself() {
    let listed = Command::new("nm")
        .args(["--dynamic", "--defined-only", "--format=just-symbols"])
        .arg(env!("CARGO_BIN_EXE_sluice"))
        .output()
        .expect("nm is there where a linker is");
    assert!(listed.status.success());
    let exported = String::from_utf8(listed.stdout).unwrap();
    let of_codecs = [
        "jpeg_",
        "jsimd_",
        "tj3",
        "tjInit",
        "WebP",
        "VP8",
        "sluice_avif_",
    ];
    for symbol in exported.lines() {
        let is_ours = of_codecs.iter().any(|prefix| symbol.starts_with(prefix));
        assert!(!is_ours, "{symbol} is exported");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn manifest(folder: &str) -> toml::Table {
    let path = root().join(folder).join("Cargo.toml");
    fs::read_to_string(path).unwrap().parse().unwrap()
}

/// The names of our own packages in all dependency tables, those of targets included.
fn our_dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in manifest {
        let Some(table) = value.as_table() else {
            continue;
        };
        if key == "target" {
            let targets = table.values().filter_map(toml::Value::as_table);
            found.extend(targets.flat_map(our_dependencies));
        } else if key.ends_with("dependencies") {
            let names = table.iter().map(|(name, how)| {
                let package = how.get("package").and_then(toml::Value::as_str);
                package.unwrap_or(name).to_owned()
            });
            found.extend(names.filter(|name| name.starts_with("sluice")));
        }
    }
    found
}

/// What git knows of, relative to the root. Sources without their repository have nothing to check.
fn tracked_files() -> Vec<PathBuf> {
    if !root().join(".git").exists() {
        assert!(std::env::var_os("CI").is_none(), "no git repository here");
        return Vec::new();
    }
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .expect("git is there where a repository is");
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    let paths = String::from_utf8(listed.stdout).unwrap();
    paths
        .split_terminator('\0')
        .map(|path| Path::new(path).to_owned())
        .collect()
}

/// `None` for a file that is deleted and not yet committed so, and for a link to a folder.
fn read(path: &Path) -> Option<Vec<u8>> {
    fs::read(root().join(path)).ok()
}
