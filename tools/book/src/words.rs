//! Check of the words in the documents for users.
//!
//! - Words such as "yet" age: what is missing today may be there tomorrow, and nobody reads the sentence again. They stand only in
//!   phrases that a list here allows, so each is looked at when it is written and when its feature comes.
//! - Pages for operators have the standard terms of `docs/reference/terms.md`, and none of the code's.
//! - Such a page has one topic: it is short.

use crate::{files, is_page};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::path::{Path, PathBuf};

/// Folders of the pages for operators, below `docs`.
const FOR_OPERATORS: [&str; 5] = ["tutorials", "how-to", "reference", "explanation", "recipes"];

/// Other documents for users.
const FOR_USERS: [&str; 4] =
    ["README.md", "SECURITY.md", "docs/troubleshooting/README.md", "packaging/debian/control"];

/// Folder of the manual pages.
const MANUALS: &str = "docs/man";

/// Words that age.
const AGEING: [&str; 6] =
    ["yet", "not supported", "unsupported", "planned", "not implemented", "in the future"];

/// Phrases in which they may stand, in lower case. A phrase that no document has is a fault: its sentence is gone.
const ALLOWED: [&str; 8] = [
    // The state of the project.
    "not yet released",
    "no image in a registry yet",
    "http/3 is not supported",
    // Names and states, not features.
    "21 not supported",
    "not valid yet",
    "does not exist yet",
    "no interface has yet",
    "not supported, so that",
];

/// Words of the code, and the page's words for them.
const PRIVATE: [(&str, &str); 7] = [
    ("leg", "lookup"),
    ("legs", "lookups"),
    ("waiter", "pending query"),
    ("waiters", "pending queries"),
    ("gives way", "is closed, or is evicted"),
    ("strangers", "untrusted clients"),
    ("octets", "bytes"),
];

/// Words that the project does not use any more, in no document and in no name of a metric or field, and those that took their place.
const RETIRED: [(&str, &str); 34] = [
    ("legs", "lookups"),
    ("waiter", "pending query"),
    ("waiters", "pending queries"),
    ("flights", "outbound queries"),
    ("besieger", "attacker"),
    ("siege", "spoofing simulation"),
    ("bad weather", "network faults"),
    ("planted bug", "mutant"),
    ("planted bugs", "mutants"),
    ("hot name", "popular name"),
    ("hot names", "popular names"),
    ("hot answer", "popular answer"),
    ("hot answers", "popular answers"),
    ("hot questions", "popular questions"),
    ("common answer", "entry of the packet cache"),
    ("common answers", "entries of the packet cache"),
    ("plain queries", "queries of the packet cache"),
    ("given socket", "inherited socket"),
    ("page for people", "HTML status page"),
    ("sixfold_letters_in_total", "sixfold_worker_handoffs_total"),
    ("sixfold_upstream_flights", "sixfold_upstream_queries_in_flight"),
    ("sixfold_upstream_repetitions_total", "sixfold_upstream_hedges_total"),
    ("sixfold_upstream_useless_total", "sixfold_upstream_unusable_replies_total"),
    ("sixfold_doubted_failures_total", "sixfold_bogus_checks_total"),
    ("sixfold_left_out_addresses_total", "sixfold_omitted_addresses_total"),
    ("sixfold_client_subnets_left_out_total", "sixfold_client_subnets_omitted_total"),
    ("sixfold_client_octets_in_total", "sixfold_client_bytes_in_total"),
    ("sixfold_client_octets_out_total", "sixfold_client_bytes_out_total"),
    ("sixfold_upstream_octets_in_total", "sixfold_upstream_bytes_in_total"),
    ("sixfold_upstream_octets_out_total", "sixfold_upstream_bytes_out_total"),
    ("policy_hits_left_out", "policy_hits_omitted"),
    ("steps_left_out", "steps_omitted"),
    ("upstream_letters", "upstream_letter_case"),
    ("http_gave_way", "http_evicted"),
];

/// Documents for developers, beside all pages below `docs`.
const FOR_DEVELOPERS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// The page that explains such words.
const TERMS: &str = "docs/reference/terms.md";

/// Most lines of a page for operators. Those that a program writes do not count: nobody reads such a table from its start to its end.
const LINES: usize = 150;

