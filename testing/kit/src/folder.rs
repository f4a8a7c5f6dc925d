//! Folders of tests, removed with them.

use std::fs::Permissions;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for the files of a test, new and empty. It is removed with this value.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// A folder that only its owner may write.
    ///
    /// # Panics
    ///
    /// If the system's temporary folder cannot be written.
    #[expect(clippy::new_without_default, reason = "it makes a folder")]
    pub fn new() -> Folder {
        Folder::with_mode(0o755)
    }

    /// A folder that every user may write: servers give up root, and make their sockets here.
    ///
    /// # Panics
    ///
    /// As [`Folder::new`].
    pub fn for_everybody() -> Folder {
        Folder::with_mode(0o777)
    }

    fn with_mode(mode: u32) -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // In namespaces, several tests have the same process ID.
        let now = std::time::UNIX_EPOCH.elapsed().expect("a time after 1970").subsec_nanos();
        // Short: the path of a socket has at most 107 octets.
        let path = std::env::temp_dir().join(format!("sixfold-test-{}-{number}-{now:x}", std::process::id()));
        std::fs::create_dir(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("the folder is ours");
        Folder(path)
    }

    /// The path of a file in it, as text.
    ///
    /// # Panics
    ///
    /// If the path is not UTF-8.
    pub fn text(&self, name: &str) -> String {
        self.0.join(name).into_os_string().into_string().expect("a path in UTF-8")
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes a file, and returns its path.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name);
        std::fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }

    /// Writes a file with these permissions, and returns its path.
    ///
    /// # Panics
    ///
    /// If the file cannot be written.
    pub fn write_with_mode(&self, name: &str, content: impl AsRef<[u8]>, mode: u32) -> PathBuf {
        let path = self.write(name, content);
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("the file is ours");
        path
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system clears temporary files that cannot be removed here.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
