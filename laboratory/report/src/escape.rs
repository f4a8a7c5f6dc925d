//! Escaping of texts from devices, files and command lines for each output format of a report.

/// Escapes text for HTML, between tags and inside quoted attributes. Control characters, which HTML forbids, are
/// replaced.
pub fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_bidirectional(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Escapes JSON for a `<script>` element: no character in it can end the element or begin a comment.
pub fn script(json: &str) -> String {
    let mut out = String::with_capacity(json.len() + json.len() / 16);
    for c in json.chars() {
        match c {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for a cell of a Markdown table or a paragraph, on one line.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    for (at, c) in text.char_indices() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            // These characters begin a list or a heading at the start of a paragraph.
            '-' | '+' | '=' if at == 0 => {
                out.push('\\');
                out.push(c);
            }
            '.' | ')'
                if at == digits && at > 0 && !text[at + 1..].starts_with(|c: char| !c.is_whitespace()) =>
            {
                out.push('\\');
                out.push(c);
            }
            '&' => out.push_str("&amp;"),
            c if c.is_control() || is_bidirectional(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Escapes text for LaTeX in text mode, on one line.
pub fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '|' => out.push_str("\\textbar{}"),
            '"' => out.push_str("\\textquotedbl{}"),
            // Unescaped, these would become a quotation mark, or with their neighbours a dash or a ligature.
            '`' => out.push_str("\\textasciigrave{}"),
            // After the end of a row, LaTeX would take these as options of the row end.
            '[' | ']' | '*' => {
                out.push('{');
                out.push(c);
                out.push('}');
            }
            '-' => out.push_str("-{}"),
            '\u{a0}' => out.push_str("\\,"),
            '\u{2212}' => out.push_str("$-$"),
            '–' => out.push_str("--"),
            '≥' => out.push_str("$\\geq$"),
            'µ' => out.push_str("\\textmu{}"),
            c if c.is_control() || is_bidirectional(c) => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Comment that names the packages which the LaTeX of this crate needs.
pub const LATEX_PACKAGES: &str =
    "% Needs \\usepackage{booktabs}, and \\usepackage[T1]{fontenc} unless the engine is a Unicode one.\n";

/// A LaTeX comment of one line.
pub fn latex_comment(text: &str) -> String {
    format!("% {}\n", text.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'), " "))
}

/// A field of a CSV file (RFC 4180), quoted if necessary.
pub fn csv(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// True for characters that reverse the direction of the text around them.
fn is_bidirectional(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leaves_its_place_in_html() {
        assert_eq!(
            html("</td><script>'x' & \"y\""),
            "&lt;/td&gt;&lt;script&gt;&#39;x&#39; &amp; &quot;y&quot;"
        );
        assert_eq!(html("a\u{1b}[31m\u{202e}b"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn json_cannot_end_the_script_that_holds_it() {
        let hostile = serde_json::to_string("</script><!--&\u{2028}").unwrap();
        let safe = script(&hostile);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!--&\u{2028}");
    }

    #[test]
    fn a_markdown_cell_stays_one_cell() {
        assert_eq!(markdown("a|b\n# *c*"), "a\\|b \\# \\*c\\*");
        assert_eq!(
            ["- a-b", "1. x 2.", "2) x", "24.3", "$x$", "."].map(markdown),
            ["\\- a-b", "1\\. x 2.", "2\\) x", "24.3", "\\$x\\$", "."]
        );
    }

    #[test]
    fn latex_commands_in_texts_are_only_texts() {
        assert_eq!(latex("\\input{x} 50%_&"), "\\textbackslash{}input\\{x\\} 50\\%\\_\\&");
        assert_eq!(latex("--threads"), "-{}-{}threads");
        assert_eq!(latex("[::1]*"), "{[}::1{]}{*}");
    }

    #[test]
    fn csv_fields_are_quoted_when_they_must_be() {
        assert_eq!(csv("plain"), "plain");
        assert_eq!(csv("two\nlines, \"quoted\""), "\"two\nlines, \"\"quoted\"\"\"");
    }
}
