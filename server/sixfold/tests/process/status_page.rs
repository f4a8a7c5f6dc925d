//! The status page: its headers, its protection, and the page as a browser shows it.

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Folder, Setup, wait_until};
use crate::encrypted_service::{Listeners, Pair};
use crate::scrape::{Response, request, request_of};
use crate::upstream::{Behavior, Upstream};
use kit::browser::{Browser, Look};
use serde_json::Value;
use wire::{Rcode, Type};

/// The parts of the page.
const PARTS: [(&str, &str); 4] = [
    ("/status", "text/html; charset=utf-8"),
    ("/status.json", "application/json"),
    ("/status.css", "text/css; charset=utf-8"),
    ("/status.js", "text/javascript; charset=utf-8"),
];

pub fn get(server: &Daemon, path: &str) -> Response {
    request_of(server.metrics, "GET", path, &format!("Host: {}\r\n", server.metrics))
}

pub fn data(server: &Daemon) -> Value {
    serde_json::from_str(&get(server, "/status.json").body).unwrap()
}

/// The first cells of the rows of a table.
fn headers(data: &Value, table: &str) -> Vec<String> {
    let rows = data["rows"][table].as_array().unwrap();
    rows.iter().map(|row| row["cells"][0].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_part_of_the_page_is_protected_and_is_never_stored() {
    let server = Setup::answering().metrics().start();
    for (path, kind) in PARTS {
        let response = get(&server, path);
        assert_eq!(response.status, 200, "{path}");
        for line in [
            &format!("content-type: {kind}"),
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(response.head.contains(&format!("\r\n{line}\r\n")), "{path}: {line}\n{}", response.head);
        }
        assert!(!response.head.contains("access-control-"), "{}", response.head);
        let head = request_of(server.metrics, "HEAD", path, "Host: localhost\r\n");
        assert_eq!((head.status, head.body.as_str()), (200, ""), "{path}");
        assert_eq!(request_of(server.metrics, "POST", path, "Host: localhost\r\n").status, 405, "{path}");
    }
    // Metrics and probes are for programs that use names.
    for path in ["/metrics", "/livez", "/readyz"] {
        assert_eq!(request(server.metrics, "GET", path).status, 200, "{path}");
    }
}

#[test]
fn a_page_of_a_stranger_cannot_read_the_status_through_a_name_of_its_own() {
    let server = Setup::answering().metrics().start();
    let port = server.metrics.port();
    let status = |path: &str, headers: &str| request_of(server.metrics, "GET", path, headers).status;
    for (path, _) in PARTS {
        for own in [
            format!("127.0.0.1:{port}"),
            format!("localhost:{port}"),
            format!("[::1]:{port}"),
            "192.0.2.1".into(),
        ] {
            assert_eq!(status(path, &format!("Host: {own}\r\n")), 200, "{path} {own}");
        }
        for other in [format!("rebind.example:{port}"), "x".into(), "127.0.0.1.rebind.example".into()] {
            assert_eq!(status(path, &format!("Host: {other}\r\n")), 421, "{path} {other}");
        }
        // The target of the request counts before the header.
        let target = format!("http://rebind.example:{port}{path}");
        assert_eq!(status(&target, "Host: localhost\r\n"), 421, "{path}");
        // RFC 9112 section 3.2.
        for wrong in ["", "Host: localhost\r\nHost: localhost\r\n"] {
            assert_eq!(status(path, wrong), 400, "{path}");
        }
    }
}

#[test]
fn texts_of_the_configuration_are_shown_and_never_become_markup() {
    let zone = "<script>alert(1)</script>.\\\"onload=x.example";
    let line = format!("upstream.zone = [{{ zone = '{zone}', forwarders = [\"192.0.2.1\"] }}]");
    let server = Setup::answering().line(&line).metrics().start();
    server.rewrite(&["upstream.tries = '<img src=x onerror=alert(2)>'"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
    let page = get(&server, "/status").body;
    assert_eq!(page.matches("<script").count(), 1, "the page's own: {page}");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{page}");
    assert!(page.contains("&lt;img src=x onerror=alert(2)&gt;") && !page.contains("<img"), "{page}");
    let data = data(&server);
    let told = data["rows"]["reloads"][0]["cells"].as_array().unwrap();
    assert_eq!(told[1], "failed");
    assert!(told[2].as_str().unwrap().contains("<img src=x onerror=alert(2)>"), "{told:?}");
    let purposes: Vec<&str> = data["rows"]["upstreams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["cells"][6].as_str().unwrap())
        .collect();
    assert!(
        purposes.contains(&"all other names") && purposes.iter().any(|zone| zone.contains("<script>")),
        "{purposes:?}"
    );
}

#[test]
fn the_figures_are_those_of_the_queries_and_reloads_and_no_client_is_named() {
    let answers = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(answers.address).line("server.allow = [\"::1\"]").metrics().start();
    let before = data(&server);
    assert_eq!(before["fields"]["state"], "serving");
    assert_eq!(before["fields"]["works"], "Yes. No upstream was asked yet.");
    assert_eq!(before["fields"]["speed"], "Nobody has asked yet.");
    assert_eq!((&before["fields"]["fails"], &before["tones"]["fails"]), (&"Nothing.".into(), &"good".into()));
    assert_eq!(before["fields"]["synthesized"], "no data");
    assert_eq!(headers(&before, "reasons"), ["None since the start."]);
    assert_eq!(headers(&before, "reloads"), ["None since the start."]);
    let client = Udp::to(server.v6());
    for _ in 0..2 {
        assert_eq!(client.ask("chosen-by-the-client.v4.test", Type::AAAA).rcode, Rcode::NXDOMAIN);
        assert_eq!(client.ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    }
    assert_eq!(Udp::to(server.v4()).ask(&name_of(1), Type::AAAA).rcode, Rcode::REFUSED);
    server.rewrite(&["upstream.tries = 2"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    assert_eq!(server.ctl(&["drain"]).status.code(), Some(0));
    let after = data(&server);
    let state = after["fields"]["state"].as_str().unwrap();
    assert!(state.starts_with("drained by the operator") && after["tones"]["state"] == "bad", "{state}");
    let works = after["fields"]["works"].as_str().unwrap();
    assert!(works.starts_with("No: drained by the operator") && after["tones"]["works"] == "bad", "{works}");
    let whom = format!(
        "Clients in ::1/128\nAsked at {}, {}\nSynthesized under {}",
        server.v6(),
        server.v4(),
        crate::daemon::PREFIX
    );
    assert_eq!(after["fields"]["whom"], whom);
    let speed = after["fields"]["speed"].as_str().unwrap();
    assert!(speed.contains("/s in the last 10 seconds\nHalf of the answers: "), "{speed}");
    assert_eq!(after["fields"]["fails"], "Queries refused: 1 (not allowed)");
    let row = |table: &str, name: &str| {
        let rows = after["rows"][table].as_array().unwrap().clone();
        let row = rows.into_iter().find(|row| row["cells"][0] == name);
        row.unwrap_or_else(|| panic!("no {name}: {after}"))["cells"].clone()
    };
    assert_eq!(row("traffic", "Synthesized, of all answers")[3], "40.0 %");
    assert_eq!(row("traffic", "From the cache, of all lookups")[3], "50.0 %");
    assert_eq!(row("reasons", "not synthesized: nxdomain")[3], "2");
    assert_eq!(row("reasons", "refused: not allowed")[3], "1");
    assert_eq!(row("upstreams", &answers.address.to_string())[1], "up");
    assert_eq!(after["rows"]["reloads"][0]["cells"][1], "succeeded");
    let page = get(&server, "/status").body;
    assert!(!page.contains("chosen") && !after.to_string().contains("chosen"), "{page}");
}

#[test]
fn an_upstream_that_is_down_comes_first_among_a_hundred() {
    let dead = Upstream::start(|_| Behavior::Ignore);
    let zones: Vec<String> =
        (1..=100).map(|n| format!("{{ zone = \"z{n}.test\", forwarders = [\"192.0.2.{n}\"] }}")).collect();
    let server = Setup::new(dead.address)
        .line(&format!(
            "upstream.zone = [{}, {{ zone = \"v4.test\", forwarders = [\"{}\"] }}]",
            zones.join(", "),
            dead.address
        ))
        .line("upstream.timeout = \"20ms\"")
        .line("upstream.tries = 8")
        .metrics()
        .start();
    assert_eq!(data(&server)["fields"]["upstreams"], "101 of 101 up");
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::SERVFAIL);
    wait_until("it is down", || data(&server)["fields"]["upstreams"] == "100 of 101 up");
    let row = &data(&server)["rows"]["upstreams"][0];
    assert_eq!(
        (&row["tone"], &row["cells"][0]),
        (&Value::from("bad"), &Value::from(dead.address.to_string()))
    );
    let state = row["cells"][1].as_str().unwrap();
    assert!(state.starts_with("down: since 20") && state.contains("Z: no reply ("), "{state}");
    assert!(state.ends_with("1 of 1 workers has stopped asking it"), "{state}");
    assert_eq!(row["cells"][6], "all other names, v4.test.");
}

#[test]
fn listeners_certificate_memory_and_policy_zones_are_shown_to_operators() {
    let pair = Pair::new();
    let listeners = Listeners::new(&pair);
    let directory = Folder::for_everybody();
    let zone = directory.file("policy.rpz");
    let text = "$ORIGIN rpz.example.\n@ 60 SOA localhost. root.localhost. 2026112601 3600 600 86400 60\nads.test 60 CNAME .\n";
    std::fs::write(&zone, text).unwrap();
    let server = listeners
        .add_quic_to(listeners.add_to(Setup::answering()))
        .line(&format!("filter.rpz = [{zone:?}]"))
        .metrics()
        .start();
    let status = String::from_utf8(server.ctl(&["status"]).stdout).unwrap();
    for words in [
        format!("listen-dot  {}\n", listeners.dot),
        format!("listen-doh  {}\n", listeners.doh),
        format!("listen-doq  {}\n", listeners.doq),
        format!("certificate {}, valid until ", listeners.certificate().display()),
        " MiB resident, at most ".to_owned(),
    ] {
        assert!(status.contains(&words), "{words} is not in\n{status}");
    }
    let status: Value = serde_json::from_slice(&server.ctl(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["encrypted"]["listen-dot"][0], listeners.dot.to_string());
    assert!(status["certificate"]["expires"].as_str().unwrap().ends_with('Z'), "{status}");
    assert!(status["memory_resident_bytes"].as_u64().unwrap() > 1 << 20, "{status}");
    // docs/how-to/size-and-tune.md: the bound is above what is resident, and 128 MiB of it are the cache.
    let (resident, bound) = (&status["memory_resident_bytes"], &status["memory_bound_bytes"]);
    assert!(bound.as_u64().unwrap() > (128 << 20) && bound.as_u64() > resident.as_u64(), "{status}");
    let line = String::from_utf8(server.ctl(&["rpz"]).stdout).unwrap();
    let words = format!("{} rpz.example. serial 2026112601, 2 records, 0 skipped, ", zone.display());
    assert!(line.starts_with(&words) && line.ends_with(" old\n") && line.lines().count() == 1, "{line}");
    let object: Value = serde_json::from_slice(&server.ctl(&["rpz", "--json"]).stdout).unwrap();
    assert_eq!((&object["name"], &object["serial"]), (&"rpz.example.".into(), &2_026_112_601_u32.into()));
    assert!(object["age_seconds"].as_u64().is_some() && object["modified"].is_string(), "{object}");
    let file = format!("{{file=\"{}\"}}", zone.display());
    assert_eq!(server.stat(&format!("rpz_serial{file}")), 2_026_112_601.0);
    assert_eq!(server.stat(&format!("rpz_records{file}")), 2.0);
    let data = data(&server);
    assert_eq!(data["rows"]["zones"][0]["cells"][2], "2026112601");
    let facts = headers(&data, "server");
    for fact in ["DNS over TLS", "DNS over HTTPS", "DNS over QUIC", "Certificate", "Memory"] {
        assert!(facts.iter().any(|found| found == fact), "{facts:?}");
    }
    // The deciding rule is named with its place, and the log has the zone after a reload.
    let told: Value = serde_json::from_slice(&server.ctl(&["explain", "ads.test", "--json"]).stdout).unwrap();
    let policy = told["decisions"].as_array().unwrap().iter().find_map(|one| one.get("policy")).unwrap();
    assert_eq!((&policy["zone"], &policy["line"]), (&"rpz.example.".into(), &3.into()));
    assert_eq!(
        (&policy["trigger"], &policy["file"]),
        (&"ads.test.".into(), &zone.display().to_string().into())
    );
    std::fs::write(&zone, text.replace("601", "602")).unwrap();
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(0));
    let line = server.process.wait_for("configuration reloaded").unwrap();
    assert!(line.ends_with("; changed: the contents of filter.rpz"), "{line}");
    let words = format!("policy zone rpz.example. of {} is in force: serial 2026112602, ", zone.display());
    assert!(server.process.wait_for(&words).is_some());
}

pub const SCREEN: Look = Look { media: "screen", scheme: "light", width: 1200, script: true };

/// The page in a wide and a narrow window, in light and dark, with and without its script.
const LOOKS: [Look; 4] = [
    SCREEN,
    Look { scheme: "dark", ..SCREEN },
    Look { width: 360, scheme: "dark", ..SCREEN },
    Look { script: false, ..SCREEN },
];

/// Checks for complaints of the browser, and requests other than those of the page.
fn no_complaints(browser: &Browser, server: &Daemon, look: Look) {
    let origin = format!("http://{}", server.metrics);
    let is_part = |path: &str| PARTS.iter().any(|(part, _)| *part == path);
    browser
        .expect_no_complaints(|url| url.strip_prefix(&origin).is_some_and(is_part) || url == "data:,", look);
}

/// The smallest contrast of any text with its background, and the text (WCAG 2.2, relative luminance).
const CONTRAST: &str = "(() => {
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
  let least = [99, ''];
  for (const element of document.querySelectorAll('body *')) {
    if (![...element.childNodes].some(node => node.nodeType === 3 && node.data.trim())) continue;
    const [a, b] = [parse(getComputedStyle(element).color), behind(element)].map(luminance).sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < least[0]) least = [contrast, element.textContent];
  }
  return least;
})()";

#[test]
fn a_browser_shows_the_page_in_every_look_without_errors_or_foreign_requests() {
    let Some(mut browser) = Browser::or_skip("status") else { return };
    let upstream = Upstream::start(|_| Behavior::Answer);
    let server = Setup::new(upstream.address).metrics().start();
    assert_eq!(Udp::to(server.v6()).ask(&name_of(1), Type::AAAA).rcode, Rcode::NOERROR);
    server.rewrite(&["upstream.tries = 99"]);
    assert_eq!(server.ctl(&["reload"]).status.code(), Some(1));
    for look in LOOKS {
        browser.visit(&format!("http://{}/status", server.metrics), look).unwrap();
        no_complaints(&browser, &server, look);
        assert_eq!(browser.value("document.title").unwrap(), "Sixfold: serving", "{look:?}");
        let upstreams =
            browser.value("document.querySelector('[data-rows=upstreams] th').innerText").unwrap();
        assert_eq!(upstreams, upstream.address.to_string(), "{look:?}");
        let beyond = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.value(beyond).unwrap(), 0, "{look:?}: the page must not scroll sideways");
        let least = browser.value(CONTRAST).unwrap();
        assert!(least[0].as_f64().unwrap() >= 4.5, "{look:?}: {least}");
        let dark = browser.value("getComputedStyle(document.body).backgroundColor").unwrap();
        assert_eq!(dark == "rgb(255, 255, 255)", look.scheme == "light", "{look:?}: {dark}");
        if let Ok(folder) = std::env::var("SIXFOLD_PICTURES") {
            let name = format!("{folder}/status-{}-{}-{}.png", look.scheme, look.width, look.script);
            std::fs::write(name, browser.picture().unwrap()).unwrap();
        }
    }
}

#[test]
fn the_page_follows_the_server_and_the_keyboard_reaches_everything() {
    let Some(mut browser) = Browser::or_skip("status-live") else { return };
    let server = Setup::answering().metrics().start();
    browser.visit(&format!("http://{}/status", server.metrics), SCREEN).unwrap();
    let refused = "document.querySelector('[data-rows=reasons]').innerText";
    assert_eq!(browser.value(refused).unwrap(), "None since the start.");
    assert_eq!(Udp::to(server.v6()).ask("nothing.v4.test", Type::AAAA).rcode, Rcode::NXDOMAIN);
    assert_eq!(server.ctl(&["drain"]).status.code(), Some(0));
    wait_until("the page shows the new figures", || {
        let text = browser.value(refused).unwrap();
        text.as_str().unwrap().starts_with("not synthesized: nxdomain")
    });
    let title = browser.value("document.title").unwrap();
    assert!(title.as_str().unwrap().starts_with("Sixfold: drained by the operator"), "{title}");

    // Everything that takes the focus, in the order of the page: a button, nine tables, three links.
    browser.value("document.body.focus()").unwrap();
    let mut reached = Vec::new();
    for _ in 0..13 {
        browser.press("Tab", 9).unwrap();
        let focused = "(e => e.id || e.getAttribute('aria-labelledby') || e.getAttribute('href'))(document.activeElement)";
        reached.push(browser.value(focused).unwrap().as_str().unwrap_or_default().to_owned());
        let outline = browser.value("getComputedStyle(document.activeElement).outlineStyle").unwrap();
        assert_eq!(outline, "solid", "{reached:?}");
    }
    let tables = [
        "h-traffic",
        "h-upstreams",
        "h-zones",
        "h-reasons",
        "h-needs",
        "c-needs",
        "h-reloads",
        "h-upgrades",
        "h-server",
    ];
    let expected: Vec<&str> =
        ["pause"].into_iter().chain(tables).chain(["metrics", "readyz", "livez"]).collect();
    assert_eq!(reached, expected);
    // The pause stops the updates.
    browser.value("document.getElementById('pause').focus()").unwrap();
    browser.press("Enter", 13).unwrap();
    assert_eq!(
        browser.value("document.getElementById('pause').getAttribute('aria-pressed')").unwrap(),
        "true"
    );
    no_complaints(&browser, &server, SCREEN);
    browser.press("Enter", 13).unwrap();
    // The page says that its figures are old when the server has gone.
    server.process.stop();
    wait_until("the page says so", || {
        browser.value("document.getElementById('lost').hidden").unwrap() == false
    });
}
