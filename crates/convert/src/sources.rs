//! Files of a configuration: the one that is converted, and those that it includes.

/// Octets of all files together. A large configuration has some kilobytes; block lists have some megabytes.
const MAX_OCTETS: usize = 16 << 20;

/// Levels of files that include files. Real configurations have two or three; a file that includes itself must end.
const MAX_DEPTH: usize = 8;

/// Included files. BIND, Unbound and PowerDNS have fewer than a hundred in any real configuration.
const MAX_FILES: usize = 1024;

/// A file: its name, and its text or the reason why it cannot be read.
pub type File = (String, Result<String, String>);

/// Reads the files that an `include` names: the name may have `*` in its last part, and then means all files that match, in
/// the order of their names. The first argument is the name of the including file, to which relative names belong.
pub type Reader<'r> = &'r mut dyn FnMut(&str, &str) -> Vec<File>;

/// Files of a conversion.
pub(crate) struct Sources<'r> {
    read: Reader<'r>,
    names: Vec<String>,
    octets: usize,
}

impl<'r> Sources<'r> {
    /// Starts with the file that is converted.
    pub(crate) fn new(name: &str, read: Reader<'r>) -> Sources<'r> {
        Sources { read, names: vec![name.to_owned()], octets: 0 }
    }

    /// Reads the files of an `include` in file number `from`, at this depth of inclusion. The error is the reason why there
    /// are none.
    pub(crate) fn include(
        &mut self,
        from: usize,
        pattern: &str,
        depth: usize,
    ) -> Result<Vec<(usize, String)>, String> {
        if depth >= MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} files include each other"));
        }
        let mut files = Vec::new();
        for (name, text) in (self.read)(&self.names[from], pattern) {
            let text = text?;
            self.octets += text.len();
            if self.octets > MAX_OCTETS || self.names.len() >= MAX_FILES {
                return Err("the included files are too large or too many".to_owned());
            }
            self.names.push(name);
            files.push((self.names.len() - 1, text));
        }
        // No error for any of the servers: the folder of a package may be empty. But the files may also be on the machine only from which
        // the configuration comes.
        match files.is_empty() {
            true if pattern.contains('*') => Err("no file has such a name".to_owned()),
            true => Err("no such file".to_owned()),
            false => Ok(files),
        }
    }

    /// Names of all files, the converted one first.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}
