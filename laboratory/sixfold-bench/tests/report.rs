//! The report as a browser shows it, and the commands that write it and compare two runs.

use crate::fixtures::{bench, lossy};
use kit::browser::{Browser, Look, size_of};
use measure::plan::Draft;
use measure::run::{CellResult, Run, Summary};
use report::sample::{self, Shape};
use serde_json::Value;
use sixfold_bench::bundle;
use sixfold_bench::run::Journal;
use std::path::PathBuf;

/// A folder with a run. Dropping the value removes it.
struct Folder(kit::Folder);

impl Folder {
    fn with(run: &Run) -> Folder {
        let folder = kit::Folder::new();
        bundle::write(&folder, run).unwrap();
        Folder(folder)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

fn rich() -> Run {
    let mut run = sample::run(&Shape { repetitions: 4, seconds: 5, ..Shape::full() });
    run.device.version = "<script>broken()</script> 1.0".to_owned();
    run.results[3].censored = true;
    run
}

const SCREEN: Look = Look { media: "screen", scheme: "light", width: 1200, script: true };

const LOOKS: [Look; 5] = [
    SCREEN,
    Look { scheme: "dark", ..SCREEN },
    Look { media: "print", ..SCREEN },
    Look { width: 380, ..SCREEN },
    Look { script: false, ..SCREEN },
];

#[test]
fn the_page_shows_the_numbers_of_the_record_without_errors_or_requests() {
    let Some(mut browser) = Browser::or_skip("numbers") else { return };
    for run in [rich(), sample::run(&Shape::quick())] {
        let folder = Folder::with(&run);
        // Test the page that the command writes, not the one of the bundle.
        std::fs::remove_file(folder.0.join("report.html")).unwrap();
        assert!(bench(&["report", folder.path()]).status.success());
        let record: Run =
            serde_json::from_str(&std::fs::read_to_string(folder.0.join("run.json")).unwrap()).unwrap();
        for look in LOOKS {
            browser.open(&folder.0.join("report.html"), look).unwrap();
            no_complaints(&browser, look);
            if look.script {
                assert_eq!(browser.value("document.documentElement.dataset.ready").unwrap(), "1", "{look:?}");
                assert_eq!(browser.value("document.documentElement.dataset.errors").unwrap(), Value::Null);
            }
            same_numbers(&record, &rows(&mut browser), look);
        }
    }
}

/// Checks for complaints of the browser, and requests other than for the page itself.
fn no_complaints(browser: &Browser, look: Look) {
    let is_page =
        |url: &str| ["/report.html", "/devices.html", ".svg"].iter().any(|page| url.ends_with(page));
    let is_own = |url: &str| url.starts_with("file://") && is_page(url) || url.starts_with("data:");
    browser.expect_no_complaints(is_own, look);
}

/// Checks the contrasts of the page, and that it is not wider than the window.
fn is_readable(browser: &mut Browser, look: Look) {
    for (kind, contrast) in browser.value(CONTRASTS).unwrap().as_object().unwrap() {
        assert!(contrast.as_f64().unwrap() >= 4.5, "{look:?}: {kind} has a contrast of {contrast}");
    }
    let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.value(beyond).unwrap(), 0, "{look:?}: the page must not scroll sideways");
}

/// The rows of the table of results, as the browser shows them.
fn rows(browser: &mut Browser) -> Vec<Vec<String>> {
    let rows = browser
        .value(
            "[...document.querySelectorAll('#results-table tbody tr')].map(row => [...row.cells].map(cell => cell.innerText))",
        )
        .unwrap();
    serde_json::from_value(rows).unwrap()
}

fn same_numbers(record: &Run, rows: &[Vec<String>], look: Look) {
    let expected: Vec<(&CellResult, &Summary, bool)> = record
        .results
        .iter()
        .flat_map(|result| [(result, &result.summary, true), (result, &result.confirmed_summary, false)])
        .collect();
    assert_eq!(rows.len(), expected.len(), "{look:?}");
    for (row, (result, summary, strict)) in rows.iter().zip(expected) {
        assert_eq!(row.len(), 10, "{row:?}");
        assert_eq!(row[1], if strict { "strict" } else { "confirmed" });
        assert_eq!(row[2], summary.count.to_string());
        assert_eq!(row[3].starts_with("≥ "), result.censored, "{row:?}");
        let shown = [&row[3], &row[4], &row[5], &row[6]];
        for (text, value) in shown.into_iter().zip([summary.median, summary.p1, summary.p99, summary.mean]) {
            assert!((number(text) - value).abs() <= 0.5, "{look:?}: {text} is not {value}");
        }
        let (deviation, is_scattered) = match row[7].split_once(" (") {
            Some((deviation, rest)) => (deviation, rest.ends_with("scattered)")),
            None => (&*row[7], false),
        };
        assert!(
            (number(deviation) - summary.deviation).abs() <= 0.05 + 1e-9,
            "{row:?}: {}",
            summary.deviation
        );
        assert_eq!(is_scattered, summary.deviation > summary.mean / 10.0, "{row:?}");
        match result.cpu_us_per_query {
            Some(cost) if strict => {
                assert!((number(&row[8]) / cost - 1.0).abs() < 0.005, "{}: {cost}", row[8]);
                // Queries for each second of CPU time.
                assert!((number(&row[9]) * cost / 1e6 - 1.0).abs() < 0.001, "{}: {cost}", row[9]);
            }
            _ => assert_eq!((&*row[8], &*row[9]), ("", "")),
        }
    }
}

/// Parses a number as the page writes it.
fn number(text: &str) -> f64 {
    let plain: String = text.trim_start_matches("≥ ").chars().filter(|c| *c != ',').collect();
    plain.parse().unwrap_or_else(|_| panic!("{text} is no number"))
}

/// Opens all folded parts, and returns the texts of charts that extend beyond the edge of their chart.
const CUT_LABELS: &str = "(() => {
  document.querySelectorAll('details').forEach(details => details.open = true);
  const cut = [];
  for (const svg of document.querySelectorAll('svg.plot:not(.key)')) {
    const box = svg.getBoundingClientRect();
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBoundingClientRect();
      if (own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 1 || own.bottom > box.bottom + 1)
        cut.push(text.textContent);
    }
  }
  return {cut, charts: document.querySelectorAll('svg.plot:not(.key)').length};
})()";

