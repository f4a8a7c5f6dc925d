//! Page `docs/conformance.md`: a table for each RFC, then interpretations, deviations, and requirements for others.
//!
//! Places are named by file and item, not by line, so that the page changes only when one of these changes.

use crate::list::{List, Requirement};
use crate::tree::Place;
use std::collections::BTreeMap;

const HEAD: &str = "\
<!-- Written by `cargo run -p sixfold-requirements` from tools/requirements/requirements.toml and the citations; do not edit. -->

# Conformance

Requirements of the RFCs for a DNS64 server, the code that meets them, and the tests that show it. Each requirement has a number
for citations: `//= RFC 6147 section 5.1.2: requirement 4` stands above the line that meets it and above the test that shows
it, `# requirement 4` in a scenario. `cargo run -p sixfold-requirements` writes this page, and fails if a requirement has no
code or no test.

Levels are those of the RFC; *stated* marks a description without such a word. Tests are scenarios (`scenarios/`), functions, and
conformance cases (`conformance/shared/cases.jsonl`, `conformance/own/cases.jsonl`; play one with
`CONFORM_ONLY=NAME cargo test -p sixfold-conform`). A dagger (†) leads to the notes below the tables.
";

/// Writes the page.
pub fn write(list: &List, places: &[Place]) -> String {
    let mut page = HEAD.to_owned();
    page += &summary(list);
    let mut by_rfc: BTreeMap<u32, Vec<&Requirement>> = BTreeMap::new();
    let mut order = Vec::new();
    for requirement in &list.requirements {
        let number = requirement.number_of_rfc().unwrap_or_default();
        if !order.contains(&number) {
            order.push(number);
        }
        by_rfc.entry(number).or_default().push(requirement);
    }
    for number in order {
        page += &format!("\n## RFC {number}\n\n");
        page += "| | section | level | requirement | code | tests |\n| --- | --- | --- | --- | --- | --- |\n";
        for requirement in &by_rfc[&number] {
            page += &row(requirement, places);
        }
    }
    page += &notes(
        list,
        "How the texts are read",
        "Interpretations of texts that can be read in several ways or contradict each other.",
        |requirement| requirement.reading.as_deref(),
    );
    page += &notes(
        list,
        "Deviations",
        "Parts that Sixfold does not do as the RFC says, with the reason.",
        |requirement| requirement.deviation.as_deref(),
    );
    page += &notes(
        list,
        "Requirements for others",
        "Requirements for network operators, or for other software.",
        |requirement| requirement.elsewhere.as_deref(),
    );
    page
}

fn summary(list: &List) -> String {
    let all = list.requirements.len();
    let deviations = list.requirements.iter().filter(|requirement| requirement.deviation.is_some()).count();
    let elsewhere = list.requirements.iter().filter(|requirement| requirement.elsewhere.is_some()).count();
    format!(
        "\nOf {all} requirements {} are met, {deviations} are not or not in full ([why](#deviations)), and \
         {elsewhere} are for [others](#requirements-for-others).\n",
        all - deviations - elsewhere
    )
}

fn row(requirement: &Requirement, places: &[Place]) -> String {
    let Requirement { number, level, text, .. } = requirement;
    let section = requirement.section().unwrap_or("-");
    let noted = [&requirement.reading, &requirement.deviation, &requirement.elsewhere];
    let dagger = if noted.iter().any(|note| note.is_some()) { " †" } else { "" };
    let its = |is_test: bool, is_scenario: bool| {
        let mine = places.iter().filter(|place| place.number == *number && place.is_test == is_test);
        mine.filter(|place| place.item.is_empty() == is_scenario).map(link).collect::<Vec<String>>()
    };
    let cases = requirement.cases.iter().map(|case| format!("`{case}`")).collect();
    let tests = [("", its(true, false)), ("scenario: ", its(true, true)), ("case: ", cases)];
    let tests: Vec<String> = tests
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(what, list)| what.to_owned() + &list.join(", "))
        .collect();
    let shown = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let (code, tests) = (shown(its(false, false).join(", ")), shown(tests.join("<br>")));
    format!("| {number}{dagger} | {section} | {level} | {text} | {code} | {tests} |\n")
}

/// Writes a place as a link, relative to the folder of the page.
fn link(place: &Place) -> String {
    let Place { file, item, .. } = place;
    if item.is_empty() {
        let name = file.strip_prefix("scenarios/").and_then(|name| name.strip_suffix(".txt")).unwrap_or(file);
        return format!("[{name}](../{file})");
    }
    format!("[`{item}`](../{file})")
}

fn notes<'l>(
    list: &'l List,
    title: &str,
    about: &str,
    note: impl Fn(&'l Requirement) -> Option<&'l str>,
) -> String {
    let mut text = format!("\n## {title}\n\n{about}\n\n");
    for requirement in &list.requirements {
        if let Some(note) = note(requirement) {
            text += &format!("- **{}** ({}): {note}\n", requirement.number, requirement.rfc);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_code_tests_and_cases_and_a_dagger_if_there_is_more_to_say() {
        let list = List::read(
            "[[requirement]]\nnumber = \"4\"\nrfc = \"RFC 6147 section 5.1.2\"\nlevel = \"MUST\"\ntext = \"Errors.\"\n\
             cases = [\"nxdomain\"]\ndeviation = \"None of it.\"\n",
        );
        let place = |file: &str, item: &str, is_test| Place {
            file: file.to_owned(),
            item: item.to_owned(),
            rfc: String::new(),
            number: "4".to_owned(),
            is_test,
        };
        let places =
            [place("server/engine/src/settle.rs", "judge", false), place("scenarios/nxdomain.txt", "", true)];
        let page = write(&list.unwrap(), &places);
        let row = "| 4 † | 5.1.2 | MUST | Errors. | [`judge`](../server/engine/src/settle.rs) | \
                   scenario: [nxdomain](../scenarios/nxdomain.txt)<br>case: `nxdomain` |\n";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("## RFC 6147\n"), "{page}");
        assert!(page.contains("Of 1 requirements 0 are met, 1 are not"), "{page}");
        assert!(page.contains("- **4** (RFC 6147 section 5.1.2): None of it.\n"), "{page}");
    }
}
