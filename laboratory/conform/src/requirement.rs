//! Requirements, to count results by: one fault that many cases show counts once.
//!
//! `tools/requirements/requirements.toml` lists the requirements of the RFCs on a DNS64 server, and the cases of each. A case
//! that it does not name belongs to the only requirement of the section that it cites, or, if the list has none or
//! several, to the section as a whole. Cases about Sixfold's own interface belong to none.

use crate::case::Case;
use crate::citation::Citation;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// The list of requirements.
const LIST: &str = include_str!("../../../tools/requirements/requirements.toml");

/// Requirement: one of the list, or all that a section demands. The order is that of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement {
    /// RFC and section.
    pub citation: Citation,
    /// Place in the list; a section as a whole has none.
    pub place: Option<usize>,
    /// Number in the list; empty for a section as a whole.
    pub number: String,
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.number.as_str() {
            "" => self.citation.to_string(),
            number => format!("{}: requirement {number}", self.citation),
        };
        formatter.pad(&text)
    }
}

/// The list, by case and by section.
#[derive(Clone, Debug, Default)]
pub struct Requirements {
    texts: Vec<String>,
    by_case: BTreeMap<String, Requirement>,
    /// The only requirement of a section; `None`: there are several.
    by_section: BTreeMap<Citation, Option<Requirement>>,
}

#[derive(Deserialize)]
struct List {
    requirement: Vec<Entry>,
}

/// The parts of an entry that are needed here.
#[derive(Deserialize)]
struct Entry {
    number: String,
    rfc: String,
    text: String,
    #[serde(default)]
    cases: Vec<String>,
    #[serde(default)]
    more_cases: Vec<String>,
}

impl Requirements {
    /// The list of this project.
    ///
    /// # Errors
    ///
    /// As [`Requirements::read`]. A test reads the list, so this does not happen.
    pub fn built_in() -> Result<Requirements, String> {
        Requirements::read(LIST)
    }

    /// Reads a list.
    ///
    /// # Errors
    ///
    /// The text is not TOML, or an entry lacks a field or has an unknown one, with its line.
    pub fn read(text: &str) -> Result<Requirements, String> {
        let list: List = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut read = Requirements::default();
        for (place, entry) in list.requirement.into_iter().enumerate() {
            let citation = Citation::read(&entry.rfc.replace(" section ", " "));
            let requirement =
                Requirement { citation: citation.clone(), place: Some(place), number: entry.number };
            for case in entry.cases.iter().chain(&entry.more_cases) {
                // A case may show two requirements; it counts for the first.
                read.by_case.entry(case.clone()).or_insert_with(|| requirement.clone());
            }
            read.by_section.entry(citation).and_modify(|it| *it = None).or_insert(Some(requirement));
            read.texts.push(entry.text);
        }
        Ok(read)
    }

    /// The requirement that a case belongs to; `None` if it is about Sixfold's own interface.
    pub fn of(&self, case: &Case) -> Option<Requirement> {
        let citation = Citation::of(case);
        if citation == Citation::Interface {
            return None;
        }
        let only = || self.by_section.get(&citation).cloned().flatten();
        let listed = self.by_case.get(&case.id).cloned().or_else(only);
        Some(listed.unwrap_or(Requirement { citation, place: None, number: String::new() }))
    }

    /// Text of a requirement; empty for a section as a whole.
    pub fn text(&self, requirement: &Requirement) -> &str {
        requirement.place.and_then(|place| self.texts.get(place)).map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite;

    const TWO_SECTIONS: &str = r#"
        [[requirement]]
        number = "4"
        rfc = "RFC 6147 section 5.1.2"
        text = "RCODE 3 is the answer."
        cases = ["nxdomain"]
        [[requirement]]
        number = "7"
        rfc = "RFC 6147 section 5.1.4"
        text = "Only excluded: empty."
        more_cases = ["one"]
        [[requirement]]
        number = "8"
        rfc = "RFC 6147 section 5.1.4"
        text = "Some excluded: the others."
        cases = ["two", "one"]
        "#;

    fn shown(id: &str, rfc: &str) -> Option<String> {
        let case = Case::read(&format!(
            r#"{{"id": "{id}", "category": "c", "rfc": "{rfc}", "source": "", "level": "MUST", "config": {{}},
                "query": {{"name": "a.", "type": "A"}}, "expect": {{}}}}"#
        ))
        .unwrap();
        Requirements::read(TWO_SECTIONS).unwrap().of(&case).map(|it| it.to_string())
    }

    #[test]
    fn a_case_belongs_to_a_listed_requirement_or_to_the_section_that_it_cites() {
        for (id, rfc, wanted) in [
            ("two", "RFC 6147 5.1.4, 5.1.1", Some("RFC 6147, 5.1.4: requirement 8")),
            ("one", "RFC 1035 4.1.1", Some("RFC 6147, 5.1.4: requirement 7")),
            ("other", "RFC 6147 5.1.2 (RCODE 3)", Some("RFC 6147, 5.1.2: requirement 4")),
            ("other", "RFC 6147 5.1.4", Some("RFC 6147, 5.1.4")),
            ("other", "RFC 1035 4.1.1", Some("RFC 1035, 4.1.1")),
            ("other", "-", Some("robustness")),
            ("other", "contract dns64 clients; RFC 6147 5.1.2", None),
        ] {
            assert_eq!(shown(id, rfc).as_deref(), wanted, "{id}, {rfc}");
        }
    }

    #[test]
    fn in_the_core_rfcs_every_case_belongs_to_a_requirement_of_the_list() {
        let requirements = Requirements::built_in().unwrap();
        let cases = suite::built_in().unwrap();
        let core = [6052, 6147, 7050, 8880];
        let without: Vec<&str> = cases
            .iter()
            .filter(
                |case| matches!(Citation::of(case), Citation::Rfc { number, .. } if core.contains(&number)),
            )
            .filter(|case| requirements.of(case).is_some_and(|it| it.place.is_none()))
            .map(|case| case.id.as_str())
            .collect();
        assert_eq!(without, [""; 0]);
    }
}
