//! Figures quoted in sentences. A line `<!-- quotes: cached.closed.sixfold =256 -->` stands before a paragraph, a list or a table. Every
//! number below it, up to the next empty line, must be one of the quoted figures, rounded as it is written, or a number behind `=`, which
//! was not measured. Code, links and versions of devices are left out.

use super::derived::value;
use super::number::{is_rounded, numbers};
use super::{Constants, computed};

const START: &str = "<!-- quotes: ";
const CLOSE: &str = " -->";

/// Paragraph of a page.
struct Block<'t> {
    /// Number of its first line.
    line: usize,
    /// Words of the line before it that quotes, if there is one.
    quoted: Option<Vec<&'t str>>,
    /// Its text, without code and links.
    text: String,
}

/// Numbers of a page that are not those of the constants: line and fault. On a strict page, paragraphs that quote nothing have no numbers.
pub fn faults(page: &str, constants: &Constants, is_strict: bool) -> Vec<(usize, String)> {
    let mut faults = Vec::new();
    for block in blocks(page) {
        let found = match &block.quoted {
            Some(quoted) => quoted_faults(&block.text, quoted, constants),
            None if is_strict => {
                let unquoted = measured(&block.text, constants);
                unquoted
                    .into_iter()
                    .map(|number| format!("{number} is neither quoted nor computed"))
                    .collect()
            }
            None => Vec::new(),
        };
        faults.extend(found.into_iter().map(|fault| (block.line, fault)));
    }
    faults
}

fn quoted_faults(text: &str, quoted: &[&str], constants: &Constants) -> Vec<String> {
    let written = measured(text, constants);
    let is_one_of = |number: &str, quote: &str| match quote.strip_prefix('=') {
        Some(literal) => number == literal,
        None => match value(constants, quote) {
            Some(value) => is_rounded(number, value),
            None => constants.text(quote) == Some(number),
        },
    };
    let mut faults = Vec::new();
    for number in &written {
        if !quoted.iter().any(|quote| is_one_of(number, quote)) {
            faults.push(format!("{number} is none of the quoted figures: {}", shown(quoted, constants)));
        }
    }
    for quote in quoted {
        if !written.iter().any(|number| is_one_of(number, quote)) {
            faults.push(format!("{} is quoted and not in the text", shown(&[*quote], constants)));
        }
    }
    faults
}

/// Quoted figures with their values.
fn shown(quoted: &[&str], constants: &Constants) -> String {
    let one = |quote: &&str| match value(constants, quote) {
        Some(value) => format!("{quote} = {value}"),
        None => (*quote).to_owned(),
    };
    quoted.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Numbers of a text that are no version of a device.
fn measured<'t>(text: &'t str, constants: &Constants) -> Vec<&'t str> {
    let devices = constants.devices();
    let is_version = |number: &&str| devices.iter().any(|(_, name)| name.rsplit(' ').next() == Some(*number));
    numbers(text).into_iter().filter(|number| !is_version(number)).collect()
}

/// Paragraphs of a page, without headings, code and computed tables.
fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let (mut quoted, mut is_open, mut is_code, mut is_computed) = (None, false, false, false);
    for (number, line) in page.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            (is_code, is_open) = (!is_code, false);
        } else if is_code || is_computed || line.starts_with('#') {
            is_computed &= !computed::is_end(line);
            is_open = false;
        } else if computed::name(line).is_some() {
            (is_computed, is_open) = (true, false);
        } else if let Some(words) = line.strip_prefix(START).and_then(|rest| rest.strip_suffix(CLOSE)) {
            (quoted, is_open) = (Some(words.split_whitespace().collect()), false);
        } else if line.trim().is_empty() {
            is_open = false;
        } else if is_open || !line.starts_with("    ") {
            if !is_open {
                blocks.push(Block { line: number + 1, quoted: quoted.take(), text: String::new() });
                is_open = true;
            }
            if let Some(block) = blocks.last_mut() {
                block.text.push_str(&without_code(line));
                block.text.push('\n');
            }
        }
    }
    blocks
}

/// A line without the words in backquotes, destinations of links, and tags.
fn without_code(line: &str) -> String {
    let words: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let links = removed(&words, "](", ')');
    removed(&links, "<", '>')
}

/// A text without the parts between a start and the next end.
fn removed(text: &str, start: &str, end: char) -> String {
    let mut parts = text.split(start);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |kept, part| kept + " " + part.split_once(end).map_or(part, |(_, rest)| rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: &str = "devices = [[\"bind-12\", \"BIND 9.18.49\"]]\n[runs.r]\ndate = \"2026-01-02\"\n[a]\nb = [3.74, 3.7, 4.3]\nc = 7.19\n";

    fn of(page: &str, is_strict: bool) -> Vec<(usize, String)> {
        faults(page, &Constants::read(CONSTANTS).unwrap(), is_strict)
    }

    #[test]
    fn numbers_of_a_paragraph_are_those_that_it_quotes() {
        let good = "# 5 things\n\n<!-- quotes: a.b a.c a.b/a.c =256 -->\nWith 256 outstanding, 3.7 us beside 7.2 us of BIND 9.18.49, or\n\
                    0.52 ([b](x-9.md), `c 8`).\n\nNot 77 quoted.\n";
        assert_eq!(of(good, false), []);
        let dated = "<!-- quotes: runs.r.date a.b.most -->\n- 4.3 on 2026-01-02\n";
        assert_eq!(of(dated, true), []);
    }

    #[test]
    fn a_figure_that_changed_is_found_with_its_line() {
        let page = "Text.\n\n<!-- quotes: a.b a.c -->\nNow 3.8 us and 7.19.\n";
        let told = "3.8 is none of the quoted figures: a.b = 3.74, a.c = 7.19";
        let absent = "a.b = 3.74 is quoted and not in the text";
        assert_eq!(of(page, false), [(4, told.to_owned()), (4, absent.to_owned())]);
        let unknown = of("<!-- quotes: a.d -->\nNone.\n", false);
        assert_eq!(unknown, [(2, "a.d is quoted and not in the text".to_owned())]);
    }

    #[test]
    fn a_strict_page_has_no_number_that_is_neither_quoted_nor_computed() {
        let page = "Over 9,000.\n\n    code 5\n\n```sh\n6\n```\n\n<!-- computed: x -->\n\n| 7 |\n\n<!-- end -->\n\n| a | 8 |\n";
        let fault = |line: usize, number: &str| (line, format!("{number} is neither quoted nor computed"));
        assert_eq!(of(page, true), [fault(1, "9,000"), fault(15, "8")]);
        assert_eq!(of(page, false), []);
    }
}
