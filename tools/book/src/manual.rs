//! Manual pages as chapters: the macros of man(7) that our pages use, as Markdown. An unknown macro is an error, so that no
//! text is lost.

use crate::entries::{arguments, key, plain, table_name};
use std::fmt::Write;

/// The font of a piece of text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Font {
    Roman,
    Bold,
    Italic,
}

/// Markdown of a manual page, with a heading for every key of the configuration.
///
/// # Errors
///
/// The first line with a macro that is not known here, with its number.
pub fn to_markdown(manual: &str) -> Result<String, String> {
    let mut writer = Writer::default();
    for (number, line) in manual.lines().enumerate() {
        writer.line(line).map_err(|fault| format!("line {}: {fault}: {line}", number + 1))?;
    }
    writer.end_paragraph();
    Ok(writer.out)
}

/// Chapter in the making.
#[derive(Default)]
struct Writer {
    out: String,
    /// Paragraph that is not finished yet.
    paragraph: String,
    /// True if the next line is the term of a list entry.
    is_term: bool,
    /// Depth of `.RS`.
    depth: usize,
    /// True within a list entry: its paragraphs are indented.
    in_entry: bool,
    /// True between `.nf` and `.fi`.
    is_verbatim: bool,
    table: String,
}

impl Writer {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let Some(request) = line.strip_prefix('.') else {
            self.text(line, Font::Roman);
            return Ok(());
        };
        let (name, rest) = request.split_once(' ').unwrap_or((request, ""));
        let words = arguments(rest);
        match name {
            // A comment.
            "\\\"" => {}
            "nh" | "ad" => {}
            "TH" => {
                let (page, section) = (words[0].to_lowercase(), &words[1]);
                let _ = writeln!(self.out, "# {page}({section})");
            }
            "SH" => self.heading(2, &capitalized(&words.join(" "))),
            "SS" => {
                self.table = table_name(rest);
                self.heading(3, &words.join(" "));
            }
            "PP" => {
                self.end_paragraph();
                self.in_entry = false;
            }
            "TP" => {
                self.end_paragraph();
                self.is_term = true;
            }
            "IP" => self.indented(words.first()),
            "RS" => {
                self.end_paragraph();
                self.depth += 1;
            }
            "RE" => {
                self.end_paragraph();
                self.depth = self.depth.checked_sub(1).ok_or("an end without a start")?;
            }
            "nf" => {
                self.end_paragraph();
                self.is_verbatim = true;
                self.out.push_str("\n```text\n");
            }
            "fi" => {
                self.is_verbatim = false;
                self.out.push_str("```\n");
            }
            "B" => self.text(&words.join(" "), Font::Bold),
            "I" => self.text(&words.join(" "), Font::Italic),
            "BR" => self.alternate(line, &words, [Font::Bold, Font::Roman]),
            "BI" => self.alternate(line, &words, [Font::Bold, Font::Italic]),
            "IR" => self.alternate(line, &words, [Font::Italic, Font::Roman]),
            "IB" => self.alternate(line, &words, [Font::Italic, Font::Bold]),
            "RB" => self.alternate(line, &words, [Font::Roman, Font::Bold]),
            "RI" => self.alternate(line, &words, [Font::Roman, Font::Italic]),
            _ => return Err(format!("the macro {name} is not known")),
        }
        Ok(())
    }

    fn heading(&mut self, level: usize, text: &str) {
        self.end_paragraph();
        (self.in_entry, self.depth) = (false, 0);
        let text = marked(text, Font::Roman);
        let _ = writeln!(self.out, "\n{} {text}", "#".repeat(level));
    }

    /// `.IP`: an entry with this term, or a further paragraph of the entry.
    fn indented(&mut self, term: Option<&String>) {
        self.end_paragraph();
        if let Some(term) = term {
            self.entry(&marked(term, Font::Roman));
        }
    }

    /// Words in two fonts by turns, without space between them. The term of a key becomes a heading of its own.
    fn alternate(&mut self, line: &str, words: &[String], fonts: [Font; 2]) {
        if self.is_term
            && let Some(key) = key(line)
        {
            self.is_term = false;
            let place = self.table.replace('.', "-");
            let value: String = words[1..].iter().map(|word| marked(word, Font::Roman)).collect();
            let _ = writeln!(self.out, "\n#### `{key}`{value} {{#{place}-{key}}}");
            (self.in_entry, self.depth) = (false, 0);
            return;
        }
        let text: String = words.iter().enumerate().map(|(nth, word)| marked(word, fonts[nth % 2])).collect();
        self.marked_text(&text);
    }

    fn text(&mut self, text: &str, font: Font) {
        if self.is_verbatim {
            self.out.push_str(&plain(text));
            self.out.push('\n');
        } else if text.is_empty() {
            self.end_paragraph();
        } else {
            self.marked_text(&marked(text, font));
        }
    }

    fn marked_text(&mut self, text: &str) {
        if self.is_term {
            self.is_term = false;
            self.entry(text);
        } else {
            if !self.paragraph.is_empty() {
                self.paragraph.push('\n');
            }
            self.paragraph.push_str(text);
        }
    }

    fn entry(&mut self, term: &str) {
        let _ = writeln!(self.out, "\n{}- {term}", "  ".repeat(self.depth));
        self.in_entry = true;
    }

    fn end_paragraph(&mut self) {
        if self.paragraph.is_empty() {
            return;
        }
        let indent = "  ".repeat(if self.in_entry { self.depth + 1 } else { self.depth.min(1) });
        self.out.push('\n');
        for line in std::mem::take(&mut self.paragraph).lines() {
            let _ = writeln!(self.out, "{indent}{line}");
        }
    }
}

