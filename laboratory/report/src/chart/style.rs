//! Style of a chart that is a file of its own: the rules and colours of the page's style sheet, without variables, which
//! programs for papers do not know.

/// The style sheet of the page.
const PAGE_STYLE: &str = include_str!("../page/style.css");

/// The style sheet of an SVG file: light, and dark where the reader's system prefers it.
pub(super) fn file_style() -> String {
    let (light, dark) = (colours(":root {"), colours(":root[data-theme=\"dark\"] {"));
    let rules = rules();
    let coloured: Vec<&String> = rules.iter().filter(|rule| rule.contains("var(--")).collect();
    let all: String = rules.iter().map(|rule| with_colours(rule, &light)).collect();
    let again: String = coloured.iter().map(|rule| with_colours(rule, &dark)).collect();
    format!("{all}@media (prefers-color-scheme: dark) {{ {again}}}")
}

/// The rules that charts need, one for each line of the style sheet.
fn rules() -> Vec<String> {
    let of_page = PAGE_STYLE.lines().filter(|line| {
        let is_of_chart = line.starts_with("svg.plot .") || line.starts_with("svg.plot text");
        let is_colour =
            line.starts_with(".c") && line.contains("{ color: var(--c") || line.starts_with(".muted {");
        (is_of_chart && !line.contains(":hover")) || is_colour
    });
    let own = [
        "svg.plot { font-family: sans-serif; color: var(--ink); }",
        "svg.plot .paper { fill: var(--paper); }",
    ];
    own.into_iter().chain(of_page).map(|line| line.trim().to_owned() + "\n").collect()
}

/// Names and values of the colours in the first block of the style sheet that begins so.
fn colours(block: &str) -> Vec<(&'static str, &'static str)> {
    let text =
        PAGE_STYLE.split_once(block).and_then(|(_, rest)| rest.split_once('}')).map_or("", |(text, _)| text);
    text.split(';').filter_map(|entry| entry.trim().strip_prefix("--")?.split_once(": ")).collect()
}

fn with_colours(rule: &str, colours: &[(&str, &str)]) -> String {
    colours.iter().fold(rule.to_owned(), |rule, (name, value)| rule.replace(&format!("var(--{name})"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_style_of_a_file_has_the_colours_of_both_themes_and_no_variable() {
        let style = file_style();
        let (light, dark) = style.split_once("@media (prefers-color-scheme: dark)").unwrap();
        assert!(!style.contains("var("), "{style}");
        // The first and the eighth colour, the paper and the ink, as style.css has them.
        for colour in ["#1f6fb2", "#5b6470", "#ffffff", "#1c2430"] {
            assert!(light.contains(colour), "{colour}\n{light}");
        }
        for colour in ["#5aa9e6", "#aab4c0", "#14181d", "#e6eaef"] {
            assert!(dark.contains(colour), "{colour}\n{dark}");
        }
        for rule in [".line", ".fill", ".dashed", ".grid", ".axis", ".hollow", "text"] {
            assert!(light.contains(&format!("svg.plot {rule} {{")), "{rule}\n{light}");
        }
        assert_eq!(style.matches('{').count(), style.matches('}').count());
    }
}