/// Every fault below `root`: file, line, fault.
///
/// # Errors
///
/// A file or folder of the documents cannot be read.
pub fn faults(root: &Path) -> std::io::Result<Vec<String>> {
    let mut faults = Vec::new();
    let mut unused: Vec<&str> = ALLOWED.to_vec();
    for path in documents(root)? {
        let text = std::fs::read_to_string(root.join(&path))?;
        let for_operators =
            FOR_OPERATORS.iter().any(|folder| path.starts_with(Path::new("docs").join(folder)));
        let lines = if is_page(&path) { prose(&text) } else { numbered(&text) };
        for (line, words) in &lines {
            let (told, used) = ageing(words);
            unused.retain(|phrase| !used.contains(phrase));
            let place = format!("{}:{line}", path.display());
            faults.extend(
                told.into_iter().map(|word| format!("{place}: \"{word}\" ages: see tools/book/src/words.rs")),
            );
            if for_operators && path != Path::new(TERMS) {
                let private = PRIVATE.iter().filter(|(word, _)| places(words, word).next().is_some());
                faults.extend(private.map(|(word, term)| format!("{place}: \"{word}\": write \"{term}\"")));
            }
        }
        if for_operators && lines_by_hand(&text) > LINES {
            faults.push(format!("{}: more than {LINES} lines: make two pages of it", path.display()));
        }
    }
    faults.extend(
        unused.into_iter().map(|phrase| format!("no document has \"{phrase}\": see tools/book/src/words.rs")),
    );
    faults.extend(retired(root)?);
    Ok(faults)
}

/// Number of lines outside of the parts that a program writes.
fn lines_by_hand(text: &str) -> usize {
    let mut is_computed = false;
    let mut by_hand = 0;
    for line in text.lines() {
        is_computed |= line.starts_with("<!-- computed");
        by_hand += usize::from(!is_computed);
        is_computed &= line != "<!-- end -->";
    }
    by_hand
}

/// Words in any document, code included, that the project does not use any more.
fn retired(root: &Path) -> std::io::Result<Vec<String>> {
    let mut paths = documents(root)?;
    paths.extend(FOR_DEVELOPERS.iter().map(PathBuf::from).filter(|path| root.join(path).is_file()));
    paths.extend(files(root, Path::new("docs"))?.into_iter().filter(|path| is_page(path)));
    paths.sort();
    paths.dedup();
    let mut faults = Vec::new();
    for path in paths {
        for (line, words) in numbered(&std::fs::read_to_string(root.join(&path))?) {
            let old = RETIRED
                .iter()
                .filter(|(word, _)| places(&words, word).any(|place| is_whole(&words, place, word)));
            faults.extend(
                old.map(|(word, term)| format!("{}:{line}: \"{word}\": write \"{term}\"", path.display())),
            );
        }
    }
    Ok(faults)
}

/// True if a word is no part of a file name, a test name or a link.
fn is_whole(text: &str, place: usize, word: &str) -> bool {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| matches!(letter, '_' | '-' | '/'));
    !is_part(text[..place].chars().next_back()) && !is_part(text[place + word.len()..].chars().next())
}

/// The documents that are checked, in their order.
fn documents(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut documents: Vec<PathBuf> = FOR_USERS.iter().map(PathBuf::from).collect();
    for folder in FOR_OPERATORS {
        documents
            .extend(files(root, &Path::new("docs").join(folder))?.into_iter().filter(|path| is_page(path)));
    }
    documents.extend(files(root, Path::new(MANUALS))?);
    Ok(documents.into_iter().filter(|path| root.join(path).is_file()).collect())
}

/// Lines of a text without form, in lower case, with their numbers.
fn numbered(text: &str) -> Vec<(usize, String)> {
    text.lines().enumerate().map(|(number, line)| (number + 1, line.to_lowercase())).collect()
}

