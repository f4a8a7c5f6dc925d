//! Loading of the configuration: the file, then the flags, then the checks over both.

use super::report::{Fault, Place, Places, Problem, Problems, Report};
use super::source::SourceLines;
use super::{
    Config, DEFAULT_CONTROL, DEFAULT_PATH, Overrides, checks, document, limits, of_interfaces, secret_files,
    values,
};
use crate::memory;
use crate::sandbox::reload_paths;
use datapath::privileges;
use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The effective configuration.
    pub config: Config,
    /// Its file; none when only defaults and flags count.
    pub source: Option<PathBuf>,
    /// Warnings about values that are allowed but probably not intended.
    pub warnings: Vec<String>,
}

/// Reason why there is no configuration.
#[derive(Clone, Debug)]
pub enum Failure {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        why: String,
    },
    /// The configuration is wrong.
    Wrong(Report),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Unreadable { path, why } => write!(
                f,
                "sixfold: cannot read {}: {why}; name a readable file after --config, or leave --config out to use \
                 {DEFAULT_PATH} or, if that does not exist, the defaults",
                path.display()
            ),
            Failure::Wrong(report) => report.fmt(f),
        }
    }
}

impl Failure {
    /// The failure for the operator of a running server, whose command line cannot change.
    pub fn of_reload(&self) -> String {
        match self {
            Failure::Unreadable { path, why } => format!(
                "sixfold: cannot read {}: {why}; put the file there, readable for the user that the server runs as, and reload \
                 again",
                path.display()
            ),
            other => other.to_string(),
        }
    }
}

impl std::error::Error for Failure {}

/// Reads and checks the configuration in `file`, or in [`DEFAULT_PATH`] if that exists, or the defaults.
///
/// # Errors
///
/// The file cannot be read, or its configuration has errors: all of them, each with its place and its remedy.
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Failure> {
    let mut loaded = read(file, overrides, missing_user)?;
    loaded.warnings.extend(memory::warning(&loaded.config));
    Ok(loaded)
}

/// Reads and checks the configuration again, for a server that runs. `server.user` is for the next start, so the user is not looked
/// up: that may load libraries and ask other programs (nsswitch.conf(5)), which the sandbox forbids.
///
/// # Errors
///
/// As [`load`], except for the user.
pub fn load_again(file: Option<&Path>, overrides: &Overrides) -> Result<Loaded, Failure> {
    read(file, overrides, |_| None)
}

/// A valid configuration with its text, in which further checks find the places of values.
#[derive(Clone, Debug)]
pub struct Located {
    /// The configuration.
    pub config: Config,
    /// The text of the file.
    pub text: String,
    /// The places of the values in it.
    pub places: Places,
}

/// Reads and checks a file that another program makes something of; the user that the server becomes need not exist here.
///
/// # Errors
///
/// As [`load`].
pub fn load_with_places(file: &Path) -> Result<Located, Failure> {
    let text = read_text(file)
        .map_err(|error| Failure::Unreadable { path: file.to_owned(), why: error.to_string() })?;
    let name = file.display().to_string();
    let parsed = parse_with_places(&name, &text, &Overrides::default(), Path::new("/etc/resolv.conf"));
    let (config, _, places) = parsed.map_err(Failure::Wrong)?;
    Ok(Located { config, text, places })
}

fn read(
    file: Option<&Path>,
    overrides: &Overrides,
    missing_user: impl Fn(&str) -> Option<Problem>,
) -> Result<Loaded, Failure> {
    let path = file.unwrap_or(Path::new(DEFAULT_PATH));
    let (name, text, source) = match read_text(path) {
        Ok(text) => (path.display().to_string(), text, Some(path.to_owned())),
        Err(error) if file.is_none() && error.kind() == ErrorKind::NotFound => {
            ("the defaults".to_owned(), String::new(), None)
        }
        Err(error) => return Err(Failure::Unreadable { path: path.to_owned(), why: error.to_string() }),
    };
    let parsed = parse(&name, &text, overrides, Path::new("/etc/resolv.conf"));
    let (mut config, mut warnings) = match (parsed, missing_user(&text)) {
        (Ok((config, mut warnings)), Some(problem)) if !privileges::is_root() => {
            warnings
                .push(format!("a start as root will fail: {}; {}", problem.fault.what, problem.fault.help));
            (config, warnings)
        }
        (Ok(_), Some(problem)) => {
            return Err(Failure::Wrong(Report { file: name, text, problems: vec![problem] }));
        }
        (Err(mut report), problem) => {
            report.problems.extend(problem);
            report.problems.sort_by_key(Problem::order);
            return Err(Failure::Wrong(report));
        }
        (Ok(valid), None) => valid,
    };
    if config.server.allow.has_local() {
        match of_interfaces() {
            Ok(networks) => config.server.allow.interfaces = networks,
            Err(why) => warnings.push(format!(
                "cannot read the networks of this machine's interfaces: {why}; `\"local\"` in `server.allow` does not contain them; allow netlink \
                 (RestrictAddressFamilies= of the unit needs AF_NETLINK), or list the networks there"
            )),
        }
    }
    let source = source.map(|path| std::path::absolute(&path).unwrap_or(path));
    warnings.extend(secret_files::warnings(&config, source.as_deref()));
    Ok(Loaded { config, source, warnings })
}

