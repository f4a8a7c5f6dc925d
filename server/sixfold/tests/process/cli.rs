//! The command line from outside: output of the binary, on standard output or error, and exit status.

use crate::daemon::{sixfold, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A configuration file of its own for each test.
fn file(name: &str, text: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn check(name: &str, text: &str) -> Output {
    sixfold(&["check", "--config", file(name, text.as_bytes()).to_str().unwrap()])
}

#[test]
fn a_good_configuration_is_shown_and_the_shown_one_is_good() {
    let output = check("good.toml", "upstream.forwarders = [\"192.0.2.53\"]\n");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).starts_with("# Effective configuration, from "));
    assert!(stdout(&output).contains("forwarders = [\"192.0.2.53:53\"]\n"));
    assert_eq!(stderr(&output), "");

    let again = check("again.toml", &stdout(&output));
    let body = |output: &Output| stdout(output).split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(&again), body(&output));
}

#[test]
fn every_error_is_told_at_once_on_standard_error() {
    let output =
        check("bad.toml", "[dns46]\n[dns64]\nprefixes = [\"64:ff9b::/52\"]\nlookup = \"eventually\"\n");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let text = stderr(&output);
    for words in [
        "error: unknown table `dns46`\n",
        "bad.toml:1:2\n  |\n1 | [dns46]\n  |  ^^^^^\n  = help: did you mean `dns64`?\n",
        "bad.toml:3:13\n  |\n3 | prefixes = [\"64:ff9b::/52\"]\n  |             ^^^^^^^^^^^^^^\n",
        "error: `eventually` is not a value of `dns64.lookup`\n",
        "bad.toml: 3 errors; correct them, then run `sixfold check`\n",
    ] {
        assert!(text.contains(words), "{words}\n--- not in\n{text}");
    }
    assert_eq!(text.matches("\nsixfold: cannot use ").count(), 1);
}

