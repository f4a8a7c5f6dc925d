//! Built-in cases, so that a program without the files of this project has them.

use crate::case::Case;

/// Case files: `shared` and `own`.
const FILES: [&str; 2] = [
    include_str!("../../../conformance/shared/cases.jsonl"),
    include_str!("../../../conformance/own/cases.jsonl"),
];

/// All built-in cases.
///
/// # Errors
///
/// As [`Case::read_all`]. A test reads the cases, so this does not happen.
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
