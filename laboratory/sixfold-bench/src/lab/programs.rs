//! Programs of the papers that the reader has built: a folder with one file for each, named as `--program` names them.

use super::mtd64::devices::PAPER_PROGRAMS;
use std::path::{Path, PathBuf};

/// Programs of the paper on authoritative servers: its authority and its tester.
const AUTHORITY_PROGRAMS: [&str; 2] = ["fakedns", "dns64perf++"];

/// Names of the files.
pub fn names() -> impl Iterator<Item = &'static str> {
    PAPER_PROGRAMS.into_iter().chain(AUTHORITY_PROGRAMS)
}

/// Programs in a folder, with their paths.
///
/// # Errors
///
/// The folder does not exist, or has none of the programs; the error lists their names.
pub fn in_folder(folder: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let listed = || names().collect::<Vec<_>>().join(", ");
    if !folder.is_dir() {
        return Err(format!(
            "--programs {}: no such folder; give one with files of these names: {}",
            folder.display(),
            listed()
        ));
    }
    let files = names().map(|name| (name.to_owned(), folder.join(name)));
    let found: Vec<_> = files.filter(|(_, path)| path.is_file()).collect();
    if found.is_empty() {
        return Err(format!(
            "--programs {}: none of the programs is there; the files must be named {}",
            folder.display(),
            listed()
        ));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_folder_are_those_with_known_names() {
        let folder = kit::Folder::new();
        std::fs::create_dir_all(folder.join("totd-1.5.3")).unwrap();
        let error = in_folder(&folder).unwrap_err();
        assert!(
            error.contains("totd-1.5.2") && error.contains("dns64perf++"),
            "a folder is no program: {error}"
        );
        for file in ["mtd64", "fakedns", "README"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        let found = in_folder(&folder).unwrap();
        let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, ["mtd64", "fakedns"]);
        let error = in_folder(&folder).unwrap_err();
        assert!(error.contains("no such folder") && error.contains("mtd64-ng"), "{error}");
    }
}
