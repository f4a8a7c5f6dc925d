//! Layout of the book's source: a folder that mdBook builds as it stands.

use crate::links::{folder, is_external, parts};
use crate::page::{Form, Page};
use crate::{files, is_page, manual, normal};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Folder of the documents. Its pages keep their paths in the book, and its other files are copied.
const DOCS: &str = "docs";

/// List of the chapters, in `docs`.
const SUMMARY: &str = "SUMMARY.md";

/// Chapters from elsewhere, with their paths in the book.
const OTHERS: [(&str, &str); 7] = [
    ("README.md", "introduction.md"),
    ("ARCHITECTURE.md", "internals/architecture.md"),
    ("CONTRIBUTING.md", "internals/contributing.md"),
    ("SECURITY.md", "security.md"),
    ("CHANGELOG.md", "changelog.md"),
    ("conformance/README.md", "internals/conformance.md"),
    ("scenarios/README.md", "internals/scenarios.md"),
];

/// Lays out the book of the source tree `root` in the folder `target`, which is replaced.
///
/// # Errors
///
/// The file at fault, and the reason: it cannot be read or written, is not in the list of chapters, or is a manual page that cannot be
/// converted.
pub fn stage(root: &Path, target: &Path) -> Result<(), String> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        move |error: std::io::Error| format!("{path}: {error}")
    };
    if target.exists() {
        fs::remove_dir_all(target).map_err(failed(target))?;
    }
    let summary = Path::new(DOCS).join(SUMMARY);
    let chapters = chapters(root, &summary)?;
    for path in files(root, Path::new(DOCS)).map_err(failed(Path::new(DOCS)))? {
        if is_page(&path) && path != summary && !chapters.contains(&path) {
            return Err(format!("{}: the page is not in {}", path.display(), summary.display()));
        }
        if !is_page(&path) && path.file_name() != Some("book.toml".as_ref()) {
            let place = target.join("src").join(place(&path).unwrap_or_else(|| path.clone()));
            if !is_manual(&path) {
                copy(&root.join(&path), &place).map_err(failed(&path))?;
            }
        }
    }
    copy(&root.join("docs/book.toml"), &target.join("book.toml"))
        .map_err(failed(Path::new("docs/book.toml")))?;
    write_page(root, target, &summary)?;
    for path in &chapters {
        write_page(root, target, path)?;
    }
    Ok(())
}

/// Pages and manual pages that the summary lists.
fn chapters(root: &Path, summary: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let page = Page::read(&read(root, summary)?);
    let mut chapters = BTreeSet::new();
    for link in &page.links {
        let (path, anchor) = parts(&link.destination);
        let path = normal(&folder(summary).join(path)).unwrap_or_default();
        if place(&path).is_none() {
            return Err(format!("{}: {} has no place in the book", summary.display(), link.destination));
        }
        if anchor.is_none() {
            chapters.insert(path);
        }
    }
    Ok(chapters)
}

