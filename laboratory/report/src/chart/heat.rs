//! A table whose cells are coloured by their values. Its contents are complete when it is read aloud or printed
//! without colours.

use crate::escape::html;
use crate::put;

/// A cell of a heat table.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// The value that determines the colour.
    pub value: f64,
    /// The text.
    pub text: String,
    /// A second line, smaller.
    pub detail: String,
}

/// Steps of the colour, classes `h0` (the smallest value) to `h8`.
const STEPS: f64 = 8.0;

/// A table with headings on both sides. Cells that are absent were not measured.
pub fn heat_table(
    caption: &str,
    corner: &str,
    columns: &[String],
    rows: &[(String, Vec<Option<HeatCell>>)],
) -> String {
    let values = || rows.iter().flat_map(|(_, cells)| cells).flatten().map(|cell| cell.value);
    let (low, high) = (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max));
    let mut out = format!(
        "<div class=\"scroll\"><table class=\"heat\"><caption>{}</caption><thead><tr>",
        html(caption)
    );
    put!(out, "<th scope=\"col\">{}</th>", html(corner));
    for column in columns {
        put!(out, "<th scope=\"col\">{}</th>", html(column));
    }
    out.push_str("</tr></thead><tbody>");
    for (name, cells) in rows {
        put!(out, "<tr><th scope=\"row\">{}</th>", html(name));
        for cell in cells {
            match cell {
                Some(cell) => {
                    let part = if high > low { (cell.value - low) / (high - low) } else { 0.5 };
                    put!(
                        out,
                        "<td class=\"h{:.0}\"><b>{}</b><small>{}</small></td>",
                        (part * STEPS).clamp(0.0, STEPS),
                        html(&cell.text),
                        html(&cell.detail)
                    );
                }
                None => out.push_str("<td class=\"none\">not measured</td>"),
            }
        }
        out.push_str("</tr>");
    }
    out.push_str("</tbody></table></div>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_value_is_the_lightest_and_the_largest_the_darkest() {
        let cell = |value: f64| Some(HeatCell { value, text: value.to_string(), detail: String::new() });
        let rows = [("a".to_owned(), vec![cell(10.0), cell(90.0)]), ("b".to_owned(), vec![cell(50.0), None])];
        let table = heat_table("Rates", "AAAA", &["0 %".into(), "20 %".into()], &rows);
        for expected in ["h0\"><b>10<", "h8\"><b>90<", "h4\"><b>50<", "not measured"] {
            assert!(table.contains(expected), "{expected}: {table}");
        }
    }
}
