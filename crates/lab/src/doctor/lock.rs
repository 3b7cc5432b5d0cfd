//! A lock file of cargo: its packages and their dependencies.
//!
//! Versions 1 to 4 are read. They differ in the text of a dependency, which has the name, the version only if several
//! packages have that name (always in version 1), and the source only if that is not enough either.

use std::collections::HashMap;

use semver::Version;
use serde::Deserialize;

/// The newest version of the format that is read.
const NEWEST: u32 = 4;

/// The packages of a lock file.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) packages: Vec<Package>,
}

/// A package of a lock file.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: Version,
    /// The places of its dependencies in the list of packages.
    pub(super) dependencies: Vec<usize>,
}

#[derive(Deserialize)]
struct Document {
    version: Option<u32>,
    /// The package that was locked, in the oldest files of version 1.
    root: Option<Entry>,
    package: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    version: String,
    #[serde(default)]
    dependencies: Vec<String>,
}

impl Lock {
    /// Reads a lock file. The error is a text without the file's name.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            format!("line {line} is not part of a Cargo.lock: {}", error.message())
        })?;
        if let Some(version) = document.version.filter(|it| !(1..=NEWEST).contains(it)) {
            return Err(format!("it has version {version}; versions 1 to {NEWEST} are read"));
        }
        let Document { root, package: Some(listed), .. } = document else {
            return Err("it has no list of packages, so it is no Cargo.lock".to_owned());
        };
        let entries: Vec<_> = root.into_iter().chain(listed).collect();
        let mut by_name = HashMap::<&str, Vec<usize>>::new();
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(&entry.name).or_default().push(index);
        }
        let packages = entries.iter().map(|entry| {
            let version = Version::parse(&entry.version)
                .map_err(|error| format!("package {} has the version {:?}: {error}", entry.name, entry.version))?;
            let dependencies = entry.dependencies.iter().map(|text| {
                find(text, &by_name, &entries)
                    .ok_or_else(|| format!("package {} depends on {text:?}, which is not in the file", entry.name))
            });
            let (name, dependencies) = (entry.name.clone(), dependencies.collect::<Result<_, _>>()?);
            Ok::<_, String>(Package { name, version, dependencies })
        });
        Ok(Self { packages: packages.collect::<Result<_, _>>()? })
    }

    /// Returns the places of all packages below a package, itself left out.
    pub(super) fn below(&self, package: usize) -> Vec<usize> {
        let mut seen = vec![false; self.packages.len()];
        let (mut found, mut open) = (vec![], vec![package]);
        seen[package] = true;
        while let Some(package) = open.pop() {
            for &dependency in &self.packages[package].dependencies {
                if !std::mem::replace(&mut seen[dependency], true) {
                    found.push(dependency);
                    open.push(dependency);
                }
            }
        }
        found
    }
}

/// Finds a dependency, given as "name", "name version" or "name version (source)".
fn find(text: &str, by_name: &HashMap<&str, Vec<usize>>, entries: &[Entry]) -> Option<usize> {
    let mut words = text.split(' ');
    let candidates = by_name.get(words.next()?)?;
    let version = words.next();
    // Packages with one name and version but two sources are the same crate here.
    candidates.iter().copied().find(|&index| version.is_none_or(|it| it == entries[index].version))
}