#[test]
fn a_warning_does_not_spoil_the_check() {
    let output = check("warning.toml", "server.listen = [\"::\"]\nupstream.forwarders = [\"::1\"]\n");
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stderr(&output).starts_with("sixfold: warning: the forwarder [::1]:53 may be"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn clients_outside_that_nobody_allowed_are_told_at_the_start_and_in_the_check() {
    let text = "server.listen = [\"[::]:5399\"]\nupstream.forwarders = [\"192.0.2.53\"]\n";
    let output = check("outside.toml", text);
    assert_eq!(output.status.code(), Some(0));
    let told = stderr(&output);
    assert!(told.contains("listens on [::]:5399, but answers only clients of local networks"), "{told}");
    assert!(told.contains("--allow local --allow 2001:db8:10::/48"), "{told}");
    assert!(
        stdout(&output).contains("\nallow = [\"local\"] # \"local\" now: ::1/128, "),
        "{}",
        stdout(&output)
    );
    // The remedy is accepted.
    let output = check("outside.toml", &format!("{text}server.allow = [\"local\", \"2001:db8:10::/48\"]\n"));
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn more_memory_than_the_machine_or_the_control_group_has_is_told_by_the_check() {
    // The largest cache: more than a machine that runs tests has.
    let keys = [
        "cache.size = \"1024GiB\"",
        "server.workers = 1",
        "limits.pending = 1000",
        "limits.tcp-connections = 1024",
    ];
    let text = format!("upstream.forwarders = [\"192.0.2.53\"]\n{}\n", keys.join("\n"));
    let output = check("memory.toml", &text);
    let told = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{told}");
    // docs/how-to/size-and-tune.md, Memory: 16 MiB + 1 TiB + 30 MiB + 1.8 MiB + 80 MiB + 6 MiB.
    let words = told.strip_prefix("sixfold: warning: the server may take up to 1048710 MiB of memory, but ");
    let words = words.unwrap_or_else(|| panic!("{told}"));
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = memory.strip_prefix("MemTotal:").and_then(|rest| rest.split_whitespace().next()).unwrap();
    let machine = format!("this machine has {} MiB: ", total.parse::<u64>().unwrap() / 1024);
    assert!(words.starts_with(&machine) || words.starts_with("the control group (/sys/fs/cgroup/"), "{told}");
    let remedy = "when it is used up, the kernel ends the process; lower `cache.size`, `limits.pending` or `server.workers`, or raise \
                  the limit\n";
    assert!(words.ends_with(remedy), "{told}");
}

#[test]
fn a_user_that_does_not_exist_is_told_by_the_check() {
    let text = "server.user = \"no-such-user-here\"\nupstream.forwarders = [\"192.0.2.53\"]\n";
    let output = check("user.toml", text);
    let told = stderr(&output);
    assert!(told.contains("no such user: no-such-user-here") && told.contains("create it"), "{told}");
    // A start as root would fail.
    let place = "user.toml:1:15\n  |\n1 | server.user = \"no-such-user-here\"\n";
    let is_root = std::fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0");
    assert_eq!(output.status.code(), Some(if is_root { 1 } else { 0 }), "{told}");
    assert!(!is_root || told.contains(place), "{told}");
}

#[test]
fn a_file_that_cannot_be_read_is_named_with_the_reason_and_the_remedy() {
    let output = sixfold(&["check", "--config", "/nonexistent/sixfold.toml"]);
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("sixfold: cannot read /nonexistent/sixfold.toml: No such file"), "{text}");
    assert!(text.contains("--config"), "{text}");

    let binary = file("binary.toml", b"[server]\nuser = \"\xff\"\n");
    let output = sixfold(&["check", "--config", binary.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("line 2 is not UTF-8"), "{}", stderr(&output));

    let directory = env!("CARGO_TARGET_TMPDIR");
    let output = sixfold(&["check", "--config", directory]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("sixfold: cannot read "), "{}", stderr(&output));

    // Reading a file without end stops at the limit.
    let output = sixfold(&["check", "--config", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("it is larger than"), "{}", stderr(&output));
}

#[test]
fn wrong_usage_has_exit_status_2_and_says_what_is_allowed() {
    for (arguments, words) in [
        (&["chek"][..], "unrecognized subcommand 'chek'"),
        (&["check", "--confg", "x"], "unexpected argument '--confg'"),
        (&["check", "--config"], "a value is required"),
        (
            &["serve", "--listen", "localhost"],
            "`localhost` is not an address: it is neither IPv4 nor IPv6 (help: write",
        ),
        (&["serve", "--forwarder", "::"], "`::` means every address"),
        (&["serve", "--prefix", "64:ff9b::/52"], "`64:ff9b::/52` cannot be used"),
        (&["serve", "--workers", "0"], "write a number from 1 to 256"),
        (&["serve", "--allow", "10.0.0.1/8"], "write \"10.0.0.0/8\""),
        (&["serve", "--allow", "everybody"], "or \"local\""),
        (&["serve", "--forwarder", "2001:db8::53:5353"], "write \"[2001:db8::53]:5353\""),
        (&["serve", "--demo", "--forwarder", "::1"], "cannot be used with"),
        (&["ctl", "flush", "--below"], "required arguments were not provided"),
        (&["ctl", "trace", "maybe"], "possible values: on, off"),
    ] {
        let output = sixfold(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = stderr(&output);
        assert!(text.starts_with("sixfold: ") && text.contains(words), "{arguments:?}: {text}");
    }
    for arguments in [&[][..], &["ctl"]] {
        let output = sixfold(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("Usage: "), "{}", stderr(&output));
    }
}

#[test]
fn help_has_a_purpose_every_option_with_its_default_and_an_example() {
    for (arguments, words) in [
        (&["--help"][..], &["DNS64 server", "serve", "check", "ctl"][..]),
        (
            &["serve", "--help"],
            &[
                "--listen",
                "[::1]:5364",
                "--forwarder",
                "/etc/resolv.conf",
                "--prefix",
                "64:ff9b::/96",
                "--allow",
                "--workers",
                "--demo",
            ],
        ),
        (&["check", "--help"], &["--config", "/etc/sixfold/sixfold.toml", "Exit status"]),
        (
            &["ctl", "--help"],
            &["--socket", "/run/sixfold/control.sock", "status", "stats", "reload", "health", "Exit status"],
        ),
    ] {
        let output = sixfold(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        for word in words.iter().chain(&["Example", "  sixfold "]) {
            assert!(stdout(&output).contains(word), "{arguments:?}: {word}: {}", stdout(&output));
        }
    }
}

#[test]
fn version_has_the_commit_of_the_checkout() {
    if std::env::var_os("SIXFOLD_COMMIT").is_some() {
        return kit::skip("the packager names the commit");
    }
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    if !Path::new(root).join(".git").exists() {
        return kit::skip("there is no checkout");
    }
    let git = Command::new("git").args(["-C", root, "rev-parse", "HEAD"]).output();
    let Some(git) = git.ok().filter(|output| output.status.success()) else {
        return kit::missing("git", "apt-get install git");
    };
    let shown = stdout(&sixfold(&["--version"]));
    let head = &stdout(&git)[..12];
    assert!(shown.contains(&format!(" (commit {head})\n")), "HEAD is {head}; built since then? {shown}");
}

#[test]
fn version_names_version_commit_and_features() {
    let output = sixfold(&["--version"]);
    assert_eq!(output.status.code(), Some(0));
    let text = stdout(&output);
    assert!(text.starts_with(concat!("sixfold ", env!("CARGO_PKG_VERSION"), " (commit ")), "{text}");
    // All transports of this build.
    assert!(text.contains("\nfeatures: ") && text.contains(" udp tcp tls https quic"), "{text}");
}

/// The completions of `sixfold` for a shell, as a file.
fn completions(shell: &str) -> PathBuf {
    let output = sixfold(&["completions", shell]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{shell}");
    file(&format!("completions.{shell}"), &output.stdout)
}

/// Runs a script in a shell without its settings; none if this machine does not have the shell.
fn in_shell(shell: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(shell).args(arguments).output() {
        Ok(output) => {
            assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""), "{shell}");
            Some(stdout(&output))
        }
        Err(error) => {
            kit::missing(&format!("{shell} ({error})"), &format!("apt-get install {shell}"));
            None
        }
    }
}

#[test]
fn bash_completes_commands_options_and_shells() {
    let script = completions("bash");
    for (typed, completed) in [
        ("sixfold s", "serve"),
        ("sixfold ctl st", "status stats"),
        ("sixfold ctl --j", "--json"),
        ("sixfold ctl explain --cl", "--client"),
        ("sixfold completions b", "bash"),
    ] {
        let complete = format!(
            "source {}; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _sixfold sixfold \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let said = in_shell("bash", &["--norc", "--noprofile", "-c", &complete]);
        assert!(said.is_none_or(|said| said.trim() == completed), "{typed}");
    }
}

#[test]
fn zsh_and_fish_take_their_completions() {
    let script = completions("zsh").display().to_string();
    in_shell("zsh", &["-f", "-n", &script]);
    let script = completions("fish").display().to_string();
    let complete = format!("source {script}; complete -C 'sixfold ctl st'");
    if let Some(said) = in_shell("fish", &["--no-config", "-c", &complete]) {
        let words: Vec<&str> = said.lines().filter_map(|line| line.split('\t').next()).collect();
        assert!(words.contains(&"status") && words.contains(&"stats") && words.len() == 2, "{said}");
    }
}

/// Configurations of other servers, from the corpus of the crate `convert`.
fn corpus() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/corpus");
    let folders = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "conf" || end == "yml");
    files.filter(|path| is_source(path) && !path.parent().unwrap().ends_with("refused")).collect()
}

/// Arguments that convert a file of the corpus: once, or once for each view that the error names.
fn conversions(path: &Path) -> Vec<Vec<String>> {
    let command = vec!["convert".to_owned(), path.to_str().unwrap().to_owned()];
    let output = sixfold(&command.iter().map(String::as_str).collect::<Vec<_>>());
    if output.status.code() != Some(2) {
        return vec![command];
    }
    assert!(stderr(&output).contains(" views, and Sixfold has none: "), "{}", stderr(&output));
    let said = stderr(&output);
    let views = said.lines().filter_map(|line| line.split_once(" --view ")?.1.split(' ').next());
    let with = |view: &str| [command.clone(), vec!["--view".to_owned(), view.to_owned()]].concat();
    views.map(with).collect()
}

/// The file of trust anchors that a result demands, as its comment has it; a line about another file stands for one with keys of the root.
fn anchor_file(text: &str) -> String {
    let root =
        format!(". IN DS 20326 8 2 {}", "E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D");
    let mut lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("#   ")).collect();
    lines.retain(|line| line.contains(" IN D"));
    if lines.is_empty() { root + "\n" } else { lines.join("\n") + "\n" }
}

#[test]
fn every_converted_configuration_is_accepted_by_the_check() {
    let files = corpus();
    assert!(files.len() > 20, "{files:?}");
    let made = rcgen::generate_simple_self_signed(["dns.example".to_owned()]).unwrap();
    let certificate = file("converted.crt", made.cert.pem().as_bytes());
    let key = file("converted.key", made.signing_key.serialize_pem().as_bytes());
    for (path, arguments) in
        files.iter().flat_map(|path| conversions(path).into_iter().map(move |arguments| (path, arguments)))
    {
        let output = sixfold(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let text = stdout(&output);
        let expected = i32::from(text.contains("\n# not carried over, "));
        assert_eq!(output.status.code(), Some(expected), "{}: {}", path.display(), stderr(&output));
        assert_eq!(stderr(&output).contains(" not carried over: see the comments"), expected == 1);
        let anchors = file("converted.anchors", anchor_file(&text).as_bytes());
        // This machine has neither the resolvers nor the files of those machines. Listeners without a certificate are refused.
        let line = |line: &str| match line.split(" = ").next() {
            Some("hosts-file" | "rpz") => String::new(),
            Some(key @ ("tls-ca" | "certificate")) => format!("{key} = {certificate:?}"),
            Some("key") => format!("key = {key:?}"),
            Some("trust-anchors") => format!("trust-anchors = {anchors:?}"),
            _ => line.to_owned(),
        };
        let lines: Vec<String> = text.lines().map(line).collect();
        let text = lines.join("\n").replace("forwarders = \"system\"", "forwarders = [\"192.0.2.99\"]");
        // Forwarders that were not carried over must be named: without them the server would ask others, in the clear.
        let text = match text.contains("forwarders = []") {
            true => {
                let refused = check("converted.toml", &text);
                assert_eq!(refused.status.code(), Some(1), "{}", path.display());
                assert!(stderr(&refused).contains("at least one address"), "{}", stderr(&refused));
                text.replace("forwarders = []", "forwarders = [\"192.0.2.98\"]")
            }
            false => text,
        };
        let checked = check("converted.toml", &text);
        assert_eq!(checked.status.code(), Some(0), "{}: {}\n{text}", path.display(), stderr(&checked));
    }
}

#[test]
fn included_files_are_read_beside_the_file_that_includes_them() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("convert");
    std::fs::create_dir_all(folder.join("parts/more[1]")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("unbound.conf", "include: parts/*.conf\ninclude: p?rts/m*/[a-c].conf\n");
    write("parts/2.conf", "  module-config: \"dns64 iterator\"\n");
    write("parts/1.conf", "server:\n  interface: 127.0.0.1@5399\n");
    write("parts/3.conf", "forward-zone:\n  name: .\n  forward-addr: 192.0.2.53\n");
    write("parts/4.other", "server:\n  frobnicate: yes\n");
    write("parts/more[1]/a.conf", "server:\n  num-threads: 3\n  include: b?.conf\n");
    write("parts/more[1]/b2.conf", "  identity: \"ns1\"\n  nsid: ascii_ns1\n");
    write("parts/more[1]/d.conf", "server:\n  frobnicate: yes\n");
    let output = sixfold(&["convert", folder.join("unbound.conf").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(stdout(&output).contains("listen = [\"127.0.0.1:5399\"]\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("forwarders = [\"192.0.2.53:53\"]\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("workers = 3\nidentity = \"ns1\"\n"), "{}", stdout(&output));

    write("missing.conf", "include: parts/?.conf\ninclude: other/*/x.conf\ninclude: parts/more[1]/e.conf\n");
    let output = sixfold(&["convert", "--from", "unbound", folder.join("missing.conf").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    for line in ["2: include: other/*/x.conf", "3: include: parts/more[1]/e.conf"] {
        let line = format!("# not carried over, {line}: cannot read it: no file has such a name\n");
        assert!(stdout(&output).contains(&line), "{line}{}", stdout(&output));
    }
}

#[test]
fn a_file_of_no_server_has_exit_status_2_and_the_option_decides() {
    let letter = file("letter.conf", b"Dear reader,\n");
    let output = sixfold(&["convert", letter.to_str().unwrap()]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(stderr(&output).starts_with("sixfold: cannot convert "), "{}", stderr(&output));
    assert!(stderr(&output).contains("--from (bind, unbound,"), "{}", stderr(&output));

    let output = sixfold(&["convert", "--from", "totd", letter.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("# not carried over, 1: Dear reader,: TOTD has no such keyword\n"));

    let output = sixfold(&["convert", "/nonexistent/named.conf"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).starts_with("sixfold: cannot read /nonexistent/named.conf: "),
        "{}",
        stderr(&output)
    );
    let output = sixfold(&["convert", "--from", "dnsmasq", letter.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("write one of bind, unbound, powerdns"), "{}", stderr(&output));
}
