//! What is wrong with list and citations: everything at once, each with what to do.

use crate::list::{List, Requirement};
use crate::tree::Place;
use conform::{Case, KnownFailures};
use std::collections::BTreeSet;

/// The names of the conformance cases that are held to.
#[derive(Debug, Default)]
pub struct Cases {
    /// Those that there are.
    pub known: BTreeSet<String>,
    /// Those that our server does not hold yet: they show nothing.
    pub later: BTreeSet<String>,
}

/// The cases of this repository.
pub fn cases() -> Result<Cases, Vec<String>> {
    let known = conform::suite::built_in().map_err(|error| vec![error])?;
    let mut later = BTreeSet::new();
    for text in [
        include_str!("../../conformance/shared/known-failures.txt"),
        include_str!("../../conformance/own/known-failures.txt"),
    ] {
        let list = KnownFailures::read(text).map_err(|error| vec![error])?;
        later.extend(list.ids().map(str::to_owned));
    }
    Ok(Cases { known: known.into_iter().map(|case: Case| case.id).collect(), later })
}

/// Everything that is wrong.
pub fn faults(list: &List, places: &[Place], cases: &Cases) -> Vec<String> {
    let mut faults = Vec::new();
    for place in places {
        let at = format!("{}: requirement {}", place.file, place.number);
        let in_tests = !place.file.contains("/src/") && !place.file.starts_with("scenarios/");
        match list.find(&place.number) {
            None => faults.push(format!("{at} is in no list; add it to requirements/requirements.toml")),
            Some(requirement) if !place.rfc.is_empty() && place.rfc != requirement.rfc => {
                faults.push(format!("{at} is cited as {}; it is {}", place.rfc, requirement.rfc));
            }
            Some(_) if in_tests && !place.is_test => {
                faults.push(format!("{at} is cited at `{}`, which is no test; cite it at one", place.item));
            }
            Some(_) => {}
        }
    }
    for requirement in &list.requirements {
        about(requirement, places, cases, &mut faults);
    }
    faults
}

/// What is wrong with one requirement.
fn about(requirement: &Requirement, places: &[Place], cases: &Cases, faults: &mut Vec<String>) {
    let number = &requirement.number;
    for case in &requirement.cases {
        if !cases.known.contains(case) {
            faults.push(format!("requirement {number}: there is no case `{case}`; name one that there is"));
        }
        if cases.later.contains(case) {
            faults.push(format!("requirement {number}: case `{case}` does not pass yet; name one that does"));
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
             does it, or give the reason as `deviation` or `elsewhere` in requirements.toml",
            requirement.rfc
        ));
    }
    // A case is played by a test, but says nothing of the part that does it: it comes on top.
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
        let known = BTreeSet::from(["one".to_owned(), "two".to_owned()]);
        Cases { known, later: set("two") }
    }

    #[test]
    fn a_requirement_needs_code_and_a_test_or_a_reason() {
        let rfc = "RFC 6147 section 5.1.2";
        let code = place("crates/engine/src/settle.rs", rfc, "4", false);
        let test = place("scenarios/nxdomain.txt", "", "4", true);
        let of = |list: &List, places: &[Place]| faults(list, places, &cases());
        assert_eq!(of(&list(""), &[code.clone(), test.clone()]), [""; 0]);
        assert!(of(&list(""), std::slice::from_ref(&code))[0].contains("no test cites it"));
        assert!(of(&list(""), &[test])[0].contains("no code cites it"));
        assert_eq!(of(&list(""), &[]).len(), 2);
        assert_eq!(of(&list("deviation = \"because\"\n"), &[]), [""; 0]);
        assert_eq!(of(&list("elsewhere = \"others\"\n"), &[]), [""; 0]);
        // A case alone does not say which part of the server is meant to do it.
        assert_eq!(of(&list("cases = [\"one\"]\n"), &[code]).len(), 1);
    }

    #[test]
    fn unknown_numbers_wrong_sections_helpers_of_tests_and_cases_that_fail_are_told() {
        let rfc = "RFC 6147 section 5.1.2";
        let good = [place("crates/a/src/b.rs", rfc, "4", false), place("crates/a/src/b.rs", rfc, "4", true)];
        for (bad, told) in [
            (place("crates/a/src/b.rs", rfc, "5", false), "in no list"),
            (
                place("crates/a/src/b.rs", "RFC 6147 section 5.1.3", "4", false),
                "it is RFC 6147 section 5.1.2",
            ),
            (place("crates/a/tests/b.rs", rfc, "4", false), "no test"),
        ] {
            let places = [good.as_slice(), &[bad]].concat();
            let found = faults(&list(""), &places, &cases());
            assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
        }
        for (named, told) in [("three", "no case"), ("two", "does not pass yet")] {
            let found = faults(&list(&format!("cases = [\"{named}\"]\n")), &good, &cases());
            assert!(found.len() == 1 && found[0].contains(told), "{found:?}");
        }
    }
}
