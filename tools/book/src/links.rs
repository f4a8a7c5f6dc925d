//! Check of the links between the documents of the source tree. Addresses in the network are not fetched: only their form is
//! checked.

use crate::page::{Link, Page};
use crate::{files, is_page, normal};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Every fault of a link in a Markdown file below `root`: file, line, destination, fault.
///
/// # Errors
///
/// The error of a folder or a page that cannot be read. A fault of a link is no error.
pub fn faults(root: &Path) -> std::io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in files(root, Path::new(""))?.into_iter().filter(|path| is_page(path)) {
        let text = std::fs::read_to_string(root.join(&path))?;
        pages.insert(path, (Page::read(&text), text));
    }
    let mut faults = Vec::new();
    for (path, (page, text)) in &pages {
        for link in &page.links {
            if let Err(fault) = check(root, &pages, path, page, link) {
                let line = text[..link.range.start].matches('\n').count() + 1;
                faults.push(format!("{}:{line}: {}: {fault}", path.display(), link.destination));
            }
        }
        for include in &page.includes {
            let target = normal(&folder(path).join(include));
            if !target.is_some_and(|target| root.join(target).is_file()) {
                faults.push(format!("{}: {{{{#include {include}}}}}: there is no such file", path.display()));
            }
        }
    }
    Ok(faults)
}

/// Folder of a page.
pub(crate) fn folder(page: &Path) -> &Path {
    page.parent().unwrap_or(Path::new(""))
}

/// Path and anchor of a destination in the source tree.
pub(crate) fn parts(destination: &str) -> (&str, Option<&str>) {
    match destination.split_once('#') {
        Some((path, anchor)) => (path, Some(anchor)),
        None => (destination, None),
    }
}

/// True for an address in the network.
pub(crate) fn is_external(destination: &str) -> bool {
    destination.contains("://") || destination.starts_with("mailto:")
}

fn check(
    root: &Path,
    pages: &BTreeMap<PathBuf, (Page, String)>,
    path: &Path,
    page: &Page,
    link: &Link,
) -> Result<(), String> {
    let destination = link.destination.as_str();
    if is_external(destination) {
        return check_external(destination);
    }
    let (target, anchor) = parts(destination);
    let target_page = if target.is_empty() {
        Some(page)
    } else {
        let target = normal(&folder(path).join(target)).ok_or("leads out of the source tree")?;
        if !root.join(&target).exists() {
            return Err("there is no such file".to_owned());
        }
        pages.get(&target).map(|(page, _)| page)
    };
    match (anchor, target_page) {
        (None, _) => Ok(()),
        (Some(anchor), Some(page)) if page.anchors.contains(anchor) => Ok(()),
        (Some(_), Some(_)) => Err("the page has no such heading".to_owned()),
        (Some(_), None) => Err("only Markdown pages have anchors".to_owned()),
    }
}

/// The form of an address: a known scheme, then a host name, and no character that belongs to the sentence around it.
fn check_external(destination: &str) -> Result<(), String> {
    if let Some(address) = destination.strip_prefix("mailto:") {
        return if address.contains('@') { Ok(()) } else { Err("no mail address".to_owned()) };
    }
    let rest = destination.strip_prefix("https://").or_else(|| destination.strip_prefix("http://"));
    let host = rest.ok_or("neither https nor http")?.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    let is_name = host.contains('.')
        && host.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
    let is_whole = !destination.contains(char::is_whitespace) && !destination.ends_with(['.', ',', ';', ')']);
    if is_name && is_whole { Ok(()) } else { Err("not an address of a page".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace;

    #[test]
    fn every_link_of_the_documents_leads_somewhere() {
        let faults = faults(&workspace()).expect("the documents can be read");
        assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
    }

    #[test]
    fn each_kind_of_broken_link_is_found() {
        let root = kit::Folder::new();
        std::fs::create_dir_all(root.join("docs")).expect("a folder");
        let write = |name: &str, text: &str| drop(root.write(name, text));
        write(
            "docs/a.md",
            "# Title\n\n[x](b.md#title) [x](#title) [x](https://example.com/a) [x](../c.txt)\n",
        );
        write(
            "docs/b.md",
            "# Title\n\n[x](#titel)\n[x](a.md#b)\n[x](c.md)\n\
             [x](../../d)\n[x](../c.txt#l)\n[x](http://a b)\n[x](ftp://example.com)\n{{#include none}}\n",
        );
        write("c.txt", "");
        let found = faults(&root).expect("the pages can be read");
        let expected = [
            "docs/b.md:3: #titel: the page has no such heading",
            "docs/b.md:4: a.md#b: the page has no such heading",
            "docs/b.md:5: c.md: there is no such file",
            "docs/b.md:6: ../../d: leads out of the source tree",
            "docs/b.md:7: ../c.txt#l: only Markdown pages have anchors",
            "docs/b.md:9: ftp://example.com: neither https nor http",
            "docs/b.md: {{#include none}}: there is no such file",
        ];
        assert_eq!(found, expected);
        assert!(
            check_external("https://localhost/x").is_err()
                && check_external("https://example.com/x).").is_err()
        );
    }
}
