//! Sixfold starts as root on port 53, and then runs as the user `nobody`.

use sixfold_interop::{Authority, Configuration, Lab, Program, Sixfold, address, wait_until};
use std::fs::read_to_string;

/// A line of /proc/ID/status.
fn status(id: u32, field: &str) -> String {
    let text = read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {field} in {text}")).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// ID of a user, and of its group.
fn identity(name: &str) -> (String, String) {
    let users = read_to_string("/etc/passwd").expect("there are users");
    let user = users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user[0] == name);
    user.map(|user| (user[2].to_owned(), user[3].to_owned())).unwrap_or_else(|| panic!("no user {name}"))
}

#[test]
fn started_as_root_on_port_53_it_runs_as_nobody_and_answers_and_reloads() {
    let Some(lab) = Lab::new(&["nsd", "curl"]) else { return };
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let configuration = Configuration::forwarding_to(&[address::FIRST]);
    let mut sixfold = Sixfold::start(&lab, &configuration);

    let id = sixfold.id();
    assert_eq!(status(id, "Name"), "sixfold");
    let (user, group) = identity("nobody");
    // Real, effective, saved and file system ID; and no other group.
    assert_eq!(status(id, "Uid"), [user.as_str(); 4].join(" "));
    assert_eq!(status(id, "Gid"), [group.as_str(); 4].join(" "));
    assert!(["", group.as_str()].contains(&status(id, "Groups").as_str()), "{}", status(id, "Groups"));
    for set in ["CapInh", "CapPrm", "CapEff"] {
        assert_eq!(status(id, set), "0".repeat(16), "{set}");
    }
    // Every thread, not only the first.
    for task in std::fs::read_dir(format!("/proc/{id}/task")).expect("the process runs").flatten() {
        let text = read_to_string(task.path().join("status")).expect("the thread runs");
        assert!(text.contains(&format!("Uid:\t{user}\t{user}\t{user}\t{user}\n")), "{text}");
    }

    let first = lab.kdig().ask("v4only.lab.test", "AAAA");
    assert_eq!(first.data("AAAA"), [Lab::embedded(address::WEB)], "{}", first.text);
    assert!(sixfold.is_ready() && sixfold.control("health").contains("serving"));

    sixfold.reload(&configuration.dns64("never-embed = [\"198.51.100.80/32\"]\n"));
    let answered = wait_until(|| lab.kdig().ask("v4only.lab.test", "AAAA").answer.is_empty());
    assert!(answered, "{}", sixfold.log());
}
