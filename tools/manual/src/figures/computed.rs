//! Computed tables of a page, between `<!-- computed: NAME -->` and `<!-- end -->`, each on a line of its own.

use super::{Constants, tables};

const START: &str = "<!-- computed: ";
/// End of a line that begins a table.
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// Name of the table that a line begins.
pub fn name(line: &str) -> Option<&str> {
    line.strip_prefix(START)?.strip_suffix(CLOSE)
}

/// True for the line that ends a table.
pub fn is_end(line: &str) -> bool {
    line == END
}

/// The page with its tables written anew.
///
/// # Errors
///
/// There is no table of the name in a marker, a figure of it is missing, or a marker has no end. The text names the table.
pub fn rewrite(text: &str, constants: &Constants) -> Result<String, String> {
    let (mut new, mut open) = (String::new(), None);
    for line in text.split_inclusive('\n') {
        let words = line.trim_end();
        match (open, name(words)) {
            (Some(outer), Some(_)) => return Err(format!("`computed: {outer}` has no line {END}")),
            (None, Some(name)) => {
                let table =
                    tables::table(name, constants).map_err(|fault| format!("`computed: {name}`: {fault}"))?;
                new += &format!("{line}\n{table}\n");
                open = Some(name);
            }
            (Some(_), None) if is_end(words) => {
                new += line;
                open = None;
            }
            (Some(_), None) => {}
            (None, None) => new += line,
        }
    }
    match open {
        Some(name) => Err(format!("`computed: {name}` has no line {END}")),
        None => Ok(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: &str = "devices = [[\"sixfold\", \"Sixfold 0.1.0\"]]\n[a.b]\ntitle = \"t\"\nunit = \"us\"\ndecimals = 1\nsixfold = 2\n";

    #[test]
    fn a_table_is_written_anew_and_the_rest_of_the_page_stays() {
        let constants = Constants::read(CONSTANTS).unwrap();
        let page = "Text.\n\n<!-- computed: devices a.b -->\nold\n<!-- end -->\n\nMore.";
        let new = rewrite(page, &constants).unwrap();
        let table = "| | t, us |\n| --- | ---: |\n| Sixfold 0.1.0 | 2.0 |\n";
        assert_eq!(new, format!("Text.\n\n<!-- computed: devices a.b -->\n\n{table}\n<!-- end -->\n\nMore."));
        assert_eq!(rewrite(&new, &constants).unwrap(), new);
        assert_eq!(rewrite("none\n", &constants).unwrap(), "none\n");
    }

    #[test]
    fn a_table_without_an_end_or_a_name_is_an_error() {
        let constants = Constants::read(CONSTANTS).unwrap();
        let error = |page| rewrite(page, &constants).unwrap_err();
        assert!(error("<!-- computed: devices a.b -->\n").contains("no line <!-- end -->"));
        let twice = "<!-- computed: devices a.b -->\n<!-- computed: devices a.b -->\n<!-- end -->\n";
        assert!(error(twice).contains("no line <!-- end -->"));
        assert_eq!(error("<!-- computed: x -->\n<!-- end -->\n"), "`computed: x`: there is no such table");
        assert!(error("<!-- computed: devices a.c -->\n<!-- end -->\n").contains("a.c"));
    }
}
