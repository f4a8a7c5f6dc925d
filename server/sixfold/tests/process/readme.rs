//! README.md: every block in it is run as it stands, or as far as a test can: [`NOT_RUN`] has the reasons for the others. What it
//! shows is what the programs print, and its figures are those of the pages that it names.

use crate::daemon::{Folder, Process, ctl, free_port, source_text};
use crate::demo::unprivileged;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Commands that no test can run as they stand: the begin of the line; the reason; a file that must have what the command needs,
/// and the words there.
const NOT_RUN: [(&str, &str, &str, &str); 10] = [
    (
        "docker build -f packaging/container/Containerfile -t sixfold .",
        "needs a container engine and a registry; testing/interop/tests/packages makes the image without them",
        "packaging/container/Containerfile",
        "\nRUN packaging/build-static --server-only --output /static $TARGETARCH\n",
    ),
    (
        "docker run --read-only --cap-drop ALL --cap-add NET_BIND_SERVICE -p 53:53/udp -p 53:53/tcp ",
        "needs a container engine; testing/interop/tests/packages starts the image",
        "packaging/container/Containerfile",
        "docker run --read-only --cap-drop ALL --cap-add NET_BIND_SERVICE -p 53:53/udp -p 53:53/tcp ",
    ),
    (
        "apt install gcc libc6-dev ",
        "needs root and a mirror; testing/interop/tests/packages builds in a root that has these packages only",
        "packaging/tests/build-root",
        "apt install \\(gcc .*\\)",
    ),
    (
        "apt install make dpkg-dev debhelper",
        "needs root and a mirror; what the build needs is told where it fails without",
        "packaging/build-deb",
        "debhelper",
    ),
    ("make deb", "takes minutes; testing/interop/tests/packages builds the packages", "Makefile", "\ndeb:\n"),
    (
        "apt install ./target/debian/sixfold_*.deb",
        "needs root; testing/interop/tests/packages installs the packages",
        "packaging/build-deb",
        "target/debian",
    ),
    (
        "cargo build --profile dist -p sixfold -p sixfold-bench",
        "takes minutes; the tests are built from these packages",
        "laboratory/sixfold-bench/Cargo.toml",
        "\nname = \"sixfold-bench\"\n",
    ),
    (
        "cargo build --profile dist -p sixfold",
        "takes minutes; the tests are built from this package",
        "server/sixfold/Cargo.toml",
        "\nname = \"sixfold\"\n",
    ),
    (
        "systemctl restart sixfold",
        "needs systemd as the first process; testing/interop/tests/packages starts it",
        "packaging/systemd/sixfold.service",
        "\nExecStart=/usr/bin/sixfold serve\n",
    ),
    (
        "target/dist/sixfold-bench ",
        "takes minutes; the parser of the program takes the line in laboratory/sixfold-bench/tests/documents.rs",
        "laboratory/sixfold-bench/tests/documents.rs",
        "document(\"README.md\")",
    ),
];

/// The blocks of a language, each without its fences.
fn blocks(language: &str) -> Vec<String> {
    let readme = source_text("README.md");
    let parts: Vec<&str> = readme.split("```").collect();
    let inside = parts.iter().skip(1).step_by(2);
    inside.filter_map(|part| Some(part.strip_prefix(language)?.strip_prefix('\n')?.to_owned())).collect()
}