fn capitalized(heading: &str) -> String {
    let mut letters = heading.chars();
    let first = letters.next().map(String::from).unwrap_or_default();
    first + &letters.as_str().to_lowercase()
}

/// Markdown of text that starts in this font: bold as code, italic as emphasis.
fn marked(text: &str, font: Font) -> String {
    let mut out = String::new();
    let mut font = font;
    for (nth, part) in text.split("\\f").enumerate() {
        let mut part = part;
        if nth > 0 {
            font = match part.chars().next() {
                Some('B') => Font::Bold,
                Some('I') => Font::Italic,
                _ => Font::Roman,
            };
            part = part.get(1..).unwrap_or_default();
        }
        let part = plain(part);
        match font {
            _ if part.is_empty() => {}
            Font::Bold => {
                let _ = write!(out, "`{part}`");
            }
            Font::Italic => {
                let _ = write!(out, "<em>{}</em>", escaped(&part));
            }
            Font::Roman => out.push_str(&escaped(&part)),
        }
    }
    out.replace("``", "")
}

/// Text in which no character means anything to Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '{' | '}' => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = ".TH X.TOML 5 \"\" \"X\"\n.SH TABLES AND KEYS\n.SS [dns64.on\\-failure]\n.TP\n\
        .BR serv\\-fail \" = \" \\fIword\\fR\nA word,\n.B \\(dqpass\\(dq\nor\n.BR a_b .\n.PP\nNot a key:\n.BR x y\n\
        .TP\n.I term\nits text\n.RS\n.nf\na\\-b *\n.fi\n.RE\n";

    #[test]
    fn a_key_becomes_a_heading_and_bold_words_become_code() {
        let expected = "# x.toml(5)\n\n## Tables and keys\n\n### \\[dns64.on-failure\\]\n\n\
            #### `serv-fail` = <em>word</em> {#dns64-on-failure-serv-fail}\n\n\
            A word,\n`\"pass\"`\nor\n`a_b`.\n\nNot a key:\n`x`y\n\n- <em>term</em>\n\n  its text\n\n\
            ```text\na-b *\n```\n";
        assert_eq!(to_markdown(PAGE).expect("known macros"), expected);
    }

    #[test]
    fn an_unknown_macro_is_an_error_with_its_line() {
        assert_eq!(
            to_markdown(".nh\n.XX y\n").expect_err("unknown"),
            "line 2: the macro XX is not known: .XX y"
        );
    }
}
