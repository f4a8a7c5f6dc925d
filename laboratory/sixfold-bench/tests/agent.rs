//! Agents behind pipes: their orders, and the end of every process that they start.

use crate::fixtures;

use fixtures::{authority, folder_of, gone, host, question, runs, script, until};
use kit::Killed;
use measure::order::{Expectation, Lanes, Load, Pace};
use sixfold_bench::agent::protocol::{Start, Target, VERSION};
use sixfold_bench::agent_client::{AgentClient, AgentError};
use sixfold_bench::device::{Recipe, Settings};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

/// A load on an authority, without a device between them.
fn load(server: std::net::SocketAddr, rate_qps: f64, duration_ms: u64) -> Load {
    let (pace, duration) = (Pace::Open { rate_qps, burst: 1 }, Duration::from_millis(duration_ms));
    let expect = Expectation { aaaa_seed: 7, ttl: (0, 60), ..Expectation::native("dns64perf.test") };
    Load::of_new_names(server, pace, duration, "20.0.0.0/8".parse().unwrap(), expect)
}

/// An agent that the test controls by lines of text.
struct RawAgent {
    child: Killed,
    output: BufReader<ChildStdout>,
}

impl RawAgent {
    fn new() -> RawAgent {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"));
        let mut child = command
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        RawAgent { child: Killed(child), output }
    }

    fn ask(&mut self, line: &str) -> serde_json::Value {
        writeln!(self.child.0.stdin.as_mut().unwrap(), "{line}").unwrap();
        let mut reply = String::new();
        self.output.read_line(&mut reply).unwrap();
        serde_json::from_str(&reply).unwrap()
    }

    fn greet(&mut self) {
        let reply = self.ask(&format!("{{\"order\":\"hello\",\"protocol\":{VERSION}}}"));
        assert_eq!(reply["reply"], "hello");
    }

    /// Starts a script. Returns its process ID and its folder.
    fn start(&mut self, text: &str) -> (u32, std::path::PathBuf) {
        let order = sixfold_bench::agent::protocol::Order::Start(script(text));
        let reply = self.ask(&serde_json::to_string(&order).unwrap());
        let started = serde_json::from_value(reply).unwrap();
        (pid_of(&started), folder_of(&started))
    }
}

fn pid_of(started: &sixfold_bench::agent::protocol::Started) -> u32 {
    started.pid
}

#[test]
fn an_agent_says_who_and_where_it_is() {
    let host = host("tester");
    assert_eq!(host.greeting().version, env!("CARGO_PKG_VERSION"));
    assert!(!host.greeting().host.is_empty() && host.greeting().cores > 0);
    assert_eq!(host.greeting().allowed.len(), host.greeting().cores as usize);
    let again = AgentClient::connect("device", Some(&fixtures::prefix())).unwrap();
    assert_eq!(host.greeting().machine, again.greeting().machine, "one machine");
    host.quit().unwrap();
}

