//! Links and anchors of a Markdown page.

use pulldown_cmark::{Event, LinkType, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Link or image of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Octets of the page that the link takes.
    pub range: Range<usize>,
    /// Destination as it is written.
    pub destination: String,
    /// Form of the link, and with it the part of the page that `range` has.
    pub form: Form,
}

/// Form of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `[text](destination)`, or an image of this form.
    Inline,
    /// Value of the attribute `src` or `srcset` in HTML: the destination alone.
    Attribute,
    /// `<https://...>` and references.
    Other,
}

impl Form {
    fn of(link_type: LinkType) -> Form {
        if link_type == LinkType::Inline { Form::Inline } else { Form::Other }
    }
}

/// Markdown page: its links, its anchors, and the files that mdBook puts into it.
#[derive(Debug, Default)]
pub struct Page {
    /// Links and images in the order of the page.
    pub links: Vec<Link>,
    /// Anchors: those of the headings, and the `id` attributes in HTML.
    pub anchors: BTreeSet<String>,
    /// Paths of `{{#include PATH}}`, which mdBook replaces by the file, in code blocks too.
    pub includes: Vec<String>,
}

impl Page {
    /// Reads a page.
    pub fn read(text: &str) -> Page {
        let mut page = Page { includes: includes(text), ..Page::default() };
        for (event, range) in events(text) {
            match event {
                Event::Start(
                    Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. },
                ) => {
                    let (destination, form) = (dest_url.into_string(), Form::of(link_type));
                    page.links.push(Link { range, destination, form });
                }
                Event::Start(Tag::Heading { id: Some(id), .. }) => {
                    page.anchors.insert(id.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    page.anchors.extend(attributes(&html, "id"));
                    page.links.extend(pictures(&html, range.start));
                }
                _ => {}
            }
        }
        page
    }
}

/// Parts of a page with their places in it. Each heading has its anchor: the one that the page gives it, or one made from its text.
pub(crate) fn events(text: &str) -> Vec<(Event<'_>, Range<usize>)> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_HEADING_ATTRIBUTES;
    let mut events: Vec<_> = Parser::new_ext(text, options).into_offset_iter().collect();
    let mut seen = BTreeMap::new();
    for place in 0..events.len() {
        if matches!(&events[place].0, Event::Start(Tag::Heading { id: None, .. })) {
            let name = unique(&anchor(&heading_text(&events[place..])), &mut seen);
            if let Event::Start(Tag::Heading { id, .. }) = &mut events[place].0 {
                *id = Some(name.into());
            }
        }
    }
    events
}

/// Text of the heading that the parts begin with.
pub(crate) fn heading_text(events: &[(Event<'_>, Range<usize>)]) -> String {
    let inside = events.iter().take_while(|(event, _)| !matches!(event, Event::End(TagEnd::Heading(_))));
    let texts = inside.filter_map(|(event, _)| match event {
        Event::Text(part) | Event::Code(part) => Some(&**part),
        _ => None,
    });
    texts.collect()
}

/// Anchor of a heading, as mdBook and the usual code forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter_map(|letter| match letter {
        '-' | '_' => Some(letter),
        _ if letter.is_whitespace() => Some('-'),
        _ if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    kept.collect::<String>().to_lowercase()
}

/// Equal headings of a page are numbered.
fn unique(anchor: &str, seen: &mut BTreeMap<String, u32>) -> String {
    let count = seen.entry(anchor.to_owned()).or_insert(0);
    *count += 1;
    if *count == 1 { anchor.to_owned() } else { format!("{anchor}-{}", *count - 1) }
}

fn includes(text: &str) -> Vec<String> {
    let parts = text.split("{{#include ").skip(1);
    parts.filter_map(|part| Some(part.split_once("}}")?.0.trim().to_owned())).collect()
}

/// Pictures that HTML names, which begins at an octet of the page.
fn pictures(html: &str, begin: usize) -> Vec<Link> {
    let values = ["src", "srcset"].into_iter().flat_map(|name| attributes(html, name));
    let link = |destination: String| {
        let start = begin + html.find(&format!("\"{destination}\""))? + 1;
        let range = start..start + destination.len();
        Some(Link { range, destination, form: Form::Attribute })
    };
    values.filter_map(link).collect()
}

/// Values of an attribute in HTML that a program wrote: in double quotes.
pub(crate) fn attributes(html: &str, name: &str) -> Vec<String> {
    let start = format!(" {name}=\"");
    let parts = html.split(start.as_str()).skip(1);
    parts.filter_map(|part| Some(part.split_once('"')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_that_mdbook_gives_them() {
        let page = Page::read(
            "# Users & `ctl` _x_\n\n## More: of it\n\n## More: of it\n\n### Named {#own}\n\n<a id=\"x\"></a>\n",
        );
        let anchors: Vec<&str> = page.anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["more-of-it", "more-of-it-1", "own", "users--ctl-x", "x"]);
    }

    #[test]
    fn links_in_code_are_no_links() {
        let page = Page::read(
            "`[a](b)` [c](d.md#e)\n\n    [f](g)\n\n<https://example.com/>\n\n<img src=\"h.svg\">\n",
        );
        let found: Vec<_> = page.links.iter().map(|link| (link.destination.as_str(), link.form)).collect();
        let expected =
            [("d.md#e", Form::Inline), ("https://example.com/", Form::Other), ("h.svg", Form::Attribute)];
        assert_eq!(found, expected);
    }

    #[test]
    fn files_to_include_are_found_in_code() {
        assert_eq!(Page::read("```toml\n{{#include a/b.toml}}\n```\n").includes, ["a/b.toml"]);
    }
}
