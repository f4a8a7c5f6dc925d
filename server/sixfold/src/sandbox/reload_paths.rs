//! The reach of a reload: folders that the sandbox has left readable. An error about a file elsewhere says that the sandbox is the
//! reason, as the permissions of the file do not tell.

use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Files and folders that the process can read; empty without a sandbox. The sandbox belongs to the process, like this.
static READABLE: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// True if the process may write the state of trust anchors; empty without a sandbox.
static WRITES: OnceLock<bool> = OnceLock::new();

/// Records if the process may write the state of trust anchors.
pub fn limit_writing(writes: bool) {
    // A process enters its sandbox once.
    let _ = WRITES.set(writes);
}

/// True if the process may write the state of trust anchors. A system call that the sandbox does not list is not to be tried.
pub fn may_write() -> bool {
    WRITES.get().copied().unwrap_or(true)
}

/// Records the limit, once the process is in the sandbox.
pub fn limit_to(readable: &[PathBuf]) {
    let canonical = readable.iter().filter_map(|path| path.canonicalize().ok());
    // A process enters its sandbox once.
    let _ = READABLE.set(canonical.collect());
}

/// The error of a file that could not be opened, with reason and remedy if the sandbox refused it.
pub fn explain(file: &Path, error: Error) -> Error {
    match READABLE.get() {
        Some(readable) if error.kind() == ErrorKind::PermissionDenied && is_outside(file, readable) => {
            Error::new(
                ErrorKind::PermissionDenied,
                "the sandbox of the running server does not reach it: restart the server, or put the file below /etc or next to \
                 a file that the configuration named at the start",
            )
        }
        _ => error,
    }
}

/// True if no folder in `readable` contains the file. A file that others hide is not known to be outside.
fn is_outside(file: &Path, readable: &[PathBuf]) -> bool {
    file.canonicalize().is_ok_and(|file| !readable.iter().any(|folder| file.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_outside_if_no_readable_folder_contains_what_it_links_to() {
        let folder = kit::Folder::new();
        std::fs::create_dir_all(folder.join("inside/below")).unwrap();
        std::fs::create_dir_all(folder.join("inside-not")).unwrap();
        std::fs::write(folder.join("inside/below/file"), "").unwrap();
        std::fs::write(folder.join("inside-not/file"), "").unwrap();
        std::os::unix::fs::symlink(folder.join("inside-not/file"), folder.join("inside/link")).unwrap();
        let readable = [folder.join("inside").canonicalize().unwrap()];
        let outside = ["inside/below/file", "inside-not/file", "inside/link", "inside/absent"]
            .map(|name| is_outside(&folder.join(name), &readable));
        assert_eq!(outside, [false, true, true, false]);
    }
}