/// Returns the contrast of every kind of text with its background (WCAG 2, relative luminance).
const CONTRASTS: &str = "(() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const part = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const behind = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const kind of ['body', '.say', '.banner', '.warnings li', '.badges li', 'td.yes', 'td.no', 'a', 'caption', 'summary', '.legend li', '.indicative', '.interval', '.figures small', 'small.paper']) {
    const element = document.querySelector(kind);
    if (!element) continue;
    const [a, b] = [parse(getComputedStyle(element).color), behind(element)].map(luminance).sort((x, y) => y - x);
    found[kind] = (a + 0.05) / (b + 0.05);
  }
  return found;
})()";

#[test]
fn charts_are_whole_text_is_legible_and_nothing_runs_over_the_edge() {
    let Some(mut browser) = Browser::or_skip("charts") else { return };
    let folder = Folder::with(&rich());
    for look in LOOKS {
        browser.open(&folder.0.join("report.html"), look).unwrap();
        let charts = browser.value(CUT_LABELS).unwrap();
        assert_eq!(charts["cut"], serde_json::json!([]), "{look:?}: labels beyond the edge of their chart");
        assert!(charts["charts"].as_u64().unwrap() >= 10, "{charts}");
        let contrasts = browser.value(CONTRASTS).unwrap();
        assert!(contrasts.as_object().unwrap().len() >= 10, "{contrasts:?}");
        is_readable(&mut browser, look);
    }
}

/// Three runs: a sweep with a grid, a quick run, and one of another server with other settings.
fn three() -> [Folder; 3] {
    let quick = sample::run(&Shape::quick());
    let mut other = quick.clone();
    (other.device.name, other.device.version) = ("bind".to_owned(), "BIND 9.18.49 <id:>".to_owned());
    other.settings.trial_ms = 1_500;
    [&rich(), &quick, &other].map(Folder::with)
}

