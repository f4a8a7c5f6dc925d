//! Files of results, which commands write after their work.

use std::fs;
use std::io;
use std::path::Path;

/// Checks before a command's work that its result can be written afterwards. The file keeps its content until then.
///
/// # Errors
///
/// The file cannot be opened for writing, with the command and the path.
pub fn check_writable(command: &str, file: &Path) -> Result<(), String> {
    if file == Path::new("-") {
        return Ok(());
    }
    fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .map(drop)
        .map_err(|error| write_error(command, file, &error))
}

/// Writes a result of a command to a file or to standard output.
///
/// # Errors
///
/// The file cannot be written, with the command and the path.
pub fn write_result(command: &str, file: &Path, text: &str) -> Result<(), String> {
    if file == Path::new("-") {
        print!("{text}");
        return Ok(());
    }
    fs::write(file, text).map_err(|error| write_error(command, file, &error))
}

/// The message about a file that cannot be written.
pub fn write_error(command: &str, file: &Path, error: &io::Error) -> String {
    format!("{command}: {}: {error}; choose a writable place", file.display())
}