fn read(root: &Path, path: &Path) -> Result<String, String> {
    fs::read_to_string(root.join(path)).map_err(|error| format!("{}: {error}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = fs::create_dir_all(folder(path)).and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder(to))?;
    fs::copy(from, to).map(drop)
}

fn is_manual(path: &Path) -> bool {
    path.starts_with("docs/man")
}

/// Place in the book of a file of the source tree, relative to the book's source. `None`: the book does not have it.
fn place(path: &Path) -> Option<PathBuf> {
    if let Some((_, place)) = OTHERS.iter().find(|(other, _)| Path::new(other) == path) {
        return Some(PathBuf::from(place));
    }
    let inside = path.strip_prefix(DOCS).ok()?;
    if is_manual(path) {
        let name = path.file_name()?.to_string_lossy().replace('.', "-");
        return Some(Path::new("reference").join(format!("{name}.md")));
    }
    // mdBook makes the page of a folder from this name only.
    let is_index = inside.file_name() == Some("README.md".as_ref());
    Some(if is_index { inside.with_file_name("index.md") } else { inside.to_owned() })
}

/// Writes a chapter to its place, with the links that hold there.
fn write_page(root: &Path, target: &Path, path: &Path) -> Result<(), String> {
    let text = read(root, path)?;
    let place = place(path).ok_or_else(|| format!("{} has no place in the book", path.display()))?;
    let text = if is_manual(path) {
        manual::to_markdown(&text).map_err(|fault| format!("{}: {fault}", path.display()))?
    } else {
        relinked(&text, path, &place)
    };
    write(&target.join("src").join(place), &text)
}

/// A page with links between chapters as they hold in the book. A link to a file that the book does not have becomes its text.
fn relinked(text: &str, path: &Path, place_of_page: &Path) -> String {
    let mut out = text.to_owned();
    for link in Page::read(text).links.into_iter().rev() {
        let (target, _) = parts(&link.destination);
        if link.form == Form::Other || target.is_empty() || is_external(&link.destination) {
            continue;
        }
        let target = normal(&folder(path).join(target)).unwrap_or_default();
        let found = place_of(&target, &link.destination);
        if link.form == Form::Attribute {
            if let Some(place) = found {
                out.replace_range(link.range, &from_to(place_of_page, &place));
            }
            continue;
        }
        let source = &text[link.range.clone()];
        let Some(middle) = source.rfind("](") else { continue };
        let replaced = match found {
            Some(place) => format!("{}]({})", &source[..middle], from_to(place_of_page, &place)),
            None => source[..middle].trim_start_matches(['!', '[']).to_owned(),
        };
        out.replace_range(link.range, &replaced);
    }
    out
}

/// Place of a link's destination, with its anchor.
fn place_of(target: &Path, destination: &str) -> Option<String> {
    let (_, anchor) = parts(destination);
    // A name without an ending is a folder, which the book does not show. The list of chapters is beside each page of it.
    target.extension().filter(|_| target != Path::new(DOCS).join(SUMMARY))?;
    let place = place(target)?.to_string_lossy().into_owned();
    Some(anchor.map_or(place.clone(), |anchor| format!("{place}#{anchor}")))
}

/// Relative link from a page of the book to a place in it.
fn from_to(page: &Path, place: &str) -> String {
    let up = folder(page).components().filter(|part| matches!(part, Component::Normal(_))).count();
    format!("{}{place}", "../".repeat(up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_chapters_and_links_to_code_become_their_text() {
        let text = "[a](glossary.md#x) [b](../ARCHITECTURE.md) [`c.rs`](../server/c.rs) [d](#e) [f](man/sixfold.8) \
                    [g](https://example.com/) [h](reference/metrics.md#clients) [i](recipes/README.md) [j](examples) [k](SUMMARY.md)";
        let expected = "[a](../glossary.md#x) [b](../internals/architecture.md) `c.rs` [d](#e) [f](../reference/sixfold-8.md) \
                        [g](https://example.com/) [h](../reference/metrics.md#clients) [i](../recipes/index.md) j k";
        assert_eq!(relinked(text, Path::new("docs/papers.md"), Path::new("papers/index.md")), expected);
    }

    #[test]
    fn pictures_of_a_page_are_found_from_its_place_in_the_book() {
        let text = "<picture>\n<source srcset=\"docs/images/dark.svg\">\n<img alt=\"a\" src=\"docs/images/light.svg\">\n</picture>\n\n\
                    ![b](docs/images/c.png)\n";
        let expected = "<picture>\n<source srcset=\"images/dark.svg\">\n<img alt=\"a\" src=\"images/light.svg\">\n</picture>\n\n\
                        ![b](images/c.png)\n";
        assert_eq!(relinked(text, Path::new("README.md"), Path::new("introduction.md")), expected);
    }

    #[test]
    fn every_key_and_every_metric_has_its_place_in_the_book() {
        let root = crate::workspace();
        let target = std::env::temp_dir().join(format!("sixfold-book-stage-{}", std::process::id()));
        stage(&root, &target).expect("the book is laid out");
        let chapter = |name: &str| fs::read_to_string(target.join("src/reference").join(name)).expect(name);
        let (configuration, metrics) = (chapter("sixfold-toml-5.md"), chapter("metrics.md"));
        fs::remove_dir_all(&target).expect("our own folder");
        let keys = crate::keys(&read(&root, Path::new("docs/man/sixfold.toml.5")).expect("the manual"));
        assert!(keys.len() > 60, "{keys:?}");
        for key in &keys {
            assert!(configuration.contains(&format!("{{#{}}}", key.replace('.', "-"))), "{key}");
        }
        let source =
            read(&root, Path::new("server/sixfold/src/metric_families.rs")).expect("the table of metrics");
        let names =
            source.split('"').filter(|word| word.starts_with("sixfold_") && !word.contains([' ', '{']));
        let missing: Vec<&str> = names.filter(|name| !metrics.contains(&format!("`{name}`"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