#[test]
fn several_runs_make_one_page_that_a_browser_shows_whole() {
    let folders = three();
    let paths = folders.each_ref().map(Folder::path);
    let before = std::fs::read(folders[0].0.join("report.html")).unwrap();
    let output = bench(&[&["report"], &paths[..]].concat());
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    let page = folders[0].0.join("devices.html");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.ends_with(&format!("{}\n", page.display())), "{said}");
    assert_eq!(
        std::fs::read(folders[0].0.join("report.html")).unwrap(),
        before,
        "only the new page is written"
    );
    let Some(mut browser) = Browser::or_skip("several") else { return };
    for look in LOOKS.into_iter().chain([Look { width: 390, scheme: "dark", ..SCREEN }]) {
        browser.open(&page, look).unwrap();
        no_complaints(&browser, look);
        if look.script {
            assert_eq!(browser.value("document.documentElement.dataset.ready").unwrap(), "1", "{look:?}");
            assert_eq!(browser.value("document.documentElement.dataset.errors").unwrap(), Value::Null);
        }
        let medians = browser
            .value("[...document.querySelectorAll('#devices tbody tr')].map(row => row.cells[4].innerText)")
            .unwrap();
        let runs = folders.each_ref().map(|folder| bundle::read(&folder.0).unwrap());
        let required = runs.iter().flat_map(|run| &run.results).filter(|it| it.cell == Default::default());
        let expected: Vec<f64> = required.map(|result| result.summary.median).collect();
        let shown: Vec<String> = serde_json::from_value(medians).unwrap();
        assert_eq!(shown.len(), expected.len());
        for (text, value) in shown.iter().zip(expected) {
            assert!((number(text) - value).abs() <= 0.5, "{look:?}: {text} is not {value}");
        }
        assert_eq!(browser.value(CUT_LABELS).unwrap()["cut"], serde_json::json!([]), "{look:?}");
        is_readable(&mut browser, look);
    }
}

#[test]
fn charts_of_several_devices_are_files_that_a_browser_shows_by_themselves() {
    let folders = three();
    let paths = folders.each_ref().map(Folder::path);
    assert!(bench(&[&["report"], &paths[..]].concat()).status.success());
    let Some(mut browser) = Browser::or_skip("files") else { return };
    for (name, rows) in [("latency", 3 + 2), ("loss", 3), ("cpu", 3)] {
        let file = folders[0].0.join(format!("devices-{name}.svg"));
        let mut papers = Vec::new();
        for scheme in ["light", "dark"] {
            let look = Look { scheme, ..SCREEN };
            browser.open(&file, look).unwrap();
            no_complaints(&browser, look);
            assert_eq!(browser.value("document.documentElement.tagName").unwrap(), "svg", "{name}");
            assert_eq!(
                browser.value("document.querySelectorAll('parsererror').length").unwrap(),
                0,
                "{name}"
            );
            assert_eq!(browser.value(CUT_LABELS).unwrap()["cut"], serde_json::json!([]), "{name}");
            assert_eq!(browser.value("document.querySelectorAll('g.key').length").unwrap(), rows, "{name}");
            papers.push(browser.value("getComputedStyle(document.querySelector('.paper')).fill").unwrap());
        }
        assert_eq!(papers[0], "rgb(255, 255, 255)");
        assert_ne!(papers[1], papers[0], "{name}");
    }
    // Also beside a page that the user names.
    let page = folders[2].0.join("all.html").display().to_string();
    assert!(bench(&["report", paths[1], paths[2], "--out", &page]).status.success());
    assert!(folders[2].0.join("all-cpu.svg").is_file());
}

#[test]
fn the_page_of_an_experiment_is_whole_without_errors_or_requests() {
    let Some(mut browser) = Browser::or_skip("experiment") else { return };
    let (record, folder) = (sample::experiment(), Folder::with(&Run::default()));
    sixfold_bench::lab::output::write(&folder.0, &record).unwrap();
    for look in LOOKS {
        browser.open(&folder.0.join("report.html"), look).unwrap();
        no_complaints(&browser, look);
        let cells = "[...document.querySelectorAll('.figures tbody td.n b')].map(cell => cell.innerText)";
        let cells: Vec<String> = serde_json::from_value(browser.value(cells).unwrap()).unwrap();
        assert_eq!(cells.len(), record.figures.len(), "{look:?}");
        for (cell, figure) in cells.iter().zip(&record.figures) {
            let shown = figure.value.map_or(cell == "–", |it| {
                (number(cell.split('\u{a0}').next().unwrap()) - it).abs() < 0.005
            });
            assert!(shown, "{look:?}: {cell} is not {figure:?}");
        }
        let charts = browser.value(CUT_LABELS).unwrap();
        assert_eq!(
            (&charts["cut"], &charts["charts"]),
            (&serde_json::json!([]), &record.charts.len().into())
        );
        is_readable(&mut browser, look);
    }
}

