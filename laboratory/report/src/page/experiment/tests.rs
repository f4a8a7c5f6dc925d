//! The page of an experiment as text; the tests of the command line show it in a browser.

use super::*;
use crate::sample;
use measure::experiment::{Chart, ChartLine, LINES_MAX, Origin, Point};

#[test]
fn the_page_refers_to_nothing_outside_itself() {
    let page = html(&sample::experiment());
    for forbidden in ["http://", "https://", " src=", "@import", "url(", "<iframe", "<object", "<base"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    let links = page.match_indices("href=\"").map(|(at, _)| &page[at + 6..at + 12]);
    assert!(links.into_iter().all(|target| target.starts_with('#') || target.starts_with("data:,")));
}

/// Replaces every text in a value.
fn replace_texts(value: &mut serde_json::Value, text: &str) {
    match value {
        // The origin is an enumeration, not a text.
        serde_json::Value::String(old)
            if ["measured", "virtual", "arithmetic", "paper"].contains(&&**old) => {}
        serde_json::Value::String(old) => *old = text.to_owned(),
        serde_json::Value::Array(list) => list.iter_mut().for_each(|it| replace_texts(it, text)),
        serde_json::Value::Object(map) => {
            map.values_mut().for_each(|it| replace_texts(it, text));
            if let Some(facts) = map.get_mut("facts").and_then(serde_json::Value::as_object_mut) {
                facts.insert(text.to_owned(), text.into());
            }
        }
        _ => {}
    }
}

#[test]
fn no_text_of_a_record_becomes_markup() {
    let hostile = "</script><img src=x onerror=alert(1)>\"'&";
    let mut record = serde_json::to_value(sample::experiment()).unwrap();
    replace_texts(&mut record, hostile);
    let page = html(&serde_json::from_value(record).unwrap());
    assert!(page.contains("&lt;img src=x onerror"), "the texts are in the page");
    assert!(!page.contains("<img") && !page.contains("\"'&"), "and none as markup");
    assert_eq!(page.matches("</script>").count(), 2);
}

#[test]
fn identifiers_are_unique_even_if_charts_have_the_same() {
    let mut experiment = sample::experiment();
    experiment.charts.push(experiment.charts[0].clone());
    let page = html(&experiment);
    let mut ids: Vec<&str> =
        page.match_indices(" id=\"").filter_map(|(at, _)| page[at + 5..].split('"').next()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn the_embedded_record_is_the_record() {
    let experiment = sample::experiment();
    let page = html(&experiment);
    let json = page.split("id=\"run\">").nth(1).unwrap().split("</script>").next().unwrap();
    assert_eq!(serde_json::from_str::<Experiment>(json).unwrap(), experiment);
}

#[test]
fn a_figure_has_its_interval_its_origin_and_the_papers_figure() {
    let page = html(&sample::experiment());
    // Decimals follow the width of the interval, 0.45.
    for part in [
        "<b>65.40\u{a0}ms</b><small>65.19 to 65.64</small><small>measured</small>\
         <small class=\"paper\">paper 66.1\u{a0}ms</small>",
        "<b>65.10\u{a0}ms</b><small>64.89 to 65.34</small><small>virtual time</small></td>",
        "<caption>n\u{a0}=\u{a0}1,000 each. The paper&#39;s figures: Table 1.</caption>",
        "Our figures: arithmetic.",
        "<b>10\u{a0}packets</b></td>",
        "<b>–</b><small>not measured here</small>",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn the_verdict_counts_the_claims_and_names_those_that_do_not_hold() {
    let mut experiment = sample::experiment();
    assert_eq!(
        top::verdict(&experiment),
        "1 of 2 claims does not hold: TCP takes at least 1.8 times as long as UDP at 65 ms."
    );
    experiment.claims[1].holds = true;
    assert_eq!(top::verdict(&experiment), "All 2 claims hold.");
    experiment.claims.clear();
    assert_eq!(top::verdict(&experiment), "The experiment tests no claim.");
}

#[test]
fn an_empty_record_is_a_page_too() {
    let page = html(&Experiment::default());
    for part in ["tests no claim", "no figures", "no charts", "names no difference", "</html>"] {
        assert!(page.contains(part), "{part}");
    }
}

/// The marks and the paths of a chart.
fn drawing(chart: &Chart) -> String {
    let page = html(&Experiment { charts: vec![chart.clone()], ..Experiment::default() });
    page.split("id=\"charts\"").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
}

#[test]
fn numbers_that_are_not_finite_or_extreme_are_not_drawn_and_break_nothing() {
    let extremes = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN, 5e-324, 0.0, -1.0, 3.0];
    for logarithmic in [false, true] {
        let mut chart = sample::experiment().charts[0].clone();
        (chart.x.logarithmic, chart.y.logarithmic) = (logarithmic, logarithmic);
        chart.lines[0].points.clear();
        for x in extremes {
            for y in extremes {
                let interval = Some((y, x));
                chart.lines[0].points.push(Point { x, y, interval });
            }
        }
        let drawn = drawing(&chart);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        assert!(drawn.contains("Points that the axes cannot show are in the table only."));
    }
    let mut experiment = sample::experiment();
    for (at, figure) in experiment.figures.iter_mut().enumerate() {
        let value = extremes[at % extremes.len()];
        (figure.value, figure.interval, figure.paper) = (Some(value), Some((value, f64::NAN)), Some(value));
    }
    let page = html(&experiment);
    assert!(page.contains("not measured here") && !page.contains("NaN"));
}

#[test]
fn curves_differ_in_shape_and_the_papers_are_dashed_crosses_in_the_colour_of_ours() {
    let drawn = drawing(&sample::experiment().charts[0]);
    // UDP is the first curve: colour c1. The paper's curve of UDP is dashed in that colour, with diagonal crosses.
    assert!(drawn.contains("class=\"line c1\"") && drawn.contains("class=\"line c1 dashed\""));
    assert!(drawn.contains("class=\"line c3\"") && drawn.contains("class=\"line c3 dashed\""), "TCP");
    assert_eq!(
        drawn.matches("<g class=\"mark c1\"><title>UDP (paper): ").count(),
        6,
        "a mark for each point"
    );
    let line = |at: usize| ChartLine {
        name: at.to_string(),
        origin: Origin::Measured,
        points: vec![Point { x: 1.0, y: at as f64, interval: None }],
    };
    let chart = Chart { lines: (0..LINES_MAX + 1).map(line).collect(), ..Chart::default() };
    let drawn = drawing(&chart);
    let legend = drawn.split("class=\"legend\"").nth(1).unwrap().split("</ul>").next().unwrap();
    let mut looks: Vec<&str> =
        legend.split("class=\"line\"/>").skip(1).filter_map(|rest| rest.split("</g>").next()).collect();
    assert_eq!(looks.len(), LINES_MAX);
    looks.sort_unstable();
    looks.dedup();
    assert_eq!(looks.len(), LINES_MAX, "no two curves have a shape in common");
    assert!(drawn.contains("The chart shows the first 8 of 9 curves."));
}

#[test]
fn the_table_of_a_chart_has_a_row_for_each_horizontal_value_and_all_curves() {
    let drawn = drawing(&sample::experiment().charts[0]);
    // UDP at 10 ms is 1 * 10 + 0.4, with 6 % on both sides, so two digits of the width, 1.25, are tenths; the paper's is
    // 9.7 + 0.4.
    assert!(drawn.contains("<th scope=\"row\">10</th><td class=\"n\">10.4 (9.8 to 11.0)</td>"), "{drawn}");
    assert!(drawn.contains("<td class=\"n\">10.1</td>"), "{drawn}");
}
