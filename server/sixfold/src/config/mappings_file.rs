//! The file of explicit address mappings (`dns64.mappings-file`): a line for each, an IPv4 and an IPv6 prefix with blanks between. A comment
//! begins with `#`.

use super::limits;
use super::report::{Fault, Place, Problems};
use pref64::mapping::{Duplicate, Mapping, MappingError, Mappings};
use std::path::Path;
use std::sync::Arc;

/// Reads a file of mappings. None: it has none, or faults, which were reported.
pub fn read(file: &Path, place: &Place, problems: &Problems) -> Option<Arc<Mappings>> {
    let read = super::regular_file::read(file, limits::FILE_OCTETS).map_err(|error| {
        let what = format!("{}: {error}", file.display());
        vec![Fault::new(what, "name a file of mappings that can be read, or delete `mappings-file`")]
    });
    match read.and_then(|text| parse(file, &text)) {
        Ok(mappings) => (!mappings.is_empty()).then(|| Arc::new(mappings)),
        Err(faults) => {
            faults.into_iter().for_each(|fault| problems.add(place, fault));
            None
        }
    }
}

/// Parses the text of a file of mappings; `file` stands for the file in faults.
///
/// # Errors
///
/// A fault for each line that is wrong, up to `MAPPING_FAULTS`, each with its number and what to write instead: no mapping at all, bits set
/// beyond a length, lengths that do not fit together, or a prefix that an earlier line has.
pub fn parse(file: &Path, text: &[u8]) -> Result<Mappings, Vec<Fault>> {
    let (mut list, mut lines, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.split(|&octet| octet == b'\n')) {
        let line = line.split(|&octet| octet == b'#').next().unwrap_or_default().trim_ascii();
        if line.is_empty() {
            continue;
        }
        let mapping = str::from_utf8(line).map_err(|_| MappingError::Words).and_then(str::parse::<Mapping>);
        match mapping {
            Ok(mapping) => {
                list.push(mapping);
                lines.push(number);
            }
            Err(error) => {
                faults.push(fault(file, number, &error.to_string()));
                if faults.len() == limits::MAPPING_FAULTS {
                    return Err(faults);
                }
            }
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    Mappings::new(list).map_err(|Duplicate { first, second, is_ipv4 }| {
        let family = if is_ipv4 { "IPv4" } else { "IPv6" };
        let text = format!("line {} has the same {family} prefix; delete one of the two", lines[first]);
        vec![fault(file, lines[second], &text)]
    })
}

/// A fault in a line, from a text with what is wrong, a semicolon, and what to do.
fn fault(file: &Path, line: u32, text: &str) -> Fault {
    let (what, help) = text.split_once("; ").unwrap_or((text, "correct the line"));
    Fault::new(format!("{}:{line}: {what}", file.display()), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Mappings, Vec<String>> {
        let told = |faults: Vec<Fault>| {
            faults.iter().map(|fault| format!("{} / {}", fault.what, fault.help)).collect()
        };
        parse(Path::new("eam"), text.as_bytes()).map_err(told)
    }

    #[test]
    fn comments_blank_lines_and_both_ends_of_lines_are_read() {
        let text = "# shared with the translator\n192.0.2.1 2001:db8::1\r\n\n\t192.0.2.16/28\t 2001:db8:c::/124 # hosts\n  \r\n";
        let mappings = parsed(text).unwrap();
        assert_eq!(mappings.len(), 2);
        let address = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
        assert_eq!(mappings.to_v6([192, 0, 2, 18]), Some(address("2001:db8:c::2")));
        assert!(parsed("").unwrap().is_empty() && parsed("# none").unwrap().is_empty());
    }

    #[test]
    fn each_wrong_line_is_named_with_its_remedy() {
        let found = parsed("192.0.2.1 2001:db8::1\n192.0.2.2\n\n192.0.2.17/28 2001:db8::/124\n192.0.2.16/28 2001:db8::/126\n").unwrap_err();
        assert_eq!(found.len(), 3, "{found:#?}");
        assert!(
            found[0].starts_with("eam:2: this is not a pair of prefixes / write IPV4-PREFIX"),
            "{found:#?}"
        );
        assert!(
            found[1].starts_with("eam:4: bits beyond") && found[1].contains("/ write 192.0.2.16"),
            "{found:#?}"
        );
        assert!(found[2].starts_with("eam:5: ") && found[2].ends_with("at most 124"), "{found:#?}");
        assert_eq!(parsed(&"x\n".repeat(100)).unwrap_err().len(), limits::MAPPING_FAULTS);
        assert_eq!(parsed("\u{e4} 2001:db8::1").unwrap_err().len(), 1);
    }

    #[test]
    fn a_line_that_stands_twice_is_named_with_the_first_one() {
        let found =
            parsed("# one\n192.0.2.1 2001:db8::1\n192.0.2.2 2001:db8::2\n192.0.2.1/32 2001:db8::1/128\n");
        assert_eq!(found.unwrap_err(), ["eam:4: line 2 has the same IPv4 prefix / delete one of the two"]);
        let found = parsed("192.0.2.1 2001:db8::1\n192.0.2.2 2001:db8::1\n");
        assert_eq!(found.unwrap_err(), ["eam:2: line 1 has the same IPv6 prefix / delete one of the two"]);
    }
}
