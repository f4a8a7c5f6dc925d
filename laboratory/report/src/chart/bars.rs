//! A chart with horizontal bars as an SVG file, for pages in Markdown.

use crate::escape::html;
use crate::put;

/// Width of a chart, of the names on its left and of the figures on its right, height of a bar with its gap, in pixels.
const WIDTH: f64 = 720.0;
const NAMES: f64 = 170.0;
const FIGURES: f64 = 60.0;
const ROW: f64 = 24.0;
const TITLE: f64 = 34.0;

/// A chart with horizontal bars.
#[derive(Clone, Debug, Default)]
pub struct BarChart {
    /// Its heading, with the unit.
    pub title: String,
    /// Name and length of each bar.
    pub bars: Vec<(String, f64)>,
}

impl BarChart {
    /// The chart as an SVG document. Its colours suit a light and a dark page.
    pub fn svg(&self) -> String {
        let height = TITLE + ROW * self.bars.len() as f64 + 6.0;
        let most = self.bars.iter().map(|(_, value)| *value).fold(f64::MIN_POSITIVE, f64::max);
        let scale = (WIDTH - NAMES - FIGURES) / most;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             font-family=\"sans-serif\" font-size=\"13\" fill=\"#808080\">\n\
             <title>{title}</title>\n<text x=\"0\" y=\"20\" font-weight=\"bold\">{title}</text>\n",
            title = html(&self.title)
        );
        for (row, (name, value)) in self.bars.iter().enumerate() {
            let top = TITLE + ROW * row as f64;
            let (length, text) = (value * scale, top + 14.0);
            let is_own = name.to_ascii_lowercase().starts_with("sixfold");
            let colour = if is_own { "#2f7ed8" } else { "#a0a0a0" };
            put!(
                svg,
                "<text x=\"{}\" y=\"{text}\" text-anchor=\"end\">{}</text>\
                 <rect x=\"{NAMES}\" y=\"{top}\" width=\"{length:.1}\" height=\"18\" fill=\"{colour}\"/>\
                 <text x=\"{:.1}\" y=\"{text}\">{value:.1}</text>\n",
                NAMES - 8.0,
                html(name),
                NAMES + length + 6.0,
            );
        }
        svg + "</svg>\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_bar_fills_the_room_and_the_others_are_in_proportion() {
        let bars = vec![("sixfold".to_owned(), 5.0), ("other <1>".to_owned(), 20.0)];
        let svg = BarChart { title: "a & b".into(), bars }.svg();
        let widths: Vec<f64> =
            svg.split("<rect ").skip(1).map(|bar| bar.split('"').nth(5).unwrap().parse().unwrap()).collect();
        assert_eq!(widths, [122.5, 490.0]);
        assert!(svg.contains("a &amp; b") && svg.contains("other &lt;1&gt;"), "{svg}");
    }

    #[test]
    fn a_chart_without_bars_is_a_document_too() {
        assert!(BarChart::default().svg().ends_with("</svg>\n"));
    }
}
