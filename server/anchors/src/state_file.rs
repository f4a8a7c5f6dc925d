//! The file in which the state of RFC 5011 survives: written beside, brought to the disk, then renamed. A crash at any point leaves the old
//! file or the new one, whole.
//!
//! If the new one was complete but not renamed, it is found at the next start, and renamed first of all: writing would destroy it.

use crate::limits::FILE;
use crate::saved::{RevokedKey, Saved, SavedError, SavedZone};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Operations on files, so that tests can crash in each of them.
pub trait Files {
    /// Reads a file; at most one octet more than [`FILE`].
    ///
    /// # Errors
    ///
    /// Those of the system. `NotFound` is none for the caller.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>>;

    /// Writes a file, replacing what it had, and returns when it is on the disk.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn write(&mut self, path: &Path, octets: &[u8]) -> io::Result<()>;

    /// Renames a file within its folder, replacing the other one.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()>;

    /// Brings the entries of a folder to the disk.
    ///
    /// # Errors
    ///
    /// Those of the system.
    fn sync_folder(&mut self, folder: &Path) -> io::Result<()>;
}

/// Files of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let mut octets = Vec::new();
        File::open(path)?.take(FILE as u64 + 1).read_to_end(&mut octets)?;
        Ok(octets)
    }

    fn write(&mut self, path: &Path, octets: &[u8]) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(octets)?;
        file.sync_all()
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn sync_folder(&mut self, folder: &Path) -> io::Result<()> {
        File::open(folder)?.sync_all()
    }
}

/// Contents of a state file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// There is no file: nothing was learned before.
    None,
    /// The state.
    State(Saved),
    /// The file cannot be used.
    Damaged {
        /// The file, what is wrong with it, and what to do.
        message: String,
        /// Keys that were revoked, by the lines that are not damaged.
        revoked: Vec<RevokedKey>,
    },
}

/// Reason why the state could not be saved. The old file is as it was.
#[derive(Debug)]
pub struct SaveError {
    path: PathBuf,
    error: io::Error,
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot save the trust anchors: {}: {}; the keys that were learned hold until the server ends, and the \
             file keeps its old state: make its folder writable for the server, with room for a file",
            self.path.display(),
            self.error
        )
    }
}

impl std::error::Error for SaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// State file.
#[derive(Clone, Debug)]
pub struct StateFile<F = Disk> {
    path: PathBuf,
    new: PathBuf,
    serial: u64,
    files: F,
}

impl<F: Files> StateFile<F> {
    /// A state file at a path. Another one beside it, with `.new` behind the name, exists while it is written.
    pub fn new(path: &Path, files: F) -> StateFile<F> {
        let mut new = path.as_os_str().to_owned();
        new.push(".new");
        StateFile { path: path.to_owned(), new: new.into(), serial: 0, files }
    }

    /// Reads the state: the newer one of the two files that are complete.
    ///
    /// # Errors
    ///
    /// Those of the system, with the file, if it exists and cannot be read: going on would overwrite what was learned.
    pub fn load(&mut self) -> Result<Loaded, String> {
        let (own, new) = (self.read(&self.path.clone())?, self.read(&self.new.clone())?);
        let parse = |text: &Option<Vec<u8>>| text.as_ref().map(|text| parse(text));
        match (parse(&own), parse(&new)) {
            (own, Some(Ok(new))) if !matches!(&own, Some(Ok(own)) if own.serial >= new.serial) => {
                self.serial = new.serial;
                // If it cannot be renamed, it cannot be replaced either: saving will say so.
                let _ = self.finish();
                Ok(Loaded::State(new))
            }
            (Some(Ok(own)), _) => {
                self.serial = own.serial;
                Ok(Loaded::State(own))
            }
            (Some(Err(error)), _) => Ok(self.damaged(&error, own.into_iter().chain(new))),
            // Without a state before it, an incomplete new one has nothing that was in use.
            (None, _) => Ok(Loaded::None),
        }
    }

    /// Writes the state. When this returns, it is on the disk.
    ///
    /// # Errors
    ///
    /// [`SaveError`]: the old state is still there, and the next call tries again.
    pub fn save<'z>(&mut self, zones: impl Iterator<Item = &'z SavedZone>) -> Result<(), SaveError> {
        let serial = self.serial + 1;
        let text = Saved::text(serial, zones);
        let written = self.files.write(&self.new, text.as_bytes());
        written.map_err(|error| SaveError { path: self.new.clone(), error })?;
        self.serial = serial;
        self.finish().map_err(|error| SaveError { path: self.path.clone(), error })
    }

    /// Operations on files.
    pub fn files(&mut self) -> &mut F {
        &mut self.files
    }

    fn finish(&mut self) -> io::Result<()> {
        self.files.rename(&self.new, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        self.files.sync_folder(folder.unwrap_or(Path::new(".")))
    }

    fn read(&mut self, path: &Path) -> Result<Option<Vec<u8>>, String> {
        match self.files.read(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!(
                "cannot read the trust anchors: {}: {error}; make the file readable for the server",
                path.display()
            )),
        }
    }

    fn damaged(&self, error: &SavedError, texts: impl Iterator<Item = Vec<u8>>) -> Loaded {
        let mut revoked: Vec<_> = texts.flat_map(|text| Saved::revoked(&text)).collect();
        revoked.sort_unstable();
        revoked.dedup();
        let message = format!(
            "the state of the trust anchors cannot be used: {}: {error}; the configured anchors are used, and \
             {} revoked keys that the file still tells: nothing is to be done if these anchors are \
             current, else update them",
            self.path.display(),
            revoked.len()
        );
        Loaded::Damaged { message, revoked }
    }
}

fn parse(text: &[u8]) -> Result<Saved, SavedError> {
    match text.len() {
        ..=FILE => Saved::parse(text),
        _ => Err(SavedError { line: None, what: "the file is too long" }),
    }
}