/// Paragraphs, cells and headings of a page in lower case, without code, each with the number of its first line.
fn prose(page: &str) -> Vec<(usize, String)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_HEADING_ATTRIBUTES;
    let (mut blocks, mut is_code): (Vec<(usize, String)>, bool) = (Vec::new(), false);
    for (event, range) in Parser::new_ext(page, options).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => is_code = true,
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Start(Tag::Paragraph | Tag::Heading { .. } | Tag::TableCell | Tag::Item) => {
                let line = page[..range.start].matches('\n').count() + 1;
                blocks.push((line, String::new()));
            }
            Event::Text(part) if !is_code => append(&mut blocks, &part.to_lowercase()),
            // A word that no check looks for, so that the words around it are not read as one phrase.
            Event::Code(_) => append(&mut blocks, "`"),
            Event::SoftBreak | Event::HardBreak => append(&mut blocks, " "),
            _ => {}
        }
    }
    blocks
}

fn append(blocks: &mut [(usize, String)], words: &str) {
    if let Some((_, text)) = blocks.last_mut() {
        text.push_str(words);
    }
}

/// Words of a text that age and stand in no allowed phrase, and the phrases that it has.
fn ageing(text: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let allowed: Vec<(usize, &str)> =
        ALLOWED.iter().flat_map(|phrase| places(text, phrase).map(move |place| (place, *phrase))).collect();
    let covers =
        |place: usize| allowed.iter().any(|&(start, phrase)| (start..start + phrase.len()).contains(&place));
    let told = AGEING.iter().filter(|word| places(text, word).any(|place| !covers(place)));
    (told.copied().collect(), allowed.iter().map(|&(_, phrase)| phrase).collect())
}

/// Places of whole words in a text.
fn places<'t>(text: &'t str, words: &'t str) -> impl Iterator<Item = usize> + 't {
    let is_end = |letter: Option<char>| !letter.is_some_and(char::is_alphanumeric);
    text.match_indices(words).map(|(place, _)| place).filter(move |&place| {
        is_end(text[..place].chars().next_back()) && is_end(text[place + words.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn the_documents_have_no_word_that_ages_and_none_of_the_code() {
        let faults = faults(&workspace()).expect("the documents can be read");
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }

    #[test]
    fn a_word_that_ages_is_found_unless_its_phrase_is_allowed() {
        assert_eq!(
            ageing("tls is not supported; views are planned."),
            (vec!["not supported", "planned"], vec![])
        );
        assert_eq!(ageing("http/3 is not supported"), (vec![], vec!["http/3 is not supported"]));
        assert_eq!(ageing("http/3 is not supported, nor yet http/4").0, ["yet"]);
        assert_eq!(ageing("unplanned, yeti").0, [""; 0]);
    }

    #[test]
    fn words_in_code_do_not_count_and_a_phrase_may_go_over_a_line() {
        let page = "# Not\n\nIt is not\nsupported `yet`.\n\n    planned\n\n| a | planned |\n| --- | --- |\n";
        let found: Vec<_> = prose(page).into_iter().filter(|(_, text)| !ageing(text).0.is_empty()).collect();
        assert_eq!(found, [(3, "it is not supported `.".to_owned()), (8, "planned".to_owned())]);
    }

    #[test]
    fn private_words_long_pages_and_phrases_without_a_sentence_are_faults() {
        let root = kit::Folder::new();
        std::fs::create_dir_all(root.join("docs/how-to")).expect("a folder");
        for folder in ["tutorials", "reference", "explanation", "recipes", "man"] {
            std::fs::create_dir_all(root.join("docs").join(folder)).expect("a folder");
        }
        root.write("docs/how-to/a.md", "# Legs\n\nEach\nleg `leg`.\n");
        root.write("docs/how-to/b.md", "x\n".repeat(LINES + 1));
        let table = "| x |\n".repeat(LINES);
        root.write("docs/how-to/c.md", format!("# C\n<!-- computed: c -->\n{table}<!-- end -->\nx\n"));
        let found = faults(&root).expect("the pages can be read");
        let expected = [
            "docs/how-to/a.md:1: \"legs\": write \"lookups\"",
            "docs/how-to/a.md:3: \"leg\": write \"lookup\"",
            "docs/how-to/b.md: more than 150 lines: make two pages of it",
            "no document has \"not yet released\": see tools/book/src/words.rs",
        ];
        assert_eq!(found[..4], expected);
        // "legs" is a retired word, too.
        assert_eq!(found.len(), 4 + ALLOWED.len());
    }
}
