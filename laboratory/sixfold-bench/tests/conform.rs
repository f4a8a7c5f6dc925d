//! `sixfold-bench conform` from a user's point of view: wrong usage, and servers that do not start, die, have no
//! option, or run already. The server is this test program itself, started again as a process, which refuses every
//! query.

use crate::fixtures::bench;
use serde_json::Value;
use servers::program::find_in_path;
use sixfold_bench::conformance::{Comparison, Results, commit_of};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Environment variable with the configuration file, set for the process that is the server.
const CONFIG: &str = "SIXFOLD_BENCH_REFUSING_SERVER";

/// Environment variable with the further behaviour of that process.
const MODE: &str = "SIXFOLD_BENCH_REFUSING_MODE";

/// A case that the server passes, and one that it fails.
const PASSED: &str = r#"{"id": "refused", "category": "errors", "rfc": "RFC 1035 4.1.1", "source": "here", "level": "MUST", "config": {}, "query": {"name": "a.", "type": "A"}, "expect": {"rcode": "REFUSED"}, "timeout_ms": 3000}"#;
const FAILED: &str = r#"{"id": "answered", "category": "synthesis", "rfc": "RFC 6147 5.1.7", "source": "here", "level": "LEVEL", "config": {}, "query": {"name": "b.", "type": "AAAA"}, "expect": {"rcode": "NOERROR"}, "timeout_ms": 3000}"#;

/// A file that is removed when the value is dropped.
struct Scratch {
    path: String,
    _folder: kit::Folder,
}

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let folder = kit::Folder::new();
        folder.write(name, text);
        Scratch { path: folder.text(name), _folder: folder }
    }

    fn path(&self) -> &str {
        &self.path
    }
}

fn conform(arguments: &[&str]) -> Output {
    bench(&[&["conform"], arguments].concat())
}

