//! List of requirements: `requirements.toml`.

use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;

/// All requirements, in the order of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// One table for each.
    #[serde(rename = "requirement")]
    pub requirements: Vec<Requirement>,
}

/// Requirement of an RFC.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// Number in citations, perhaps with a letter.
    pub number: String,
    /// `RFC 6147 section 5.1.2`; without a section, the whole RFC.
    pub rfc: String,
    /// Requirement level.
    pub level: Level,
    /// Requirement in our words.
    pub text: String,
    /// Conformance cases that show it.
    #[serde(default)]
    pub cases: Vec<String>,
    /// Further cases, which count for it in the score of a server; no page lists them.
    #[serde(default)]
    pub more_cases: Vec<String>,
    /// Interpretation, if the text can be read in several ways or contradicts another one.
    pub reading: Option<String>,
    /// Part that Sixfold does not do, and the reason.
    pub deviation: Option<String>,
    /// Reason why no code here can do it: it binds operators or other software.
    pub elsewhere: Option<String>,
}

/// Requirement level (RFC 2119), as the RFC has it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Level {
    /// Absolute requirement.
    #[serde(rename = "MUST")]
    Must,
    /// Absolute prohibition.
    #[serde(rename = "MUST NOT")]
    MustNot,
    /// Requirement unless there is a good reason.
    #[serde(rename = "SHOULD")]
    Should,
    /// Prohibition unless there is a good reason.
    #[serde(rename = "SHOULD NOT")]
    ShouldNot,
    /// Option.
    #[serde(rename = "MAY")]
    May,
    /// Description without a requirement word.
    #[serde(rename = "stated")]
    Stated,
}

/// Reason why the list cannot be used.
#[derive(Debug)]
pub enum Error {
    /// It is not TOML, or has an unknown key; the error names the known ones.
    Toml(toml::de::Error),
    /// Two requirements have one number: the later one needs another.
    Twice(String),
    /// The citation of a requirement does not look like `RFC 6147 section 5.1.2`.
    Rfc(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Toml(error) => write!(f, "requirements.toml: {error}"),
            Error::Twice(number) => {
                write!(
                    f,
                    "requirements.toml: requirement {number} appears twice; give one of them another number"
                )
            }
            Error::Rfc(text) => {
                write!(f, "requirements.toml: `{text}` is not a citation; write `RFC 6147 section 5.1.2`")
            }
        }
    }
}

impl std::error::Error for Error {}

impl List {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// `Error::Toml`: the text is not TOML, or has an unknown key. `Error::Twice`: two requirements have one number. `Error::Rfc`: the
    /// citation of one is malformed.
    pub fn read(text: &str) -> Result<List, Error> {
        let list: List = toml::from_str(text).map_err(Error::Toml)?;
        let mut numbers = BTreeSet::new();
        for requirement in &list.requirements {
            if !numbers.insert(&requirement.number) {
                return Err(Error::Twice(requirement.number.clone()));
            }
            if requirement.number_of_rfc().is_none() {
                return Err(Error::Rfc(requirement.rfc.clone()));
            }
        }
        Ok(list)
    }

    /// Finds the requirement with this number.
    pub fn find(&self, number: &str) -> Option<&Requirement> {
        self.requirements.iter().find(|requirement| requirement.number == number)
    }
}

impl Requirement {
    /// Number of the RFC, and its section if there is one.
    fn parts(&self) -> Option<(u32, Option<&str>)> {
        let rest = self.rfc.strip_prefix("RFC ")?;
        let (number, section) = match rest.split_once(" section ") {
            Some((number, section)) => (number, Some(section)),
            None => (rest, None),
        };
        let is_section = section.is_none_or(|section| section.starts_with(|c: char| c.is_ascii_digit()));
        is_section.then_some((number.parse().ok()?, section))
    }

    /// Number of the RFC.
    pub fn number_of_rfc(&self) -> Option<u32> {
        self.parts().map(|(number, _)| number)
    }

    /// Section, if there is one.
    pub fn section(&self) -> Option<&str> {
        self.parts().and_then(|(_, section)| section)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Must => "MUST",
            Level::MustNot => "MUST NOT",
            Level::Should => "SHOULD",
            Level::ShouldNot => "SHOULD NOT",
            Level::May => "MAY",
            Level::Stated => "stated",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        "[[requirement]]\nnumber = \"4\"\nrfc = \"RFC 6147 section 5.1.2\"\nlevel = \"MUST\"\ntext = \"\"\n";

    #[test]
    fn a_number_that_is_there_twice_a_citation_of_nothing_and_an_unknown_key_are_refused() {
        assert_eq!(List::read(ONE).unwrap().requirements[0].section(), Some("5.1.2"));
        assert!(matches!(List::read(&ONE.repeat(2)), Err(Error::Twice(number)) if number == "4"));
        assert!(matches!(List::read(&ONE.replace("RFC 6147", "6147")), Err(Error::Rfc(_))));
        assert!(matches!(List::read(&ONE.replace("section 5", "section x")), Err(Error::Rfc(_))));
        assert!(matches!(List::read(&format!("{ONE}lvl = 1\n")), Err(Error::Toml(_))));
        assert!(matches!(List::read(&ONE.replace("MUST", "OUGHT")), Err(Error::Toml(_))));
    }
}
