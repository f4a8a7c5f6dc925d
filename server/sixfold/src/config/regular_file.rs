//! Reader for the texts that the configuration refers to: only regular files, of a limited length, without a byte order mark.

use crate::sandbox::reload_paths;
use std::io::{Error, Read};
use std::path::Path;
use textfile::PlainText;

/// Reads a regular file of at most `limit` octets.
///
/// # Errors
///
/// The file cannot be opened or read, has more than `limit` octets, or is no regular file: a pipe could wait for its writer for ever,
/// and a device has no end.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::other("it is not a regular file"));
    }
    let mut octets = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| reload_paths::explain(path, error))?;
    PlainText::new(file).take(limit + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > limit {
        return Err(Error::other(format!("it has more than {limit} octets")));
    }
    Ok(octets)
}
