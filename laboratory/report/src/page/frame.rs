//! Frame of a page: head, navigation, sections, the embedded data and the script.

use crate::escape;
use crate::put;

/// A page without its frame. The texts are HTML, except the title.
pub struct Frame {
    /// Title of the page, as plain text.
    pub title: String,
    /// Kind of the page, above the header.
    pub kind: &'static str,
    /// Content of the header, with the verdict.
    pub header: String,
    /// ID, title and body of each section.
    pub sections: Vec<(&'static str, &'static str, String)>,
    /// Content of the footer.
    pub footer: String,
    /// Embedded data, escaped for a script element.
    pub json: String,
}

impl Frame {
    /// The whole page.
    pub fn html(self) -> String {
        let title = escape::html(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
             <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the results</a>\n",
            include_str!("style.css")
        );
        put!(
            out,
            "<header><p class=\"kind\">{}<button type=\"button\" id=\"theme\" hidden>Dark or light</button></p>{}</header>\n\
             <nav aria-label=\"Sections\"><ul>",
            self.kind,
            self.header
        );
        for (id, title, _) in &self.sections {
            put!(out, "<li><a href=\"#{id}\">{title}</a></li>");
        }
        out.push_str("</ul></nav>\n<main id=\"main\">\n");
        for (id, title, body) in &self.sections {
            put!(
                out,
                "<section id=\"{id}\" aria-labelledby=\"{id}-h\"><h2 id=\"{id}-h\">{title}</h2>\n{body}</section>\n"
            );
        }
        put!(out, "</main>\n<footer><p>{}</p></footer>\n", self.footer);
        put!(out, "<script type=\"application/json\" id=\"run\">{}</script>\n", self.json);
        put!(out, "<script>\n{}</script>\n</body>\n</html>\n", include_str!("script.js"));
        out
    }
}

/// Badges: class and text of each.
pub fn badges(badges: &[(&str, String)]) -> String {
    let items =
        badges.iter().map(|(class, text)| format!("<li class=\"{class}\">{}</li>", escape::html(text)));
    format!("<ul class=\"badges\">{}</ul>", items.collect::<String>())
}

/// Warnings before all numbers; nothing if there are none.
pub(super) fn warnings(texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let items: String = texts.iter().map(|text| format!("<li>{}</li>", escape::html(text))).collect();
    format!(
        "<div class=\"warnings\" role=\"note\" id=\"warnings\"><strong>Read this before relying on a number</strong><ul>{items}</ul></div>"
    )
}
