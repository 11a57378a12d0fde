//! The imports between the files of a crate, and their cycles.
//!
//! An edge leads from a file to the one that defines what it imports, through re-exports. Tests and re-exports are no
//! edges, nor are imports from a module that contains the file: a trait above its implementations is no cycle.

use std::collections::{BTreeMap, BTreeSet};

use syn::{Item, UseTree, Visibility};

/// A module by the segments of its path; the crate's root has none.
type Module = Vec<String>;

/// A file of a crate.
struct Source {
    module: Module,
    children: BTreeSet<String>,
    /// Absolute paths that it imports.
    imports: Vec<Module>,
    /// Absolute paths of its re-exports by their names.
    exports: BTreeMap<String, Module>,
}

/// Returns the circles of more than `most` files among the sources of one crate, given by their paths below `src/` and their texts.
pub fn circles(files: &[(String, String)], most: usize) -> Vec<Vec<String>> {
    let sources: Vec<Source> = files
        .iter()
        .map(|(path, text)| source(path, text))
        .collect();
    let arrows: Vec<BTreeSet<usize>> = (0..sources.len())
        .map(|from| arrows_from(&sources, from))
        .collect();
    let reach: Vec<BTreeSet<usize>> = (0..sources.len())
        .map(|from| reached(&arrows, from))
        .collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for from in 0..sources.len() {
        let circle = reach[from].iter().filter(|&&to| reach[to].contains(&from));
        let names: Vec<String> = circle.map(|&at| files[at].0.clone()).collect();
        if names.len() > most {
            found.insert(names);
        }
    }
    found.into_iter().collect()
}

fn source(path: &str, text: &str) -> Source {
    let mut module: Module = path
        .trim_end_matches(".rs")
        .split('/')
        .map(str::to_owned)
        .collect();
    if matches!(
        module.last().map(String::as_str),
        Some("mod" | "lib" | "main")
    ) {
        module.pop();
    }
    let file = syn::parse_file(text).expect("it compiles");
    let children = file.items.iter().filter_map(|item| match item {
        Item::Mod(child) if child.content.is_none() => Some(child.ident.to_string()),
        _ => None,
    });
    let mut source = Source {
        children: children.collect(),
        module,
        imports: Vec::new(),
        exports: BTreeMap::new(),
    };
    for item in &file.items {
        let Item::Use(import) = item else { continue };
        if import.attrs.iter().any(|it| it.path().is_ident("cfg")) {
            continue;
        }
        let mut leaves = Vec::new();
        collect(&import.tree, &mut Vec::new(), &mut leaves);
        for (name, path) in leaves {
            let Some(path) = absolute(&source, path) else {
                continue;
            };
            match import.vis {
                Visibility::Inherited => source.imports.push(path),
                _ => {
                    source.exports.insert(name, path);
                }
            }
        }
    }
    source
}

/// Adds the leaves of a tree, each with the name that it gets.
fn collect(tree: &UseTree, before: &mut Module, leaves: &mut Vec<(String, Module)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            collect(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        UseTree::Name(name) => leaves.push((
            name.ident.to_string(),
            [&before[..], &[name.ident.to_string()]].concat(),
        )),
        UseTree::Rename(rename) => {
            leaves.push((
                rename.rename.to_string(),
                [&before[..], &[rename.ident.to_string()]].concat(),
            ));
        }
        UseTree::Glob(_) => leaves.push(("*".to_owned(), before.clone())),
        UseTree::Group(group) => {
            for tree in &group.items {
                collect(tree, before, leaves);
            }
        }
    }
}

/// The path from the crate's root; `None` for another crate's.
fn absolute(source: &Source, path: Module) -> Option<Module> {
    let mut module = source.module.clone();
    let mut rest = path.iter().peekable();
    match path.first()?.as_str() {
        "crate" => {
            rest.next();
            module.clear();
        }
        "self" => {
            rest.next();
        }
        "super" => {}
        first if source.children.contains(first) => {}
        _ => return None,
    }
    while rest.next_if(|segment| *segment == "super").is_some() {
        module.pop();
    }
    module.extend(rest.cloned());
    Some(module)
}

fn arrows_from(sources: &[Source], from: usize) -> BTreeSet<usize> {
    let here = &sources[from].module;
    let targets = sources[from]
        .imports
        .iter()
        .filter_map(|path| definition(sources, path, 8));
    targets
        .filter(|&to| to != from && !here.starts_with(&sources[to].module))
        .collect()
}

/// The file that defines what a path names, through at most `hops` re-exports.
fn definition(sources: &[Source], path: &[String], hops: u32) -> Option<usize> {
    let (length, at) = (0..=path.len()).rev().find_map(|length| {
        let at = sources
            .iter()
            .position(|source| source.module == path[..length])?;
        Some((length, at))
    })?;
    let exported = path
        .get(length)
        .and_then(|name| sources[at].exports.get(name));
    match exported {
        Some(further) if hops > 0 => {
            let further = [&further[..], &path[length + 1..]].concat();
            definition(sources, &further, hops - 1)
        }
        _ => Some(at),
    }
}

fn reached(arrows: &[BTreeSet<usize>], from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut next = vec![from];
    while let Some(at) = next.pop() {
        next.extend(arrows[at].iter().copied().filter(|&to| found.insert(to)));
    }
    found
}

#[test]
fn a_circle_is_found_through_a_re_export() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        (
            "a/mod.rs",
            "mod inner; pub use inner::Inner; pub trait Above {}",
        ),
        (
            "a/inner.rs",
            "use super::Above; use crate::b::B; pub struct Inner(B);",
        ),
        ("b.rs", "use crate::c::{self, C}; pub struct B(C);"),
        ("c.rs", "use crate::a::Inner; pub struct C(Box<Inner>);"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(circles(&files, 2), [["a/inner.rs", "b.rs", "c.rs"]]);
    assert!(circles(&files, 3).is_empty());
}
