//! Marks of points, and the legend that explains them.

use crate::escape::html;
use crate::put;

/// The shape of a point. Shapes differ where colours differ, for colour-blind readers and for print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled circle.
    Dot,
    /// A diagonal cross.
    Cross,
    /// A filled triangle.
    Triangle,
    /// A filled square.
    Square,
    /// A diamond, filled.
    Diamond,
    /// A circle, not filled.
    Ring,
    /// A square, not filled.
    Frame,
    /// A filled triangle that points down.
    Wedge,
    /// A triangle, not filled.
    Tent,
    /// An upright cross.
    Plus,
    /// An upright and a diagonal cross.
    Star,
    /// A line, for legends.
    Line,
}

impl Mark {
    /// The shape around a point.
    pub(super) fn draw(self, x: f64, y: f64) -> String {
        match self {
            Mark::Dot => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" class=\"fill\"/>"),
            Mark::Cross => {
                let (a, b, c, d) = (x - 3.0, y - 3.0, x + 3.0, y + 3.0);
                format!(
                    "<path d=\"M{a:.1} {b:.1}L{c:.1} {d:.1}M{a:.1} {d:.1}L{c:.1} {b:.1}\" class=\"line\"/>"
                )
            }
            Mark::Triangle => {
                let (top, left, right, bottom) = (y - 4.2, x - 4.0, x + 4.0, y + 3.2);
                format!(
                    "<path d=\"M{x:.1} {top:.1}L{right:.1} {bottom:.1}L{left:.1} {bottom:.1}Z\" class=\"fill\"/>"
                )
            }
            Mark::Square => {
                let (left, top) = (x - 3.0, y - 3.0);
                format!("<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"6\" height=\"6\" class=\"fill\"/>")
            }
            Mark::Diamond => {
                let (top, bottom, left, right) = (y - 4.4, y + 4.4, x - 4.4, x + 4.4);
                format!(
                    "<path d=\"M{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}L{left:.1} {y:.1}Z\" class=\"fill\"/>"
                )
            }
            Mark::Ring => {
                format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.2\" class=\"line hollow\"/>")
            }
            Mark::Frame => {
                let (left, top) = (x - 3.0, y - 3.0);
                format!(
                    "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"6\" height=\"6\" class=\"line hollow\"/>"
                )
            }
            Mark::Wedge => {
                let (bottom, left, right, top) = (y + 4.2, x - 4.0, x + 4.0, y - 3.2);
                format!(
                    "<path d=\"M{x:.1} {bottom:.1}L{right:.1} {top:.1}L{left:.1} {top:.1}Z\" class=\"fill\"/>"
                )
            }
            Mark::Tent => {
                let (top, left, right, bottom) = (y - 4.2, x - 4.0, x + 4.0, y + 3.2);
                format!(
                    "<path d=\"M{x:.1} {top:.1}L{right:.1} {bottom:.1}L{left:.1} {bottom:.1}Z\" class=\"line hollow\"/>"
                )
            }
            Mark::Plus => {
                let (left, right, top, bottom) = (x - 4.0, x + 4.0, y - 4.0, y + 4.0);
                format!(
                    "<path d=\"M{left:.1} {y:.1}H{right:.1}M{x:.1} {top:.1}V{bottom:.1}\" class=\"line\"/>"
                )
            }
            Mark::Star => Mark::Plus.draw(x, y) + &Mark::Cross.draw(x, y),
            Mark::Line => {
                let (left, right) = (x - 7.0, x + 7.0);
                format!("<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"line\"/>")
            }
        }
    }
}

/// The legend: the meanings of the marks of a plot, in a line below it.
pub fn legend(entries: &[(Mark, &str, &str)]) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (mark, class, text) in entries {
        let (base, style) = class.split_once(' ').unwrap_or((class, ""));
        put!(
            out,
            "<li><svg class=\"plot key\" viewBox=\"0 0 18 12\" width=\"18\" height=\"12\" aria-hidden=\"true\"><g class=\"{base} {style}\">{}</g></svg>{}</li>",
            mark.draw(9.0, 6.0),
            html(text)
        );
    }
    out.push_str("</ul>");
    out
}

/// The legend of curves: a piece of each line with its mark. An entry is the mark, the colour's class, true for a dashed
/// line, and the text.
pub fn line_legend(entries: &[(Mark, &str, bool, &str)]) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (mark, class, is_dashed, text) in entries {
        let style = if *is_dashed { "line dashed" } else { "line" };
        put!(
            out,
            "<li><svg class=\"plot key wide\" viewBox=\"0 0 30 12\" width=\"30\" height=\"12\" aria-hidden=\"true\"><g class=\"{class}\"><path d=\"M1 6H29\" class=\"{style}\"/>{}</g></svg>{}</li>",
            mark.draw(15.0, 6.0),
            html(text)
        );
    }
    out.push_str("</ul>");
    out
}