#[test]
fn another_version_of_the_protocol_is_refused_with_the_remedy() {
    let mut agent = RawAgent::new();
    let reply = agent.ask(r#"{"order":"hello","protocol":99}"#);
    let why = reply["why"].as_str().unwrap();
    assert_eq!(reply["reply"], "refused");
    assert!(why.contains("version 99") && why.contains("install the same release"), "{why}");
    // The agent still refuses other orders.
    assert_eq!(agent.ask(r#"{"order":"counters"}"#)["reply"], "refused");
}

#[test]
fn an_agent_of_another_version_is_refused_by_its_client() {
    let greeting = r#"read line; echo '{"reply":"hello","protocol":99,"version":"9.9","commit":"","host":"h","cores":1}'"#;
    let prefix = ["sh", "-c", greeting].map(str::to_owned);
    let error = AgentClient::connect("authority", Some(&prefix)).unwrap_err().to_string();
    assert!(error.contains("the authority") && error.contains("version 99"), "{error}");
}

#[test]
fn the_greeting_comes_first() {
    let why = RawAgent::new().ask(r#"{"order":"counters"}"#)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("the first order must be \"hello\", not \"counters\""), "{why}");
}

#[test]
fn a_line_that_is_no_order_is_refused_and_the_agent_continues() {
    let mut agent = RawAgent::new();
    agent.greet();
    for line in [
        "",
        "dance",
        "{}",
        r#"{"order":"dance"}"#,
        r#"{"order":"usage"}"#,
        r#"{"order":"stop","device":"x"}"#,
    ] {
        let reply = agent.ask(line);
        assert_eq!(reply["reply"], "refused", "{line}");
        assert!(reply["why"].as_str().unwrap().contains("not an order"), "{line}: {reply}");
    }
    assert_eq!(agent.ask(r#"{"order":"usage","device":5}"#)["why"], "this agent has no device number 5");
    agent.greet();
}

#[test]
fn a_command_that_is_no_agent_differs_from_an_agent_that_has_ended() {
    let connect = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        AgentClient::connect("device", Some(&words)).unwrap_err()
    };
    let error = connect(&["sh", "-c", "echo Welcome; read line"]);
    assert!(
        matches!(error, AgentError::UnexpectedReply { .. }) && error.to_string().contains("Welcome"),
        "{error}"
    );
    let error = connect(&["sh", "-c", "echo no route to host >&2; exit 255"]);
    assert!(matches!(error, AgentError::Disconnected { .. }), "{error}");
    assert!(
        error.to_string().contains("the device") && error.to_string().contains("no route to host"),
        "{error}"
    );
    assert!(matches!(connect(&["/nowhere/at-all"]), AgentError::Start { .. }));
    assert!(matches!(connect(&[]), AgentError::Start { .. }));
}

#[test]
fn an_agent_that_is_killed_in_the_middle_is_not_taken_for_a_wrong_command() {
    let mut prefix = ["timeout", "-s", "KILL", "2"].map(str::to_owned).to_vec();
    prefix.extend(fixtures::prefix());
    let mut host = AgentClient::connect("tester", Some(&prefix)).unwrap();
    let mut error = None;
    until("it is killed", || {
        error = host.environment(&[]).err();
        error.is_some()
    });
    let text = error.unwrap().to_string();
    assert!(text.contains("the tester (timeout") && text.contains("the connection was lost"), "{text}");
}

/// Starts a device of two processes, one of which leaves the group and the session. Returns their IDs, and the folder.
fn start_two(agent: &mut RawAgent) -> (u32, u32, std::path::PathBuf) {
    let (pid, folder) = agent.start("setsid sleep 300 & echo $! > child; exec sleep 300");
    let mut child = 0;
    until("the second process", || {
        let text = std::fs::read_to_string(folder.join("child")).unwrap_or_default();
        child = text.trim().parse().unwrap_or(0);
        child != 0 && runs(child)
    });
    (pid, child, folder)
}

#[test]
fn everything_that_an_agent_started_ends_when_it_is_killed() {
    let mut agent = RawAgent::new();
    agent.greet();
    let (pid, child, folder) = start_two(&mut agent);
    agent.child.0.kill().unwrap();
    until("the device's first process has ended", || !runs(pid));
    until("its second too", || !runs(child));
    until("its folder is gone", || gone(&folder));
}

#[test]
fn a_device_ends_when_its_supervisor_is_killed_and_its_folder_goes_with_the_agent() {
    let mut agent = RawAgent::new();
    agent.greet();
    let (pid, child, folder) = start_two(&mut agent);
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let supervisor = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap();
    assert!(Command::new("sh").args(["-c", "kill -s KILL $0", supervisor]).status().unwrap().success());
    until("the device has ended", || !runs(pid));
    let reply = agent.ask(r#"{"order":"log","device":0}"#);
    assert!(reply["why"].as_str().unwrap().contains("the supervisor of the device"), "{reply}");
    assert_eq!(agent.ask(r#"{"order":"quit"}"#)["reply"], "done");
    assert!(gone(&folder));
    assert!(!runs(child), "its second process, which the kernel does not know as its");
}

#[test]
fn everything_that_an_agent_started_ends_when_its_input_does() {
    let mut agent = RawAgent::new();
    agent.greet();
    let (pid, folder) = agent.start("sleep 300 & sleep 300");
    let (other, other_folder) = agent.start("trap '' TERM; sleep 300 & wait; sleep 300");
    drop(agent.child.0.stdin.take());
    assert!(agent.child.0.wait().unwrap().success());
    for (pid, folder) in [(pid, folder), (other, other_folder)] {
        assert!(!runs(pid), "{pid}");
        assert!(gone(&folder), "{}", folder.display());
    }
}

#[test]
fn a_stopped_device_has_time_to_end_in_order_and_no_more() {
    let mut host = host("device");
    let polite = host
        .start(&script("trap 'echo goodbye; exit 3' TERM; echo hello; while :; do sleep 0.05; done"))
        .unwrap();
    until("it says hello", || host.log(polite.device).unwrap().text.contains("hello"));
    let log = host.stop(polite.device, Duration::from_secs(60)).unwrap();
    assert!(log.text.starts_with("hello\n") && log.text.ends_with("goodbye\n"), "{log:?}");
    assert_eq!(log.ended.as_deref(), Some("exit status: 3"));
    let stubborn = host.start(&script("trap '' TERM; echo hello; while :; do sleep 0.05; done")).unwrap();
    until("it says hello", || host.log(stubborn.device).unwrap().text.contains("hello"));
    let log = host.stop(stubborn.device, Duration::from_millis(100)).unwrap();
    assert!(log.ended.unwrap().contains("signal: 9"));
    assert!(!runs(stubborn.pid));
    let error = host.stop(stubborn.device, Duration::ZERO).unwrap_err();
    assert!(matches!(error, AgentError::Refused { .. }), "{error}");
}

#[test]
fn usage_grows_with_work() {
    let mut host = host("device");
    // The work is in a child, which counts too.
    let device = host.start(&script("(while :; do :; done) & wait")).unwrap().device;
    let before = host.usage(device).unwrap();
    let mut used = Default::default();
    until("it works", || {
        used = host.usage(device).unwrap().since(&before, 1000);
        used.user_s + used.system_s > 0.2
    });
    assert!(
        used.threads.iter().any(|(name, user_s, system_s)| name == "sh" && user_s + system_s > 0.1),
        "{used:?}"
    );
    assert!(used.resident > 0 && used.resident_peak >= used.resident && used.cpu_us_per_query > 200.0);
    let idle = host.start(&script("exec sleep 300")).unwrap().device;
    let before = host.usage(idle).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let used = host.usage(idle).unwrap().since(&before, 0);
    assert!(used.user_s + used.system_s < 0.1, "{used:?}");
}

#[test]
fn a_device_that_does_not_start_gives_its_last_words() {
    let mut host = host("device");
    let device = host.start(&script("echo 'line 7: unknown option' >&2; exit 4")).unwrap().device;
    until("it has ended", || host.log(device).unwrap().ended.is_some());
    let log = host.log(device).unwrap();
    assert_eq!((log.ended.as_deref(), log.text.trim()), (Some("exit status: 4"), "line 7: unknown option"));
    // A program that does not exist.
    let mut order = script("");
    order.recipe = Recipe::Custom { command: vec!["/nowhere/at-all".into()], files: Default::default() };
    let device = host.start(&order).unwrap().device;
    until("it has ended", || host.log(device).unwrap().ended.is_some());
    assert!(host.log(device).unwrap().text.contains("/nowhere/at-all"));
}

#[test]
fn a_device_that_says_much_is_kept_by_its_end() {
    let mut host = host("device");
    let text = "i=0; while [ $i -lt 20000 ]; do echo line $i of many; i=$((i+1)); done; echo the end";
    let device = host.start(&script(text)).unwrap().device;
    until("it has said all", || host.log(device).unwrap().text.ends_with("the end\n"));
    let text = host.log(device).unwrap().text;
    assert!(text.len() <= 65_536 && text.contains("line 19999 of many") && !text.contains("line 0 of many"));
}

#[test]
fn a_command_line_gets_its_placeholders_files_cores_and_environment() {
    let mut host = host("device");
    let report = "cat {dir}/conf; echo port {listen_port} $COLOUR; taskset -pc $$; pwd";
    let start = Start {
        recipe: Recipe::Custom {
            command: ["sh", "-c", report].map(str::to_owned).to_vec(),
            files: [("conf".to_owned(), "up {upstream_address} {value}\n".to_owned())].into(),
        },
        settings: Settings {
            listen: "[::1]:0".parse().unwrap(),
            value: "many".into(),
            ..Settings::example()
        },
        cores: "0".to_owned(),
        environment: [("COLOUR".to_owned(), "green".to_owned())].into(),
    };
    let started = host.start(&start).unwrap();
    assert_ne!(started.listen.port(), 0);
    until("it has ended", || host.log(started.device).unwrap().ended.is_some());
    let text = host.log(started.device).unwrap().text;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["up ::1 many".to_owned(), format!("port {} green", started.listen.port())]);
    assert!(lines[2].ends_with(": 0"), "{text}");
    assert_eq!(started.files["conf"], "up ::1 many\n");
    let described = started.describe(&start, None);
    assert_eq!((described.name.as_str(), described.cores.as_str()), ("custom", "0"));
}

#[test]
fn files_stay_in_the_device_s_folder() {
    let mut host = host("device");
    for name in ["../x", "/tmp/x", "a/b", "..", ""] {
        let mut start = script("exec sleep 300");
        start.recipe = Recipe::Custom {
            command: vec!["sleep".into(), "300".into()],
            files: [(name.to_owned(), String::new())].into(),
        };
        let error = host.start(&start).unwrap_err().to_string();
        assert!(error.contains("plain file name"), "{error}");
    }
}

#[test]
fn a_device_that_runs_already_is_read_and_left_alone() {
    let mut theirs = Command::new("sleep").arg("299").spawn().unwrap();
    let mut host = host("device");
    let attached = host.attach(&Target::Pid { pid: theirs.id() }).unwrap();
    until("it has become sleep", || {
        host.attach(&Target::Pid { pid: theirs.id() }).unwrap().command == ["sleep", "299"]
    });
    assert!(host.usage(attached.device).unwrap().processes[0].resident > 0);
    let by_name = host.attach(&Target::Name { name: "sleep".into() }).unwrap();
    assert!(by_name.pids.contains(&theirs.id()));
    host.stop(attached.device, Duration::ZERO).unwrap();
    host.quit().unwrap();
    assert!(theirs.try_wait().unwrap().is_none());
    theirs.kill().unwrap();
    theirs.wait().unwrap();
}

#[test]
fn a_process_that_does_not_run_is_refused() {
    let error =
        host("device").attach(&Target::Name { name: "no-such-server".into() }).unwrap_err().to_string();
    assert!(error.contains("no process with the name \"no-such-server\""), "{error}");
}

#[test]
fn a_missing_program_is_refused_with_the_way_to_get_it() {
    let mut order = script("");
    order.recipe = Recipe::Template { name: "unbound".into(), program: Some("/nowhere/unbound".into()) };
    let error = host("device").start(&order).unwrap_err().to_string();
    assert!(error.contains("/nowhere/unbound") && error.contains("apt-get install unbound"), "{error}");
}

#[test]
fn the_facts_of_a_host_are_told() {
    let environment = host("tester").environment(&["::1".parse().unwrap()]).unwrap();
    assert!(environment.facts["interface to ::1"].starts_with("loopback"), "{environment:?}");
    assert!(environment.facts["tool"].starts_with(env!("CARGO_PKG_VERSION")));
}

#[test]
fn an_authority_keeps_its_address_when_another_takes_its_place() {
    for threads in [1, 0] {
        let mut host = host("authority");
        let error = host.counters().unwrap_err().to_string();
        assert!(error.contains("no authority"), "{error}");
        let order = measure::order::Authority { threads, ..authority("[::1]:0", 0.0) };
        let address = host.authority(&order).unwrap()[0];
        let name = question(7, [192, 0, 2, 1]);
        let empty = fixtures::ask(address, &name).unwrap();
        assert_eq!(empty[6..8], [0, 0], "no AAAA");
        let order = measure::order::Authority { aaaa_share: 1.0, ..order };
        assert_eq!(host.authority(&order).unwrap(), [address]);
        let full = fixtures::ask(address, &name).unwrap();
        assert_eq!(full[6..8], [0, 1], "one AAAA");
        assert!(full.ends_with(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1]));
        assert!(host.counters().unwrap().values().sum::<u64>() > 0);
        host.quit().unwrap();
        assert_eq!(fixtures::ask(address, &name), None);
    }
}

#[test]
fn a_load_tells_how_it_goes_and_ends_with_an_outcome() {
    // The authority has a thread of its own, or shares that of the load.
    for threads in [1, 0] {
        let mut host = host("tester");
        let order = measure::order::Authority { threads, ..authority("[::1]:0", 1.0) };
        let address = host.authority(&order).unwrap()[0];
        let mut told = 0;
        let outcome = host
            .load(&load(address, 500.0, 2000), |progress| {
                told += progress.counted.sent;
                true
            })
            .unwrap();
        assert_eq!((outcome.sent, outcome.valid), (1000, 1000), "{outcome:?}");
        assert!(told > 0 && told <= 1000, "{told}");
        assert_eq!(host.counters().unwrap()["address6"], 1000);
        // The authority still answers after the load.
        assert!(fixtures::ask(address, &question(7, [192, 0, 2, 1])).is_some());
        assert_eq!(host.counters().unwrap()["address6"], 1001);
    }
}

#[test]
fn a_load_ends_when_it_is_not_wanted_any_longer_and_the_next_is_whole() {
    let mut host = host("tester");
    let order = measure::order::Authority { threads: 0, ..authority("[::1]:0", 1.0) };
    let address = host.authority(&order).unwrap()[0];
    let begun = std::time::Instant::now();
    let error = host.load(&load(address, 100.0, 600_000), |_| false).unwrap_err();
    assert!(matches!(error, AgentError::Aborted { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(300), "it was to last 600 s");
    let outcome = host.load(&load(address, 100.0, 500), |_| true).unwrap();
    assert_eq!((outcome.sent, outcome.valid), (50, 50), "{outcome:?}");
}

#[test]
fn a_load_that_cannot_be_is_refused() {
    let mut host = host("tester");
    let order = measure::order::Authority { threads: 0, ..authority("[::1]:0", 1.0) };
    let address = host.authority(&order).unwrap()[0];
    let several = Load { lanes: Lanes { senders: 2, ..Lanes::default() }, ..load(address, 100.0, 500) };
    let error = host.load(&several, |_| true).unwrap_err();
    assert!(
        matches!(error, AgentError::Refused { .. })
            && error.to_string().contains("use 1 sender (--threads 1)"),
        "{error}"
    );
    assert!(host.counters().is_ok());
}

#[test]
fn an_agent_ends_in_the_middle_of_a_load_when_its_input_does() {
    let mut agent = RawAgent::new();
    agent.greet();
    let order = sixfold_bench::agent::protocol::Order::Authority(authority("[::1]:0", 1.0));
    let serving = agent.ask(&serde_json::to_string(&order).unwrap());
    let address = serving["addresses"][0].as_str().unwrap().parse().unwrap();
    let (pid, folder) = agent.start("exec sleep 300");
    let order = sixfold_bench::agent::protocol::Order::Load(load(address, 100.0, 600_000));
    assert_eq!(agent.ask(&serde_json::to_string(&order).unwrap())["reply"], "progress");
    drop(agent.child.0.stdin.take());
    until("the agent has ended", || agent.child.0.try_wait().unwrap().is_some());
    until("its device too", || !runs(pid));
    until("its folder is gone", || gone(&folder));
}
