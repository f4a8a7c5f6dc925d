//! Basis of an expectation, as a key to sort and count by: the first RFC section that the case cites.

use crate::case::Case;
use std::fmt;

/// Basis of an expectation. The order is that of a table: RFCs by number and section, then the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Citation {
    /// Section of an RFC; without section numbers, the whole RFC.
    Rfc {
        /// Number of the RFC.
        number: u32,
        /// Numbers of the section, outermost first.
        section: Vec<u32>,
    },
    /// Robustness: no RFC says it, but a server must survive any input.
    None,
    /// Sixfold's own interface. It has no weight for other servers.
    Interface,
}

impl Citation {
    /// Reads the field `rfc` of a case. A text that begins with `contract` is about a configuration key of Sixfold,
    /// even if it also names an RFC.
    pub fn read(text: &str) -> Citation {
        if text.starts_with("contract") {
            return Citation::Interface;
        }
        let Some((_, rest)) = text.split_once("RFC ") else { return Citation::None };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let Ok(number) = rest[..end].parse() else { return Citation::None };
        let section = rest[end..].strip_prefix(' ').unwrap_or_default();
        let end = section.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(section.len());
        let section = section[..end].split('.').map_while(|part| part.parse().ok()).collect();
        Citation::Rfc { number, section }
    }

    /// Basis of a case.
    pub fn of(case: &Case) -> Citation {
        Citation::read(&case.rfc)
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Citation::Rfc { number, section } if section.is_empty() => format!("RFC {number}"),
            Citation::Rfc { number, section } => {
                let section: Vec<String> = section.iter().map(u32::to_string).collect();
                format!("RFC {number}, {}", section.join("."))
            }
            Citation::None => "robustness".to_owned(),
            Citation::Interface => "Sixfold's interface".to_owned(),
        };
        formatter.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_section_that_is_cited_counts() {
        for (text, shown) in [
            ("RFC 6147 5.1.2 (any other RCODE = 0 + empty)", "RFC 6147, 5.1.2"),
            ("RFC 6052 2.2; RFC 6147 5.2", "RFC 6052, 2.2"),
            ("RFC 6147 5.5 (1): CD=0", "RFC 6147, 5.5"),
            ("RFC 6147 7.1-7.3, 5.1.7", "RFC 6147, 7.1"),
            ("RFC 6147 5.1.5/5.1.7", "RFC 6147, 5.1.5"),
            ("RFC 8914 / IANA EDE 29", "RFC 8914"),
            ("RFC 8767", "RFC 8767"),
            ("contract client-subnet; RFC 7871", "Sixfold's interface"),
            ("contract: sixfold check", "Sixfold's interface"),
            ("BIND option", "robustness"),
            ("RFC", "robustness"),
            ("-", "robustness"),
        ] {
            assert_eq!(Citation::read(text).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn sections_are_sorted_by_number_and_the_rest_stands_behind() {
        let texts = ["contract x", "-", "RFC 6147 5.10", "RFC 6147 5.2", "RFC 6147", "RFC 1035 7.3"];
        let mut all = texts.map(Citation::read);
        all.sort();
        let shown = all.map(|citation| citation.to_string());
        assert_eq!(
            shown,
            [
                "RFC 1035, 7.3",
                "RFC 6147",
                "RFC 6147, 5.2",
                "RFC 6147, 5.10",
                "robustness",
                "Sixfold's interface"
            ]
        );
    }
}
