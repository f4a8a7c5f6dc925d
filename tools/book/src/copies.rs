//! Check of the files that a page shows. A code forge does not know `{{#include FILE}}`, so the page has the text: the code block
//! behind the line `<!-- file: PATH -->` is the file's text, octet for octet but for the line ends at its end.

use crate::links::folder;
use crate::{files, is_page, normal};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::path::Path;

/// Start of the comment that names the file.
const START: &str = "<!-- file: ";
/// End of this comment.
const END: &str = "-->";

/// Every code block below `root` that differs from its file, and every page that has `{{#include FILE}}`.
///
/// # Errors
///
/// A file or folder of the documents cannot be read.
pub fn faults(root: &Path) -> std::io::Result<Vec<String>> {
    let mut faults = Vec::new();
    for path in files(root, Path::new(""))?.into_iter().filter(|path| is_page(path)) {
        let page = std::fs::read_to_string(root.join(&path))?;
        if page.contains("\n{{#include ") {
            faults.push(format!("{}: write the text of the file behind `{START}FILE {END}`", path.display()));
        }
        for (file, block) in copies(&page) {
            let text =
                normal(&folder(&path).join(&file)).map(|file| std::fs::read_to_string(root.join(file)));
            match text {
                Some(Ok(text)) if text.trim_end() == block.trim_end() => {}
                Some(Ok(_)) => {
                    faults
                        .push(format!("{}: the block behind `{file}` differs from the file", path.display()));
                }
                _ => faults.push(format!("{}: {file}: there is no such file", path.display())),
            }
        }
    }
    Ok(faults)
}

/// Files that a page shows, each with its code block.
fn copies(page: &str) -> Vec<(String, String)> {
    let (mut copies, mut file, mut block) = (Vec::new(), None, None);
    for event in Parser::new(page) {
        match event {
            Event::Html(html) => {
                let named = html.trim().strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
                file = named.map(|name| name.trim().to_owned()).or(file);
            }
            Event::Start(Tag::CodeBlock(_)) => block = file.take().map(|file| (file, String::new())),
            Event::Text(part) => {
                if let Some((_, text)) = &mut block {
                    text.push_str(&part);
                }
            }
            Event::End(TagEnd::CodeBlock) => copies.extend(block.take()),
            _ => {}
        }
    }
    copies.extend(file.map(|file| (file, String::new())));
    copies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_file_that_a_page_shows_is_shown_as_it_is() {
        let faults = faults(&workspace()).expect("the documents can be read");
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }

    #[test]
    fn a_block_that_differs_from_its_file_is_found() {
        let root = kit::Folder::new();
        let write = |name: &str, text: &str| drop(root.write(name, text));
        write("a.toml", "x = 1\n\ny = 2\n");
        let page = "A:\n\n<!-- file: a.toml -->\n```toml\nx = 1\n\ny = 2\n```\n";
        write("good.md", page);
        let good = faults(&root).expect("the page can be read");
        write("bad.md", &page.replace("y = 2", "y = 3"));
        write("include.md", "```toml\n{{#include a.toml}}\n```\n");
        write("lost.md", &page.replace("a.toml", "b.toml"));
        let found = faults(&root).expect("the pages can be read");
        assert_eq!(good, [""; 0]);
        let expected = [
            "bad.md: the block behind `a.toml` differs from the file",
            "include.md: write the text of the file behind `<!-- file: FILE -->`",
            "lost.md: b.toml: there is no such file",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_marker_without_a_block_shows_nothing() {
        assert_eq!(copies("<!-- file: a -->\n\nText.\n"), [("a".to_owned(), String::new())]);
        assert!(copies("<!-- other -->\n```\nx\n```\n").is_empty());
    }
}
