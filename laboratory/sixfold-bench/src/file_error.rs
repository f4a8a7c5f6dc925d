//! Errors of files, with the remedy.

use std::io::{self, ErrorKind};
use std::path::Path;

/// The error of a file or a folder that could not be read or written: its name, the reason and the remedy.
pub fn file_error(path: impl AsRef<Path>, error: &io::Error) -> String {
    let remedy = match error.kind() {
        ErrorKind::NotFound => "; name one that exists",
        ErrorKind::PermissionDenied => "; name another one, or change its permissions",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "; free space, or use another file system",
        ErrorKind::ReadOnlyFilesystem => "; use a file system that can be written",
        ErrorKind::IsADirectory => "; name a file",
        ErrorKind::NotADirectory => "; name a folder",
        // The text has it, or there is none.
        _ => "",
    };
    format!("{}: {error}{remedy}", path.as_ref().display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_used_is_named_with_the_remedy() {
        let missing = std::fs::read("/nowhere/plan.toml").unwrap_err();
        let told = file_error("/nowhere/plan.toml", &missing);
        assert!(
            told.starts_with("/nowhere/plan.toml: No such file") && told.ends_with("; name one that exists"),
            "{told}"
        );
        let folder = std::fs::read_to_string("/").unwrap_err();
        assert!(file_error("/", &folder).ends_with("; name a file"));
    }
}
