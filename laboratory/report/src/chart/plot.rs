//! A plot: two axes and the marks between them. Values are in the units of the axes; the plot converts them to
//! pixels.

use super::style::file_style;
use super::{Axis, Mark, text_width};
use crate::escape::html;
use crate::put;

/// A plot under construction.
#[derive(Clone, Debug)]
pub struct Plot {
    id: String,
    title: String,
    description: String,
    width: f64,
    height: f64,
    /// Pixels beside the drawing: left, right, top, bottom.
    margin: [f64; 4],
    x: Axis,
    y: Axis,
    body: String,
    /// Labels at the right ends of lines: the line's height in pixels, the text, the colour's class.
    ends: Vec<(f64, String, &'static str)>,
    /// Rows of the key below the axis: a piece of the line with its mark, and its text.
    key: Vec<KeyRow>,
}

/// A row of the key of a plot.
#[derive(Clone, Debug)]
struct KeyRow {
    mark: Option<Mark>,
    /// The colour's class.
    class: &'static str,
    is_dashed: bool,
    text: String,
}

/// Height of a row of the key, in pixels.
const KEY_ROW: f64 = 18.0;

/// Letters of a text in the key that fit into a plot of the usual width.
const KEY_LETTERS: usize = 100;

impl Plot {
    /// An empty plot. The ID is unique in the page; title and description are for screen readers.
    pub fn new(
        id: &str,
        title: &str,
        description: &str,
        (width, height): (f64, f64),
        x: Axis,
        y: Axis,
    ) -> Plot {
        let labels = y.ticks.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
        let left = labels + 14.0 + if y.label.is_empty() { 0.0 } else { 18.0 };
        Plot {
            id: id.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            width,
            height,
            margin: [left, 34.0, 12.0, if x.label.is_empty() { 26.0 } else { 46.0 }],
            x,
            y,
            body: String::new(),
            ends: Vec::new(),
            key: Vec::new(),
        }
    }

    /// Reserves this much space at the right for labels of lines.
    pub fn space_at_right(mut self, pixels: f64) -> Plot {
        self.margin[1] = pixels;
        self
    }

    fn at_x(&self, value: f64) -> f64 {
        self.margin[0] + self.x.scale.place(value) * (self.width - self.margin[0] - self.margin[1])
    }

    fn at_y(&self, value: f64) -> f64 {
        let height = self.height - self.margin[2] - self.margin[3];
        self.margin[2] + (1.0 - self.y.scale.place(value)) * height
    }

    fn path(&self, points: &[(f64, f64)]) -> String {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().filter(|(x, y)| x.is_finite() && y.is_finite()).enumerate() {
            put!(path, "{}{:.1} {:.1}", if at == 0 { "M" } else { "L" }, self.at_x(*x), self.at_y(*y));
        }
        path
    }

    /// A line through the points. `style` may add `thin`, `dashed` or `faint` to the colour's class.
    pub fn line(&mut self, points: &[(f64, f64)], style: &str) {
        let path = self.path(points);
        if !path.is_empty() {
            put!(self.body, "<path d=\"{path}\" class=\"line {style}\"/>");
        }
    }

    /// Fills the space between a line and the horizontal axis, in a light colour.
    pub fn area(&mut self, points: &[(f64, f64)], class: &str) {
        if let (Some(first), Some(last)) = (points.first(), points.last()) {
            let (path, floor) = (self.path(points), self.height - self.margin[3]);
            let (from, to) = (self.at_x(first.0), self.at_x(last.0));
            put!(
                self.body,
                "<path d=\"{path}L{to:.1} {floor:.1}L{from:.1} {floor:.1}Z\" class=\"area {class}\"/>"
            );
        }
    }

    /// A label at the right, at the height of a line's end. Overlapping labels move apart.
    pub fn end_label(&mut self, y: f64, text: &str, class: &'static str) {
        self.ends.push((self.at_y(y), text.to_owned(), class));
    }

    /// A point; the tip appears when the pointer is on it.
    pub fn mark(&mut self, mark: Mark, (x, y): (f64, f64), class: &str, tip: &str) {
        if x.is_finite() && y.is_finite() {
            let shape = mark.draw(self.at_x(x), self.at_y(y));
            put!(self.body, "<g class=\"mark {class}\"><title>{}</title>{shape}</g>", html(tip));
        }
    }

