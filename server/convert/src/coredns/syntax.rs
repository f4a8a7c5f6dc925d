//! The syntax of a Corefile: server blocks of directives, a directive a line, some with a block of their own; comments after
//! `#`. `import` takes the place of a snippet (`(name) { ... }`) or of files.

use crate::SyntaxError;
use crate::draft::Draft;
use crate::ledger::{Outcome, Place, Spot};
use crate::sources::Sources;
use std::collections::HashMap;

/// Blocks in blocks, and imports in imports.
const MAX_DEPTH: usize = 16;

/// Lines after all imports. A snippet that imports two others twice each would double with each level.
const MAX_LINES: usize = 1 << 16;

/// Line of words, with the block that it opens.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) spot: Spot,
    pub(super) words: Vec<String>,
    pub(super) block: Vec<Directive>,
}

impl Directive {
    /// The first word.
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The other words.
    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The first argument; empty if there is none.
    pub(super) fn argument(&self) -> &str {
        self.arguments().first().map_or("", String::as_str)
    }

    /// True if both have the same words, and the same in their blocks.
    pub(super) fn says_the_same(&self, other: &Directive) -> bool {
        self.words == other.words
            && self.block.len() == other.block.len()
            && self.block.iter().zip(&other.block).all(|(one, other)| one.says_the_same(other))
    }

    /// The directive without its block.
    pub(super) fn header(&self) -> Spot {
        self.spot.header(&self.words.join(" "))
    }
}

/// Parses a file into server blocks: directives whose words are the zones.
///
/// # Errors
///
/// A closing brace is missing, too many or followed by words, blocks are nested too deeply, or there are too many imports.
pub(super) fn parse(
    text: &str,
    sources: &mut Sources<'_>,
    draft: &mut Draft,
) -> Result<Vec<Directive>, SyntaxError> {
    let lines = lines(text, 0);
    let mut parser = Parser { lines: &lines, next: 0, file: 0 };
    let mut all = parser.block(0)?;
    // One server block may stand without braces: the first line has the zones.
    if lines
        .first()
        .is_some_and(|line| !line.opens && line.words.first().is_some_and(|word| word != "import"))
    {
        let rest = all.split_off(1);
        all[0].block = rest;
    }
    let mut imports = Imports { snippets: HashMap::new(), sources, draft, room: MAX_LINES };
    let mut blocks = Vec::new();
    imports.top_level(all, 0, &mut blocks)?;
    for block in &mut blocks {
        block.block = imports.expand(std::mem::take(&mut block.block), 0)?;
    }
    Ok(blocks)
}

struct Imports<'a, 'r> {
    snippets: HashMap<String, Vec<Directive>>,
    sources: &'a mut Sources<'r>,
    draft: &'a mut Draft,
    room: usize,
}

impl Imports<'_, '_> {
    /// Keeps the snippets, and collects the server blocks. An `import` outside of all blocks has blocks and snippets.
    fn top_level(
        &mut self,
        directives: Vec<Directive>,
        depth: usize,
        blocks: &mut Vec<Directive>,
    ) -> Result<(), SyntaxError> {
        for block in directives {
            if block.name() == "import" && block.block.is_empty() {
                let inner = self.import(&block, depth)?;
                self.top_level(inner, depth + 1, blocks)?;
                continue;
            }
            match block.name().strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
                Some(name) => {
                    self.draft.record(&block.header(), Outcome::Carried);
                    self.snippets.insert(name.to_owned(), block.block);
                }
                None => blocks.push(block),
            }
        }
        Ok(())
    }

    fn expand(&mut self, directives: Vec<Directive>, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        let mut expanded = Vec::new();
        for directive in directives {
            if directive.name() != "import" {
                self.take_room(&directive, depth)?;
                expanded.push(directive);
                continue;
            }
            let inner = self.import(&directive, depth)?;
            expanded.extend(self.expand(inner, depth + 1)?);
        }
        Ok(expanded)
    }

    /// The lines that an `import` stands for; none if there is no such snippet or file, which is recorded.
    fn import(&mut self, directive: &Directive, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        self.take_room(directive, depth)?;
        if directive.arguments().len() != 1 {
            self.draft.record(&directive.spot, "imports with arguments are not read");
            return Ok(Vec::new());
        }
        let mut inner = Vec::new();
        match self.snippets.get(directive.argument()) {
            Some(snippet) => inner.clone_from(snippet),
            None => match self.sources.include(directive.spot.place.file, directive.argument(), depth) {
                Ok(files) => {
                    for (file, text) in files {
                        inner.extend(Parser { lines: &lines(&text, file), next: 0, file }.block(0)?);
                    }
                }
                Err(why) => {
                    self.draft.record(&directive.spot, format!("cannot read it: {why}"));
                    return Ok(Vec::new());
                }
            },
        }
        self.draft.record(&directive.spot, Outcome::Carried);
        Ok(inner)
    }

    fn take_room(&mut self, directive: &Directive, depth: usize) -> Result<(), SyntaxError> {
        let Place { file, first, .. } = directive.spot.place;
        let room = self.room.checked_sub(1).filter(|_| depth <= MAX_DEPTH);
        self.room = room.ok_or(SyntaxError::new(file, first, "too many imports"))?;
        Ok(())
    }
}

