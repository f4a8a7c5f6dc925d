//! The commit of a checkout, or of an archive of one, from the files that git has there (gitrepository-layout(5)).

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Digits of the commit that are shown.
const DIGITS: usize = 12;

/// Reader that keeps the paths whose change may change the commit. A missing file is not among them: Cargo would build every time.
#[derive(Default)]
pub struct Reader {
    /// The paths.
    pub watched: Vec<PathBuf>,
}

impl Reader {
    /// The commit of a checkout: HEAD has it, or names the branch that has it. `git` is the folder or file `.git`.
    pub fn of_checkout(&mut self, git: &Path) -> Option<String> {
        let git = directory(git)?;
        // A further work tree shares branches with the first one.
        let common =
            read_to_string(git.join("commondir")).map_or_else(|_| git.clone(), |path| git.join(path.trim()));
        let head = self.read(&git.join("HEAD"))?;
        let Some(branch) = head.strip_prefix("ref: ").map(str::trim) else { return shortened(&head) };
        let loose = common.join(branch);
        let packed = self.read(&common.join("packed-refs")).unwrap_or_default();
        match self.read(&loose) {
            Some(commit) => shortened(&commit),
            None => {
                // The next commit makes the file, in the first folder that is there.
                self.watched.extend(loose.ancestors().find(|path| path.is_dir()).map(Path::to_owned));
                let lines = packed.lines().filter_map(|line| line.split_once(' '));
                lines.filter(|(_, name)| *name == branch).find_map(|(commit, _)| shortened(commit))
            }
        }
    }

    /// The commit that `git archive` has filled in.
    pub fn of_archive(&mut self, root: &Path) -> Option<String> {
        shortened(&self.read(&root.join("packaging/commit"))?)
    }

    fn read(&mut self, file: &Path) -> Option<String> {
        let text = read_to_string(file).ok()?;
        self.watched.push(file.to_owned());
        Some(text)
    }
}

/// The directory with HEAD: `.git` itself, or the one that the file `.git` of a further work tree names.
fn directory(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = read_to_string(git).ok()?;
    Some(git.parent()?.join(text.trim().strip_prefix("gitdir: ")?))
}

/// The first digits of a commit; none if the text is not one.
fn shortened(commit: &str) -> Option<String> {
    let commit = commit.trim();
    let is_commit = commit.len() >= 40 && commit.bytes().all(|octet| octet.is_ascii_hexdigit());
    is_commit.then(|| commit[..DIGITS].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    const FIRST: &str = "0123456789abcdef0123456789abcdef01234567";
    const SECOND: &str = "fedcba9876543210fedcba9876543210fedcba98";

    /// A checkout in a folder of its own, which is removed with the test.
    struct Checkout(PathBuf);

    impl Checkout {
        fn new(files: &[(&str, &str)]) -> Checkout {
            static NUMBER: AtomicU32 = AtomicU32::new(0);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let folder =
                std::env::temp_dir().join(format!("sixfold-checkout-{}-{number}", std::process::id()));
            let checkout = Checkout(folder);
            files.iter().for_each(|(path, text)| checkout.write(path, text));
            checkout
        }

        fn write(&self, path: &str, text: &str) {
            let file = self.0.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }

        /// The commit, and the paths that are watched.
        fn read(&self, git: &str) -> (Option<String>, Vec<String>) {
            let mut reader = Reader::default();
            let commit = reader.of_checkout(&self.0.join(git));
            let relative = |path: &PathBuf| {
                let path = path.canonicalize().unwrap();
                path.strip_prefix(self.0.canonicalize().unwrap()).unwrap().display().to_string()
            };
            (commit, reader.watched.iter().map(relative).collect())
        }
    }

    impl Drop for Checkout {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// The content of `packed-refs`: a header, branches, and the commit of an annotated tag behind that.
    fn packed() -> String {
        format!(
            "# pack-refs with: peeled fully-peeled sorted \n{FIRST} refs/heads/main\n{SECOND} refs/heads/main/other\n\
             {SECOND} refs/tags/v1\n^{FIRST}\n"
        )
    }

    #[test]
    fn a_branch_in_a_file_of_its_own_comes_before_the_packed_one() {
        let branch = (".git/refs/heads/main", &format!("{SECOND}\n")[..]);
        let checkout = Checkout::new(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/packed-refs", &packed()),
            branch,
        ]);
        let watched = [".git/HEAD", ".git/packed-refs", ".git/refs/heads/main"].map(str::to_owned).to_vec();
        assert_eq!(checkout.read(".git"), (Some("fedcba987654".to_owned()), watched));
    }

    #[test]
    fn a_packed_branch_is_found_and_the_folder_of_its_next_commit_is_watched() {
        let tag = (".git/refs/tags/v2", FIRST);
        let checkout = Checkout::new(&[
            (".git/HEAD", "ref: refs/heads/feature/x\n"),
            (".git/packed-refs", &packed().replace("heads/main/other", "heads/feature/x")),
            tag,
        ]);
        let watched = [".git/HEAD", ".git/packed-refs", ".git/refs"].map(str::to_owned).to_vec();
        assert_eq!(checkout.read(".git"), (Some("fedcba987654".to_owned()), watched));
        let other = Checkout::new(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/packed-refs", &packed()),
            (".git/refs/heads/other", SECOND),
        ]);
        assert_eq!(other.read(".git").0.as_deref(), Some("0123456789ab"));
    }

    #[test]
    fn a_detached_head_has_the_commit_itself() {
        let checkout =
            Checkout::new(&[(".git/HEAD", &format!("{FIRST}\n")), (".git/packed-refs", &packed())]);
        assert_eq!(checkout.read(".git"), (Some("0123456789ab".to_owned()), vec![".git/HEAD".to_owned()]));
    }

    #[test]
    fn a_further_work_tree_has_a_head_of_its_own_and_shares_the_branches() {
        let further = ".git/worktrees/further";
        let checkout = Checkout::new(&[
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/refs/heads/main", FIRST),
            (".git/refs/heads/topic", SECOND),
            (&format!("{further}/HEAD"), "ref: refs/heads/topic\n"),
            (&format!("{further}/commondir"), "../..\n"),
            // git writes an absolute path, or a relative one (worktree.useRelativePaths).
            ("further/.git", &format!("gitdir: ../{further}\n")),
        ]);
        let (commit, watched) = checkout.read("further/.git");
        assert_eq!(commit.as_deref(), Some("fedcba987654"));
        assert_eq!(watched, [&format!("{further}/HEAD"), ".git/refs/heads/topic"]);
        checkout.write("further/.git", &format!("gitdir: {}\n", checkout.0.join(further).display()));
        assert_eq!(checkout.read("further/.git").0.as_deref(), Some("fedcba987654"));
    }

    #[test]
    fn what_is_no_commit_is_none() {
        for files in [
            &[(".git/HEAD", "ref: refs/heads/new\n")][..],
            &[(".git/HEAD", "0123456789abcdef\n")],
            &[(".git", "something else\n")],
            &[("README.md", "no checkout\n")],
        ] {
            assert_eq!(Checkout::new(files).read(".git").0, None, "{files:?}");
        }
        let archive = |text: &str| {
            let root = Checkout::new(&[("packaging/commit", text)]);
            Reader::default().of_archive(&root.0)
        };
        assert_eq!(archive("$Format:%H$\n"), None);
        assert_eq!(archive(&format!("{FIRST}\n")).as_deref(), Some("0123456789ab"));
    }
}
