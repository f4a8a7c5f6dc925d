//! Modules of one crate, the paths that each of them writes, and the module that a path leads to.

use super::lexer::{is_name, words};
use std::collections::BTreeMap;

/// Module path below the root of the crate: `["config", "read"]`.
pub type Module = Vec<String>;

/// Most imports and re-exports that a path is followed through.
const REEXPORTS: usize = 8;

/// The modules that `mod` lines reach from one root file.
#[derive(Debug, Default)]
pub struct Modules {
    /// File of each module, below `src`.
    pub files: BTreeMap<Module, String>,
    /// Paths that each module writes.
    pub paths: BTreeMap<Module, Vec<Module>>,
    /// Names that each module imports, with their paths.
    imports: BTreeMap<Module, BTreeMap<String, Module>>,
}

impl Modules {
    /// Reads the modules from `root` on; `files` has the text of every file below `src`.
    pub fn read(root: &str, files: &BTreeMap<String, String>) -> Modules {
        let mut modules = Modules::default();
        let folder = root.rfind('/').map_or("", |slash| &root[..=slash]);
        let mut open = vec![(Module::new(), root.to_owned())];
        while let Some((module, file)) = open.pop() {
            let words = words(&files[&file]);
            for child in words.windows(3).filter(|words| words[0] == "mod" && words[2] == ";") {
                let path = [&module[..], &[child[1].to_owned()]].concat();
                let stem = format!("{folder}{}", path.join("/"));
                let places = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
                open.extend(
                    places.into_iter().find(|place| files.contains_key(place)).map(|place| (path, place)),
                );
            }
            let (paths, imports) = paths_and_imports(&words);
            modules.paths.insert(module.clone(), paths);
            modules.imports.insert(module.clone(), imports);
            modules.files.insert(module, file);
        }
        modules
    }

    /// Follows a path that `module` writes to the module that has its item; `None` if that is in another crate.
    pub fn resolve(&self, module: &[String], path: &[String]) -> Option<Module> {
        self.follow(module, path, REEXPORTS)
    }

    fn follow(&self, module: &[String], path: &[String], budget: usize) -> Option<Module> {
        let budget = budget.checked_sub(1)?;
        let absolute = match path.first()?.as_str() {
            "crate" => path[1..].to_vec(),
            "self" => [module, &path[1..]].concat(),
            "super" => {
                let levels = path.iter().take_while(|word| *word == "super").count();
                [&module[..module.len().saturating_sub(levels)], &path[levels..]].concat()
            }
            _ if self.files.contains_key(&[module, &path[..1]].concat()) => [module, path].concat(),
            name => {
                let import = self.imports[module].get(name)?;
                return self.follow(module, &[import, &path[1..]].concat(), budget);
            }
        };
        let depth = (0..=absolute.len()).rev().find(|&depth| self.files.contains_key(&absolute[..depth]))?;
        let (home, names) = absolute.split_at(depth);
        let import = names.first().and_then(|name| self.imports[home].get(name));
        let origin = import.and_then(|import| self.follow(home, &[import, &names[1..]].concat(), budget));
        Some(origin.unwrap_or_else(|| home.to_vec()))
    }
}

/// All paths of a file, and the names that its `use` lines bring in.
fn paths_and_imports(words: &[&str]) -> (Vec<Module>, BTreeMap<String, Module>) {
    let (mut paths, mut imports) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while at < words.len() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        if words[at] == "use" && next != "<" {
            let mut leaves = Vec::new();
            at = use_tree(words, at + 1, &[], &mut leaves);
            paths.extend(leaves.iter().map(|(path, _)| path.clone()));
            imports.extend(leaves.into_iter().map(|(path, name)| (name, path)));
        } else if is_name(words[at]) && next == "::" {
            let start = at;
            while words.get(at + 1) == Some(&"::") && words.get(at + 2).is_some_and(|word| is_name(word)) {
                at += 2;
            }
            paths.push(words[start..=at].iter().step_by(2).map(|&word| word.to_owned()).collect());
            at += 1;
        } else {
            at += 1;
        }
    }
    (paths, imports)
}

/// Reads one branch of a `use` line into its leaves, each with the name that it brings in; returns the place behind it.
fn use_tree(words: &[&str], mut at: usize, prefix: &[String], leaves: &mut Vec<(Module, String)>) -> usize {
    let mut path = prefix.to_vec();
    let mut is_leaf = false;
    while let Some(&word) = words.get(at) {
        match word {
            "{" => {
                while words.get(at).is_some_and(|&word| word != "}") {
                    at = use_tree(words, at + 1, &path, leaves);
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            "as" => {
                leaves.push((path, words.get(at + 1).copied().unwrap_or_default().to_owned()));
                return at + 2;
            }
            "::" => {}
            "self" if !path.is_empty() => is_leaf = true,
            "*" => is_leaf = true,
            name => {
                is_leaf = true;
                path.push(name.to_owned());
            }
        }
        at += 1;
    }
    if is_leaf {
        let name = path.last().cloned().unwrap_or_default();
        leaves.push((path, name));
    }
    at
}
