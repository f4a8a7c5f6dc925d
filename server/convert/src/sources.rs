//! Files of a configuration: the one that is converted, and those that it includes.

use crate::glob;

/// Octets of all files together. A large configuration has some kilobytes; block lists have some megabytes.
const MAX_OCTETS: usize = 16 << 20;

/// Levels of files that include files. Real configurations have two or three; a file that includes itself must end.
const MAX_DEPTH: usize = 8;

/// Included files. BIND, Unbound and PowerDNS have fewer than a hundred in any real configuration.
const MAX_FILES: usize = 1024;

/// Texts of files, with the numbers of their names.
pub(crate) type NamedTexts = Vec<(usize, String)>;

/// The files of a machine.
pub trait Files {
    /// The text of a file.
    ///
    /// # Errors
    ///
    /// The reason why it cannot be read.
    fn read(&mut self, path: &str) -> Result<String, String>;

    /// The names in a folder, none if there is no such folder; "" is the present one.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be read.
    fn names(&mut self, folder: &str) -> Result<Vec<String>, String>;
}

/// Files of a conversion.
pub(crate) struct Sources<'f> {
    files: &'f mut dyn Files,
    names: Vec<String>,
    octets: usize,
}

impl<'f> Sources<'f> {
    /// Starts with the file that is converted.
    pub(crate) fn new(name: &str, files: &'f mut dyn Files) -> Sources<'f> {
        Sources { files, names: vec![name.to_owned()], octets: 0 }
    }

    /// Reads the files of an `include` in file number `from`, at this depth of inclusion: the name may be a pattern. A relative name
    /// belongs to the folder of the including file.
    ///
    /// # Errors
    ///
    /// The reason why there are none: files include each other more than `MAX_DEPTH` deep, no file has such a name, one cannot be read,
    /// or they are too many or too large.
    pub(crate) fn include(&mut self, from: usize, pattern: &str, depth: usize) -> Result<NamedTexts, String> {
        if depth >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} files include each other"));
        }
        let pattern = match (pattern.starts_with('/'), self.names[from].rsplit_once('/')) {
            (false, Some((folder, _))) => format!("{}/{pattern}", glob::escaped(folder)),
            _ => pattern.to_owned(),
        };
        let paths = glob::paths(&pattern, &mut |folder| self.files.names(folder))?;
        // No error for some of the servers: the folder of a package may be empty. But the files may also be on the machine only from
        // which the configuration comes.
        if paths.is_empty() {
            return Err("no file has such a name".to_owned());
        }
        let mut files = Vec::new();
        for path in paths {
            let text = self.files.read(&path).map_err(|why| match glob::is_pattern(&pattern) {
                true => format!("{path}: {why}"),
                false => why,
            })?;
            self.octets += text.len();
            if self.octets > MAX_OCTETS || self.names.len() >= MAX_FILES {
                return Err("the included files are too large or too many".to_owned());
            }
            self.names.push(path);
            files.push((self.names.len() - 1, text));
        }
        Ok(files)
    }

    /// Reads a file that file number `from` names, by this very name.
    ///
    /// # Errors
    ///
    /// As [`Sources::include`].
    pub(crate) fn file(&mut self, from: usize, name: &str) -> Result<NamedTexts, String> {
        self.include(from, &glob::escaped(name), 0)
    }

    /// Reads the files of a folder whose names have this end.
    ///
    /// # Errors
    ///
    /// As [`Sources::include`].
    pub(crate) fn folder(&mut self, from: usize, folder: &str, end: &str) -> Result<NamedTexts, String> {
        self.include(from, &format!("{}/*{end}", glob::escaped(folder.trim_end_matches('/'))), 0)
    }

    /// Names of all files, the converted one first.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// A machine without files, for tests.
#[cfg(test)]
pub(crate) struct NoFiles;

#[cfg(test)]
impl Files for NoFiles {
    fn read(&mut self, _: &str) -> Result<String, String> {
        Err("there are no files".to_owned())
    }

    fn names(&mut self, _: &str) -> Result<Vec<String>, String> {
        Ok(Vec::new())
    }
}
