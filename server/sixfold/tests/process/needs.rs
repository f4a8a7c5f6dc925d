//! What still needs DNS64, as operators see it. Each address of 127.0.0.0/8 is a client network of its own.

use crate::client::{Udp, name_of};
use crate::daemon::{Daemon, Setup, success};
use crate::status_page::{data, get};
use serde_json::{Value, json};
use wire::Type;

fn counting() -> Setup {
    Setup::answering().line("statistics.needs = true").metrics()
}

fn client(server: &Daemon, number: u8) -> Udp {
    Udp::from([127, 0, 0, number].into(), server.v4())
}

/// The objects of `ctl needs --json`.
fn needs(server: &Daemon, arguments: &[&str]) -> Vec<Value> {
    let text = success(&server.ctl(&[&["needs", "--json"], arguments].concat()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A name as the command shows it.
fn shown(number: u32) -> String {
    format!("{}.", name_of(number))
}

/// Three client networks ask for the first name, one of them twice, and two for the second name.
fn ask(server: &Daemon) {
    for number in [1, 2, 3, 3] {
        client(server, number).ask(&name_of(1), Type::AAAA);
    }
    for number in [1, 2] {
        client(server, number).ask(&name_of(2), Type::AAAA);
    }
}

#[test]
fn names_are_shown_as_soon_as_enough_client_networks_have_asked_for_them() {
    let server = counting().start();
    assert_eq!(success(&server.ctl(&["needs"])), "answers   networks  name\nno synthesized answer\n");
    ask(&server);
    let first = json!({ "name": shown(1), "answers": 4, "answers_at_most": 4, "networks": 3 });
    assert_eq!(needs(&server, &[]), std::slice::from_ref(&first));
    let text = success(&server.ctl(&["needs"]));
    assert!(text.contains(&format!("\n4         3         {}\n6 synthesized", shown(1))), "{text}");
    assert!(text.contains("Z; one name with too few client networks is not shown\n"), "{text}");
    assert!(!text.contains(&name_of(2)), "{text}");
    client(&server, 3).ask(&name_of(2), Type::AAAA);
    let second = json!({ "name": shown(2), "answers": 3, "answers_at_most": 3, "networks": 3 });
    assert_eq!(needs(&server, &["--by", "name"]), [first.clone(), second]);
    assert_eq!(needs(&server, &["--top", "1"]), [first]);
}

#[test]
fn counts_go_on_over_flush_and_reload_and_begin_anew_after_a_reset() {
    let server = counting().start();
    ask(&server);
    success(&server.ctl(&["flush"]));
    server.rewrite(&["statistics.min-clients = 1"]);
    success(&server.ctl(&["reload"]));
    ask(&server);
    let counts = |objects: Vec<Value>| -> Vec<u64> {
        objects.iter().map(|object| object["answers"].as_u64().unwrap()).collect()
    };
    assert_eq!(counts(needs(&server, &["--reset"])), [8, 4]);
    assert_eq!(needs(&server, &[]), [] as [Value; 0]);
    ask(&server);
    assert_eq!(counts(needs(&server, &["--by", "name"])), [4, 2]);
}

#[test]
fn client_networks_are_shown_with_an_estimate_of_what_they_need() {
    let server = counting().start();
    ask(&server);
    client(&server, 1).ask(&name_of(1), Type::A);
    client(&server, 2).ask("ipv4only.arpa", Type::AAAA);
    client(&server, 2).ask(&name_of(3), Type::AAAA);
    let of = |number: u8, answers: u64, needed: u64, with_a: u64, arpa: u64| {
        json!({
            "network": format!("127.0.0.{number}"),
            "answers": answers,
            "answers_at_most": answers,
            "networks": 1,
            "needed": needed,
            "with_a": with_a,
            "ipv4only_arpa": arpa,
        })
    };
    let all = needs(&server, &["--by", "client"]);
    assert_eq!(all, [of(2, 3, 2, 0, 1), of(1, 2, 1, 1, 0), of(3, 2, 2, 0, 0)]);
    let text = success(&server.ctl(&["needs", "--by", "client", "--top", "1"]));
    assert!(text.contains("\n3         2         0         1         127.0.0.2\n7 synthesized"), "{text}");
    assert!(text.contains("needed is an estimate"), "{text}");
}

#[test]
fn the_status_page_shows_names_and_networks_only_if_they_are_counted() {
    let rows = |server: &Daemon, name: &str| -> Vec<Vec<String>> {
        let data = data(server);
        let rows = data["rows"][name].as_array().unwrap().iter();
        rows.map(|row| serde_json::from_value(row["cells"].clone()).unwrap()).collect()
    };
    let server = counting().start();
    ask(&server);
    assert_eq!(rows(&server, "needs-names"), [[shown(1), "4".into(), "3".into()]]);
    let networks = rows(&server, "needs-networks");
    assert_eq!(networks[0], ["127.0.0.1", "2", "2", "0", "0"]);
    assert_eq!(networks.len(), 3);
    let page = get(&server, "/status").body;
    assert!(page.contains("6 synthesized answers since ") && page.contains("an estimate"), "{page}");

    let server = Setup::answering().metrics().start();
    ask(&server);
    assert_eq!(rows(&server, "needs-names"), [["None."]]);
    assert_eq!(rows(&server, "needs-networks"), [["None."]]);
    let page = get(&server, "/status").body;
    assert!(page.contains("Not counted: ") && !page.contains(&name_of(1)), "{page}");
    let refused = server.ctl(&["needs"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs` is false"), "{refused:?}");
}
