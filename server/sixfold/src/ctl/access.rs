//! Reason of a missing permission: the folder or the socket that this user may not use, its owner, group and mode, and the remedy.

use rustix::process::{geteuid, getgroups};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Says who may use the socket, and how this user becomes one of them.
pub fn who_may(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(metadata) => {
            let (user, group) =
                (name_in("/etc/passwd", metadata.uid()), name_in("/etc/group", metadata.gid()));
            let is_member =
                getgroups().is_ok_and(|groups| groups.iter().any(|one| one.as_raw() == metadata.gid()));
            let remedy = match metadata.mode() & 0o020 > 0 && metadata.gid() != 0 && !is_member {
                true => format!(
                    "use sudo, or join the group {group} (usermod -aG {group} {}) and log in again",
                    name_in("/etc/passwd", geteuid().as_raw())
                ),
                false => "use sudo".into(),
            };
            format!(
                "the socket belongs to {user}, group {group}, mode {:04o}, and you are {}; {remedy}",
                metadata.mode() & 0o7777,
                name_in("/etc/passwd", geteuid().as_raw())
            )
        }
        Err(_) => format!(
            "you are {} and may not enter {}; use sudo",
            name_in("/etc/passwd", geteuid().as_raw()),
            closed_folder(path).display()
        ),
    }
}

/// The outermost folder of the path that cannot be searched.
fn closed_folder(path: &Path) -> PathBuf {
    let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
    folders.reverse();
    // A folder can be searched if the status of an entry of it can be read; the entry after it on the path is one.
    for (folder, next) in folders.iter().zip(folders.iter().skip(1).copied().chain([path])) {
        if std::fs::symlink_metadata(next).is_err() {
            return folder.to_path_buf();
        }
    }
    path.parent().unwrap_or(path).to_owned()
}

/// The name of a user or group in its table, else its number. Names that only a network service knows are not worth a remedy.
fn name_in(table: &str, number: u32) -> String {
    let text = std::fs::read(table).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    name_of(&text, number).unwrap_or_else(|| number.to_string())
}

/// The name of a number in the lines `name:password:number:...` of passwd(5) and group(5).
fn name_of(table: &str, number: u32) -> Option<String> {
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_the_name_of_its_line() {
        let table = "root:x:0:0:root:/root:/bin/sh\nbroken\nsixfold:x:998:\n";
        assert_eq!(name_of(table, 998).as_deref(), Some("sixfold"));
        assert_eq!(name_of(table, 0).as_deref(), Some("root"));
        assert_eq!(name_of(table, 7), None);
    }
}