    /// A filled rectangle between two values of each axis.
    pub fn bar(&mut self, x: (f64, f64), y: (f64, f64), class: &str, tip: &str) {
        let (x0, x1) = (self.at_x(x.0), self.at_x(x.1));
        let (y0, y1) = (self.at_y(y.1), self.at_y(y.0));
        let (width, height) = ((x1 - x0).max(0.0), (y1 - y0).max(0.0));
        put!(
            self.body,
            "<g class=\"mark {class}\"><title>{}</title><rect x=\"{x0:.1}\" y=\"{y0:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" class=\"fill\"/></g>",
            html(tip)
        );
    }

    /// A vertical line with ends, from the low to the high value.
    pub fn error_bar(&mut self, x: f64, (low, high): (f64, f64), class: &str) {
        if !(x.is_finite() && low.is_finite() && high.is_finite()) {
            return;
        }
        let (x, y0, y1) = (self.at_x(x), self.at_y(high), self.at_y(low));
        let (left, right) = (x - 5.0, x + 5.0);
        put!(
            self.body,
            "<path d=\"M{left:.1} {y0:.1}H{right:.1}M{x:.1} {y0:.1}V{y1:.1}M{left:.1} {y1:.1}H{right:.1}\" class=\"line {class}\"/>"
        );
    }

    /// Fills the space between a lower and an upper line, each given as the horizontal, the low and the high value.
    pub fn band(&mut self, edges: &[(f64, f64, f64)], class: &str) {
        let finite = |edge: &&(f64, f64, f64)| edge.0.is_finite() && edge.1.is_finite() && edge.2.is_finite();
        let edges: Vec<_> = edges.iter().filter(finite).collect();
        let outline: Vec<(f64, f64)> = edges.iter().map(|(x, _, high)| (*x, *high)).collect::<Vec<_>>();
        let back = edges.iter().rev().map(|(x, low, _)| (*x, *low));
        let path = self.path(&outline.into_iter().chain(back).collect::<Vec<_>>());
        if !path.is_empty() {
            put!(self.body, "<path d=\"{path}Z\" class=\"area {class}\"/>");
        }
    }

    /// A horizontal line with ends, from the low to the high value, and a taller stroke at the middle.
    pub fn span(&mut self, y: f64, (low, middle, high): (f64, f64, f64), class: &str, tip: &str) {
        let (y, x0, x, x1) = (self.at_y(y), self.at_x(low), self.at_x(middle), self.at_x(high));
        let (up, down, top, bottom) = (y - 5.0, y + 5.0, y - 10.0, y + 10.0);
        put!(
            self.body,
            "<g class=\"mark {class}\"><title>{}</title><path d=\"M{x0:.1} {up:.1}V{down:.1}M{x0:.1} {y:.1}H{x1:.1}M{x1:.1} {up:.1}V{down:.1}\" class=\"line\"/><path d=\"M{x:.1} {top:.1}V{bottom:.1}\" class=\"line thick\"/></g>",
            html(tip)
        );
    }

    /// A line across the plot at a value of the horizontal axis, with a label at its top.
    pub fn rule_x(&mut self, value: f64, label: &str) {
        let (x, top, bottom) = (self.at_x(value), self.margin[2], self.height - self.margin[3]);
        // The label stands on the side where there is more room.
        let right = x < (self.margin[0] + self.width - self.margin[1]) / 2.0;
        let (place, anchor) = if right { (x + 5.0, "start") } else { (x - 5.0, "end") };
        put!(
            self.body,
            "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" class=\"line ink dashed\"/><text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            top + 10.0,
            html(label)
        );
    }

    /// A line across the plot at a value of the vertical axis, with a label at its left end.
    pub fn rule_y(&mut self, value: f64, label: &str) {
        let (y, left, right) = (self.at_y(value), self.margin[0], self.width - self.margin[1]);
        put!(
            self.body,
            "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"line ink dashed\"/><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            left + 6.0,
            if y - self.margin[2] < 16.0 { y + 13.0 } else { y - 5.0 },
            html(label)
        );
    }