/// Exit status, standard output, standard error.
fn said(output: &Output) -> (i32, String, String) {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// The command line that starts the server.
fn server(mode: &str) -> String {
    let this = std::env::current_exe().unwrap();
    format!(
        "env {CONFIG}={{config}} {MODE}={mode} {} --exact conform::server_process --nocapture",
        this.display()
    )
}

/// Plays the two cases, the second of this level, to the server.
fn play(mode: &str, level: &str, more: &[&str]) -> Output {
    let text = format!("{PASSED}\n{}\n", FAILED.replace("LEVEL", level));
    let cases = Scratch::new(&format!("{mode}-{level}-{}.jsonl", more.len()), &text);
    let command = server(mode);
    conform(&[&["--cases", cases.path(), "--start", &command], more].concat())
}

#[test]
fn wrong_usage_is_told_and_ends_with_2() {
    for (arguments, word) in [
        (&[][..], "--device"),
        (&["--device", "dnsmasq"], "dnsmasq"),
        (&["--device", "bind", "--server", "::1"], "cannot be used"),
        (&["--server", "::1"], "--upstream-listen"),
        (&["--start", "mydns64"], "{config}"),
        (&["--device", "bind", "--level", "WOULD"], "MUST"),
        (&["--device", "bind", "--jobs", "0"], "--jobs"),
        (&["--device", "bind", "--case", "no-such-case"], "no-such-case"),
        (&["--device", "bind", "--category", "no-such"], "synthesis"),
        (&["--device", "bind", "--case", "nxdomain", "--level", "MAY"], "no case is left"),
        (&["--device", "bind", "--cases", "/nowhere/at-all"], "/nowhere/at-all"),
    ] {
        let (status, _, errors) = said(&conform(arguments));
        assert_eq!(status, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(word), "{arguments:?}: {errors}");
    }
}

#[test]
fn a_mistake_in_a_file_of_cases_is_told_with_its_line() {
    let wrong =
        PASSED.replace("REFUSED", "NO-SUCH-CODE").replace("\"id\": \"refused\"", "\"id\": \"second\"");
    let cases = Scratch::new("wrong.jsonl", &format!("{PASSED}\n\n{wrong}\n"));
    let (status, _, errors) = said(&conform(&["--device", "bind", "--cases", cases.path()]));
    assert_eq!(status, 2, "{errors}");
    assert!(errors.contains(": line 3: second: "), "{errors}");
}

/// RFC 3629 section 6: a byte order mark before a text is no part of it.
#[test]
fn cases_as_editors_write_them_are_read() {
    for text in [format!("\u{feff}{PASSED}\n"), format!("\u{feff}{PASSED}\r\n"), format!("{PASSED}\r")] {
        let cases = Scratch::new("marked.jsonl", &text);
        let (status, listed, errors) = said(&conform(&["--list", "--cases", cases.path()]));
        assert_eq!((status, listed.lines().count()), (0, 1), "{text:?}: {errors}");
        assert!(listed.starts_with("refused\tMUST"), "{listed}");
    }
}

#[test]
fn the_cases_are_listed() {
    let (status, all, _) = said(&conform(&["--list"]));
    assert_eq!(status, 0);
    assert!(all.lines().count() > 600 && all.contains("nxdomain\tMUST\terrors\tRFC 6147 5.1.2"), "{all}");
    let (_, few, _) = said(&conform(&["--list", "--category", "ttl", "--level", "should"]));
    assert!(!few.is_empty() && few.lines().all(|line| line.contains("\tSHOULD\tttl\t")), "{few}");
}

#[test]
fn a_program_that_is_not_there_is_named_with_the_way_to_get_it() {
    let (status, _, errors) = said(&conform(&["--device", "bind", "--program", "/nowhere/at-all"]));
    assert_eq!(status, 1);
    assert!(
        errors.contains("/nowhere/at-all is not installed on this host") && errors.contains("bind9"),
        "{errors}"
    );
}

#[test]
fn a_server_that_does_not_start_is_told_with_its_last_words() {
    let (status, said, errors) = said(&play("ends", "MUST", &[]));
    assert_eq!((status, said.as_str()), (1, ""));
    assert!(errors.contains("cannot be tested") && errors.contains("this mode is not liked"), "{errors}");
}

#[test]
fn a_server_that_has_failed_is_scored() {
    let json = Scratch::new("scored.json", "");
    let html = Scratch::new("scored.html", "");
    let files = ["--json", json.path(), "--html", html.path()];
    let (status, text, errors) = said(&play("refuses", "MUST", &files));
    assert_eq!(status, 1, "{errors}");
    assert!(text.contains("FAILED answered [MUST, RFC 6147 5.1.7]\n    asked: b. AAAA\n"), "{text}");
    assert!(text.contains("RCODE: REFUSED, expected NOERROR"), "{text}");
    assert!(text.ends_with("2 cases; passed: 1 of 2 MUST; 0 not played\n"), "{text}");
    assert!(text.contains("requirements that hold: 1 of 2 MUST; 2 cases"), "{text}");
    let results: Value = serde_json::from_str(&std::fs::read_to_string(json.path()).unwrap()).unwrap();
    assert_eq!((&results["all"]["passed"], &results["all"]["failed"]), (&1.into(), &1.into()));
    let told = &results["circumstances"];
    assert!(told["date"].as_str().unwrap().ends_with('Z'), "{told}");
    assert!(told["command"].as_str().unwrap().starts_with("sixfold-bench conform --cases "), "{told}");
    assert!(told["host"]["kernel"].is_string(), "{told}");
    assert!(told["configuration"]["sixfold.toml"].as_str().unwrap().contains("[server]"), "{told}");
    let page = std::fs::read_to_string(html.path()).unwrap();
    assert!(page.contains("answered") && page.ends_with("</html>\n"));
}

#[test]
fn a_case_that_need_not_hold_does_not_decide() {
    let (status, text, errors) = said(&play("refuses", "local", &[]));
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.contains("passed: 1 of 1 MUST, 0 of 1 local"), "{text}");
}

#[test]
fn a_server_that_dies_fails_the_case_and_the_others_go_on() {
    let (status, text, errors) = said(&play("dies", "MUST", &["--jobs", "1"]));
    assert_eq!(status, 1, "{errors}");
    let (_, after) = text.split_once("FAILED answered").unwrap();
    assert!(after.contains("the server ended (exit status: 3)"), "{text}");
    assert!(text.contains("passed: 1 of 2 MUST"), "{text}");
}

