//! The page with its figures: `page.html`, in which `{{KIND:NAME}}` stands for a part of the view. Parts are inserted in one pass
//! and escaped, so no text can become markup, or another part.

use super::view::{Row, View};
use std::fmt::Write;

const PAGE: &str = include_str!("page.html");

/// Writes the page.
pub fn render(view: &View) -> String {
    let mut page = String::with_capacity(PAGE.len() + 8192);
    let mut parts = PAGE.split("{{");
    page.push_str(parts.next().unwrap_or_default());
    for part in parts {
        // The tests find a part that does not exist.
        let (place, rest) = part.split_once("}}").unwrap_or((part, ""));
        match place.split_once(':') {
            Some(("field", name)) => escape(view.fields.get(name).map_or("", String::as_str), &mut page),
            Some(("tone", name)) => page.push_str(view.tones.get(name).copied().unwrap_or_default()),
            Some(("line", name)) => escape(view.lines.get(name).map_or("", String::as_str), &mut page),
            Some(("rows", name)) => {
                let heads = heads(&page);
                rows(name, &heads, view, &mut page);
            }
            _ => {}
        }
        page.push_str(rest);
    }
    page
}

/// The heads of the columns of the last table that was begun. They are parts of `page.html`, so nothing is escaped.
fn heads(page: &str) -> Vec<String> {
    let head = page.rsplit("<thead>").next().unwrap_or_default();
    let cells = head.split("<th scope=\"col\">").skip(1);
    cells.map(|cell| cell.split('<').next().unwrap_or_default().to_owned()).collect()
}

/// Writes the rows of a table. The first cell of each is its header; a single one spans the table. The others have the heads of
/// their columns as labels, which a narrow page shows.
fn rows(name: &str, heads: &[String], view: &View, page: &mut String) {
    for Row { tone, cells } in view.rows.get(name).into_iter().flatten() {
        let _ = write!(page, "<tr class=\"{tone}\">");
        for (place, cell) in cells.iter().enumerate() {
            let label = heads.get(place).map_or("", String::as_str);
            let close = if place == 0 { "</th>" } else { "</td>" };
            let _ = match (place, cells.len()) {
                (0, 1) => write!(page, "<th scope=\"row\" colspan=\"{}\">", heads.len()),
                (0, _) => write!(page, "<th scope=\"row\">"),
                _ => write!(page, "<td data-label=\"{label}\">"),
            };
            escape(cell, page);
            page.push_str(close);
        }
        page.push_str("</tr>");
    }
}

/// Writes text so that it is neither markup nor the end of an attribute.
fn escape(text: &str, page: &mut String) {
    for character in text.chars() {
        match character {
            '&' => page.push_str("&amp;"),
            '<' => page.push_str("&lt;"),
            '>' => page.push_str("&gt;"),
            '"' => page.push_str("&quot;"),
            '\'' => page.push_str("&#39;"),
            other => page.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const HOSTILE: &str = "</title><script>alert('x')</script>\" onload=\"{{field:title}}&amp;";

    fn view() -> View {
        let field = |name| (name, HOSTILE.to_owned());
        View {
            fields: ["title", "works", "host"].map(field).into(),
            tones: BTreeMap::from([("state", "bad")]),
            rows: BTreeMap::from([(
                "upstreams",
                vec![Row { tone: "bad", cells: vec![HOSTILE.into(), HOSTILE.into()] }],
            )]),
            lines: BTreeMap::from([("queries", "0,1 2,3".to_owned())]),
        }
    }

    #[test]
    fn no_text_becomes_markup_or_another_part() {
        let page = render(&view());
        assert_eq!(page.matches("<script").count(), 1, "the one of the page: {page}");
        assert!(!page.contains("onload=\""), "{page}");
        // Twice as a part of a text in each of five places, and never replaced.
        assert_eq!(page.matches("{{field:title}}&amp;amp;").count(), 5, "{page}");
        let row = "<tr class=\"bad\"><th scope=\"row\">&lt;/title&gt;&lt;script&gt;alert(&#39;x&#39;)";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("<td data-label=\"State\">&lt;/title&gt;"), "{page}");
        assert!(page.contains("points=\"0,1 2,3\""), "{page}");
    }

    #[test]
    fn every_place_of_the_script_is_one_of_the_server() {
        for (attribute, kind) in
            [("data-field", "field"), ("data-tone", "tone"), ("data-rows", "rows"), ("data-line", "line")]
        {
            let attribute = format!("{attribute}=\"");
            let names = PAGE.split(&attribute).skip(1);
            let mut count = 0;
            for name in names.map(|rest| rest.split('"').next().unwrap_or_default()) {
                assert!(PAGE.contains(&format!("{{{{{kind}:{name}}}}}")), "{kind}:{name}");
                count += 1;
            }
            assert_eq!(PAGE.matches(&format!("{{{{{kind}:")).count(), count, "{kind}");
        }
    }
}
