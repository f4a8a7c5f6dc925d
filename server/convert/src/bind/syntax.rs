//! The syntax of named.conf: statements of words and blocks, each ended by a semicolon; comments as in C, C++ and shells.
//! Included files take the place of their `include` statement.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Place, Spot};
use crate::sources::Sources;

/// Levels of blocks in blocks. A view, a zone and a list of addresses are three.
const MAX_DEPTH: usize = 32;

/// Part of a statement.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// A word.
    Word(String),
    /// A quoted string.
    Quoted(String),
    /// A block in braces.
    Block(Vec<Statement>),
}

/// Statement: words and blocks up to a semicolon.
#[derive(Clone, Debug)]
pub(super) struct Statement {
    pub(super) spot: Spot,
    pub(super) parts: Vec<Part>,
}

impl Statement {
    /// The first word; empty if the statement begins with a block.
    pub(super) fn keyword(&self) -> &str {
        self.word(0)
    }

    /// A word by its position among all parts; empty if there is none.
    pub(super) fn word(&self, index: usize) -> &str {
        match self.parts.get(index) {
            Some(Part::Word(word) | Part::Quoted(word)) => word,
            _ => "",
        }
    }

    /// All words after the keyword, without those in blocks.
    pub(super) fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().skip(1).filter_map(|part| match part {
            Part::Word(word) | Part::Quoted(word) => Some(word.as_str()),
            Part::Block(_) => None,
        })
    }

    /// The word after another one, as in `port 53`.
    pub(super) fn after(&self, keyword: &str) -> Option<&str> {
        let mut words = self.words().skip_while(|word| *word != keyword);
        words.next()?;
        words.next()
    }

    /// The statements of the first block.
    pub(super) fn block(&self) -> Option<&[Statement]> {
        self.parts.iter().find_map(|part| match part {
            Part::Block(statements) => Some(statements.as_slice()),
            Part::Word(_) | Part::Quoted(_) => None,
        })
    }
}

/// Token with its line.
#[derive(Debug)]
struct Token {
    line: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Word(String),
    Quoted(String),
    Open,
    Close,
    End,
}

