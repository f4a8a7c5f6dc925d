//! Temporary directory for the files of one test.

use kit::namespace::is_orphan;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Prefix of the names; the process ID follows.
const OURS: &str = "sixfold-interop-";

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Directory below the one for temporary files, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty directory that every user can read: servers drop their privileges.
    pub fn new() -> Scratch {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{OURS}{}-{number}", std::process::id()));
        std::fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Scratch(path)
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into the directory.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }

    /// Creates a directory in it.
    pub fn directory(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        path
    }
}

impl Default for Scratch {
    fn default() -> Scratch {
        Scratch::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The system clears temporary files that remain.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes directories of earlier runs that were killed.
pub(crate) fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten().filter(|entry| is_orphan(&entry.file_name().to_string_lossy(), OURS)) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}
