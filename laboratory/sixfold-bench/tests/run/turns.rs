//! Several devices in one run: the order of their turns, their folders, the report of all.

use super::{Folder, PLAN, check, finish, interrupt, succeeded, wait_for};
use crate::fixtures::{self, lossy};
use measure::run::{Purpose, Run, Trial};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// A file with a Sixfold of which a script writes start and end into a file.
fn noted_device(folder: &Folder, name: &str, notes: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_sixfold-bench")).with_file_name("sixfold");
    let own = "[server]\nlisten = [\"{listen}\"]\n[upstream]\nforwarders = [\"{upstream}\"]\n\
               [control]\nsocket = \"{dir}/socket\"\n[metrics]\nlisten = \"\"\n";
    let (program, notes) = (program.display(), notes.display());
    // A signal ends the first wait; the second one ends when the server has.
    let start = format!(
        "echo start {name} >>{notes}\n{program} serve --config {{dir}}/own.toml --prefix {{prefix}} &\ntrap 'kill $!' TERM\n\
         wait $!\nwait $!\necho end {name} >>{notes}\n"
    );
    let device = "[device]\ncommand = [\"sh\", \"{dir}/start\"]\n[device.files]\n";
    let device = format!("{device}\"own.toml\" = '''\n{own}'''\nstart = '''\n{start}'''\n");
    folder.0.write(&format!("{name}.toml"), device).display().to_string()
}

fn read(folder: &Folder, device: &str) -> Run {
    let path = folder.out().join(device).join("run.json");
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Start of the first and of the last trial of each turn: all before the searches, each search, the self-test of the cell, the curve.
fn turns(run: &Run) -> Vec<(String, String)> {
    let is_search = |trial: &Trial| matches!(trial.purpose, Purpose::Search | Purpose::Confirm);
    let turn = |trial: &Trial| match trial.purpose {
        Purpose::Curve => u32::MAX,
        Purpose::CellSelfTest => u32::MAX - 1,
        _ if is_search(trial) => trial.repetition + 1,
        _ => 0,
    };
    let groups = run.trials.chunk_by(|one, other| turn(one) == turn(other));
    groups.map(|them| (them[0].started.clone(), them[them.len() - 1].started.clone())).collect()
}

/// Checks that the turns of two runs alternate. Times are whole seconds, so two turns may share one.
fn alternate(one: &Run, other: &Run) {
    let (one, other) = (turns(one), turns(other));
    // The preparation, two searches, the self-test of the cell, the curve.
    assert_eq!((one.len(), other.len()), (5, 5), "{one:?}\n{other:?}");
    let order: Vec<&(String, String)> =
        one.iter().zip(&other).flat_map(|(one, other)| [one, other]).collect();
    for pair in order.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "a turn begins before the one before it ended: {order:?}");
    }
    let between = order.iter().filter(|(first, _)| *first > one[0].0 && *first < other[4].1).count();
    assert!(between >= 3, "the run takes some seconds: {order:?}");
}

