//! `sixfold convert`: translates a configuration of another server. The crate `convert` does so; here are the files and the exit
//! status.

use crate::cli::Convert;
use crate::config::regular_file;
use convert::{ConvertError, Files, MAX_FILE_OCTETS};
use std::io::{ErrorKind, Write};
use std::path::Path;
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
    let view = arguments.view.as_deref();
    let conversion = match convert::convert(&name, &text, arguments.from, view, &mut Machine) {
        Ok(conversion) => conversion,
        Err(error @ ConvertError::Syntax { .. }) => {
            return refuse(&format!("{error}; correct it, or name the right server with --from"));
        }
        Err(error) => return refuse(&format!("cannot convert {name}: {error}")),
    };
    if let Err(error) = std::io::stdout().lock().write_all(conversion.text.as_bytes()) {
        return refuse(&format!("cannot write the configuration: {error}; look at the target of the output"));
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

/// The files that the user of the command may read.
struct Machine;

impl Files for Machine {
    fn read(&mut self, path: &str) -> Result<String, String> {
        read(Path::new(path))
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, String> {
        let folder = if folder.is_empty() { "." } else { folder };
        let entries = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<Result<Vec<_>, _>>());
        match entries {
            Ok(names) => Ok(names.iter().map(|name| name.to_string_lossy().into_owned()).collect()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Ok(Vec::new())
            }
            Err(error) => Err(format!("cannot list {folder}: {error}; make it readable")),
        }
    }
}
