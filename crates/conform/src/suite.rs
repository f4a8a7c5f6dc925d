//! The cases that are built in, so that a program without this project's files has them.

use crate::case::Case;

/// The cases of `conformance/`, and those found by thinking where servers go wrong.
const FILES: [&str; 2] = [
    include_str!("../../../conformance/shared/cases.jsonl"),
    include_str!("../../../conformance/own/cases.jsonl"),
];

/// All cases that are built in.
pub fn built_in() -> Result<Vec<Case>, String> {
    Case::read_all(&FILES.join("\n"))
}

#[cfg(test)]
mod tests {
    use crate::case::Case;

    #[test]
    fn the_built_in_cases_can_be_read_and_no_two_have_one_name() {
        assert!(super::built_in().unwrap().len() >= 605);
    }

    #[test]
    fn the_example_of_the_documentation_is_a_case() {
        let text = include_str!("../../../docs/conformance-cases.md");
        let example = text.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let case = Case::read(example).unwrap();
        assert_eq!(case.id, "nodata");
    }
}
