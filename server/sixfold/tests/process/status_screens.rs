//! The status page on the screens of people: the first questions are answered without scrolling, also on a phone, and everybody can
//! use the page. `axe-core` finds no fault, where it is there; the rules that matter most are checked here in any case.
//!
//! `SIXFOLD_IMAGES=write` makes the picture of the page in the documents.

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Setup, wait_until};
use crate::status_page::{SCREEN, data, get};
use crate::upstream::{Behavior, Upstream};
use kit::browser::{Browser, Look, size_of};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use wire::{Rcode, Type};

/// Width and height of a laptop's window, and of a phone.
const SIZES: [(u32, u32); 2] = [(1280, 800), (390, 844)];

/// A server with two upstreams, of which one is silent or not, and with an answer to one query.
struct Scene {
    server: Daemon,
    upstreams: [Upstream; 2],
}

impl Scene {
    fn start(second: Behavior, lines: &[&str]) -> Scene {
        let upstreams = [Upstream::start(|_| Behavior::Answer), Upstream::start(move |_| second)];
        let addresses = upstreams.each_ref().map(|upstream| format!("\"{}\"", upstream.address));
        let setup = Setup::new(upstreams[0].address)
            .line(&format!("upstream.forwarders = [{}]", addresses.join(", ")))
            .line("upstream.timeout = \"200ms\"");
        let setup = lines.iter().fold(setup, |setup, line| setup.line(line));
        let server = setup.metrics().start();
        Scene { server, upstreams }
    }

    /// A server without trouble.
    fn healthy() -> Scene {
        let scene = Scene::start(Behavior::Answer, &[]);
        assert_eq!(Udp::to(scene.server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
        scene
    }

    /// A server with all kinds of trouble at once: an upstream is down, a client is refused, the reload fails.
    fn in_trouble() -> Scene {
        let lines = ["upstream.select = \"random\"", "server.allow = [\"::1\"]"];
        let scene = Scene::start(Behavior::Ignore, &lines);
        let server = &scene.server;
        assert_eq!(Udp::to(server.v4()).ask(&name_of(1), Type::AAAA).rcode, Rcode::REFUSED);
        server.rewrite(&["upstream.tries = 99"]);
        assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
        let client = Udp::to(server.v6());
        let mut number = 1;
        wait_until("an upstream is down", || {
            number += 1;
            client.ask(&name_of(number), Type::AAAA);
            data(server)["fields"]["upstreams"] == "1 of 2 up"
        });
        scene
    }

    fn url(&self) -> String {
        format!("http://{}/status", self.server.metrics)
    }
}

/// Where the answers to the first questions are, and what does not fit into the width of the page.
const LAYOUT: &str = "(() => {
  const boxes = [...document.querySelectorAll('.answers > div')].map(box => box.getBoundingClientRect());
  const cut = [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth);
  return {
    answers: boxes.length,
    bottom: Math.max(...boxes.map(box => box.bottom)),
    right: Math.max(...boxes.map(box => box.right)),
    beyond: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    cut: cut.map(box => box.getAttribute('aria-labelledby')),
  };
})()";

#[test]
fn the_first_questions_are_answered_on_the_first_screen_of_a_laptop_and_of_a_phone() {
    let Some(mut browser) = Browser::or_skip("screens") else { return };
    for scene in [Scene::healthy(), Scene::in_trouble()] {
        for script in [true, false] {
            for (width, height) in SIZES {
                browser.visit(&scene.url(), Look { width, script, ..SCREEN }).unwrap();
                browser.resize(width, height).unwrap();
                let layout = browser.value(LAYOUT).unwrap();
                assert_eq!(layout["answers"], 4);
                for (edge, limit) in [("bottom", height), ("right", width)] {
                    let place = layout[edge].as_f64().unwrap();
                    assert!(place <= f64::from(limit), "{width} x {height}: {edge} at {place}");
                }
                assert_eq!(layout["beyond"], 0, "{width}: the page must not scroll sideways");
                assert_eq!(layout["cut"], json!([]), "{width}: tables that are cut");
            }
        }
        scene.server.process.stop();
    }
}

#[test]
fn all_kinds_of_trouble_are_told_with_their_reasons() {
    let scene = Scene::in_trouble();
    let page = data(&scene.server);
    assert_eq!(page["fields"]["works"], "Yes, but only 1 of 2 upstreams answer.");
    let fails: Vec<&str> = page["fields"]["fails"].as_str().unwrap().lines().collect();
    assert_eq!(page["tones"]["fails"], "bad");
    let silent = scene.upstreams[1].address;
    assert!(fails[0].starts_with(&format!("Upstream {silent} is down since 2")), "{fails:?}");
    assert!(fails[0].contains("Z: no reply ("), "{fails:?}");
    assert!(fails.iter().any(|line| line.starts_with("The last reload failed: ")), "{fails:?}");
    assert!(fails.contains(&"Queries refused: 1 (not allowed)"), "{fails:?}");
    scene.server.process.stop();
}

