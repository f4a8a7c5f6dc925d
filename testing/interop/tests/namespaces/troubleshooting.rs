//! The examples in `docs/troubleshooting`: the programs print these lines, with the configuration and the zone beside the page.

use sixfold_interop::{Lab, Process, document, program};

/// Commands of the page, each with the lines that it must print.
fn examples(page: &str) -> Vec<(String, Vec<String>)> {
    let mut examples: Vec<(String, Vec<String>)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        let block = block.split("```").next().expect("a block ends");
        for line in block.lines() {
            match line.strip_prefix("$ ") {
                Some(command) => examples.push((command.to_owned(), Vec::new())),
                None => examples.last_mut().expect("a block starts with a command").1.push(line.to_owned()),
            }
        }
    }
    examples
}

/// A line without the spaces that align it, and with one number for all times.
fn normal(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_time = |place: usize| words.get(place + 1).is_some_and(|next| next.starts_with("ms"));
    let words = words.iter().enumerate().map(|(place, &word)| if is_time(place) { "0" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// The first line of the page that is missing in the output, where the lines stand in this order. Each must begin a line.
fn missing<'a>(lines: &'a [String], output: &str) -> Option<&'a str> {
    let mut rest = output.lines().map(normal);
    let expected = lines.iter().filter(|line| *line != "...");
    let mut expected = expected.filter(|line| {
        let line = normal(line);
        !rest.any(|printed| printed.starts_with(&line))
    });
    expected.next().map(String::as_str)
}

fn start_authorities(lab: &Lab) -> Vec<Process> {
    // Each query to the dead server is refused: Linux would send only some of these messages a second.
    lab.world.run_checked(&["sh", "-c", "echo 0 > /proc/sys/net/ipv4/icmp_ratelimit"]);
    let zone = document("troubleshooting/shop.zone");
    let bench = program("sixfold-bench");
    let servers: [(&str, &[&str]); 3] = [
        ("198.51.100.53", &["--zone", &zone]),
        ("198.51.100.54", &["--zone-name", "servfail.test", "--fail", "servfail=1:AAAA"]),
        ("198.51.100.80", &["--zone-name", "silent.test", "--fail", "timeout=1:AAAA"]),
    ];
    let started = servers.iter().map(|(address, options)| {
        let log = lab.scratch.path().join(format!("{address}.log"));
        let argv = [&[bench.as_str(), "authority", "--listen", address], *options].concat();
        let mut process = lab.world.start(&argv, &log);
        process.expect("the authority is ready", |log| log.contains("authority ready"));
        process
    });
    started.collect()
}

#[test]
fn the_examples_of_the_troubleshooting_page_are_what_the_programs_print() {
    let Some(lab) = Lab::new(&["dig"]) else { return };
    let page = std::fs::read_to_string(document("troubleshooting/README.md")).expect("the page");
    let _authorities = start_authorities(&lab);
    // Clients that the page names, whose addresses are used only on request.
    lab.client.configure(
        "addr add 2001:db8:c::d1/64 dev lan nodad preferred_lft 0\naddr add 2001:db8:bad::1/64 dev lan nodad preferred_lft 0",
    );
    lab.gateway.configure("route add 2001:db8:bad::/64 dev lan");
    let (socket, log) = (lab.scratch.path().join("control.sock"), lab.scratch.path().join("sixfold.log"));
    let text = std::fs::read_to_string(document("troubleshooting/sixfold.toml")).expect("the configuration");
    let file = lab.scratch.write("sixfold.toml", &format!("{text}\n[control]\nsocket = {socket:?}\n"));
    let sixfold = program("sixfold");
    let mut server = lab.gateway.start(&[&sixfold, "serve", "--config", &file.to_string_lossy()], &log);
    server.expect("Sixfold is ready", |log| log.contains("sixfold: ready"));

    let examples = examples(&page);
    assert!(examples.len() >= 15, "{} examples", examples.len());
    // Of the page's commands, one looks into the cache for a name that a client has asked for.
    lab.kdig().with("+adflag").ask("www.shop.test", "AAAA");
    for (command, lines) in &examples {
        let words: Vec<&str> = command.split(' ').collect();
        let socket = socket.to_string_lossy();
        let ran = match words[..] {
            ["sixfold", "ctl", ..] => {
                lab.gateway.run(&[&[sixfold.as_str(), "ctl", "--socket", &socket], &words[2..]].concat())
            }
            ["dig", ..] => lab.client.run(&words),
            _ => panic!("{command}: neither sixfold ctl nor dig"),
        };
        let missing = missing(lines, &ran.stdout);
        assert!(missing.is_none(), "$ {command}\nis missing: {missing:?}\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_line_that_a_program_does_not_print_is_found() {
    let page = "x\n```console\n$ dig a\nb  after 3.1 ms\n...\n$ dig c\n  d\n```\n";
    let examples = examples(page);
    assert_eq!(examples[0], ("dig a".to_owned(), vec!["b  after 3.1 ms".to_owned(), "...".to_owned()]));
    assert_eq!(missing(&examples[0].1, "x\nb after 17 ms\n"), None);
    assert_eq!(missing(&examples[0].1, "b before 17 ms\n"), Some("b  after 3.1 ms"));
    assert_eq!(missing(&["a".into(), "b".into()], "b\na\n"), Some("b"));
}
