//! The header of a file: its origin. By it a later run knows the files that are its own.

use crate::input::Source;

/// Words of the header by which a file is recognized.
const MARK: &str = "Written by sixfold plan ";

/// Lines in which the header stands: JSON begins with a brace.
const LINES: usize = 3;

/// The header, without the signs of a comment.
pub fn header(source: &Source) -> String {
    format!("{MARK}{} from {}: change that file, and run it again.", source.version, source.file)
}

/// True if a text begins with a header.
pub fn is_ours(text: &str) -> bool {
    text.lines().take(LINES).any(|line| line.contains(MARK))
}

/// True if two texts differ in their headers at most: the version of the program alone is no reason to write a file anew.
pub fn same_content(one: &str, other: &str) -> bool {
    content(one).eq(content(other)) && one.ends_with('\n') == other.ends_with('\n')
}

fn content(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .enumerate()
        .filter(|(number, line)| *number >= LINES || !line.contains(MARK))
        .map(|(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_ours_by_its_header_only() {
        let source = Source { file: "sixfold.toml".into(), path: None, version: "1.2.3".into() };
        let text = format!("{{\n  \"comment\": \"{}\"\n}}\n", header(&source));
        assert!(is_ours(&text) && text.contains("1.2.3 from sixfold.toml"));
        assert!(!is_ours("# radvd.conf\n") && !is_ours(&format!("\n\n\n# {}\n", header(&source))));
    }

    #[test]
    fn another_version_in_the_header_is_no_change() {
        let text = |version: &str, value: &str| format!("# {MARK}{version} from x.toml\n{value}\n");
        assert!(same_content(&text("1", "a"), &text("2", "a")));
        assert!(!same_content(&text("1", "a"), &text("1", "b")));
        assert!(!same_content(&text("1", "a"), text("1", "a").trim_end()));
    }
}
