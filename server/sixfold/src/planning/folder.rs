//! The folder of a plan: what it has, and what a plan changes there. Files that `sixfold plan` did not write are never touched.

use crate::config::regular_file;
use plan::{PlannedFile, is_ours, same_content};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// Octets of a file in the folder. Those of a plan have some kilobytes.
const FILE_OCTETS: u64 = 1 << 20;

/// Folders below the one of the plan in which a plan has files.
const ROOTS: [&str; 2] = ["etc", "openwrt"];

/// Levels of folders below these: `etc/systemd/system/NAME.service.d` is the lowest.
const LEVELS: usize = 4;

/// A file that a plan changes.
#[derive(Debug)]
pub struct Change<'p> {
    /// Its path in the folder.
    pub path: String,
    /// The kind of the change.
    pub kind: Kind,
    /// The text that is there; empty if there is none.
    pub old: String,
    /// The text of the plan; empty for one that goes.
    pub new: &'p str,
}

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The folder does not have the file.
    New,
    /// The folder has another text.
    Changed,
    /// An earlier plan had the file, and this one does not.
    Stale,
}

/// A file of an earlier plan: its path in the folder, and its text.
pub type Earlier = (String, String);

/// The files of earlier plans in the folder, but for the page.
///
/// # Errors
///
/// A folder cannot be listed, as a line for the user.
pub fn earlier(folder: &Path) -> Result<Vec<Earlier>, String> {
    let mut earlier = Vec::new();
    for root in ROOTS {
        collect(folder, root, LEVELS, &mut earlier)?;
    }
    Ok(earlier)
}

/// Changes of the folder by a plan. Files of earlier plans go if they are not in this one; of a plan for some programs only, none
/// is given.
///
/// # Errors
///
/// A file is in the way that `sixfold plan` did not write, or one cannot be read: all of them, as lines for the user.
pub fn changes<'p>(
    folder: &Path,
    files: &'p [PlannedFile],
    mut earlier: Vec<Earlier>,
) -> Result<Vec<Change<'p>>, String> {
    let (mut changes, mut in_the_way) = (Vec::new(), Vec::new());
    for file in files {
        match read(&folder.join(&file.path)) {
            Ok(None) => changes.push(change(&file.path, Kind::New, String::new(), &file.text)),
            Ok(Some(old)) if !is_ours(&old) => in_the_way.push(foreign(folder, &file.path)),
            Ok(Some(old)) if same_content(&old, &file.text) => {}
            Ok(Some(old)) => changes.push(change(&file.path, Kind::Changed, old, &file.text)),
            Err(why) => in_the_way.push(why),
        }
    }
    if !in_the_way.is_empty() {
        return Err(in_the_way.join("\n"));
    }
    earlier.retain(|(path, _)| files.iter().all(|file| file.path != *path));
    changes.extend(earlier.into_iter().map(|(path, old)| change(&path, Kind::Stale, old, "")));
    Ok(changes)
}

fn change<'p>(path: &str, kind: Kind, old: String, new: &'p str) -> Change<'p> {
    Change { path: path.to_owned(), kind, old, new }
}

fn foreign(folder: &Path, path: &str) -> String {
    format!(
        "sixfold: cannot write {}: a file is there that sixfold plan did not write; move it away, or name another \
         folder with --out",
        folder.join(path).display()
    )
}

/// The text of a file; none if there is no such file.
fn read(path: &Path) -> Result<Option<String>, String> {
    match regular_file::read(path, FILE_OCTETS) {
        Ok(octets) => Ok(Some(String::from_utf8_lossy(&octets).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!(
            "sixfold: cannot read {}: {error}; make it readable, or name another folder with --out",
            path.display()
        )),
    }
}

/// Collects the files below a folder that a plan wrote, with their texts, in the order of their paths.
fn collect(folder: &Path, path: &str, levels: usize, found: &mut Vec<Earlier>) -> Result<(), String> {
    let here = folder.join(path);
    let unreadable = |error| format!("sixfold: cannot list {}: {error}; make it readable", here.display());
    let entries = match fs::read_dir(&here) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut names = entries
        .map(|entry| entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))))
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable)?;
    names.sort_by(|one, other| one.0.cmp(&other.0));
    for (name, kind) in names {
        let path = format!("{path}/{}", name.to_string_lossy());
        if kind.is_dir() && levels > 0 {
            collect(folder, &path, levels - 1, found)?;
        } else if kind.is_file()
            && let Ok(Some(text)) = read(&folder.join(&path))
            && is_ours(&text)
        {
            found.push((path, text));
        }
    }
    Ok(())
}

