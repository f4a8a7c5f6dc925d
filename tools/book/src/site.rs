//! Check of the pages that mdBook built: every link leads to a file of the book, every anchor exists, and nothing is loaded
//! from the network.

use crate::page::attributes;
use crate::{files, normal};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Pages of mdBook itself, which are not chapters: the one for wrong addresses, and the list of chapters for old browsers.
const NO_CHAPTERS: [&str; 2] = ["404.html", "toc.html"];

/// Every fault of a link in the pages of the built book.
///
/// # Errors
///
/// The error of a folder or a page that cannot be read. A fault of a link is no error.
pub fn faults(book: &Path) -> std::io::Result<Vec<String>> {
    let paths: BTreeSet<PathBuf> = files(book, Path::new(""))?.into_iter().collect();
    let mut pages = BTreeMap::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "html")) {
        pages.insert(path.clone(), std::fs::read_to_string(book.join(path))?);
    }
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, html)| (path, attributes(html, "id").into_iter().collect())).collect();
    let mut faults = Vec::new();
    for (path, html) in
        pages.iter().filter(|(path, _)| !NO_CHAPTERS.iter().any(|name| Path::new(name) == *path))
    {
        for source in attributes(html, "src") {
            if source.contains("://") {
                faults.push(format!("{}: {source} is loaded from the network", path.display()));
            }
        }
        let pictures = ["src", "srcset"].into_iter().flat_map(|name| attributes(html, name));
        for source in pictures.filter(|source| source.ends_with(".svg") || source.ends_with(".png")) {
            let target = normal(&crate::links::folder(path).join(&source));
            if !source.contains("://") && !target.is_some_and(|target| paths.contains(&target)) {
                faults.push(format!("{}: {source}: there is no such picture", path.display()));
            }
        }
        if html.contains("{{#include") {
            faults.push(format!("{}: a file was not included", path.display()));
        }
        for link in attributes(html, "href").iter().filter(|link| !crate::links::is_external(link)) {
            let (target, anchor) = crate::links::parts(link);
            let target = if target.is_empty() {
                Some(path.clone())
            } else {
                normal(&crate::links::folder(path).join(target))
            };
            let Some(target) = target.filter(|target| paths.contains(target)) else {
                faults.push(format!("{}: {link}: there is no such file", path.display()));
                continue;
            };
            let is_known = |anchor: &str| anchors.get(&target).is_some_and(|known| known.contains(anchor));
            if anchor.is_some_and(|anchor| !anchor.is_empty() && !is_known(anchor)) {
                faults.push(format!("{}: {link}: the page has no such anchor", path.display()));
            }
        }
    }
    if pages.len() < 2 {
        faults.push(format!("{}: not a book", book.display()));
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_with_broken_links_is_found_out() {
        let root = kit::Folder::new();
        std::fs::create_dir_all(root.join("a")).expect("a folder");
        let write = |name: &str, text: &str| drop(root.write(name, text));
        write(
            "index.html",
            "<h1 id=\"t\"></h1><a href=\"a/b.html#u\"></a><a href=\"a/c.html\"></a><a href=\"#t\"></a><img src=\"d.svg\">",
        );
        write(
            "a/b.html",
            "<a href=\"../index.html#t\"></a><script src=\"https://example.com/x.js\"></script>",
        );
        let found = faults(&root).expect("the pages can be read");
        let expected = [
            "a/b.html: https://example.com/x.js is loaded from the network",
            "index.html: d.svg: there is no such picture",
            "index.html: a/b.html#u: the page has no such anchor",
            "index.html: a/c.html: there is no such file",
        ];
        assert_eq!(found, expected);
    }
}
