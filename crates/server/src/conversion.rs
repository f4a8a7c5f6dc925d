//! `sixfold convert`: translates a configuration of another server. The crate `convert` does so; here are the files and the exit
//! status.

use crate::cli::Convert;
use crate::config::regular_file;
use convert::{ConvertError, File, MAX_FILE_OCTETS};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit status if the file cannot be read as a configuration of any of the servers.
const UNREADABLE: u8 = 2;

/// Runs the command: prints the configuration on standard output. With exit status 0 everything was carried over.
pub fn run(arguments: &Convert) -> ExitCode {
    let name = arguments.file.display().to_string();
    let text = match read(&arguments.file) {
        Ok(text) => text,
        Err(why) => {
            return refuse(&format!(
                "cannot read {name}: {why}; name a configuration file that you may read"
            ));
        }
    };
    let (mut read_included, view) = (included, arguments.view.as_deref());
    let conversion = match convert::convert(&name, &text, arguments.from, view, &mut read_included) {
        Ok(conversion) => conversion,
        Err(error @ ConvertError::Syntax { .. }) => {
            return refuse(&format!("{error}; correct it, or name the right server with --from"));
        }
        Err(error) => return refuse(&format!("cannot convert {name}: {error}")),
    };
    if let Err(error) = std::io::stdout().lock().write_all(conversion.text.as_bytes()) {
        return refuse(&format!("cannot write the configuration: {error}"));
    }
    match conversion.left_over() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!(
                "sixfold: {count} {} of {} not carried over: see the comments at the top of the output",
                if count == 1 { "statement" } else { "statements" },
                conversion.dialect.title()
            );
            ExitCode::FAILURE
        }
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("sixfold: {message}");
    ExitCode::from(UNREADABLE)
}

/// Reads a file. Octets that are not UTF-8, as in comments of old files, become replacement characters.
fn read(path: &Path) -> Result<String, String> {
    let octets = regular_file::read(path, MAX_FILE_OCTETS as u64).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&octets).into_owned())
}

/// Files of an `include`. A relative name belongs to the folder of the including file; `*` in the last part stands for any
/// characters, and the files come in the order of their names.
fn included(from: &str, pattern: &str) -> Vec<File> {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let path = folder.join(pattern);
    let named = |path: PathBuf| (path.display().to_string(), read(&path));
    let last = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    let Some((start, end)) = last.split_once('*') else { return vec![named(path)] };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(parent) else { return Vec::new() };
    let matches = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_hidden = name.starts_with('.') && start.is_empty();
        !is_hidden && name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(matches).collect();
    paths.sort();
    paths.into_iter().map(named).collect()
}
