//! The benchmark runs from end to end, with the one device that needs no other program, and each step keeps its budget of instructions.

use serde_json::Value;
use std::process::Command;

#[test]
fn a_quick_run_measures_the_reflector() {
    // The device has core 0, the tester core 1.
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return kit::skip("the device and the tester need two processors");
    }
    let file = std::env::temp_dir().join(format!("sixfold-perf-test-{}.json", std::process::id()));
    let run = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"))
        .args(["perf", "--quick", "--seconds", "1", "--only", "cost,reflector", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("| reflector |"), "{text}");
    assert!(text.contains("sixfold / reflector, closed loop: -, goal at most 1.100: not measured"), "{text}");

    let all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let rounds = all["sections"]["cost"]["data"]["reflector"]["3,000 q/s"].as_array().unwrap();
    assert_eq!(rounds.len(), 1);
    assert!(rounds[0]["valid"].as_u64().unwrap() > 0, "{rounds:?}");
    assert!(rounds[0]["cpu_us_per_resolution"].as_f64().unwrap() > 0.0, "{rounds:?}");
}

/// The file with the instructions that each step may cost.
const BUDGET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/perf/budget.txt");

/// Compiler, processor and system, on which the counts depend, as the budget names them.
fn platform() -> String {
    let version = Command::new("rustc").arg("--version").output().map(|run| run.stdout).unwrap_or_default();
    let compiler = String::from_utf8_lossy(&version).split(" (").next().unwrap_or_default().to_owned();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vectors = if processor.contains(" avx2 ") { "with AVX2" } else { "without AVX2" };
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = release.lines().find_map(|line| line.strip_prefix("VERSION_ID=")).unwrap_or_default();
    format!("{compiler}, {} {vectors}, Debian {}", std::env::consts::ARCH, system.trim_matches('"'))
}

#[test]
#[ignore = "long: the program that packages carry takes minutes to build"]
fn each_step_costs_the_instructions_of_its_budget() {
    let text = std::fs::read_to_string(BUDGET).unwrap();
    let wanted =
        text.lines().find_map(|line| line.strip_prefix("platform: ")).expect("the budget names its platform");
    if wanted != platform() {
        return kit::skip(&format!("the budget is for {wanted}, and this is {}", platform()));
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        return kit::missing("valgrind", "apt-get install valgrind");
    }
    let run = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["run", "--quiet", "--locked", "--profile", "dist", "-p", "sixfold-bench", "--"])
        .args(["perf-part", "budget", BUDGET])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.matches("ratio").count() >= 8, "{said}");
}

#[test]
fn a_quick_run_attacks_sixfold_while_others_ask() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return kit::skip("the device and the tester need two processors");
    }
    if !crate::fixtures::has_sixfold() {
        return;
    }
    let file = std::env::temp_dir().join(format!("sixfold-perf-attacks-{}.json", std::process::id()));
    let run = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"))
        .args(["perf", "--quick", "--only", "validation-attacks,sixfold", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    // The program itself fails if Sixfold answers a name with a wrong signature.
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    let all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    if text.contains("CAP_SYS_ADMIN") {
        return kit::skip("clients of many networks need a network namespace");
    }
    for attack in ["small-keytrap", "hammer"] {
        let phases = all["sections"]["validation-attacks"]["data"]["sixfold"][attack][0].as_array().unwrap();
        // Without the attack, and at two rates.
        assert_eq!(phases.len(), 3, "{phases:?}");
        for (place, phase) in phases.iter().enumerate() {
            for kind in ["cached", "new_unsigned", "new_signed"] {
                assert!(phase[kind]["right"].as_u64().unwrap() > 0, "{attack}, {kind}: {phase}");
            }
            assert_eq!(phase["attack"]["sent"].as_u64().unwrap() > 0, place > 0, "{phase}");
        }
    }
}

/// Rounds of a load in the JSON of a run of the experiment `validation`.
fn rounds_of<'a>(zone: &'a Value, device: &str) -> &'a Vec<Value> {
    zone["devices"][device]["closed loop"].as_array().unwrap()
}

#[test]
fn a_short_run_measures_validation_in_zones_of_every_algorithm() {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return kit::skip("the device and the tester need two processors");
    }
    if !crate::fixtures::has_sixfold() {
        return;
    }
    let file = std::env::temp_dir().join(format!("sixfold-perf-validation-{}.json", std::process::id()));
    // A tenth of a second: 2,667 names for the load, and 5,000 for the start of the device, each with two signatures.
    let run = Command::new(env!("CARGO_BIN_EXE_sixfold-bench"))
        .args(["perf", "--rounds", "1", "--seconds", "0.1", "--only", "validation,sixfold", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    // The program itself fails if Sixfold gives no AD to a signed name, or an answer to one with a wrong signature.
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    let all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let data = &all["sections"]["validation"]["data"];
    for (zone, is_signed) in [("P-256", true), ("Ed25519", true), ("RSA-2048", true), ("unsigned", false)] {
        let zone = &data["zones"][zone];
        for device in ["sixfold, trust", "sixfold, validate"] {
            let round = &rounds_of(zone, device)[0];
            // On a busy machine a tenth of a second may pass without an answer, but none is wrong.
            assert_eq!(round["invalid"].as_object().unwrap().len(), 0, "{round}");
        }
        assert_eq!(
            zone["bare_us"]["beside_load"].as_array().unwrap().len(),
            usize::from(is_signed),
            "{zone}"
        );
    }
    // RFC 6147 section 5.1: AAAA and A; the first name of a zone has those of DS and DNSKEY beside them, and the second has not. A try
    // again, where the machine is busy, is one more.
    let least = |device: &str, figure: &str| {
        let figures = data["first_names"][device][figure].as_array().unwrap();
        assert_eq!(figures.len(), 20, "{device}");
        figures.iter().map(|count| count.as_f64().unwrap()).fold(f64::INFINITY, f64::min)
    };
    assert_eq!(least("sixfold, trust", "first_questions"), 2.0);
    assert_eq!(least("sixfold, validate", "first_questions"), 4.0);
    assert_eq!(least("sixfold, validate", "second_questions"), 2.0);
    assert!(data["memory"]["validate"]["peak_mib"][0].as_f64().unwrap() > 0.0, "{data}");
}