/// Line with words: those before a brace, and whether one opens or closes.
struct Line {
    place: Place,
    words: Vec<String>,
    opens: bool,
    closes: bool,
}

/// The lines with words or braces.
fn lines(text: &str, file: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut words = words(line);
        let place = Place { file, first: number, last: number };
        let opens = words.last().is_some_and(|word| word == "{");
        if opens {
            words.pop();
        }
        let closes = words.first().is_some_and(|word| word == "}");
        if closes {
            words.remove(0);
        }
        if opens || closes || !words.is_empty() {
            lines.push(Line { place, words, opens, closes });
        }
    }
    lines
}

/// Words of a line up to a comment; a quoted string is one word.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while let Some(c) = rest.chars().next() {
        let end = match c {
            '#' => break,
            '"' => {
                let length = rest[1..].find('"').unwrap_or(rest.len() - 1);
                words.push(rest[1..=length].to_owned());
                (length + 2).min(rest.len())
            }
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                words.push(rest[..end].to_owned());
                end
            }
        };
        rest = rest[end..].trim_start();
    }
    words
}

struct Parser<'l> {
    lines: &'l [Line],
    next: usize,
    file: usize,
}

impl Parser<'_> {
    /// Directives up to the closing brace, or to the end of the file at depth 0.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        let mut directives = Vec::new();
        while let Some(line) = self.lines.get(self.next) {
            let refuse = |what: &str| Err(SyntaxError::new(self.file, line.place.first, what));
            self.next += 1;
            if line.closes {
                return match depth {
                    0 => refuse("a closing brace without an opening one"),
                    _ if !line.words.is_empty() => refuse("words after a closing brace"),
                    _ => Ok(directives),
                };
            }
            if depth > MAX_DEPTH {
                return refuse("blocks are nested too deeply");
            }
            let block = if line.opens { self.block(depth + 1)? } else { Vec::new() };
            let last = match line.opens {
                true => self.lines[self.next - 1].place.last,
                false => line.place.last,
            };
            let place = Place { last, ..line.place };
            let spot = Spot { place, text: line.words.join(" ") };
            directives.push(Directive { spot, words: line.words.clone(), block });
        }
        if depth == 0 {
            return Ok(directives);
        }
        let line = self.lines.last().map_or(1, |line| line.place.first);
        Err(SyntaxError::new(self.file, line, "a closing brace is missing at the end"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::NoFiles;

    fn parsed(text: &str) -> Result<Vec<Directive>, SyntaxError> {
        parse(text, &mut Sources::new("Corefile", &mut NoFiles), &mut Draft::default())
    }

    #[test]
    fn server_blocks_have_zones_and_directives_and_snippets_are_put_in() {
        let blocks =
            parsed("(log) {\n  errors\n}\n.:53 {\n  import log\n  cache 30 {\n    prefetch 10\n  }\n} \n")
                .unwrap();
        assert_eq!(blocks.len(), 1);
        assert_eq!(blocks[0].words, [".:53"]);
        let names: Vec<&str> = blocks[0].block.iter().map(Directive::name).collect();
        assert_eq!(names, ["errors", "cache"]);
        assert_eq!(blocks[0].block[1].block[0].words, ["prefetch", "10"]);
        assert_eq!((blocks[0].spot.place.first, blocks[0].spot.place.last), (4, 9));
    }

    #[test]
    fn one_server_block_may_stand_without_braces() {
        let blocks = parsed(".:5300\nforward . 192.0.2.1 # ours\n").unwrap();
        assert_eq!(blocks[0].words, [".:5300"]);
        assert_eq!(blocks[0].block[0].arguments(), [".", "192.0.2.1"]);
    }

    #[test]
    fn wrong_braces_and_endless_imports_are_errors() {
        for text in [". {\n", ". {\n}\n}\n", "(a) {\n import a\n}\n. {\n import a\n}\n"] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert!(parsed(&"a {\n".repeat(1000)).is_err());
    }
}