#[test]
fn a_program_can_say_that_a_case_is_not_for_it() {
    let (status, text, errors) = said(&play("declines", "MUST", &[]));
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.contains("    1  no option for b\n") && text.contains("1 not played"), "{text}");
}

#[test]
fn what_only_the_upstream_sees_is_a_remark() {
    let seen = FAILED.replace("LEVEL", "MUST").replace(
        r#""expect": {"rcode": "NOERROR"}"#,
        r#""expect": {"rcode": "REFUSED", "upstream_queries": ["AAAA"]}"#,
    );
    assert!(seen.contains("upstream_queries"));
    let cases = Scratch::new("remark.jsonl", &format!("{seen}\n"));
    let command = server("refuses");
    let (status, text, errors) = said(&conform(&["--cases", cases.path(), "--start", &command]));
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.starts_with("passed, with a remark: answered [MUST, RFC 6147 5.1.7]\n"), "{text}");
    assert!(text.contains("the upstream saw nothing, expected b. AAAA"), "{text}");
    assert!(text.ends_with("passed: 1 of 1 MUST (1 with a remark); 0 not played\n"), "{text}");
}

#[test]
fn json_on_standard_output_is_json_alone() {
    let (_, text, errors) = said(&play("refuses", "MUST", &["--json", "-"]));
    let results: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(results["cases"][1]["outcome"], "failed");
    assert!(errors.contains("FAILED answered"), "{errors}");
}

#[test]
fn a_server_that_runs_already_is_asked_what_needs_no_configuration() {
    // An address of loopback that no other test has: nobody takes the port when the server has ended.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let own = UdpSocket::bind((Ipv4Addr::new(127, 64 | high, middle, low), 0)).unwrap();
    let address = own.local_addr().unwrap();
    drop(own);
    let listen = Scratch::new("running.toml", &format!("listen = [\"{address}\"]\n"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "conform::server_process", "--nocapture"])
        .env(CONFIG, listen.path())
        .env(MODE, "refuses");
    let running = kit::Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let other = PASSED
        .replace("\"config\": {}", r#""config": {"dns64": {"prefixes": ["2001:db8::/96"]}}"#)
        .replace("\"id\": \"refused\"", "\"id\": \"other\"");
    let cases = Scratch::new("running.jsonl", &format!("{PASSED}\n{other}\n"));
    let server = address.to_string();
    let arguments =
        ["--server", &server, "--upstream-listen", "127.0.0.1:0", "--cases", cases.path(), "--flush", "true"];
    let (status, text, errors) = said(&conform(&arguments));
    assert_eq!(status, 0, "{text}{errors}");
    assert!(text.contains("passed: 1 of 1 MUST; 1 not played"), "{text}");
    assert!(text.contains("it needs another prefix than 64:ff9b::/96"), "{text}");
    drop(running);
    let (status, _, errors) = said(&conform(&arguments));
    assert_eq!(status, 1);
    assert!(errors.contains("does not answer"), "{errors}");
}

/// Path in the repository.
fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Results that the page of servers is made of.
fn comparison() -> (Comparison, Results) {
    let comparison = Comparison::new(&path("conformance")).unwrap();
    let results = comparison.results().unwrap();
    (comparison, results)
}

#[test]
fn the_page_of_servers_has_the_tables_of_its_results_which_are_of_all_cases() {
    let (comparison, results) = comparison();
    let remedy = "play the servers again: sixfold-bench conform --servers conformance --page docs/conformance-of-servers.md";
    assert_eq!(results.cases, comparison.case_ids(), "{remedy}");
    for server in &results.servers {
        assert_eq!(server.outcomes.len(), results.cases.len(), "{}: {remedy}", server.name);
    }
    let page = std::fs::read_to_string(path("docs/conformance-of-servers.md")).unwrap();
    let written = comparison.fill_page(&page).unwrap();
    let differs = page.lines().zip(written.lines()).find(|(found, wanted)| found != wanted);
    assert!(
        page == written,
        "the page has other tables than its results ({remedy} --only none): {differs:#?}"
    );
}

/// A shallow clone, or an archive, has no history in which a commit could be found.
#[test]
fn the_commits_that_played_the_servers_are_in_the_history() {
    let (_, results) = comparison();
    let root = path("");
    let git = |arguments: &[&str]| Command::new("git").arg("-C").arg(&root).args(arguments).output();
    let is_whole = git(&["rev-parse", "--is-shallow-repository"])
        .is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"false"));
    for server in &results.servers {
        let commit = commit_of(&server.tool);
        let is_hash = commit.len() >= 7 && commit.bytes().all(|octet| octet.is_ascii_hexdigit());
        assert!(is_hash, "{}: played by \"{}\"; build it from a commit", server.name, server.tool);
        if is_whole {
            let known = git(&["cat-file", "-e", &format!("{commit}^{{commit}}")]).unwrap();
            assert!(known.status.success(), "{}: the history has no commit {commit}", server.name);
        }
    }
    if !is_whole {
        kit::skip("this is no whole clone, so the commits cannot be looked for");
    }
}

