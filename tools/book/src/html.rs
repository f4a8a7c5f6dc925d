//! The book as pages for packages: HTML without scripts, which text browsers show too, made without mdBook. Each page leads to the list of
//! the chapters and to its neighbours in it. There is no search.

use crate::links::{folder, is_external, parts};
use crate::page::{Page, events, heading_text};
use crate::{files, is_page, normal};
use pulldown_cmark::{Event, Tag, html};
use std::fs;
use std::path::{Path, PathBuf};

/// List of the chapters.
const SUMMARY: &str = "SUMMARY.md";

/// Page with that list.
const INDEX: &str = "index.html";

const STYLE: &str = "body { max-width: 52em; margin: auto; padding: 1em; font: 1em/1.5 sans-serif; color-scheme: light dark } \
                     pre { overflow-x: auto; border: 1px solid; padding: .5em; line-height: 1.3 } \
                     table { border-collapse: collapse } th, td { border: 1px solid; padding: .2em .5em; text-align: left; vertical-align: top } \
                     img { max-width: 100%; background: white }";

/// Makes the pages of a book that [`crate::stage()`] laid out in the folder `book`, from its `src` in its `html`.
///
/// # Errors
///
/// A file of the laid-out book cannot be read, a page includes a file that is not there or outside of the book, or a page cannot be
/// written. The text names the file.
pub fn write(book: &Path) -> Result<(), String> {
    let (source, target) = (book.join("src"), book.join("html"));
    let summary = read(&source.join(SUMMARY))?;
    let chapters = chapters(&summary);
    for path in files(&source, Path::new("")).map_err(|error| format!("{}: {error}", source.display()))? {
        if path == Path::new(SUMMARY) {
            save(&target.join(INDEX), page("Sixfold", "", &summary).as_bytes())?;
        } else if is_page(&path) {
            let text = with_files(&source, &path)?;
            let title = title(&text).unwrap_or_else(|| path.display().to_string());
            save(
                &target.join(path.with_extension("html")),
                page(&title, &neighbours(&chapters, &path), &text).as_bytes(),
            )?;
        } else {
            let octets =
                fs::read(source.join(&path)).map_err(|error| format!("{}: {error}", path.display()))?;
            save(&target.join(path), &octets)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn save(path: &Path, octets: &[u8]) -> Result<(), String> {
    let saved = fs::create_dir_all(folder(path)).and_then(|()| fs::write(path, octets));
    saved.map_err(|error| format!("{}: {error}", path.display()))
}

/// Paths of the chapters in their order. A link to a section of another chapter is none.
fn chapters(summary: &str) -> Vec<PathBuf> {
    let links = Page::read(summary).links.into_iter();
    links.filter(|link| parts(&link.destination).1.is_none()).map(|link| link.destination.into()).collect()
}

/// Text of a page with the files that it includes.
fn with_files(source: &Path, path: &Path) -> Result<String, String> {
    let mut text = read(&source.join(path))?;
    for include in Page::read(&text).includes {
        let file = normal(&folder(path).join(&include))
            .ok_or_else(|| format!("{}: {include} leads out of the book", path.display()))?;
        let contents = read(&source.join(file))?;
        text = text.replace(&format!("{{{{#include {include}}}}}"), contents.trim_end());
    }
    Ok(text)
}

/// Text of the first heading.
fn title(text: &str) -> Option<String> {
    let events = events(text);
    let start = events.iter().position(|(event, _)| matches!(event, Event::Start(Tag::Heading { .. })))?;
    Some(heading_text(&events[start..]))
}

/// Links to the list of the chapters, and to the chapters before and after this one.
fn neighbours(chapters: &[PathBuf], path: &Path) -> String {
    let up = "../".repeat(path.components().count() - 1);
    let place = chapters.iter().position(|chapter| chapter == path);
    let link = |chapter: Option<&PathBuf>, text: &str| {
        chapter.map_or(String::new(), |chapter| {
            format!(" | <a href=\"{up}{}\">{text}</a>", chapter.with_extension("html").display())
        })
    };
    let before = place.and_then(|place| place.checked_sub(1)).and_then(|place| chapters.get(place));
    let after = place.and_then(|place| chapters.get(place + 1));
    let (before, after) = (link(before, "Previous"), link(after, "Next"));
    format!("<nav><a href=\"{up}{INDEX}\">Contents</a>{before}{after}</nav>\n")
}

/// A whole page from its text in Markdown.
fn page(title: &str, navigation: &str, text: &str) -> String {
    let mut body = String::new();
    html::push_html(&mut body, events(text).into_iter().map(|(event, _)| with_link(event)));
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n{navigation}<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

/// A part of a page whose link leads to a page in HTML.
fn with_link(event: Event<'_>) -> Event<'_> {
    match event {
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let dest_url = in_html(&dest_url).map_or(dest_url, Into::into);
            Event::Start(Tag::Link { link_type, dest_url, title, id })
        }
        other => other,
    }
}

/// Destination of a link to another page; `None` for another link.
fn in_html(destination: &str) -> Option<String> {
    let (path, anchor) = parts(destination);
    let stem = path.strip_suffix(".md").filter(|_| !is_external(destination))?;
    Some(anchor.map_or(format!("{stem}.html"), |anchor| format!("{stem}.html#{anchor}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_pages_leads_somewhere() {
        let book = kit::Folder::new();
        crate::stage(&crate::workspace(), &book).expect("the book is laid out");
        write(&book).expect("the pages are made");
        let faults = crate::site::faults(&book.join("html")).expect("the pages can be read");
        let recipe = read(&book.join("html/recipes/nat64/index.html")).expect("a page of a folder");
        let included =
            read(&book.join("src/recipes/nat64/tayga.conf")).expect("a file that the page includes");
        let chapters = chapters(&read(&book.join("src/SUMMARY.md")).expect("the list"));
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
        assert!(recipe.contains(included.lines().next().expect("a line")), "{recipe}");
        assert!(recipe.contains("<a href=\"../../index.html\">Contents</a>"), "{recipe}");
        assert!(chapters.len() > 30, "{chapters:?}");
    }

    #[test]
    fn a_page_is_what_its_markdown_says() {
        let text = "# A & `b`\n\n[c](d/e.md#f) [g](https://example.com/h.md)\n\n## A & `b`\n\n| i |\n| --- |\n| j |\n";
        let made = page(&title(text).expect("a title"), "", text);
        for part in [
            "<title>A &amp; b</title>",
            "<h1 id=\"a--b\">A &amp; <code>b</code></h1>",
            "<a href=\"d/e.html#f\">c</a>",
            "<a href=\"https://example.com/h.md\">g</a>",
            "<h2 id=\"a--b-1\">",
            "<td>j</td>",
        ] {
            assert!(made.contains(part), "{part}: {made}");
        }
    }

    #[test]
    fn a_page_leads_to_its_neighbours() {
        let chapters = ["a.md", "b/c.md", "d.md"].map(PathBuf::from);
        assert_eq!(
            neighbours(&chapters, Path::new("b/c.md")),
            "<nav><a href=\"../index.html\">Contents</a> | <a href=\"../a.html\">Previous</a> | <a href=\"../d.html\">Next</a></nav>\n"
        );
        assert_eq!(
            neighbours(&chapters, Path::new("e.md")),
            "<nav><a href=\"index.html\">Contents</a></nav>\n"
        );
    }
}
