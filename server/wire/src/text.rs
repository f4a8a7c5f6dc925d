//! Presentation format of names (RFC 1035 section 5.1), for people.

use crate::name::Name;
use core::fmt::{self, Write};

/// Writes labels with a dot after each; the root is one dot. Dots and backslashes in labels are escaped; octets other
/// than visible ASCII are written as `\DDD`.
impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() {
            return f.write_char('.');
        }
        for label in self.labels() {
            for &octet in label {
                match octet {
                    b'.' | b'\\' => write!(f, "\\{}", char::from(octet))?,
                    0x21..=0x7e => f.write_char(char::from(octet))?,
                    _ => write!(f, "\\{octet:03}")?,
                }
            }
            f.write_char('.')?;
        }
        Ok(())
    }
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn odd_octets_are_escaped() {
        let name = Name::from_wire(b"\x06a.\\ \x00\xff\x02Ok\0").unwrap();
        assert_eq!(name.to_string(), "a\\.\\\\\\032\\000\\255.Ok.");
        assert_eq!(Name::from_wire(&[0]).unwrap().to_string(), ".");
    }
}