#[test]
fn the_servers_take_every_configuration_that_is_written_for_a_case() {
    let cases = conform::suite::built_in().unwrap();
    let servers: [(&str, &str, &[&str]); 3] = [
        ("bind", "named-checkconf", &["-z", "{dir}/named.conf"]),
        ("unbound", "unbound-checkconf", &["{dir}/unbound.conf"]),
        ("powerdns", "pdns_recursor", &["--config-dir={dir}", "--config=check"]),
    ];
    for (name, checker, arguments) in servers {
        let Some(checker) = find_in_path(checker) else {
            kit::missing(checker, "apt-get install bind9 unbound pdns-recursor");
            continue;
        };
        let (target, version) = sixfold_bench::conformance::find_template(name, None).unwrap();
        let mut checked: Vec<BTreeMap<String, String>> = Vec::new();
        for case in &cases {
            let files = target.configuration(case);
            if files.is_empty() || checked.contains(&files) {
                continue;
            }
            let folder = kit::Folder::new();
            let fill = |text: &str| text.replace("{dir}", folder.to_str().unwrap());
            for (file, text) in files.iter().chain(&case.files) {
                folder.write(file, fill(text));
            }
            let arguments = arguments.iter().map(|argument| fill(argument));
            let output = Command::new(&checker).args(arguments).current_dir(&folder).output().unwrap();
            let words =
                [output.stdout, output.stderr].map(|octets| String::from_utf8_lossy(&octets).into_owned());
            assert!(output.status.success(), "{version}, case {}: {words:?}\n{files:#?}", case.id);
            checked.push(files);
        }
        // Prefix lengths, exclusions, mapped networks, records, clients, blocked names, policy zones.
        assert!(checked.len() >= 10, "{name}: {} configurations", checked.len());
    }
}

/// The process that the tests start, which refuses every query; not a test by itself.
#[test]
fn server_process() {
    let Some(file) = std::env::var_os(CONFIG) else { return };
    let mode = std::env::var(MODE).unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    if mode == "ends" {
        eprintln!("this mode is not liked");
        std::process::exit(1);
    }
    // The folder of the configuration identifies the case about `b.`.
    if mode == "declines" && text.contains("-answered/") {
        // On a line of its own, wherever the output of the test harness ends.
        println!("\nnot-applicable: no option for b");
        std::process::exit(1);
    }
    let listen = text.lines().filter(|line| line.starts_with("listen"));
    let listen = listen.flat_map(|line| line.split('"')).filter_map(|word| word.parse().ok());
    let listen: Vec<SocketAddr> = listen.collect();
    let listen = listen.iter().find(|address| address.is_ipv6()).unwrap_or(&listen[0]);
    let server = kit::Upstream::start_at(*listen, move |asked, replies| {
        if mode == "dies" && asked.name == "b." {
            std::process::exit(3);
        }
        // QR, RD copied, RA; REFUSED.
        let mut reply = asked.message.to_vec();
        reply[2] |= 0x80;
        reply[3] = 0x85;
        replies.now(reply);
    });
    server.join();
}
