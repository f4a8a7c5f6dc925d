//! A directory for the files of one test.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How the names of everything that tests make begin; the ID of their process follows.
const OURS: &str = "sixfold-interop-";

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A directory below that for temporary files, removed when it is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty directory that everybody can read: servers drop their privileges.
    pub fn new() -> Scratch {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("{}{number}", prefix()));
        std::fs::create_dir(&path)
            .unwrap_or_else(|error| panic!("cannot create {}: {error}", path.display()));
        Scratch(path)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        path
    }

    /// A new directory in it.
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
        // What is left over is for the cleaner of temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How the names of everything that this process makes begin.
pub(crate) fn prefix() -> String {
    format!("{OURS}{}-", std::process::id())
}

/// Whether a name is that of something whose process has ended without removing it.
pub(crate) fn is_orphan(name: &str) -> bool {
    let owner = name.strip_prefix(OURS).and_then(|rest| rest.split('-').next());
    owner.is_some_and(|owner| !Path::new("/proc").join(owner).exists())
}

/// Removes directories that earlier runs left behind because they were killed.
pub(crate) fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten().filter(|entry| is_orphan(&entry.file_name().to_string_lossy())) {
        let _ = std::fs::remove_dir_all(entry.path());
    }
}
