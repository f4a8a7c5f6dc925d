//! Programs of servers: how they are found, and their version.

use crate::recipe::Recipe;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a program that is asked for its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Highest number of characters kept of a version.
const VERSION_CHARACTERS: usize = 200;

/// Error for a program that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    program: String,
    /// Where it was searched for: `installed on this host`.
    place: String,
    remedy: String,
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not {}: {}", self.program, self.place, self.remedy)
    }
}

impl std::error::Error for ProgramError {}

/// Finds a recipe's program: the given one, or the one beside our own executable if this project builds it, or one in
/// PATH or in the folders where servers are installed, which are not in every user's PATH.
///
/// # Errors
///
/// [`ProgramError`]: there is no such file, with the remedy of the recipe.
pub fn find(recipe: &Recipe, given: Option<&str>) -> Result<PathBuf, ProgramError> {
    let missing = |program: &str| ProgramError {
        program: program.to_owned(),
        place: "installed on this host".to_owned(),
        remedy: recipe.remedy.to_owned(),
    };
    if let Some(given) = given {
        let found = if given.contains('/') { Some(PathBuf::from(given)) } else { find_in_path(given) };
        return found.filter(|path| path.is_file()).ok_or_else(|| missing(given));
    }
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name(recipe.program));
    let beside = beside.filter(|path| recipe.program == "sixfold" && path.is_file());
    beside.or_else(|| find_in_path(recipe.program)).ok_or_else(|| missing(recipe.program))
}

/// Finds a recipe's program in the root of another system. Its path is that of the other system.
///
/// # Errors
///
/// [`ProgramError`]: there is no such file, with the way to make such a root.
pub fn find_in(recipe: &Recipe, root: &Path) -> Result<String, ProgramError> {
    let found = ["usr/sbin", "usr/bin"].map(|folder| Path::new(folder).join(recipe.program));
    let found = found.into_iter().find(|path| root.join(path).is_file());
    found.map(|path| format!("/{}", path.display())).ok_or_else(|| {
        // Remedies of packages are of the form "install it with `apt-get install PACKAGE`".
        let package =
            recipe.remedy.split("apt-get install ").nth(1).unwrap_or_default().trim_end_matches('`');
        ProgramError {
            program: recipe.program.to_owned(),
            place: format!("in {}", root.display()),
            remedy: format!(
                "mmdebstrap --variant=minbase --include={package} trixie DIR makes such a folder"
            ),
        }
    })
}

/// Finds a program by its name, in PATH and in the folders for servers.
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let go = std::env::var_os("HOME").map(|home| Path::new(&home).join("go/bin"));
    let others = ["/usr/sbin", "/usr/local/sbin", "/usr/local/bin", "/sbin"].map(PathBuf::from);
    let folders = std::env::split_paths(&path).chain(others).chain(go);
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

impl Recipe {
    /// Version in what a program says of it: the first line with the recipe's prefix, from the prefix on, else the first line with a digit.
    pub fn version_in(&self, said: &str) -> String {
        let titled = |line| str::find(line, self.version_prefix).map(|at| &line[at..]);
        let has_digit = |line: &&str| line.contains(|c: char| c.is_ascii_digit());
        let line = said.lines().filter_map(titled).find(has_digit).or_else(|| said.lines().find(has_digit));
        line.unwrap_or_default().trim().chars().take(VERSION_CHARACTERS).collect()
    }
}

/// Version that a program reports when it is started by this command. Empty if the program prints nothing in time.
pub fn version(recipe: &Recipe, mut program: Command) -> String {
    recipe.version_in(&command_output(program.args(recipe.version), VERSION_TIMEOUT))
}

/// The first two numbers of a version, behind the words before them: (9, 18) of `BIND 9.18.49` behind `BIND `. Zeros if there are
/// none.
pub(crate) fn release(version: &str, before: &str) -> (u32, u32) {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let number = version.split_once(before).map_or("", |(_, rest)| rest);
    let mut parts = number.split('.').map(|part| digits(part).parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// Runs a command and returns its standard output and standard error. Kills it after `wait`.
pub fn command_output(command: &mut Command, wait: Duration) -> String {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return String::new() };
    let readers = [child.stdout.take().map(read), child.stderr.take().map(read)];
    let end = Instant::now() + wait;
    while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    readers.into_iter().flatten().filter_map(|reader| reader.recv_timeout(wait).ok()).collect()
}

/// Reads all of a pipe in a thread of its own, so that a full pipe never blocks the writer.
fn read(mut pipe: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::spawn(move || {
        let mut octets = Vec::new();
        let _ = (&mut pipe).take(1 << 16).read_to_end(&mut octets);
        let _ = sender.send(String::from_utf8_lossy(&octets).into_owned());
    });
    receiver
}

/// Returns true if AppArmor enforces a profile for a program. Only root can read the list of profiles; confined servers
/// are mostly started by root.
pub fn is_confined_by_apparmor(program: &str) -> bool {
    let profiles = fs::read_to_string("/sys/kernel/security/apparmor/profiles").unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    profiles.lines().any(|line| {
        line.strip_suffix(" (enforce)").is_some_and(|profile| profile == program || profile == name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(program: &'static str, version: &'static [&'static str]) -> Recipe {
        Recipe {
            name: "test",
            program,
            remedy: "apt-get install nothing",
            version,
            version_prefix: "Version",
            encrypted: &[],
            ready: crate::process::Ready::Answer,
            lacks: None,
            plan: |_, _| crate::recipe::LaunchPlan::default(),
        }
    }

    #[test]
    fn a_missing_program_is_named_with_the_way_to_get_it() {
        for given in [None, Some("nowhere-at-all"), Some("/nowhere/at-all")] {
            let error = find(&recipe("nowhere-at-all", &[]), given).unwrap_err().to_string();
            assert!(
                error.contains("at-all is not installed on this host: apt-get install nothing"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_version_is_the_first_line_with_a_digit() {
        let shell = find(&recipe("sh", &["-c", "echo hello; echo Version 1.2 >&2; sleep 0"]), None).unwrap();
        let recipe = recipe("sh", &["-c", "echo hello; echo; echo ' Version 1.2 '; echo 3"]);
        assert_eq!(version(&recipe, Command::new(shell)), "Version 1.2");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended() {
        let said = command_output(
            Command::new("sh").args(["-c", "echo 1; exec sleep 60"]),
            Duration::from_millis(300),
        );
        assert_eq!(said.trim(), "1");
    }
}
