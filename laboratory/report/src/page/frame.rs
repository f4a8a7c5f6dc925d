//! Frame of a page: head, navigation, sections, the embedded data and the script.

use crate::escape;
use crate::put;

/// A page without its frame. The texts are HTML, except the title.
pub struct Frame {
    /// Title of the page, as plain text.
    pub title: String,
    /// Header with the verdict.
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
        out.push_str(&self.header);
        out.push_str("<nav aria-label=\"Sections\"><ul>");
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