/// Makes the changes. Each file is whole at every moment: it is written beside its place and moved there.
///
/// # Errors
///
/// A file cannot be written or removed; those before it are.
pub fn write(folder: &Path, changes: &[Change<'_>]) -> Result<(), String> {
    for change in changes {
        let path = folder.join(&change.path);
        let done = match change.kind {
            Kind::Stale => fs::remove_file(&path),
            Kind::New | Kind::Changed => replace(&path, change.new),
        };
        done.map_err(|error| {
            format!(
                "sixfold: cannot write {}: {error}; make the folder writable, and run it again",
                path.display()
            )
        })?;
    }
    Ok(())
}

fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".sixfold-new");
    let beside = path.with_file_name(name);
    fs::write(&beside, text)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> PlannedFile {
        let text = format!("# Written by sixfold plan 1 from x.toml\n{text}\n");
        PlannedFile { part: None, path: path.to_owned(), text, explanation: String::new() }
    }

    fn changed<'p>(folder: &Path, files: &'p [PlannedFile], whole: bool) -> Vec<Change<'p>> {
        let earlier = if whole { earlier(folder).unwrap() } else { Vec::new() };
        changes(folder, files, earlier).unwrap()
    }

    fn kinds(folder: &Path, files: &[PlannedFile], whole: bool) -> Vec<(String, Kind)> {
        changed(folder, files, whole).into_iter().map(|change| (change.path, change.kind)).collect()
    }

    #[test]
    fn a_plan_changes_what_it_wrote_and_nothing_else() {
        let folder = kit::Folder::new();
        let out = folder.file("out");
        let first = [file("etc/a/one.conf", "1"), file("openwrt/two", "2"), file("README.md", "page")];
        let all_new = kinds(&out, &first, true);
        assert!(all_new.len() == 3 && all_new.iter().all(|(_, kind)| *kind == Kind::New), "{all_new:?}");
        write(&out, &changed(&out, &first, true)).unwrap();
        assert_eq!(kinds(&out, &first, true), []);
        // A file of somebody else in the same folder stays.
        fs::write(out.join("etc/a/other.conf"), "mine\n").unwrap();
        let second = [file("etc/a/one.conf", "one"), file("README.md", "page")];
        let expected =
            [("etc/a/one.conf".to_owned(), Kind::Changed), ("openwrt/two".to_owned(), Kind::Stale)];
        assert_eq!(kinds(&out, &second, true), expected);
        assert_eq!(kinds(&out, &second, false), expected[..1]);
        write(&out, &changed(&out, &second, true)).unwrap();
        assert!(!out.join("openwrt/two").exists() && out.join("etc/a/other.conf").exists());
        assert_eq!(fs::read_to_string(out.join("etc/a/one.conf")).unwrap(), second[0].text);
        let names: Vec<_> =
            fs::read_dir(out.join("etc/a")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn a_file_of_somebody_else_in_the_way_is_an_error_that_names_it() {
        let folder = kit::Folder::new();
        let out = folder.file("out");
        fs::create_dir_all(out.join("etc")).unwrap();
        fs::write(out.join("etc/radvd.conf"), "interface lan { };\n").unwrap();
        fs::create_dir(out.join("etc/other.conf")).unwrap();
        let error = changes(&out, &[file("etc/radvd.conf", "1"), file("etc/other.conf", "2")], Vec::new())
            .unwrap_err();
        assert!(error.contains("etc/radvd.conf: a file is there that sixfold plan did not write"), "{error}");
        assert!(error.lines().count() == 2 && error.contains("other.conf"), "{error}");
    }
}
