//! `sixfold-bench run` from a user's point of view: whole runs at rates that every machine can handle, so that no test
//! depends on its speed. A trial that fails because the machine stalls changes no expectation.

use crate::fixtures::{self, RunningAuthority, lossy};
#[path = "run/turns.rs"]
mod turns;

use kit::Killed;
use measure::procedure::{Event, Procedure};
use measure::run::{Purpose, Run};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Time limit, longer than any of these runs takes, even beside a full build.
const TIME_LIMIT: Duration = Duration::from_secs(240);

/// Short trials at low rates.
const PLAN: &str = "profile = \"quick\"\n\
    [trial]\nduration = \"200ms\"\ntimeout = \"1s\"\npause = \"10ms\"\n\
    [search]\nrepetitions = 2\nstart = 50\nmax = 200\nprecision = 0.2\ncurve = [0.5]\n\
    [correctness]\nnames = 40\n";

/// The device of most tests.
const SIXFOLD: &str = "[device]\ntemplate = \"sixfold\"\n";

/// A plan with this device, of which a part is replaced.
fn with_sixfold(from: &str, to: &str) -> String {
    format!("{PLAN}{SIXFOLD}").replace(from, to)
}

/// The plan with one search.
fn once() -> String {
    with_sixfold("repetitions = 2", "repetitions = 1")
}

/// A folder with a plan, and the run of it.
struct Folder(kit::Folder);

impl Folder {
    fn with(plan: &str) -> Folder {
        let folder = kit::Folder::new();
        folder.write("plan.toml", plan);
        Folder(folder)
    }

    /// As [`Folder::with`]; none without the program that the plan starts.
    fn for_sixfold(plan: &str) -> Option<Folder> {
        fixtures::has_sixfold().then(|| Folder::with(plan))
    }

    /// The command that begins the run, with further arguments.
    fn command(&self, more: &[&str]) -> Command {
        let mut command = command(more);
        command.arg("--plan").arg(self.0.join("plan.toml")).arg("--out").arg(self.out());
        command
    }

    /// The run in the background. It may be killed.
    fn begin(&self, more: &[&str], stderr: Stdio) -> Killed {
        Killed(self.command(more).stdout(Stdio::null()).stderr(stderr).spawn().unwrap())
    }

    fn finish(&self, more: &[&str]) -> Output {
        self.command(more).output().unwrap()
    }

    fn succeed(&self, more: &[&str]) -> Output {
        succeeded(self.finish(more))
    }

    /// The rest of a run that has begun.
    fn resume(&self) -> Output {
        succeeded(finish(&["--resume", "--out", &self.out_text()]))
    }

    fn out_text(&self) -> String {
        self.out().display().to_string()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.out().join("log.txt")).unwrap_or_default()
    }

    fn out(&self) -> PathBuf {
        self.0.join("out")
    }

    fn run(&self) -> Run {
        serde_json::from_str(&fs::read_to_string(self.out().join("run.json")).unwrap()).unwrap()
    }

    /// The lines of the journal.
    fn events(&self) -> Vec<String> {
        let text = fs::read_to_string(self.out().join("events.jsonl")).unwrap_or_default();
        text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
    }
}