    /// A text at a position, moved by pixels; `anchor` is an SVG value: `start`, `middle` or `end`.
    pub fn text(&mut self, (x, y): (f64, f64), (right, down): (f64, f64), anchor: &str, text: &str) {
        let (x, y) = (self.at_x(x) + right, self.at_y(y) + down);
        put!(self.body, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", html(text));
    }

    /// A row of the key below the plot, which makes it higher: for a plot that is also a file, and so has no legend beside it.
    pub fn key(&mut self, mark: Option<Mark>, class: &'static str, is_dashed: bool, text: &str) {
        let mut shown: String = text.chars().take(KEY_LETTERS).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        self.key.push(KeyRow { mark, class, is_dashed, text: shown });
    }

    /// The whole plot as an SVG element.
    pub fn svg(self) -> String {
        self.element("", "")
    }

    /// The whole plot as an SVG file: the style is inside, light or dark as the reader's system wants it.
    pub fn svg_file(self) -> String {
        let size = format!(
            " xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0}\" height=\"{:.0}\"",
            self.width,
            self.whole_height()
        );
        let first =
            format!("<style>{}</style><rect width=\"100%\" height=\"100%\" class=\"paper\"/>", file_style());
        self.element(&size, &first) + "\n"
    }

    fn whole_height(&self) -> f64 {
        self.height + self.key.len() as f64 * KEY_ROW
    }

    /// The SVG element with these further attributes, and these elements at its beginning.
    fn element(mut self, attributes: &str, first: &str) -> String {
        let ends = self.spread_ends();
        let (id, width, height) = (html(&self.id), self.width, self.whole_height());
        let mut out = format!(
            "<svg class=\"plot\"{attributes} viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>{first}",
            html(&self.title),
            html(&self.description)
        );
        self.draw_x(&mut out);
        self.draw_y(&mut out);
        out.push_str(&self.body);
        out.push_str(&ends);
        self.draw_key(&mut out);
        out.push_str("</svg>");
        out
    }

    fn draw_key(&self, out: &mut String) {
        let left = self.margin[0];
        for (at, row) in self.key.iter().enumerate() {
            let y = self.height + (at as f64 + 0.5) * KEY_ROW;
            let style = if row.is_dashed { "line dashed" } else { "line" };
            let mark = row.mark.map_or(String::new(), |mark| mark.draw(left + 14.0, y));
            put!(
                out,
                "<g class=\"key {}\"><path d=\"M{left:.1} {y:.1}H{:.1}\" class=\"{style}\"/>{mark}</g><text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                row.class,
                left + 28.0,
                left + 36.0,
                y + 4.0,
                html(&row.text)
            );
        }
    }

    fn draw_x(&self, out: &mut String) {
        let (left, right) = (self.margin[0], self.width - self.margin[1]);
        let (top, floor) = (self.margin[2], self.height - self.margin[3]);
        put!(out, "<path d=\"M{left:.1} {floor:.1}H{right:.1}\" class=\"axis\"/>");
        let mut free = f64::MIN;
        for (value, label) in &self.x.ticks {
            let (x, half) = (self.at_x(*value), text_width(label) / 2.0);
            if self.x.grid {
                put!(out, "<path d=\"M{x:.1} {top:.1}V{floor:.1}\" class=\"grid\"/>");
            }
            // A label that would overlap the one before is left out; the line of the tick remains.
            if x - half > free {
                put!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    floor + 18.0,
                    html(label)
                );
                free = x + half + 6.0;
            }
        }
        if !self.x.label.is_empty() {
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"name\">{}</text>",
                (left + right) / 2.0,
                self.height - 8.0,
                html(&self.x.label)
            );
        }
    }