#[test]
fn a_run_in_progress_is_reported_with_its_results_so_far() {
    let folder = Folder::with(&sample::run(&Shape::quick()));
    std::fs::remove_file(folder.0.join("run.json")).unwrap();
    let plan =
        Draft::parse("profile = \"quick\"\n[device]\ntemplate = \"unbound\"\n").unwrap().finish().unwrap();
    // This process holds the lock of the journal, as the one that measures does.
    let journal = Journal::begin(&folder.0, &plan, "2030-01-01T00:00:00Z".into()).unwrap();
    let output = bench(&["report", folder.path()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    assert!(said.starts_with(&format!("{}: a run in progress, 0 trials done, ", folder.path())), "{said}");
    let page = std::fs::read_to_string(folder.0.join("report.html")).unwrap();
    assert!(page.contains("the run was in progress when this was written") && page.contains("Incomplete."));
    drop(journal);
    let killed = bench(&["report", folder.path()]);
    assert_eq!(killed.status.code(), Some(1));
    assert!(lossy(&killed.stderr).contains("was killed"));
}

#[test]
fn the_report_is_written_where_the_user_wants_it() {
    let folders = three();
    let file = |name: &str| folders[2].0.join(name).display().to_string();
    for (arguments, name, part) in [
        (vec![folders[1].path()], "one.html", "<section id=\"results\""),
        (vec![folders[1].path(), folders[2].path()], "two.html", "id=\"devices\""),
        (vec![folders[1].path(), folders[2].path(), "--markdown"], "two.md", "| BIND 9.18.49 |"),
        (
            vec![folders[1].path(), folders[2].path(), "--latex"],
            "two.tex",
            "\\label{tab:devices-unbound-bind}",
        ),
        (vec![folders[2].path(), "--latex", "--label", "old-2"], "one.tex", "\\label{tab:results-old-2}"),
    ] {
        let output = bench(&[vec!["report"], arguments, vec!["--out", &file(name)]].concat());
        assert!(output.status.success(), "{}", lossy(&output.stderr));
        let text = std::fs::read_to_string(file(name)).unwrap();
        assert!(text.contains(part), "{name}: {part}");
    }
    let refused = bench(&["report", folders[2].path(), "--latex", "--label", "a}b"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(lossy(&refused.stderr).contains("letters, digits and hyphens"));
}

#[test]
fn light_dark_and_paper_are_what_the_reader_asked_for() {
    let Some(mut browser) = Browser::or_skip("themes") else { return };
    let folder = Folder::with(&sample::run(&Shape::quick()));
    let mut background = |look: Look| {
        browser.open(&folder.0.join("report.html"), look).unwrap();
        browser.value("getComputedStyle(document.body).backgroundColor").unwrap()
    };
    let dark = Look { scheme: "dark", ..SCREEN };
    assert_eq!(background(SCREEN), "rgb(255, 255, 255)");
    assert_ne!(background(dark), "rgb(255, 255, 255)");
    assert_eq!(background(Look { media: "print", ..dark }), "rgb(255, 255, 255)", "paper is white");
    // The button switches to the opposite of the system's preference.
    browser.open(&folder.0.join("report.html"), dark).unwrap();
    let clicked = "document.getElementById('theme').click(), getComputedStyle(document.body).backgroundColor";
    assert_eq!(browser.value(clicked).unwrap(), "rgb(255, 255, 255)");
    let pdf = browser.print().unwrap();
    assert!(pdf.starts_with("JVBERi0"), "%PDF- in base64");
}

#[test]
fn the_result_is_on_the_first_screen_of_a_laptop_and_of_a_phone() {
    let Some(mut browser) = Browser::or_skip("first-screen") else { return };
    for (name, run) in [("first-rich", rich()), ("first-quick", sample::run(&Shape::quick()))] {
        let folder = Folder::with(&run);
        for (width, height) in [(1280, 800), (390, 844)] {
            browser.open(&folder.0.join("report.html"), Look { width, ..SCREEN }).unwrap();
            browser.resize(width, height).unwrap();
            let bottom = browser.value("document.getElementById('median').getBoundingClientRect().bottom");
            assert!(bottom.unwrap().as_f64().unwrap() < f64::from(height), "{name}: {width}");
            let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
            assert_eq!(browser.value(beyond).unwrap(), 0, "{name}: {width}: sideways");
        }
    }
}

/// `SIXFOLD_IMAGES=write` makes the picture, of a run that was measured: `SIXFOLD_REPORT` names its folder.
#[test]
fn the_picture_in_the_documents_is_the_top_of_a_report() {
    let (width, height) = (1000, 720);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/report.png");
    if std::env::var("SIXFOLD_IMAGES").is_ok_and(|wish| wish == "write") {
        let Some(mut browser) = Browser::or_skip("report-image") else { return };
        let folder =
            std::env::var("SIXFOLD_REPORT").expect("SIXFOLD_REPORT=DIR, a folder of `sixfold-bench run`");
        let page = PathBuf::from(folder).join("report.html");
        browser.open(&page, Look { width, ..SCREEN }).unwrap();
        browser.resize(width, height).unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, browser.screen().unwrap()).unwrap();
    }
    let picture = std::fs::read(file).expect("SIXFOLD_IMAGES=write makes it");
    assert!(picture.len() <= 150 << 10, "{} octets", picture.len());
    assert_eq!(size_of(&picture), Some((width, height)));
}

#[test]
fn tables_are_printed_and_nothing_is_written() {
    let run = sample::run(&Shape::quick());
    let folder = Folder::with(&run);
    std::fs::remove_file(folder.0.join("report.html")).unwrap();
    let markdown = bench(&["report", folder.path(), "--markdown"]);
    assert_eq!(String::from_utf8(markdown.stdout).unwrap(), report::markdown(&run));
    let latex = bench(&["report", folder.path(), "--latex"]);
    assert_eq!(String::from_utf8(latex.stdout).unwrap(), report::latex(&run, "unbound"));
    assert!(!folder.0.join("report.html").exists());
}

#[test]
fn a_folder_without_a_run_is_refused_with_the_remedy() {
    let absent = bench(&["report", "/nonexistent/folder"]);
    assert_eq!(absent.status.code(), Some(1));
    let error = String::from_utf8(absent.stderr).unwrap();
    assert!(error.starts_with("sixfold-bench: /nonexistent/folder/run.json: "), "{error}");
    assert_eq!(bench(&["report"]).status.code(), Some(2));
    assert_eq!(bench(&["compare", "/tmp"]).status.code(), Some(2));
}

#[test]
fn compare_tells_slower_not_shown_and_not_comparable_apart() {
    let run = sample::run(&Shape { repetitions: 10, ..Shape::quick() });
    let mut slower = run.clone();
    for result in &mut slower.results {
        result.strict.iter_mut().for_each(|rate| *rate *= 0.5);
    }
    let mut few = run.clone();
    few.results.iter_mut().for_each(|result| result.strict.truncate(3));
    let (one, other, few) = (Folder::with(&run), Folder::with(&slower), Folder::with(&few));
    for (first, second, expected, said) in [
        (&one, &one, 0, "no-difference"),
        (&one, &other, 1, "slower"),
        (&other, &one, 0, "faster"),
        (&few, &few, 3, "incomparable"),
    ] {
        let output = bench(&["compare", first.path(), second.path(), "--json"]);
        assert_eq!(output.status.code(), Some(expected), "{}", lossy(&output.stderr));
        let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(comparison["verdict"], said);
        for format in [None, Some("--markdown"), Some("--latex")] {
            let text = bench(
                &["compare", first.path(), second.path()].into_iter().chain(format).collect::<Vec<_>>(),
            );
            assert_eq!(text.status.code(), Some(expected), "{format:?}");
            assert!(!text.stdout.is_empty());
        }
    }
    let unreadable = bench(&["compare", one.path(), "/nonexistent/folder"]);
    assert_eq!(unreadable.status.code(), Some(3));
    assert!(String::from_utf8(unreadable.stderr).unwrap().contains("/nonexistent/folder/run.json"));
}