/// Parses a file, and the files that it includes.
///
/// # Errors
///
/// A comment, a string or a block is not closed, a brace is too many, a semicolon is missing, or blocks are nested too deeply.
pub(super) fn parse(
    text: &str,
    file: usize,
    depth: usize,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Result<Vec<Statement>, SyntaxError> {
    let tokens = tokens(text).map_err(|(line, what)| SyntaxError { file, line, what })?;
    let mut parser = Parser { tokens: tokens.into_iter().peekable(), file, last_line: 1 };
    let statements = parser.statements(0)?;
    include(statements, depth, sources, draft)
}

/// Replaces `include` statements by the statements of the files, in blocks as well.
fn include(
    statements: Vec<Statement>,
    depth: usize,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Result<Vec<Statement>, SyntaxError> {
    let mut expanded = Vec::new();
    for mut statement in statements {
        if statement.keyword() == "include" && statement.parts.len() == 2 {
            let files = sources.include(statement.spot.place.file, statement.word(1), depth);
            for (file, text) in draft.take_files(&statement.spot, files, "it") {
                expanded.extend(parse(&text, file, depth + 1, sources, draft)?);
            }
            continue;
        }
        for part in &mut statement.parts {
            if let Part::Block(inner) = part {
                *inner = include(std::mem::take(inner), depth, sources, draft)?;
            }
        }
        expanded.push(statement);
    }
    Ok(expanded)
}

struct Parser {
    tokens: std::iter::Peekable<std::vec::IntoIter<Token>>,
    file: usize,
    last_line: usize,
}

impl Parser {
    fn error<T>(&self, what: &str) -> Result<T, SyntaxError> {
        Err(SyntaxError { file: self.file, line: self.last_line, what: what.to_owned() })
    }

    /// Statements up to the end of the block, or of the file at depth 0.
    fn statements(&mut self, depth: usize) -> Result<Vec<Statement>, SyntaxError> {
        if depth > MAX_DEPTH {
            return self.error("blocks are nested too deeply");
        }
        let mut statements = Vec::new();
        loop {
            match self.tokens.peek() {
                None if depth == 0 => return Ok(statements),
                None => return self.error("a closing brace is missing at the end"),
                Some(Token { kind: Kind::Close, .. }) if depth > 0 => {
                    self.tokens.next();
                    return Ok(statements);
                }
                Some(Token { kind: Kind::Close, line }) => {
                    self.last_line = *line;
                    return self.error("a closing brace without an opening one");
                }
                // An empty statement.
                Some(Token { kind: Kind::End, .. }) => drop(self.tokens.next()),
                Some(_) => statements.push(self.statement(depth)?),
            }
        }
    }

    fn statement(&mut self, depth: usize) -> Result<Statement, SyntaxError> {
        let (mut parts, mut shown) = (Vec::new(), String::new());
        let first = self.tokens.peek().map_or(self.last_line, |token| token.line);
        loop {
            let Some(Token { line, kind }) = self.tokens.next() else {
                return self.error("a semicolon is missing at the end");
            };
            self.last_line = line;
            match kind {
                Kind::End => break,
                Kind::Word(word) => {
                    shown += &word;
                    shown.push(' ');
                    parts.push(Part::Word(word));
                }
                Kind::Quoted(text) => {
                    shown += &text;
                    shown.push(' ');
                    parts.push(Part::Quoted(text));
                }
                Kind::Open => {
                    let block = self.statements(depth + 1)?;
                    let inner: Vec<&str> =
                        block.iter().map(|statement| statement.spot.text.as_str()).collect();
                    // Long blocks are cut in comments, so the text of their end is not needed.
                    let inner: String = inner.join(" ").chars().take(200).collect();
                    shown += &format!("{{ {inner} }} ");
                    parts.push(Part::Block(block));
                }
                Kind::Close => return self.error("a semicolon is missing before the closing brace"),
            }
        }
        let place = Place { file: self.file, first, last: self.last_line };
        Ok(Statement { spot: Spot { place, text: format!("{};", shown.trim_end()) }, parts })
    }
}

/// Splits the text into tokens. The error has the line and the reason.
fn tokens(text: &str) -> Result<Vec<Token>, (usize, String)> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(c) = rest.chars().next() {
        let mut length = c.len_utf8();
        let kind = match c {
            ';' => Some(Kind::End),
            '{' => Some(Kind::Open),
            '}' => Some(Kind::Close),
            // Negation is an element of its own, with or without a blank after it.
            '!' => Some(Kind::Word("!".to_owned())),
            '"' => {
                let (word, octets) = quoted(rest).ok_or((line, "a quotation mark is missing".to_owned()))?;
                length = octets;
                Some(Kind::Quoted(word))
            }
            '#' => {
                length = rest.find('\n').unwrap_or(rest.len());
                None
            }
            '/' if rest.starts_with("//") => {
                length = rest.find('\n').unwrap_or(rest.len());
                None
            }
            '/' if rest.starts_with("/*") => {
                let end = rest[2..].find("*/").ok_or((line, "a comment has no end".to_owned()))?;
                length = end + 4;
                None
            }
            c if c.is_whitespace() => None,
            _ => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}' | '"');
                length = rest.find(is_end).unwrap_or(rest.len());
                Some(Kind::Word(rest[..length].to_owned()))
            }
        };
        tokens.extend(kind.map(|kind| Token { line, kind }));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    Ok(tokens)
}

/// The quoted string at the start of the text, and its octets with the quotation marks.
fn quoted(text: &str) -> Option<(String, usize)> {
    let (mut word, mut escaped) = (String::new(), false);
    for (index, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return Some((word, index + 1)),
            '\\' if !escaped => escaped = true,
            c => {
                word.push(c);
                escaped = false;
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::NoFiles;

    fn parsed(text: &str) -> Result<Vec<Statement>, SyntaxError> {
        parse(text, 0, 0, &mut Sources::new("named.conf", &mut NoFiles), &mut Draft::default())
    }

    #[test]
    fn statements_have_words_blocks_and_lines() {
        let text = "/* two\nlines */ options { // one\n forwarders { 192.0.2.1 port 53; }; # two\n};\nacl \"a b\" { !10/8; };";
        let statements = parsed(text).unwrap();
        assert_eq!(statements[0].keyword(), "options");
        assert_eq!(statements[0].spot.place, Place { file: 0, first: 2, last: 4 });
        let forwarders = &statements[0].block().unwrap()[0];
        assert_eq!((forwarders.keyword(), forwarders.spot.place.first), ("forwarders", 3));
        assert_eq!(forwarders.block().unwrap()[0].after("port"), Some("53"));
        assert_eq!(forwarders.block().unwrap()[0].words().collect::<Vec<_>>(), ["port", "53"]);
        assert_eq!(statements[1].word(1), "a b");
        assert_eq!(statements[1].spot.text, "acl a b { ! 10/8; };");
    }

    #[test]
    fn a_missing_end_is_an_error_with_its_line() {
        for (text, line) in [
            ("options {\n", 1),
            ("options { };\n}", 2),
            ("options { a }\n;", 1),
            ("a\n\"b", 2),
            ("/* a", 1),
            ("a b\n", 1),
        ] {
            assert_eq!(parsed(text).unwrap_err().line, line, "{text}");
        }
        assert!(parsed(&"a {".repeat(1000)).is_err());
    }
}