/// The problem of a `server.user` that does not exist. Only a start as root needs that user.
fn missing_user(text: &str) -> Option<Problem> {
    let (document, _) = DeTable::parse_recoverable(text);
    let user = document.get_ref().get("server")?.get_ref().as_table()?.get("user")?;
    let name = user.get_ref().as_str().filter(|&name| values::user(name).is_ok() && name != "root")?;
    let error = privileges::lookup(name).err()?.to_string();
    let (what, help) = error.split_once("; ").unwrap_or((&error, "change `server.user`"));
    Some(Problem { place: Place::File(user.span()), fault: Fault::new(what, help) })
}

/// Path of the control socket in the file, for `sixfold ctl`. A server may run although its file has become invalid since
/// the start, or is not readable for the user of `ctl`: so errors elsewhere in the file are ignored, and without a
/// readable path the result is [`DEFAULT_CONTROL`]. None when the file switches the socket off (`""`).
pub fn control_socket(file: Option<&Path>) -> Option<PathBuf> {
    let text = read_text(file.unwrap_or(Path::new(DEFAULT_PATH))).unwrap_or_default();
    let (document, _) = DeTable::parse_recoverable(&text);
    let control = document.get_ref().get("control").and_then(|value| value.get_ref().as_table());
    match control.and_then(|table| table.get("socket")).and_then(|value| value.get_ref().as_str()) {
        Some("") => None,
        Some(path) => Some(path.into()),
        None => Some(DEFAULT_CONTROL.into()),
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let mut octets = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| reload_paths::explain(path, error))?;
    file.take(limits::FILE_OCTETS + 1).read_to_end(&mut octets)?;
    let invalid = |why: String| std::io::Error::new(ErrorKind::InvalidData, why);
    if octets.len() as u64 > limits::FILE_OCTETS {
        return Err(invalid(format!("it is larger than {} octets", limits::FILE_OCTETS)));
    }
    String::from_utf8(octets).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..valid].iter().filter(|&&octet| octet == b'\n').count();
        invalid(format!("line {line} is not UTF-8 text"))
    })
}

/// Checks a configuration that is already in memory. `name` stands for the file in reports; `resolv_conf` is the source
/// of `"system"` forwarders. Returns the configuration and warnings.
///
/// # Errors
///
/// All errors of the configuration, each with its place and its remedy. With syntax errors, errors that may only follow from them are
/// left out.
pub fn parse(
    name: &str,
    text: &str,
    overrides: &Overrides,
    resolv_conf: &Path,
) -> Result<(Config, Vec<String>), Report> {
    parse_with_places(name, text, overrides, resolv_conf).map(|(config, warnings, _)| (config, warnings))
}

/// As [`parse`], with the places of all values.
fn parse_with_places(
    name: &str,
    text: &str,
    overrides: &Overrides,
    resolv_conf: &Path,
) -> Result<(Config, Vec<String>, Places), Report> {
    let (document, syntax) = DeTable::parse_recoverable(text);
    let problems = Problems::default();
    let mut config = document::read(document.get_ref(), &problems);
    checks::apply(overrides, &mut config, &problems);
    let warnings = checks::finish(&mut config, resolv_conf, &problems);
    let places = problems.take_places();
    let mut report =
        Report { file: name.to_owned(), text: text.to_owned(), problems: problems.into_sorted() };
    if !syntax.is_empty() {
        // The parts that parsed are still checked, so that one run shows every error. Left out are errors on lines with
        // syntax errors, and errors about several values at once, of which one may have been lost.
        let lines = SourceLines::of(text);
        let line = |place: &Place| match place {
            Place::File(span) => Some(lines.position(span.start).0),
            _ => None,
        };
        let found = Problems::default();
        let mut broken = Vec::new();
        for error in &syntax {
            let place = Place::File(error.span().unwrap_or(text.len()..text.len()));
            broken.push(line(&place));
            found.add(&place, syntax_fault(error.message()));
        }
        for problem in &report.problems {
            let line = line(&problem.place);
            if line.is_some() && problem.place != Place::File(0..0) && !broken.contains(&line) {
                found.add(&problem.place, problem.fault.clone());
            }
        }
        report.problems = found.into_sorted();
    }
    if report.problems.is_empty() { Ok((config, warnings, places)) } else { Err(report) }
}

fn syntax_fault(message: &str) -> Fault {
    let help = match message {
        "duplicate key" => "a key or a [table] may appear only once in a file: delete one of the two",
        _ => "the file must be TOML: KEY = VALUE below [TABLE], text between quotation marks, lists in [ ]",
    };
    Fault::new(format!("this is not TOML: {message}"), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_socket_is_found_in_a_file_that_is_wrong_elsewhere() {
        let folder = kit::Folder::new();
        let file = folder.file("x.toml");
        for (text, path) in [
            ("[server]\nworkers = \nport = 1\n[control]\nsocket = \"/tmp/a\"\n", Some("/tmp/a")),
            ("control.socket = \"\"\nnonsense = 1\n", None),
            ("[control]\nsocket = 1\n", Some(DEFAULT_CONTROL)),
            ("control = [", Some(DEFAULT_CONTROL)),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(control_socket(Some(&file)), path.map(PathBuf::from), "{text}");
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(control_socket(Some(&file)), Some(DEFAULT_CONTROL.into()));
    }
}