/// The tags of a page, without `<` and `>`, each with the text up to the next one.
fn tags(page: &str) -> Vec<(&str, &str)> {
    page.split('<').skip(1).filter_map(|part| part.split_once('>')).collect()
}

/// The value of an attribute.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// WCAG 2.2: 1.3.1, 2.4.2, 2.4.6, 3.1.1, 4.1.2.
#[test]
fn language_title_landmarks_headings_and_labels_are_those_that_a_screen_reader_needs() {
    let scene = Scene::healthy();
    let page = get(&scene.server, "/status").body;
    let tags = tags(&page);
    let named = |name: &str| {
        let is_named = move |tag: &str| tag.split([' ', '/']).next() == Some(name);
        tags.iter().filter(move |(tag, _)| is_named(tag)).collect::<Vec<_>>()
    };
    assert_eq!(attribute(named("html")[0].0, "lang"), Some("en"));
    assert_eq!(named("title")[0].1, "Sixfold: serving");
    for landmark in ["header", "main", "footer", "h1"] {
        assert_eq!(named(landmark).len(), 1, "{landmark}");
    }
    let levels: Vec<u8> =
        tags.iter().filter_map(|(tag, _)| tag.strip_prefix('h')?.split(' ').next()?.parse().ok()).collect();
    assert!(levels.len() > 5 && levels.windows(2).all(|pair| pair[1] <= pair[0] + 1), "{levels:?}");
    let ids: Vec<&str> = tags.iter().filter_map(|(tag, _)| attribute(tag, "id")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "each ID once: {ids:?}");
    for (tag, text) in &tags {
        if let Some(label) = attribute(tag, "aria-labelledby") {
            assert!(ids.contains(&label), "{tag}");
        }
        let needs_name =
            tag.contains(" role=\"region\"") || tag.contains(" role=\"img\"") || tag.contains(" tabindex=");
        let name = attribute(tag, "aria-labelledby").or(attribute(tag, "aria-label"));
        assert!(!needs_name || name.is_some(), "{tag}");
        let has_text = ["button", "a ", "caption", "dt"].iter().any(|name| tag.starts_with(name));
        assert!(!has_text || !text.trim().is_empty(), "{tag}");
        assert!(!tag.starts_with("th") || tag.starts_with("thead") || tag.contains(" scope=\""), "{tag}");
        // A positive index would break the order of the page.
        assert!(!matches!(attribute(tag, "tabindex"), Some(index) if index != "0"), "{tag}");
    }
    assert_eq!(named("caption").len(), named("table").len());
    let viewport = tags.iter().find(|(tag, _)| attribute(tag, "name") == Some("viewport")).unwrap().0;
    assert!(!viewport.contains("user-scalable") && !viewport.contains("maximum-scale"), "{viewport}");
    scene.server.process.stop();
}

