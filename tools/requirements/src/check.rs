//! Faults of the list and of the citations. All faults are reported at once, each with the remedy.

use crate::list::{List, Requirement};
use crate::tree::Place;
use conform::{Case, KnownFailures};
use std::collections::BTreeSet;

/// Names of the conformance cases.
#[derive(Debug, Default)]
pub struct Cases {
    /// All cases.
    pub all: BTreeSet<String>,
    /// Known failures: such a case shows nothing.
    pub known_failures: BTreeSet<String>,
}

/// Reads the cases of this repository.
///
/// # Errors
///
/// A file of cases or a list of known failures cannot be parsed.
pub fn cases() -> Result<Cases, Vec<String>> {
    let all = conform::suite::built_in().map_err(|error| vec![error])?;
    let mut known_failures = BTreeSet::new();
    for text in [
        include_str!("../../../conformance/shared/known-failures.txt"),
        include_str!("../../../conformance/own/known-failures.txt"),
    ] {
        let list = KnownFailures::read(text).map_err(|error| vec![error])?;
        known_failures.extend(list.ids().map(str::to_owned));
    }
    Ok(Cases { all: all.into_iter().map(|case: Case| case.id).collect(), known_failures })
}

/// Finds all faults.
pub fn faults(list: &List, places: &[Place], cases: &Cases) -> Vec<String> {
    let mut faults = Vec::new();
    for place in places {
        let at = format!("{}: requirement {}", place.file, place.number);
        let in_tests = !place.file.contains("/src/") && !place.file.starts_with("scenarios/");
        match list.find(&place.number) {
            None => faults
                .push(format!("{at} is not in the list; add it to tools/requirements/requirements.toml")),
            Some(requirement) if !place.rfc.is_empty() && place.rfc != requirement.rfc => {
                faults.push(format!("{at} is cited as {}; it is {}", place.rfc, requirement.rfc));
            }
            Some(_) if in_tests && !place.is_test => {
                faults.push(format!(
                    "{at} is cited at `{}`, which is not a test; cite it at a test",
                    place.item
                ));
            }
            Some(_) => {}
        }
    }
    for requirement in &list.requirements {
        requirement_faults(requirement, places, cases, &mut faults);
    }
    faults
}

/// Finds the faults of one requirement.
fn requirement_faults(requirement: &Requirement, places: &[Place], cases: &Cases, faults: &mut Vec<String>) {
    let number = &requirement.number;
    for case in requirement.cases.iter().chain(&requirement.more_cases) {
        if !cases.all.contains(case) {
            faults.push(format!("requirement {number}: there is no case `{case}`; name an existing one"));
        }
    }
    for case in &requirement.cases {
        if cases.known_failures.contains(case) {
            faults.push(format!(
                "requirement {number}: case `{case}` is a known failure; name a case that passes"
            ));
        }
    }
    let mut its = places.iter().filter(|place| place.number == *number);
    let is_done = its.clone().any(|place| !place.is_test);
    let is_shown = its.any(|place| place.is_test);
    if requirement.deviation.is_some() || requirement.elsewhere.is_some() {
        return;
    }
    if !is_done {
        faults.push(format!(
            "requirement {number}: no code cites it; write `//= {}: requirement {number}` above the line that \
             meets it, or give the reason as `deviation` or `elsewhere` in requirements.toml",
            requirement.rfc
        ));
    }
    // A case is played by a test, but does not say which part of the server acts: it is only additional evidence.
    if !is_shown {
        faults.push(format!(
            "requirement {number}: no test cites it; write `# requirement {number}` into the scenario, or \
             `//= {}: requirement {number}` above the test, that shows it",
            requirement.rfc
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(more: &str) -> List {
        let text = "[[requirement]]\nnumber = \"4\"\nrfc = \"RFC 6147 section 5.1.2\"\nlevel = \"MUST\"\ntext = \"x\"\n";
        List::read(&format!("{text}{more}")).unwrap()
    }

    fn place(file: &str, rfc: &str, number: &str, is_test: bool) -> Place {
        let (file, item) = (file.to_owned(), "item".to_owned());
        Place { file, item, rfc: rfc.to_owned(), number: number.to_owned(), is_test }
    }

    fn cases() -> Cases {
        let set = |id: &str| BTreeSet::from([id.to_owned()]);
        let all = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        Cases { all, known_failures: set("two") }
    }

    #[test]
    fn a_requirement_needs_code_and_a_test_or_a_reason() {
        let rfc = "RFC 6147 section 5.1.2";
        let code = place("server/engine/src/settle.rs", rfc, "4", false);
        let test = place("scenarios/nxdomain.txt", "", "4", true);
        let of = |list: &List, places: &[Place]| faults(list, places, &cases());
        assert_eq!(of(&list(""), &[code.clone(), test.clone()]), [""; 0]);
        assert!(of(&list(""), std::slice::from_ref(&code))[0].contains("no test cites it"));
        assert!(of(&list(""), &[test])[0].contains("no code cites it"));
        assert_eq!(of(&list(""), &[]).len(), 2);
        assert_eq!(of(&list("deviation = \"because\"\n"), &[]), [""; 0]);
        assert_eq!(of(&list("elsewhere = \"others\"\n"), &[]), [""; 0]);
        // A case alone does not say which part of the server should act.
        assert_eq!(of(&list("cases = [\"one\"]\n"), &[code]).len(), 1);
    }

    #[test]
    fn unknown_numbers_wrong_sections_helpers_of_tests_and_cases_that_fail_are_told() {
        let rfc = "RFC 6147 section 5.1.2";
        let good = [place("server/a/src/b.rs", rfc, "4", false), place("server/a/src/b.rs", rfc, "4", true)];
        for (bad, told) in [
            (place("server/a/src/b.rs", rfc, "5", false), "not in the list"),
            (
                place("server/a/src/b.rs", "RFC 6147 section 5.1.3", "4", false),
                "it is RFC 6147 section 5.1.2",
            ),
            (place("server/a/tests/b.rs", rfc, "4", false), "not a test"),
        ] {
            let places = [good.as_slice(), &[bad]].concat();
            let found = faults(&list(""), &places, &cases());
            assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
        }
        for (key, named, told) in [
            ("cases", "three", "no case"),
            ("more_cases", "three", "no case"),
            ("cases", "two", "is a known failure"),
        ] {
            let found = faults(&list(&format!("{key} = [\"{named}\"]\n")), &good, &cases());
            assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
        }
    }
}