    fn draw_y(&self, out: &mut String) {
        let (left, right) = (self.margin[0], self.width - self.margin[1]);
        for (value, label) in &self.y.ticks {
            let y = self.at_y(*value);
            if self.y.grid {
                put!(out, "<path d=\"M{left:.1} {y:.1}H{right:.1}\" class=\"grid\"/>");
            }
            put!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 7.0,
                y + 4.0,
                html(label)
            );
        }
        if !self.y.label.is_empty() {
            let middle = (self.margin[2] + self.height - self.margin[3]) / 2.0;
            put!(
                out,
                "<text transform=\"translate(13 {middle:.1}) rotate(-90)\" text-anchor=\"middle\" class=\"name\">{}</text>",
                html(&self.y.label)
            );
        }
    }

    /// The labels at the right, at least one line of text apart.
    fn spread_ends(&mut self) -> String {
        const LINE: f64 = 15.0;
        self.ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut above = f64::MIN;
        for end in &mut self.ends {
            end.0 = end.0.max(above + LINE);
            above = end.0;
        }
        let mut below = self.height - self.margin[3] + LINE;
        for end in self.ends.iter_mut().rev() {
            end.0 = end.0.min(below - LINE);
            below = end.0;
        }
        let x = self.width - self.margin[1] + 7.0;
        let mut out = String::new();
        for (y, text, class) in &self.ends {
            put!(out, "<text x=\"{x:.1}\" y=\"{:.1}\" class=\"end {class}\">{}</text>", y + 4.0, html(text));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;
    use crate::number;

    fn plot() -> Plot {
        let x = Axis::new(Scale::Linear { low: 0.0, high: 10.0 }, "x", 5, number::tick);
        let y = Axis::new(Scale::Linear { low: 0.0, high: 1.0 }, "y", 2, number::tick);
        Plot::new("p", "A <title>", "What it shows", (200.0, 100.0), x, y)
    }

    #[test]
    fn a_plot_has_a_name_and_a_description_for_those_who_do_not_see_it() {
        let svg = plot().svg();
        assert!(svg.contains("role=\"img\" aria-labelledby=\"p-t p-d\""), "{svg}");
        assert!(
            svg.contains("<title id=\"p-t\">A &lt;title&gt;</title><desc id=\"p-d\">What it shows</desc>"),
            "{svg}"
        );
    }

    #[test]
    fn a_mark_lies_at_its_values() {
        let mut plot = plot();
        plot.margin = [20.0, 20.0, 10.0, 30.0];
        // 160 pixels are 10 units in width, 60 are 1 unit in height, downwards.
        assert_eq!((plot.at_x(5.0), plot.at_y(0.25)), (100.0, 55.0));
        plot.mark(Mark::Dot, (5.0, 0.25), "c1", "<tip>");
        assert!(plot.svg().contains("<title>&lt;tip&gt;</title><circle cx=\"100.0\" cy=\"55.0\""));
    }

    #[test]
    fn values_that_are_no_numbers_are_not_drawn() {
        let mut plot = plot();
        plot.mark(Mark::Dot, (f64::NAN, 0.5), "c1", "");
        plot.line(&[(f64::INFINITY, 0.1)], "c1");
        assert!(!plot.body.contains("NaN") && plot.body.is_empty());
    }

    #[test]
    fn a_key_stands_below_the_axis_and_makes_the_plot_higher() {
        let mut plot = plot();
        plot.key(Some(Mark::Dot), "c2", false, "one & only");
        plot.key(None, "muted", true, &"x".repeat(KEY_LETTERS + 1));
        let svg = plot.clone().svg();
        // 100 pixels, and two rows of 18.
        assert!(svg.contains("viewBox=\"0 0 200 136\""), "{svg}");
        assert!(svg.contains("y=\"113.0\">one &amp; only</text>") && svg.contains("xx…</text>"), "{svg}");
        assert!(!svg.contains("<style"), "the page has the style");
        let file = plot.svg_file();
        assert!(
            file.starts_with(
                "<svg class=\"plot\" xmlns=\"http://www.w3.org/2000/svg\" width=\"200\" height=\"136\""
            ),
            "{file}"
        );
        assert!(file.contains("<style>") && file.ends_with("</svg>\n"), "{file}");
    }

    #[test]
    fn labels_of_lines_that_end_together_do_not_cover_each_other() {
        let mut plot = plot();
        for text in ["a", "b", "c"] {
            plot.end_label(0.0, text, "c1");
        }
        plot.spread_ends();
        let heights: Vec<f64> = plot.ends.iter().map(|end| end.0).collect();
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 14.9), "{heights:?}");
        assert!(heights.iter().all(|y| *y <= plot.height - plot.margin[3]), "{heights:?}");
    }
}