/// Waits until the condition is true, or the run has ended.
fn wait_for(run: &mut Killed, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() && run.0.try_wait().unwrap().is_none() {
        assert!(began.elapsed() < TIME_LIMIT, "a trial takes a second or two");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn command(arguments: &[&str]) -> Command {
    fixtures::command(&[&["run"], arguments].concat())
}

fn finish(arguments: &[&str]) -> Output {
    command(arguments).output().unwrap()
}

fn succeeded(output: Output) -> Output {
    assert!(output.status.success(), "{}", lossy(&output.stderr));
    output
}

/// Interrupts a run. Returns what it says until its end, which is that of an interrupt.
fn interrupt(mut run: Killed) -> String {
    assert!(Command::new("kill").args(["-INT", &run.0.id().to_string()]).status().unwrap().success());
    let mut said = String::new();
    std::io::Read::read_to_string(&mut run.0.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(run.0.wait().unwrap().code(), Some(1), "{said}");
    said
}

/// Checks the conditions that hold for every record.
fn check(run: &Run) {
    assert_eq!(run.schema, measure::run::SCHEMA);
    let mut asked = BTreeSet::new();
    for (number, trial) in run.trials.iter().enumerate() {
        assert_eq!(trial.number as usize, number);
        let outcome = &trial.outcome;
        assert_eq!(
            outcome.sent,
            outcome.valid + outcome.invalid_total() + outcome.late + outcome.lost,
            "{outcome:?}"
        );
        // 200 ms at this rate, one query more or less.
        let planned = trial.rate_qps * 0.2;
        assert!((outcome.sent as f64 - planned).abs() <= 1.0, "{} of {planned}", outcome.sent);
        assert_eq!(trial.device.is_some(), !trial.purpose.is_self_test());
        assert!(!trial.authority.is_empty());
        // The names of the self-test are never sent to the device.
        let at_device = !trial.purpose.is_self_test();
        for name in trial.first_name..trial.first_name + outcome.names_used * u64::from(at_device) {
            assert!(asked.insert(name), "name {name} was asked twice");
        }
    }
}

#[test]
fn a_run_ends_with_a_bundle_and_a_report() {
    let Some(folder) = Folder::for_sixfold(&format!("{PLAN}{SIXFOLD}")) else { return };
    let output = folder.succeed(&[]);
    let said = lossy(&output.stderr);
    assert!(said.contains("NOT compliant") && said.contains("40 of 40 answers are valid"), "{said}");
    assert!(lossy(&output.stdout).contains("RFC 8219 compliant: no"), "{}", lossy(&output.stdout));
    let run = folder.run();
    check(&run);
    assert!(run.complete && run.results.len() == 1 && run.results[0].strict.len() == 2, "{:?}", run.results);
    assert!(run.self_test.as_ref().unwrap().sufficient);
    assert_eq!(run.correctness.as_ref().unwrap().valid, 40);
    assert_eq!(run.trials.iter().filter(|trial| trial.purpose == Purpose::Curve).count(), 1);
    assert!(run.device.files.values().any(|file| file.contains("2001:2:0:64::/96")), "{:?}", run.device);
    assert!(run.hosts.contains_key("tester") && run.hosts.contains_key("device"));
    for file in ["report.html", "trials.csv", "events.jsonl", "plan.json", "log.txt"] {
        assert!(folder.out().join(file).metadata().unwrap().len() > 100, "{file}");
    }
    let again = folder.finish(&[]);
    assert!(!again.status.success() && lossy(&again.stderr).contains("--resume"), "{}", lossy(&again.stderr));
}

#[test]
fn the_procedure_of_the_papers_bisects_and_restarts_the_device_for_each_trial() {
    let Some(folder) = Folder::for_sixfold(
        "profile = \"quick\"\n[trial]\nduration = \"200ms\"\npause = \"10ms\"\n[search]\nrepetitions = 2\nstart = 20\nmax = 128\n\
         width = 16\n[correctness]\nnames = 40\n[device]\ntemplate = \"sixfold\"\n",
    ) else {
        return;
    };
    folder.succeed(&["--procedure", "lencse2017"]);
    let run = folder.run();
    let settings = &run.settings;
    let equipment = run.equipment.as_ref().unwrap();
    assert_eq!(
        (&*settings.procedure, equipment.senders, equipment.ports, equipment.group),
        ("lencse2017", 1, 1, 1)
    );
    assert_eq!(settings.bisection.map(|it| (it.low, it.high, it.width)), Some((0.0, 128.0, 16.0)));
    let trials: Vec<_> = run.trials.iter().filter(|it| !it.purpose.is_self_test()).collect();
    // 128 / 2^3 is 16. A trial that the machine spoiled may have been repeated.
    assert!(trials.len() >= 6 && trials[0].rate_qps == 64.0, "{}", trials.len());
    assert!(trials.iter().all(|trial| trial.fresh && trial.rate_qps % 16.0 == 0.0));
    assert_eq!(run.results[0].strict.len(), 2);
    let report = fs::read_to_string(folder.out().join("report.html")).unwrap();
    for part in [
        "those of Lencse and Bakai (2017)",
        "bisected the interval from 0 to 128 queries/s",
        "the rule of dns64perf++",
    ] {
        assert!(report.contains(part), "{part}");
    }
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let Some(folder) = Folder::for_sixfold(&format!("{PLAN}{SIXFOLD}")) else { return };
    // Killed twice: in the self-test or soon after it, and once more later.
    let mut kept = Vec::new();
    for begin in [true, false] {
        let mut resumed = command(&["--resume", "--out", &folder.out_text()]);
        let mut child = match begin {
            true => folder.begin(&[], Stdio::null()),
            false => Killed(resumed.stderr(Stdio::null()).spawn().unwrap()),
        };
        wait_for(&mut child, || folder.events().len() >= kept.len() + 4);
        // SIGKILL.
        let _ = child.0.kill();
        child.0.wait().unwrap();
        let events = folder.events();
        assert!(events.starts_with(&kept), "what was done is not done again");
        kept = events;
    }
    assert!(kept.len() >= 3);
    folder.resume();
    let run = folder.run();
    check(&run);
    assert!(run.complete);
    let events = folder.events();
    assert!(events.starts_with(&kept), "what was done is not done again");
    // The journal alone gives the same results.
    let beginning = fs::read_to_string(folder.out().join("plan.json")).unwrap();
    let beginning: serde_json::Value = serde_json::from_str(&beginning).unwrap();
    let mut replayed = Procedure::new(serde_json::from_value(beginning["plan"].clone()).unwrap());
    for line in &events {
        replayed.record(serde_json::from_str::<Event>(line).unwrap()).unwrap();
    }
    assert_eq!(replayed.results(), run.results);
}

#[test]
fn a_run_that_was_killed_before_its_bundle_gets_the_same_one() {
    let plan = format!("{PLAN}{SIXFOLD}[authority]\naddress = \"127.0.0.1:0\"\n");
    let Some(folder) = Folder::for_sixfold(&plan) else { return };
    folder.succeed(&["--device-address", "127.0.0.1:0"]);
    let whole = folder.run();
    check(&whole);
    assert!(
        whole.device.address.starts_with("127.0.0.1:") && whole.settings.authority.starts_with("127.0.0.1:")
    );
    for file in ["run.json", "report.html"] {
        fs::remove_file(folder.out().join(file)).unwrap();
    }
    // The bundle needs no host and no device: this PATH has none.
    let mut resumed = command(&["--resume", "--out", &folder.out_text()]);
    succeeded(resumed.env("PATH", "/nowhere").output().unwrap());
    let again = folder.run();
    assert!(again.complete && !again.device.version.is_empty(), "{:?}", again.device);
    assert!(again == Run { ended: again.ended.clone(), ..whole });
}

#[test]
fn a_device_that_ends_by_itself_is_started_anew_and_that_is_told() {
    let Some(folder) = Folder::for_sixfold(&with_sixfold("200ms", "1s")) else { return };
    let mut child = folder.begin(&[], Stdio::null());
    wait_for(&mut child, || folder.events().iter().any(|line| line.contains("\"purpose\":\"search\"")));
    let started = folder.log();
    let (_, pid) = started.split_once("device started as process ").unwrap();
    let (pid, _) = pid.split_once(':').unwrap();
    // The first of several seconds of trials is over.
    assert!(Command::new("kill").args(["-KILL", pid]).status().unwrap().success());
    assert!(child.0.wait().unwrap().success(), "{}", folder.log());
    let log = folder.log();
    assert!(log.contains("ended by itself") && log.contains("SIGKILL") && log.contains("restarted"), "{log}");
    // One more for each port that another test took meanwhile.
    let starts = 2 + log.matches("was taken before the device had it").count();
    assert_eq!(log.matches("device started as process").count(), starts, "{log}");
    let run = folder.run();
    assert!(
        run.complete && run.warnings.iter().any(|it| it.contains("ended by itself")),
        "{:?}",
        run.warnings
    );
    assert!(run.trials.iter().any(|trial| trial.fresh && trial.number > 0 && !trial.purpose.is_self_test()));
    // Without the restart every later trial would have failed.
    assert!(run.trials.last().unwrap().passed() || run.results[0].strict[1] > 0.0, "{:?}", run.results);
}

#[test]
fn a_device_whose_port_was_taken_is_started_at_another_port() {
    let Some(folder) = Folder::for_sixfold("") else { return };
    let program = fixtures::sixfold_that_loses_its_port(&folder.0);
    folder.0.write("plan.toml", format!("{PLAN}{SIXFOLD}program = \"{}\"\n", program.display()));
    let output = folder.finish(&[]);
    let said = lossy(&output.stderr);
    assert!(output.status.success() && folder.run().complete, "{said}");
    assert!(said.contains("was taken before the device had it: it is started at another port"), "{said}");
    let log = folder.log();
    assert!(log.contains("the port is in use"), "the output of the first start is kept: {log}");
    let run = folder.run();
    assert!(!run.warnings.iter().any(|it| it.contains("ended by itself")), "{:?}", run.warnings);
}

#[test]
fn a_port_that_is_always_taken_and_a_port_of_the_user_end_a_run() {
    let folder = Folder::with(PLAN);
    let starts = folder.0.join("starts");
    let script = folder.0.join("device");
    fs::write(&script, format!("echo >>'{}'\necho Address already in use\nexit 1\n", starts.display()))
        .unwrap();
    let command = format!("sh {}", script.display());
    for (address, expected) in [("[::1]:0", 4), ("[::1]:9", 1)] {
        let _ = fs::remove_file(&starts);
        let _ = fs::remove_dir_all(folder.out());
        let output = folder.finish(&["--command", &command, "--device-address", address]);
        let said = lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("Address already in use"), "{said}");
        assert_eq!(fs::read_to_string(&starts).unwrap().lines().count(), expected, "{said}");
    }
}

#[test]
fn an_interrupt_while_the_device_starts_is_an_interrupt() {
    let folder = Folder::with(PLAN);
    let mut child = folder.begin(&["--command", "sleep 1000"], Stdio::piped());
    wait_for(&mut child, || folder.log().contains("about "));
    std::thread::sleep(Duration::from_millis(300));
    let said = interrupt(child);
    assert!(said.contains("interrupted") && said.contains("--resume"), "{said}");
}

#[test]
fn a_reader_that_has_seen_enough_does_not_end_a_run() {
    let Some(folder) = Folder::for_sixfold(&format!("{PLAN}{SIXFOLD}")) else { return };
    let run = folder.command(&[]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut child = Killed(run.unwrap());
    drop((child.0.stderr.take(), child.0.stdout.take()));
    assert!(child.0.wait().unwrap().success());
    assert!(folder.run().complete);
}

#[test]
fn an_authority_that_runs_already_is_used_as_it_is() {
    let Some(folder) = Folder::for_sixfold("") else { return };
    let authority = RunningAuthority::start(&["--listen", "[::1]:0"]);
    let listen = authority.at;
    let plan = format!("{PLAN}{SIXFOLD}[authority]\nexternal = true\naddress = \"{listen}\"\n");
    folder.0.write("plan.toml", plan);
    folder.succeed(&[]);
    let run = folder.run();
    assert!(run.complete && run.self_test.is_some() && run.results[0].summary.median > 0.0);
    assert_eq!(run.settings.authority, listen.to_string());
}

#[test]
fn a_sweep_of_any_parameter_measures_each_value_and_keeps_its_configuration() {
    let Some(folder) = Folder::for_sixfold(&once()) else { return };
    let sweep = ["--sweep", "pending=5000,6000", "--device-option", "limits.pending-per-client = {value}"];
    folder.succeed(&sweep);
    let run = folder.run();
    let values: Vec<&str> = run.results.iter().map(|result| result.sweep.as_str()).collect();
    assert_eq!(values, ["5000", "6000"]);
    for value in values {
        let file = &run.device.files[&format!("{value}/sixfold.toml")];
        assert!(file.contains(&format!("limits.pending-per-client = {value}\n")), "{file}");
        assert!(folder.out().join("configs").join(format!("{value}_sixfold.toml")).is_file());
    }
}

#[test]
fn a_device_by_command_gets_its_files_and_the_bundle_has_them() {
    let Some(folder) = Folder::for_sixfold("") else { return };
    let program = Path::new(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold");
    // The device needs both files: one says where it listens, the other how it is started.
    let own = "[server]\nlisten = [\"{listen}\"]\n[upstream]\nforwarders = [\"{upstream}\"]\n\
               [control]\nsocket = \"{dir}/socket\"\n[metrics]\nlisten = \"\"\n";
    let start = format!("exec {} serve --config {{dir}}/own.toml --prefix \"$1\"", program.display());
    let device = format!(
        "[device]\ncommand = [\"sh\", \"{{dir}}/start\", \"{{prefix}}\"]\n[device.files]\n\"own.toml\" = '''\n{own}'''\nstart = '{start}'\n"
    );
    folder.0.write("plan.toml", format!("{PLAN}{device}").replace("repetitions = 2", "repetitions = 1"));
    let more = folder.0.write("note", "workers {workers}");
    folder.succeed(&["--device-file", &more.display().to_string()]);
    let run = folder.run();
    check(&run);
    assert_eq!(run.device.files.keys().collect::<Vec<_>>(), ["note", "own.toml", "start"]);
    let listen = format!("listen = [\"{}\"]", run.device.address);
    assert!(run.device.files["own.toml"].contains(&listen), "{:?}", run.device.files);
    let kept = |name: &str| fs::read_to_string(folder.out().join("configs").join(name)).unwrap();
    assert_eq!(
        (kept("own.toml"), kept("note").as_str()),
        (run.device.files["own.toml"].clone(), "workers 1")
    );
    // The plan of the record has the text as it was written, so --resume has it, too.
    let plan = fs::read_to_string(folder.out().join("plan.json")).unwrap();
    assert!(plan.contains("{upstream}") && plan.contains("workers {workers}"), "{plan}");
}

#[test]
fn an_interrupted_run_leaves_what_it_has_and_says_how_to_go_on() {
    let Some(folder) = Folder::for_sixfold(&with_sixfold("200ms", "2s")) else { return };
    let mut child = folder.begin(&[], Stdio::piped());
    wait_for(&mut child, || folder.events().iter().any(|line| line.contains("\"event\":\"trial\"")));
    let said = interrupt(child);
    assert!(said.contains("--resume"), "{said}");
    let run = folder.run();
    assert!(!run.complete && !run.trials.is_empty());
    assert!(folder.out().join("report.html").is_file());
}

#[test]
fn a_device_that_does_no_dns64_is_not_timed() {
    let folder = Folder::with(PLAN);
    let bench = env!("CARGO_BIN_EXE_sixfold-bench");
    // An authority instead of a device: it answers, but synthesizes nothing.
    let device = format!("{bench} authority --listen [{{listen_address}}]:{{listen_port}}");
    let output = folder.finish(&["--command", &device]);
    let said = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no valid answers"), "{said}");
}

#[test]
fn wrong_usage_is_told_with_the_remedy() {
    let folder = Folder::with("");
    let out = folder.out_text();
    for (arguments, word) in [
        (vec!["--out", &out], "--device"),
        (vec!["--device", "bnid", "--out", &out], "unbound"),
        (vec!["--device", "unbound", "--profile", "fast", "--out", &out], "quick"),
        (vec!["--resume", "--out", &out], "without --resume"),
        (vec!["--device-address", "[::1]:5301", "--out", &out], "authority.address"),
        (vec!["--device", "unbound", "--sweep", "range=1,2", "--out", &out], "{value}"),
        (vec!["--device", "unbound", "--sweep", "workers=1,two", "--out", &out], "two"),
        (vec!["--plan", "/nothing.toml", "--out", &out, "--device", "unbound"], "/nothing.toml"),
    ] {
        let output = finish(&arguments);
        assert!(!output.status.success());
        assert!(lossy(&output.stderr).contains(word), "{arguments:?}: {}", lossy(&output.stderr));
    }
    assert_eq!(finish(&["--device", "unbound"]).status.code(), Some(2), "--out is missing");
}

#[test]
fn a_device_is_measured_over_encrypted_transports() {
    for transport in ["tcp-reuse", "tls", "https", "quic"] {
        let Some(folder) = Folder::for_sixfold(&once()) else { return };
        folder.succeed(&["--transport", transport, "--connections", "2"]);
        let run = folder.run();
        check(&run);
        let equipment = run.equipment.as_ref().unwrap();
        assert_eq!((equipment.transport.name(), equipment.connections), (transport, 2));
        for trial in &run.trials {
            let is_at_device = !trial.purpose.is_self_test();
            let asked = if is_at_device { transport } else { "udp" };
            assert_eq!(trial.outcome.transport.name(), asked);
            // A trial keeps its connections, whatever the number of its queries.
            let opened = trial.outcome.connections.as_ref().map(|connections| connections.opened);
            assert_eq!(opened, is_at_device.then_some(2), "{:?}", trial.outcome.connections);
        }
        assert!(!run.device.files.contains_key("key.pem"), "a key is in the record");
        assert_eq!(run.device.files.contains_key("certificate.pem"), transport != "tcp-reuse");
        assert!(!lossy(&fs::read(folder.out().join("run.json")).unwrap()).contains("PRIVATE KEY"));
    }
}

#[test]
fn three_tester_hosts_send_parts_of_each_trial() {
    let host = format!("[[tester.more]]\nhost = [\"{}\"]\n", env!("CARGO_BIN_EXE_sixfold-bench"));
    let Some(folder) = Folder::for_sixfold(&format!("{}{host}{host}", once())) else { return };
    folder.succeed(&[]);
    let run = folder.run();
    assert_eq!(run.equipment.as_ref().unwrap().hosts, 3);
    assert!(
        run.hosts.contains_key("tester 2") && run.hosts.contains_key("tester 3"),
        "{:?}",
        run.hosts.keys()
    );
    let mut end = 0;
    for trial in run.trials.iter().filter(|trial| !trial.purpose.is_self_test()) {
        let outcome = &trial.outcome;
        // Each host rounds its third of 200 ms at this rate to whole queries.
        assert!((outcome.sent as f64 - trial.rate_qps * 0.2).abs() <= 3.0, "{outcome:?}");
        assert_eq!(outcome.sent, outcome.valid + outcome.invalid_total() + outcome.late + outcome.lost);
        assert!(
            (outcome.rate_asked - trial.rate_qps).abs() < 1e-6,
            "{} {}",
            outcome.rate_asked,
            trial.rate_qps
        );
        assert_eq!(outcome.latency_us.intended.count, outcome.valid);
        // Two lookups for each name: no host asked for the names of another one, which the device would have had in its cache.
        let asked = trial.authority["asked_aaaa"] + trial.authority["asked_a"];
        assert!(asked >= 2 * outcome.valid, "{asked} {outcome:?}");
        assert!(trial.first_name >= end, "trials share names");
        end = trial.first_name + outcome.names_used;
    }
}

#[test]
fn the_rfc_8219_profile_prints_its_estimate() {
    let folder = Folder::with("");
    let output = succeeded(finish(&["--device", "unbound", "--estimate", "--out", &folder.out_text()]));
    assert!(lossy(&output.stderr).contains(" h "), "{}", lossy(&output.stderr));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["trial"]["duration"], "60000ms");
    assert_eq!(plan["search"]["repetitions"], 20);
    assert!(!folder.out().exists(), "an estimate begins nothing");
}
