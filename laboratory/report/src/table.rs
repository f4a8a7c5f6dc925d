//! A table of texts that can be written as HTML, Markdown or LaTeX with equal contents.

use crate::escape;
use crate::put;

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The caption.
    pub caption: String,
    /// The ID of the element in HTML; empty: none.
    pub id: String,
    /// The headings.
    pub head: Vec<String>,
    /// The rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Number of columns at the left that have names; the other columns have numbers.
    pub names: usize,
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, names: usize, head: &[&str]) -> Table {
        let head = head.iter().map(|text| (*text).to_owned()).collect();
        Table { caption: caption.into(), id: String::new(), head, rows: Vec::new(), names }
    }

    /// Sets the ID.
    pub fn id(mut self, id: &str) -> Table {
        self.id = id.to_owned();
        self
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, fields: impl IntoIterator<Item = T>) {
        self.rows.push(fields.into_iter().map(Into::into).collect());
    }

    /// Removes columns whose value is equal in every row; the caller states that value elsewhere.
    pub fn without_columns(mut self, unwanted: &[usize]) -> Table {
        let keep = |fields: Vec<String>| -> Vec<String> {
            fields
                .into_iter()
                .enumerate()
                .filter(|(at, _)| !unwanted.contains(at))
                .map(|(_, it)| it)
                .collect()
        };
        self.names -= unwanted.iter().filter(|at| **at < self.names).count();
        self.head = keep(self.head);
        self.rows = self.rows.into_iter().map(keep).collect();
        self
    }

    /// The table as an HTML element that scrolls sideways if it is too wide.
    pub fn html(&self) -> String {
        let id =
            if self.id.is_empty() { String::new() } else { format!(" id=\"{}\"", escape::html(&self.id)) };
        let mut out = format!(
            "<div class=\"scroll\"><table{id}><caption>{}</caption><thead><tr>",
            escape::html(&self.caption)
        );
        for (at, heading) in self.head.iter().enumerate() {
            let class = if at < self.names { "" } else { " class=\"n\"" };
            put!(out, "<th scope=\"col\"{class}>{}</th>", escape::html(heading));
        }
        out.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            out.push_str("<tr>");
            for (at, field) in row.iter().enumerate() {
                let field = escape::html(field);
                if at == 0 && self.names > 0 {
                    put!(out, "<th scope=\"row\">{field}</th>");
                } else if at < self.names {
                    put!(out, "<td>{field}</td>");
                } else {
                    put!(out, "<td class=\"n\">{field}</td>");
                }
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        out
    }

    /// The table in GitHub's Markdown, after its caption.
    pub fn markdown(&self) -> String {
        let widths = vec![0; self.head.len()];
        format!(
            "**{}**\n\n{}",
            escape::markdown(&self.caption),
            self.markdown_rows(&widths, escape::markdown)
        )
    }

    /// The table in Markdown that is easy to read as text: without its caption, in aligned columns, with all characters as they are.
    pub fn aligned(&self) -> String {
        let length = |text: &String| text.chars().count();
        let column = |at: usize| self.rows.iter().filter_map(move |row| row.get(at)).chain([&self.head[at]]);
        let widths: Vec<usize> =
            (0..self.head.len()).map(|at| column(at).map(length).fold(3, usize::max)).collect();
        self.markdown_rows(&widths, str::to_owned)
    }

    /// Head and rows as Markdown, in columns of at least these widths.
    fn markdown_rows(&self, widths: &[usize], written: fn(&str) -> String) -> String {
        let line = |fields: &[String]| {
            let mut out = String::from("|");
            for (at, (field, &width)) in fields.iter().zip(widths).enumerate() {
                let field = written(field);
                if at < self.names {
                    put!(out, " {field:<width$} |");
                } else {
                    put!(out, " {field:>width$} |");
                }
            }
            out + "\n"
        };
        let mut out = line(&self.head) + "|";
        for (at, width) in widths.iter().enumerate() {
            let (end, least) =
                if at < self.names { ('-', 3) } else { (':', if *width == 0 { 4 } else { 3 }) };
            put!(out, " {}{end} |", "-".repeat(width.max(&least) - 1));
        }
        out.push('\n');
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }

    /// The table as a LaTeX float with the rules of the package `booktabs`.
    pub fn latex(&self, label: &str) -> String {
        let columns: String =
            (0..self.head.len()).map(|at| if at < self.names { 'l' } else { 'r' }).collect();
        let line = |fields: &[String]| {
            let fields: Vec<String> = fields.iter().map(|field| escape::latex(field)).collect();
            format!("    {} \\\\\n", fields.join(" & "))
        };
        let mut out = String::from("\\begin{table}\n  \\centering\n");
        put!(out, "  \\caption{{{}}}\n  \\label{{{label}}}\n", escape::latex(&self.caption));
        put!(out, "  \\begin{{tabular}}{{{columns}}}\n    \\toprule\n{}    \\midrule\n", line(&self.head));
        for row in &self.rows {
            out.push_str(&line(row));
        }
        out.push_str("    \\bottomrule\n  \\end{tabular}\n\\end{table}\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("Rates & names", 1, &["name", "rate"]);
        table.row(["<a|b_c>", "24,300"]);
        table
    }

    #[test]
    fn the_same_table_in_three_formats() {
        let html = table().html();
        assert!(html.contains("<th scope=\"row\">&lt;a|b_c&gt;</th><td class=\"n\">24,300</td>"), "{html}");
        assert_eq!(
            table().markdown(),
            "**Rates &amp; names**\n\n| name | rate |\n| --- | ---: |\n| \\<a\\|b\\_c\\> | 24,300 |\n"
        );
        let latex = table().latex("tab:rates");
        assert!(
            latex.contains("\\begin{tabular}{lr}\n    \\toprule\n    name & rate \\\\\n    \\midrule\n"),
            "{latex}"
        );
        assert!(
            latex
                .contains("    \\textless{}a\\textbar{}b\\_c\\textgreater{} & 24,300 \\\\\n    \\bottomrule"),
            "{latex}"
        );
    }

    #[test]
    fn aligned_columns_are_as_wide_as_their_longest_field() {
        let mut table = table();
        table.row(["a", "3"]);
        let expected =
            "| name    |   rate |\n| ------- | -----: |\n| <a|b_c> | 24,300 |\n| a       |      3 |\n";
        assert_eq!(table.aligned(), expected);
    }

    #[test]
    fn columns_can_be_left_out() {
        let table = table().without_columns(&[0]);
        assert_eq!((table.names, table.head.len(), table.rows[0].len()), (0, 1, 1));
    }
}
