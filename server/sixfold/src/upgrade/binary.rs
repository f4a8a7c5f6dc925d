//! The program of a successor: its path, and the check of a file that an operator has named. A file that others may change would
//! give them the identity of the server.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Permission bits by which group or others may write.
const OTHERS_WRITE: u32 = 0o022;

/// Begin of the name of every program that may be a successor. The launcher runs outside the sandbox of the server: one that is taken
/// over must not start a shell or an editor there.
const NAME: &str = "sixfold";

/// The bit of a directory in which only the owner of a file may replace it (chmod(1): restricted deletion).
const STICKY: u32 = 0o1000;

/// The path by which a successor of this process is started: that on the command line if it leads to this program, because it may
/// be a link that a new version changes; else that of the file. Call it at start: when the file is replaced, the kernel calls the old
/// one "deleted".
///
/// # Errors
///
/// The error of readlink(2) for /proc/self/exe, or of getcwd(2) for a relative path.
pub fn of_this_process() -> std::io::Result<PathBuf> {
    let file = without_deleted(env::current_exe()?);
    let called = env::args_os().next().map(PathBuf::from).filter(|called| called.components().count() > 1);
    let called = called.filter(|called| fs::canonicalize(called).is_ok_and(|path| path == file));
    called.map_or(Ok(file), std::path::absolute)
}

/// The path at which a program was that has been replaced: the kernel appends a word to the path of a deleted file (proc(5)).
fn without_deleted(path: PathBuf) -> PathBuf {
    match path.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(replaced) if !path.exists() => PathBuf::from(OsStr::from_bytes(replaced)),
        _ => path,
    }
}

/// Checks that the file has the name of this program, and that nobody but root and `user` can change it, nor put another one into its
/// place. Returns its path without links.
///
/// # Errors
///
/// The reason with the remedy: the file cannot be found, is no executable file, has another name, or somebody else may change it or one
/// of its folders.
pub fn trusted(file: &Path, user: u32) -> Result<PathBuf, String> {
    let shown = file.display();
    let path = fs::canonicalize(file).map_err(|error| {
        format!(
            "cannot use {shown}: {error}; a service with a root directory of its own sees the folders that its unit names \
             (BindReadOnlyPaths=)"
        )
    })?;
    let metadata = |path: &Path| {
        let unreadable =
            |error| format!("cannot use {}: {error}; let the user of the server read it", path.display());
        fs::metadata(path).map_err(unreadable)
    };
    let of_file = metadata(&path)?;
    if !of_file.is_file() || of_file.mode() & 0o111 == 0 {
        return Err(format!("{shown} is no program: name an executable file (`chmod a+x {shown}`)"));
    }
    if !path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(NAME.as_bytes())) {
        return Err(format!(
            "not starting {shown}: the control socket starts only programs whose name begins with {NAME}; rename the file"
        ));
    }
    let may_be_changed = |metadata: &Metadata, mode: u32| {
        metadata.uid() != 0 && metadata.uid() != user || metadata.permissions().mode() & mode != 0
    };
    if may_be_changed(&of_file, OTHERS_WRITE) {
        return Err(untrusted(&path, user));
    }
    for folder in path.ancestors().skip(1) {
        let of_folder = metadata(folder)?;
        let mode = if of_folder.mode() & STICKY != 0 { 0 } else { OTHERS_WRITE };
        if may_be_changed(&of_folder, mode) {
            return Err(untrusted(folder, user));
        }
    }
    Ok(path)
}

fn untrusted(path: &Path, user: u32) -> String {
    let shown = path.display();
    format!(
        "not starting a program that others may replace: {shown} must belong to root or to user {user}, and neither group nor \
         others may write it; use `chown root {shown}` and `chmod go-w {shown}`, or install the program elsewhere"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;

    #[test]
    fn a_program_is_trusted_only_if_nobody_else_can_replace_it() {
        let folder = kit::Folder::new();
        let user = fs::metadata(&folder).unwrap().uid();
        let program = folder.join("sixfold-2");
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(&folder, 0o755);
        fs::write(&program, "").unwrap();
        set(&program, 0o644);
        assert!(trusted(&program, user).unwrap_err().contains("is no program"));
        set(&program, 0o755);
        assert!(trusted(&program, user).is_ok());
        for mode in [0o775, 0o757, 0o777] {
            set(&program, mode);
            let error = trusted(&program, user).unwrap_err();
            assert!(error.contains("chmod go-w") && error.contains("sixfold-2"), "{error}");
        }
        set(&program, 0o755);
        set(&folder, 0o777);
        assert!(trusted(&program, user).is_err());
        set(&folder, 0o1777);
        assert!(trusted(&program, user).is_ok());
        let link = folder.join("link");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        assert_eq!(trusted(&link, user).unwrap(), fs::canonicalize(&program).unwrap());
        let other = folder.join("editor");
        fs::copy(&program, &other).unwrap();
        assert!(trusted(&other, user).unwrap_err().contains("begins with sixfold; rename"));
        assert!(trusted(&folder.join("nothing"), user).unwrap_err().contains("No such file"));
    }

    #[test]
    fn a_program_that_was_replaced_is_found_at_its_path() {
        for (path, found) in [("/no/sixfold (deleted)", "/no/sixfold"), ("/no/sixfold", "/no/sixfold")] {
            assert_eq!(without_deleted(path.into()), Path::new(found));
        }
    }

    #[test]
    fn the_path_of_this_process_leads_to_its_program() {
        let path = of_this_process().unwrap();
        assert_eq!(fs::canonicalize(path).unwrap(), fs::canonicalize(env::current_exe().unwrap()).unwrap());
    }
}