/// The relative luminance of a colour, `#rrggbb` (WCAG 2.2).
fn luminance(colour: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

/// WCAG 2.2, 1.4.3: 4.5 for text. 1.4.11: 3 for the line of the chart and the mark of the focus.
#[test]
fn text_and_lines_stand_out_from_what_is_behind_them_in_both_themes() {
    let sheet = include_str!("../../src/status_page/page.css");
    let themes: Vec<&str> = sheet.lines().filter(|line| line.contains("--ground:")).collect();
    assert_eq!(themes.len(), 2, "light and dark");
    for theme in themes {
        let colour = |name: &str| {
            let (_, rest) = theme.split_once(&format!("--{name}: ")).unwrap();
            luminance(rest.split(';').next().unwrap())
        };
        for behind in ["ground", "panel"] {
            let ratios = [("text", 4.5), ("quiet", 4.5), ("good", 4.5), ("bad", 4.5), ("line", 3.0)];
            for (name, least) in ratios {
                let (a, b) = (colour(name), colour(behind));
                let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
                assert!(contrast >= least, "{name} on {behind}: {contrast} in {theme}");
            }
        }
    }
}

/// The release of axe-core, and the SHA-256 digest of its script.
const AXE: (&str, &str) =
    ("axe-core@4.11.1", "7dbfabdfc6062936d79c873ddbb5f811a1219fca3928bd8cc9dd81f1e65f4720");

/// Fetches the script of axe-core through npm, once. The error is the reason why there is none.
fn axe() -> Result<String, String> {
    let (release, digest) = AXE;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(release);
    let script = folder.join("axe.min.js");
    if !script.is_file() {
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let steps = "timeout 60 npm pack --silent \"$1\" && tar -xzf ./*.tgz && mv package/axe.min.js .";
        let fetched = Command::new("sh").args(["-c", steps, "sh", release]).current_dir(&folder).output();
        let fetched = fetched.map_err(|error| error.to_string())?;
        if !fetched.status.success() {
            let why = String::from_utf8_lossy(&fetched.stderr).into_owned();
            return Err(format!("npm does not bring {release}: {}", why.lines().next().unwrap_or_default()));
        }
    }
    let sum = Command::new("sha256sum").arg(&script).output().map_err(|error| error.to_string())?;
    assert!(String::from_utf8_lossy(&sum.stdout).starts_with(digest), "{}: another file", script.display());
    std::fs::read_to_string(&script).map_err(|error| error.to_string())
}

/// Runs axe-core with all its rules, those of good practice too; returns what it finds.
fn violations(browser: &mut Browser, axe: &str) -> Value {
    browser.value(&format!("{axe};0")).unwrap();
    let run = "window.found = null; axe.run().then(result => { window.found = { passed: result.passes.length, \
               violations: result.violations.map(rule => ({ id: rule.id, nodes: rule.nodes.map(node => node.html) })) }; }); 0";
    browser.value(run).unwrap();
    let mut found = Value::Null;
    wait_until("axe has run", || {
        found = browser.value("window.found").unwrap();
        !found.is_null()
    });
    assert!(found["passed"].as_u64().unwrap() > 20, "{found}");
    found["violations"].clone()
}

#[test]
fn axe_finds_no_fault_in_the_page() {
    let Some(mut browser) = Browser::or_skip("axe") else { return };
    let axe = match axe() {
        Ok(axe) => axe,
        Err(why) => return kit::skip(&why),
    };
    for scene in [Scene::healthy(), Scene::in_trouble()] {
        for (width, height) in SIZES {
            for scheme in ["light", "dark"] {
                browser.visit(&scene.url(), Look { width, scheme, ..SCREEN }).unwrap();
                browser.resize(width, height).unwrap();
                assert_eq!(violations(&mut browser, &axe), json!([]), "{width} {scheme}");
            }
        }
        scene.server.process.stop();
    }
    // The check can fail.
    browser.value("document.querySelector('main').innerHTML = '<img src=\"x\"><h4>x</h4>'").unwrap();
    assert_ne!(violations(&mut browser, &axe), json!([]));
}

/// The picture of the page in the documents.
fn image() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/status.png")
}

#[test]
fn the_picture_in_the_documents_is_one_of_the_first_screen() {
    let (width, height) = SIZES[0];
    if std::env::var("SIXFOLD_IMAGES").is_ok_and(|wish| wish == "write") {
        let Some(mut browser) = Browser::or_skip("image") else { return };
        write_image(&mut browser);
    }
    let picture = std::fs::read(image()).expect("SIXFOLD_IMAGES=write makes it");
    assert!(picture.len() <= 150 << 10, "{} octets", picture.len());
    assert_eq!(size_of(&picture), Some((width, height)));
}

/// Takes the picture of a server with some traffic. The name of the host is that of an example.
fn write_image(browser: &mut Browser) {
    let lines = [
        "server.allow = [\"local\", \"2001:db8:10::/48\"]",
        "dns64.prefixes = [\"64:ff9b::/96\"]",
        "upstream.select = \"random\"",
    ];
    let scene = Scene::start(Behavior::After(Duration::from_millis(8)), &lines);
    let client = Udp::to(scene.server.v6());
    let begin = Instant::now();
    let mut number = 0;
    while begin.elapsed() < Duration::from_secs(90) {
        number += 1;
        let qtype = if number % 4 == 0 { Type::A } else { Type::AAAA };
        let name = if number % 50 == 0 { "missing.v4.test".to_owned() } else { name_of(number % 1_000) };
        client.ask(&name, qtype);
        // A slow wave.
        let pause = 4.0 + 2.0 * (begin.elapsed().as_secs_f64() / 12.0).sin();
        std::thread::sleep(Duration::from_micros((pause * 1e3) as u64));
    }
    let (width, height) = SIZES[0];
    browser.visit(&scene.url(), Look { width, ..SCREEN }).unwrap();
    browser.resize(width, height).unwrap();
    let named = "document.getElementById('pause').click(), \
                 document.querySelector('[data-field=host]').textContent = 'dns1.example.net'";
    browser.value(named).unwrap();
    std::fs::create_dir_all(image().parent().unwrap()).unwrap();
    std::fs::write(image(), browser.screen().unwrap()).unwrap();
    scene.server.process.stop();
}