/// The commands of the blocks of a shell, without comments.
fn shell_lines() -> Vec<String> {
    let text = blocks("sh").concat();
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// The only block of configuration, in a file.
fn configuration(directory: &Folder) -> PathBuf {
    let blocks = blocks("toml");
    let [block] = &blocks[..] else { panic!("{} blocks of TOML", blocks.len()) };
    let file = directory.file("sixfold.toml");
    std::fs::write(&file, block).unwrap();
    file
}

#[test]
fn every_block_is_of_a_language_whose_blocks_are_run() {
    let readme = source_text("README.md");
    let mut is_inside = false;
    for line in readme.lines() {
        if let Some(language) = line.strip_prefix("```") {
            let is_known =
                if is_inside { language.is_empty() } else { ["console", "sh", "toml"].contains(&language) };
            assert!(is_known, "{line}");
            is_inside = !is_inside;
        } else {
            assert!(is_inside || !line.starts_with("    "), "a block without a language: {line}");
        }
    }
    assert!(!is_inside && readme.lines().count() < 130, "{} lines", readme.lines().count());
}

#[test]
fn every_command_is_run_or_named_with_its_reason() {
    let mut unused: Vec<&str> = NOT_RUN.map(|(begin, ..)| begin).into();
    for line in shell_lines() {
        if line.starts_with("sixfold ") || line.starts_with("dig ") {
            // `the_steps_after_the_installation_work` runs them.
            continue;
        }
        let known = NOT_RUN
            .iter()
            .find(|(begin, ..)| if begin.ends_with(' ') { line.starts_with(begin) } else { line == *begin });
        let (begin, reason, file, words) = known.unwrap_or_else(|| panic!("no test knows: {line}"));
        assert!(source_text(file).contains(words), "{line}: {reason}; but {file} has no {words:?}");
        unused.retain(|other| other != begin);
    }
    assert!(unused.is_empty(), "commands that README.md has no more: {unused:?}");
}

fn output(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// True if dig is there; else the test is left out.
fn has_dig() -> bool {
    let is_there = Command::new("dig").arg("-v").output().is_ok();
    if !is_there {
        kit::missing("dig", "apt-get install bind9-dnsutils");
    }
    is_there
}

/// Runs a line with dig, which asks another port here.
fn dig(line: &str, port: u16) -> String {
    let words = line
        .split_whitespace()
        .skip(1)
        .map(|word| if word == "5364" { port.to_string() } else { word.into() });
    output(Command::new("dig").args(words).args(["-p", &port.to_string()]))
}

#[test]
fn the_steps_after_the_installation_work() {
    let directory = Folder::for_everybody();
    let file = configuration(&directory);
    let lines = shell_lines();
    let check = lines.iter().find(|line| line.starts_with("sixfold ")).unwrap();
    let words = check.split(' ').skip(1).map(|word| match word {
        "/etc/sixfold/sixfold.toml" => file.display().to_string(),
        word => word.to_owned(),
    });
    let effective = output(Command::new(env!("CARGO_BIN_EXE_sixfold")).args(words));
    for words in [
        "listen = [\"[::]:53\", \"0.0.0.0:53\"]",
        "allow = [\"local\", \"2001:db8:10::/48\"]",
        "forwarders = [\"[2001:db8::53]:53\"]",
        "prefixes = [\"64:ff9b::/96\"]",
    ] {
        assert!(effective.contains(words), "{words} is not in\n{effective}");
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("sixfold ")).count(), 1);

    let asked: Vec<&String> = lines.iter().filter(|line| line.starts_with("dig ")).collect();
    let [asked] = &asked[..] else { panic!("{asked:?}") };
    if !has_dig() {
        return;
    }
    // The same configuration, at a port that is free.
    let port = free_port();
    let flags = format!("serve --config {} --listen [::1]:{port}", file.display());
    let process = Process::start(&unprivileged(), &flags.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    let answer = dig(asked, port);
    // RFC 7050 section 2.2: 192.0.0.170 and 192.0.0.171.
    for address in ["64:ff9b::c000:aa\n", "64:ff9b::c000:ab\n"] {
        assert!(answer.contains(address), "{answer}");
    }
    process.stop();
}

/// The commands of a block with their outputs.
fn session(block: &str) -> Vec<(&str, Vec<&str>)> {
    let mut commands = Vec::new();
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command, Vec::new())),
            None => commands.last_mut().expect("a command comes first").1.push(line),
        }
    }
    commands
}

/// A line without what differs from run to run: white space, times; and the words that newer releases of dig add to a number.
fn masked(line: &str) -> String {
    let mut words: Vec<&str> = line.split_whitespace().filter(|word| *word != "(Synthesized)").collect();
    for place in 1..words.len() {
        if words[place].starts_with("ms") {
            words[place - 1] = "TIME";
        }
    }
    words.join(" ")
}

/// True if the lines are those wanted; `...` stands for any lines.
fn is_shown(wanted: &[String], lines: &[String]) -> bool {
    match wanted.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| is_shown(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines.first() == Some(first) && is_shown(rest, &lines[1..]),
    }
}

