//! Rules of the repository itself: which crate may know which, and what no tracked file may be or name.

#[path = "repository/imports.rs"]
mod imports;
#[path = "repository/map.rs"]
mod map;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Our crates, each with those of ours that it may depend on (docs: "Dependencies point one way").
const MAY_DEPEND_ON: [(&str, &str, &[&str]); 7] = [
    (
        ".",
        "sluice",
        &[
            "sluice-actors",
            "sluice-ingest",
            "sluice-media",
            "sluice-store",
            "sluice-testkit",
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
    ("testkit", "sluice-testkit", &["sluice-ingest"]),
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

/// Name of the default registry in Cargo's lock files, also where a mirror replaces it.
const LOCKED_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

const LARGEST_FILE_BYTES: u64 = 1_000_000;

const MOST_README_LINES: usize = 170;

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

/// The same of names of variables, fields and functions and of comments. Not inside strings: there are words of stored columns, of
/// protocols and of files.
const RETIRED_NAMES: [&str; 23] = [
    concat!("to", "ld"),
    concat!("so", "und"),
    concat!("st", "and"),
    concat!("sta", "nds"),
    concat!("bo", "ard"),
    concat!("ta", "lly"),
    concat!("tal", "lies"),
    concat!("sh", "elf"),
    concat!("ha", "lt"),
    concat!("set", "back"),
    concat!("turn", "stile"),
    concat!("con", "cern"),
    concat!("conc", "erns"),
    concat!("cou", "rier"),
    concat!("mur", "mur"),
    concat!("as", "ker"),
    concat!("incu", "mbent"),
    concat!("tel", "ler"),
    concat!("re", "el"),
    concat!("ta", "pe"),
    concat!("un", "fit"),
    concat!("ref", "usal"),
    concat!("fami", "liar"),
];

/// In code, whole words; the Unix user of the first of the two names belongs to the system.
#[test]
fn no_code_uses_a_retired_word() {
    let mut found = Vec::new();
    for (name, text) in rust_files() {
        for (number, line) in (1..).zip(text.lines()) {
            let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '`';
            let has = |text: &str, retired: &[&str]| {
                text.split(|c| !is_part(c))
                    .any(|word| retired.contains(&word))
            };
            let mut outside_strings = line.split('"').step_by(2);
            if has(line, &RETIRED) || outside_strings.any(|text| has(text, &RETIRED_NAMES)) {
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

/// Parts of the source, each with the words that its code may not hold.
const LAYERS: [(&str, &[&str]); 3] = [
    ("src/application/", &["actix", "crate::http", "crate::mcp"]),
    ("src/mcp/", &["actix_web::", "crate::http"]),
    // The façade and the compute pool have actix; nothing else does.
    ("", &["actix::", "actix_web::"]),
];

/// Exceptions to the last row of [`LAYERS`]: the façade, the listener for other nodes, the composition of the service, the compute
/// pool, and tests.
const ACTIX: [&str; 6] = [
    "src/http/",
    "src/peer/",
    "src/app.rs",
    "src/main.rs",
    "actors/src/compute/",
    "tests/",
];

#[test]
fn no_layer_knows_the_one_above() {
    let mut found = Vec::new();
    for (name, text) in rust_files() {
        // Tests at the end of a file may look through the layers, as one does at the OpenAPI document.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (part, words) in LAYERS {
            let is_held = match part {
                "" => !ACTIX.iter().any(|allowed| name.starts_with(allowed)),
                part => name.starts_with(part),
            };
            let lines = code
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"));
            for line in lines.filter(|_| is_held) {
                if words.iter().any(|word| line.contains(word)) && !line.contains("rmcp_actix_web")
                {
                    found.push(format!("{name}: {}", line.trim()));
                }
            }
        }
    }
    assert_eq!(found, [""; 0]);
}

/// `CONTRIBUTING.md` shows it: what is built with the development dependencies has it, and no program.
#[test]
fn the_example_operation_is_in_tests_alone() {
    const FEATURE: &str = "example-operation";
    for (folder, name, _) in MAY_DEPEND_ON {
        let mut manifest = manifest(folder);
        let of_tests = manifest.remove("dev-dependencies");
        let of_tests = of_tests.map(|table| table.to_string()).unwrap_or_default();
        let declares = usize::from(name == "sluice-media");
        assert_eq!(manifest.to_string().matches(FEATURE).count(), declares);
        assert_eq!(of_tests.contains(FEATURE), name == "sluice", "{name}");
    }
}

/// Files that may import each other in a circle: more are a knot.
const LARGEST_CIRCLE: usize = 3;

#[test]
fn no_imports_are_knotted() {
    let sources: Vec<(String, String)> = rust_files().collect();
    for (folder, name, _) in MAY_DEPEND_ON {
        let src = source_folder(folder);
        let files: Vec<(String, String)> = sources
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(&src)?.to_owned(), text.clone())))
            .filter(|(path, _)| is_production(path))
            .collect();
        assert!(!files.is_empty(), "{name} has sources");
        let found = imports::circles(&files, LARGEST_CIRCLE);
        assert!(found.is_empty(), "{name}: {found:#?}");
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

#[test]
fn the_readme_is_short() {
    assert!(text("README.md").lines().count() <= MOST_README_LINES);
}

/// Comments cite documents by their path, and the path exists.
#[test]
fn documents_that_code_cites_are_here() {
    let is_path = |it: char| it.is_ascii_alphanumeric() || "/_.-".contains(it);
    let mut count = 0;
    for (name, text) in rust_files() {
        for (end, suffix) in text.match_indices(".md") {
            let before = &text[..end];
            let start = before.rfind(|it| !is_path(it)).map_or(0, |at| at + 1);
            let cited = &text[start..end + suffix.len()];
            let is_cited = cited.starts_with("docs/");
            assert!(!is_cited || root().join(cited).exists(), "{name}: {cited}");
            count += usize::from(is_cited);
            let is_section = text[end..].starts_with(concat!(".md ", "§"));
            assert!(!is_section, "{name}: {cited} is cited by a section");
        }
    }
    assert!(count > 20, "{count} citations");
}

/// Relative links of our prose, with the headings that they name.
#[test]
fn links_of_documents_lead_to_files() {
    let of_others = ["vendor", "web"];
    for path in tracked_files() {
        let is_ours = !of_others.iter().any(|folder| path.starts_with(folder));
        if !is_ours || path.extension().is_none_or(|it| it != "md") {
            continue;
        }
        let Some(bytes) = read(&path) else { continue };
        let folder = path.parent().unwrap_or(Path::new(""));
        for link in links(&String::from_utf8(bytes).unwrap()) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let target = match file {
                "" => root().join(&path),
                file => root().join(folder).join(file),
            };
            assert!(target.exists(), "{} links to {link}", path.display());
            if !heading.is_empty() && target.extension().is_some_and(|it| it == "md") {
                let anchors = anchors(&fs::read_to_string(&target).unwrap());
                let exists = anchors.iter().any(|it| it == heading);
                assert!(exists, "{} links to {link}", path.display());
            }
        }
    }
}

#[test]
fn every_decision_is_in_the_index_under_its_title() {
    let index = text("docs/decisions/README.md");
    let mut count = 0;
    for entry in fs::read_dir(root().join("docs/decisions")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == "README.md" {
            continue;
        }
        let note = text(&format!("docs/decisions/{name}"));
        let number: u32 = name[..4].parse().unwrap();
        let title = note.lines().next().unwrap();
        let title = title.strip_prefix(&format!("# {number}. "));
        let title = title.unwrap_or_else(|| panic!("{name} begins with its number and title"));
        let is_question = ["What ", "Who ", "How ", "Why "]
            .iter()
            .any(|word| title.starts_with(word));
        assert!(!is_question, "{name}: a title names its subject");
        let row = format!("| [{number}]({name}) | {title} |");
        assert!(index.contains(&row), "the index lacks: {row}");
        count += 1;
    }
    assert_eq!(index.matches("\n| [").count(), count, "rows of the index");
}

/// Checks the documents and the packaging. The list of changes also has patterns and former names.
#[test]
fn variables_of_documents_are_settings() {
    let defaults: toml::Table = text("config/default.toml").parse().unwrap();
    let mut count = 0;
    for path in tracked_files() {
        let is_prose = path.extension().is_some_and(|it| it == "md");
        let of_others = ["vendor", "web", "CHANGELOG.md"];
        let is_ours = !of_others.iter().any(|other| path.starts_with(other));
        if !is_ours || !(is_prose || path.starts_with("packaging")) {
            continue;
        }
        let Some(bytes) = read(&path) else { continue };
        let text = String::from_utf8_lossy(&bytes);
        for variable in text.split("SLUICE_").skip(1) {
            let is_part = |it: char| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_';
            let name = variable.split(|it| !is_part(it)).next().unwrap();
            let Some((section, key)) = name.split_once("__") else {
                continue;
            };
            let (section, key) = (section.to_lowercase(), key.to_lowercase());
            let known = defaults.get(&section).and_then(|it| it.get(&key));
            let is_known = known.is_some();
            assert!(is_known, "{}: SLUICE_{name}", path.display());
            count += 1;
        }
    }
    assert!(count > 10 || !root().join(".git").exists());
}

#[test]
fn the_page_of_plans_has_the_defaults() {
    let defaults: toml::Table = text("config/default.toml").parse().unwrap();
    let page = text("docs/reference/plans.md");
    let plans = ["unlimited", "free", "starter", "pro", "business"];
    assert_eq!(defaults["plans"].as_table().unwrap().len(), plans.len());
    for key in defaults["plans"]["unlimited"].as_table().unwrap().keys() {
        let label = format!("(`{key}`) |");
        let row = page.lines().find(|line| line.contains(&label));
        let row = row.unwrap_or_else(|| panic!("no row of {key}"));
        let shown: Vec<&str> = row.split(" | ").skip(1).collect();
        let expected = plans.map(|plan| in_words(&defaults["plans"][plan][key]));
        let shown: Vec<&str> = shown.iter().map(|it| it.trim_end_matches(" |")).collect();
        assert_eq!(shown, expected, "{key}");
    }
}

/// A bound as the page of plans writes it: thousands apart, 0 as no bound.
fn in_words(bound: &toml::Value) -> String {
    let Some(number) = bound.as_integer() else {
        let size = bound.as_str().unwrap();
        return if size == "0 B" { "no bound" } else { size }.to_owned();
    };
    match (number / 1_000_000, number / 1_000 % 1_000, number % 1_000) {
        (0, 0, 0) => "no bound".to_owned(),
        (0, 0, ones) => ones.to_string(),
        (0, thousands, ones) => format!("{thousands} {ones:03}"),
        (millions, thousands, ones) => format!("{millions} {thousands:03} {ones:03}"),
    }
}

/// Targets of Markdown links that are no addresses, outside of fenced blocks.
fn links(text: &str) -> Vec<String> {
    let outside = text.split("\n```").step_by(2);
    outside
        .flat_map(|part| part.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0.to_owned()))
        .filter(|link| !link.contains("://") && !link.contains(' '))
        .collect()
}

/// The anchors that renderers of Markdown give to headings.
fn anchors(text: &str) -> Vec<String> {
    let outside = text.split("\n```").step_by(2);
    let headings = outside
        .flat_map(str::lines)
        .filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title
                .chars()
                .filter(|it| it.is_alphanumeric() || " -_".contains(*it));
            kept.collect::<String>().replace(' ', "-")
        })
        .collect()
}

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of a crate's sources, relative to the root.
fn source_folder(folder: &str) -> String {
    match folder {
        "." => "src/".to_owned(),
        folder => format!("{folder}/src/"),
    }
}

/// Returns whether a file of a crate's sources is no test.
fn is_production(path: &str) -> bool {
    !path.ends_with("tests.rs") && !path.contains("tests/")
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

/// Returns paths and texts of our Rust files.
fn rust_files() -> impl Iterator<Item = (String, String)> {
    let names = tracked_files().into_iter();
    let names = names.map(|path| path.to_string_lossy().into_owned());
    names
        .filter(|name| name.ends_with(".rs") && !name.starts_with("vendor/"))
        .map(|name| {
            let text = fs::read_to_string(root().join(&name)).expect("it is tracked");
            (name, text)
        })
}

/// Returns the files that git tracks, relative to the root. Sources without their repository have nothing to check.
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
