//! Citation of requirements in one line: `//= RFC 6147 section 5.1.4: requirements 7, 8` in Rust, optionally with
//! `; why` at the end, and `# requirements 7, 8` in a scenario, where the section would only repeat the list.

/// Start of a citation in Rust.
const MARK: &str = "//=";

/// Citation of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Citation {
    /// `RFC 6147 section 5.1.4`; empty in a scenario.
    pub rfc: String,
    /// Numbers of the requirements.
    pub numbers: Vec<String>,
}

impl Citation {
    /// Reads a line of Rust. `None`: it is no citation. An error: it begins like a citation but is malformed.
    pub fn in_rust(line: &str) -> Option<Result<Citation, String>> {
        let rest = line.trim().strip_prefix(MARK)?;
        let read = rest.trim().split_once(": ").and_then(|(rfc, rest)| {
            let (numbers, _why) = rest.split_once(';').unwrap_or((rest, ""));
            let numbers = numbers_of(numbers)?;
            rfc.starts_with("RFC ").then(|| Citation { rfc: rfc.to_owned(), numbers })
        });
        Some(read.ok_or_else(|| {
            format!(
                "`{}` is not a citation; write `{MARK} RFC 6147 section 5.1.2: requirement 4`",
                line.trim()
            )
        }))
    }

    /// Reads a line of a scenario. A comment with more words is no citation.
    pub fn in_scenario(line: &str) -> Option<Citation> {
        let numbers = numbers_of(line.strip_prefix("# ")?)?;
        Some(Citation { rfc: String::new(), numbers })
    }
}

/// Reads the numbers after `requirement` or `requirements`.
fn numbers_of(text: &str) -> Option<Vec<String>> {
    let (word, rest) = text.trim().split_once(' ')?;
    let numbers: Vec<String> = rest.split(',').map(|number| number.trim().to_owned()).collect();
    let is_number = |number: &String| {
        let digits = number.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(number);
        !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit())
    };
    let fits = if numbers.len() == 1 { word == "requirement" } else { word == "requirements" };
    (fits && numbers.iter().all(is_number)).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_are_read_and_what_only_begins_like_one_is_told() {
        let read = |line| Citation::in_rust(line).unwrap().unwrap();
        let cited = read("        //= RFC 6147 section 5.1.8: requirements 15, 15b");
        assert_eq!(cited.rfc, "RFC 6147 section 5.1.8");
        assert_eq!(cited.numbers, ["15", "15b"]);
        assert_eq!(read("//= RFC 8215: requirement 54").rfc, "RFC 8215");
        assert_eq!(read("//= RFC 6147 section 5.1: requirement 2; why: that; is").numbers, ["2"]);
        assert_eq!(Citation::in_rust("// RFC 6147 section 5.1.8: requirement 15"), None);
        for line in [
            "//= requirement 4",
            "//= RFC 6147 section 5.1.2 requirement 4",
            "//= RFC 6147 section 5.1.2: requirement",
            "//= RFC 6147 section 5.1.2: requirement four",
            "//= RFC 6147 section 5.1.2: requirement 4, 5",
            "//= RFC 6147 section 5.1.2: requirements 4",
        ] {
            assert!(Citation::in_rust(line).unwrap().is_err(), "{line}");
        }
    }

    #[test]
    fn a_comment_of_a_scenario_is_a_citation_only_if_it_is_nothing_else() {
        assert_eq!(Citation::in_scenario("# requirements 7, 9").unwrap().numbers, ["7", "9"]);
        assert_eq!(Citation::in_scenario("# requirement 15b").unwrap().numbers, ["15b"]);
        for line in ["# A requirement 7", "# requirement 7 is shown", "requirement 7", "#"] {
            assert_eq!(Citation::in_scenario(line), None, "{line}");
        }
    }
}