fn compare(command: &str, wanted: &[&str], printed: &str) {
    let wanted: Vec<String> = wanted.iter().copied().map(masked).collect();
    let lines: Vec<String> = printed.lines().map(masked).collect();
    assert!(wanted.iter().any(|line| line != "..."), "{command}: no output");
    assert!(
        is_shown(&wanted, &lines),
        "{command}: README.md shows\n{wanted:#?}\nand this was printed:\n{lines:#?}"
    );
}

#[test]
fn the_demonstration_prints_what_the_reader_sees() {
    let blocks = blocks("console");
    let [block] = &blocks[..] else { panic!("{} blocks", blocks.len()) };
    let session = session(block);
    let [(start, started), (ask, asked), (explain, explained)] = &session[..] else { panic!("{session:?}") };
    let arguments =
        start.strip_prefix("cargo run --release -p sixfold -- ").expect("the program is run by cargo");
    let port = free_port();
    let flags = format!("{arguments} --listen [::1]:{port}");
    let process = Process::start(&unprivileged(), &flags.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert!(process.wait_for("sixfold: ready").is_some(), "{}", process.log());
    assert_eq!(started, &["..."], "what cargo prints");

    // The two commands that it prints are those of the block, but for the port, the program and the number of the process.
    let hint = process.wait_for("sixfold: try: dig").unwrap();
    assert_eq!(hint.replace(&port.to_string(), "5364"), format!("sixfold: try: {ask}"));
    let hint = process.wait_for(" explain ").unwrap();
    let socket = socket_of(&hint);
    let shown = explain.replace("target/release/sixfold", env!("CARGO_BIN_EXE_sixfold"));
    assert_eq!(hint, format!("sixfold: try: {}", shown.replace(socket_of(explain), socket)));
    let number = socket_of(explain).strip_prefix("/tmp/sixfold-demo-").unwrap().strip_suffix("/control.sock");
    assert!(number.unwrap().parse::<u32>().is_ok(), "{explain}");

    let arguments: Vec<&str> = explain.split(' ').skip_while(|word| *word != "explain").collect();
    let told = ctl(Path::new(socket), &arguments);
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
    compare(explain, explained, &String::from_utf8(told.stdout).unwrap());
    if has_dig() {
        compare(ask, asked, &dig(ask, port));
    }
    process.stop();
}

/// The word of a command that is a socket.
fn socket_of(command: &str) -> &str {
    command.split(' ').find(|word| word.ends_with("/control.sock")).unwrap()
}

/// The cells of a row of a table, by the begin of the row.
fn cells(page: &str, begin: &str) -> Vec<String> {
    let row = page.lines().find(|line| line.starts_with(&format!("| {begin}")));
    let row = row.unwrap_or_else(|| panic!("no row {begin}"));
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_requirements_that_hold_are_those_of_the_page_of_conformance() {
    let (readme, page) = (source_text("README.md"), source_text("docs/conformance-of-servers.md"));
    let (heads, names) = (cells(&readme, "servers of Debian 12"), cells(&page, "requirements |"));
    let (shown, counted) =
        (cells(&readme, "requirements of the RFCs (MUST)"), cells(&page, "MUST: hold in all cases"));
    assert_eq!((heads.len(), shown.len()), (7, 7), "{heads:?} {shown:?}");
    for (head, shown) in heads.iter().zip(&shown).skip(1) {
        let (server, version) = head.rsplit_once(' ').unwrap_or((head.as_str(), ""));
        // The servers of Debian 12 have the number in their names there.
        let place = names.iter().position(|name| *name == server || *name == format!("{server} (12)"));
        let place = place.unwrap_or_else(|| panic!("{server} is not among {names:?}"));
        assert_eq!(*shown, counted[place], "{head}");
        let played = cells(&page, &format!("{} |", names[place]));
        assert!(played[1].contains(version), "{head}: {played:?}");
    }
}

#[test]
fn the_figure_for_dark_pages_differs_in_its_colours_only() {
    let without_colours = |name: &str| {
        let figure = source_text(name);
        let mut parts = figure.split("=\"#");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |whole, part| whole + "=\"" + part.split_once('"').unwrap().1)
    };
    let [light, dark] = ["docs/images/overview.svg", "docs/images/overview-dark.svg"];
    assert_eq!(without_colours(light), without_colours(dark));
    assert_ne!(source_text(light), source_text(dark));
}
