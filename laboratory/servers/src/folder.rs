//! Folder of a server's files.

use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A new, empty folder for a server's files. Dropping it removes the folder.
#[derive(Debug)]
pub struct WorkingFolder(PathBuf);

impl WorkingFolder {
    /// Creates a folder that only this user can read.
    ///
    /// # Errors
    ///
    /// The temporary folder cannot be written, or its name is not UTF-8: command lines and configurations are text.
    pub fn new() -> io::Result<WorkingFolder> {
        WorkingFolder::new_in(&std::env::temp_dir())
    }

    /// Creates such a folder in another one than the temporary folder.
    ///
    /// # Errors
    ///
    /// As [`WorkingFolder::new`].
    pub fn new_in(base: &Path) -> io::Result<WorkingFolder> {
        WorkingFolder::create(base, 0o700, "")
    }

    /// Creates a folder that everybody can read, as servers give up their user. Its path ends with the first 24 characters of `name`.
    ///
    /// # Errors
    ///
    /// As [`WorkingFolder::new`].
    pub fn for_everybody(name: &str) -> io::Result<WorkingFolder> {
        let name: String = name.chars().take(24).collect();
        WorkingFolder::create(&std::env::temp_dir(), 0o755, &format!("-{name}"))
    }

    fn create(base: &Path, mode: u32, end: &str) -> io::Result<WorkingFolder> {
        let failed = |kind, why: &str| {
            io::Error::new(kind, format!("{}: {why}; set TMPDIR to a writable folder", base.display()))
        };
        if base.to_str().is_none() {
            return Err(failed(io::ErrorKind::InvalidInput, "its name is not UTF-8"));
        }
        loop {
            // The process ID is not unique: in a namespace every program may be process 1. The state of a new hasher is random. Servers put
            // sockets there, and paths of sockets are short (unix(7): 108 octets).
            let path = base.join(format!("sixfold-{:016x}{end}", RandomState::new().hash_one(mode)));
            match DirBuilder::new().mode(mode).create(&path) {
                Ok(()) => return Ok(WorkingFolder(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(error.kind(), &error.to_string())),
            }
        }
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkingFolder {
    fn drop(&mut self) {
        // The system clears temporary files that cannot be removed here.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_new_and_goes_with_its_value_and_one_that_cannot_be_made_is_told_with_the_remedy() {
        let folders = [WorkingFolder::new().unwrap(), WorkingFolder::for_everybody("case").unwrap()];
        let paths = folders.each_ref().map(|folder| folder.path().to_owned());
        assert!(paths[0] != paths[1] && paths.iter().all(|path| path.is_dir()));
        assert!(paths[1].to_str().unwrap().ends_with("-case"));
        drop(folders);
        assert!(paths.iter().all(|path| !path.exists()));
        let error = WorkingFolder::new_in(Path::new("/nowhere")).unwrap_err().to_string();
        assert!(error.starts_with("/nowhere: ") && error.contains("set TMPDIR"), "{error}");
    }
}