#[test]
fn the_searches_of_two_devices_alternate_and_one_of_them_runs_at_a_time() {
    let Some(folder) = Folder::for_sixfold(PLAN) else { return };
    let notes = folder.0.join("notes");
    let devices = ["one", "two"].map(|name| noted_device(&folder, name, &notes));
    let out = folder.out_text();
    let arguments = ["--device", &devices[0], "--device", &devices[1]];
    let output = folder.succeed(&arguments);
    let said = lossy(&output.stderr);
    let (one, two) = (read(&folder, "one"), read(&folder, "two"));
    for run in [&one, &two] {
        check(run);
        assert!(run.complete && run.results[0].strict.len() == 2, "{:?}", run.results);
        assert_eq!(run.settings.turns, ["one", "two"]);
    }
    alternate(&one, &two);
    let lines = fs::read_to_string(&notes).unwrap();
    let mut lines: Vec<&str> = lines.lines().collect();
    for pair in lines.chunks(2) {
        assert!(pair.len() == 2 && pair[0].replace("start", "end") == pair[1], "{lines:?}");
    }
    // A device that was started twice in its turn had lost its port to another process.
    lines.dedup();
    let mut starts: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("start ")).collect();
    starts.dedup();
    assert_eq!(starts, ["one", "two"].repeat(4), "check, two searches, curve");

    assert!(
        said.contains("one: ") && said.contains("two: ") && said.contains(" left for all: search 2"),
        "{said}"
    );
    let result = lossy(&output.stdout);
    assert!(result.contains("sh [one]") && result.contains("sh [two]"), "{result}");
    assert!(result.contains("two against one\n") && result.contains("ratio"), "{result}");
    assert!(result.contains(&format!("report of all devices: {out}/devices.html")), "{result}");
    let page = fs::read_to_string(folder.out().join("devices.html")).unwrap();
    for id in ["latency-by-rate-plot", "loss-by-rate-plot", "cpu-by-rate-plot"] {
        let svg = page.split("<svg ").find(|svg| svg.contains(&format!("id=\"{id}-t\""))).unwrap();
        let svg = svg.split("</svg>").next().unwrap();
        for (device, class) in [("sh [one]", "c1"), ("sh [two]", "c2")] {
            assert!(svg.contains(&format!("class=\"line {class}\"")), "{id} has no line of {device}");
            assert!(svg.contains(&format!(">{device}</text>")), "{id} has no key of {device}");
        }
    }
    assert!(page.contains("The devices one and two took turns, search by search"));
    for name in ["latency", "loss", "cpu"] {
        let svg = fs::read_to_string(folder.out().join(format!("devices-{name}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("sh [two]</text>"), "{svg}");
    }
    // Everything that works on the run of one device works on each.
    let bench = |arguments: &[&str]| {
        let output = fixtures::bench(arguments);
        (output.status.code(), lossy(&output.stdout))
    };
    let paths = ["one", "two"].map(|name| folder.out().join(name).display().to_string());
    assert_eq!(bench(&["report", &paths[0]]).0, Some(0));
    assert!(matches!(bench(&["compare", &paths[0], &paths[1]]).0, Some(0 | 1 | 3)));
    fs::remove_file(folder.out().join("devices.html")).unwrap();
    let (code, said) = bench(&["report", &out]);
    assert_eq!(code, Some(0));
    assert!(said.ends_with(&format!("{out}/devices.html\n")), "{said}");
    assert!(fs::read_to_string(folder.out().join("devices.html")).unwrap() == page, "the same page");
    let again = folder.finish(&arguments);
    assert_eq!(again.status.code(), Some(1));
    assert!(lossy(&again.stderr).contains("--resume"), "{}", lossy(&again.stderr));
}

#[test]
fn devices_in_turns_go_on_in_their_order_after_a_kill() {
    let Some(folder) = Folder::for_sixfold(PLAN) else { return };
    let names = ["sixfold", "sixfold-2"];
    let events = |device: &str| {
        let text = fs::read_to_string(folder.out().join(device).join("events.jsonl")).unwrap_or_default();
        text.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut child = folder.begin(&["--device", "sixfold", "--device", "sixfold"], Stdio::null());
    // In the first search of the second device.
    wait_for(&mut child, || events(names[1]).iter().any(|line| line.contains("\"purpose\":\"search\"")));
    let _ = child.0.kill();
    child.0.wait().unwrap();
    let kept = names.map(events);
    assert!(kept[0].iter().any(|line| line.contains("\"purpose\":\"search\"")));
    let output = folder.resume();
    let runs = names.map(|name| read(&folder, name));
    for ((run, name), kept) in runs.iter().zip(names).zip(kept) {
        check(run);
        assert!(run.complete && events(name).starts_with(&kept), "what was done is not done again");
    }
    alternate(&runs[0], &runs[1]);
    assert!(lossy(&output.stdout).contains("[sixfold]") && lossy(&output.stdout).contains("[sixfold-2]"));
}

#[test]
fn a_device_that_does_not_start_is_named_and_the_others_go_on() {
    let Some(folder) = Folder::for_sixfold(&PLAN.replace("repetitions = 2", "repetitions = 1")) else {
        return;
    };
    let broken = "[device]\ncommand = [\"ls\", \"/nothing-of-that-name\"]\n";
    let broken = folder.0.write("broken.toml", broken).display().to_string();
    let output = folder.finish(&["--device", &broken, "--device", "sixfold"]);
    let said = lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("broken: no further turn, the others go on: "), "{said}");
    assert!(said.contains("sixfold-bench: broken: ") && said.contains("nothing-of-that-name"), "{said}");
    assert!(read(&folder, "sixfold").complete);
    assert!(lossy(&output.stdout).contains("devices.html"));
    assert!(folder.out().join("devices-loss.svg").is_file());
}

#[test]
fn an_interrupt_ends_all_devices_in_turns_with_what_they_have() {
    let Some(folder) = Folder::for_sixfold(&PLAN.replace("200ms", "1s")) else { return };
    let mut child = folder.begin(&["--device", "sixfold", "--device", "sixfold"], Stdio::piped());
    let has_trial = || {
        let journal = folder.out().join("sixfold").join("events.jsonl");
        fs::read_to_string(journal).unwrap_or_default().contains("\"event\":\"trial\"")
    };
    wait_for(&mut child, has_trial);
    let said = interrupt(child);
    assert!(said.contains(&format!("run --resume --out {}\n", folder.out_text())), "{said}");
    assert!(!read(&folder, "sixfold").complete && folder.out().join("devices.html").is_file());
    assert!(!said.contains("no further turn"), "an interrupt is no failure: {said}");
}

#[test]
fn wrong_usage_of_several_devices_is_told_with_the_remedy() {
    let folder = Folder::with("");
    let out = folder.out_text();
    let file = |name: &str, text: &str| folder.0.write(name, text).display().to_string();
    let more = file("more.toml", "[device]\ntemplate = \"unbound\"\n[trial]\nduration = \"1s\"\n");
    let running = file("running.toml", "[device]\naddress = \"[::1]:53\"\n");
    let odd = file("odd.toml", "[device]\ntemplate = \"unbuond\"\n");
    for (other, further, word) in [
        ("bnid", None, "unbound"),
        ("unbound", Some("--device-option=x"), "FILE.toml"),
        ("unbound", Some("--device-program=/bin/true"), "FILE.toml"),
        (&*more, None, "[device] alone"),
        (&*running, None, "template or a command"),
        (&*odd, None, "odd: no device template"),
        ("/nothing.toml", None, "/nothing.toml"),
    ] {
        let arguments = ["--device", "sixfold", "--device", other, "--out", &out];
        let output = finish(&arguments.into_iter().chain(further).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{other} {further:?}");
        assert!(lossy(&output.stderr).contains(word), "{other} {further:?}: {}", lossy(&output.stderr));
    }
    assert!(!folder.out().exists(), "nothing was begun");
}

#[test]
fn the_estimate_of_several_devices_is_a_sum() {
    let folder = Folder::with("");
    let tuned = "[device]\ntemplate = \"unbound\"\noptions = [\"outgoing-range: 256\"]\nworkers = 2\n";
    let tuned = folder.0.write("tuned.toml", tuned).display().to_string();
    let output = succeeded(finish(&["--device", "unbound", "--device", &tuned, "--estimate"]));
    let plans: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plans["unbound"]["device"]["workers"], 1);
    assert_eq!(plans["tuned"]["device"]["workers"], 2);
    assert_eq!(plans["tuned"]["device"]["options"][0], "outgoing-range: 256");
    // Each turn begins with an empty cache.
    assert_eq!(plans["tuned"]["device"]["restart"], "repetition");
    let said = lossy(&output.stderr);
    let counts: Vec<u32> = said
        .lines()
        .map(|line| line.split("about ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(counts.len(), 3, "{said}");
    assert_eq!(counts[0] + counts[1], counts[2], "{said}");
}
