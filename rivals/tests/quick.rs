//! The benchmark runs from end to end, with the one device that needs no other program.
#![forbid(unsafe_code)]

mod budget;

use serde_json::Value;
use std::process::Command;

#[test]
fn a_quick_run_measures_the_reflector() {
    // The device has core 0, the tester core 1.
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return test_skip::skip("the device and the tester need two processors");
    }
    let file = std::env::temp_dir().join(format!("sixfold-rivals-test-{}.json", std::process::id()));
    let run = Command::new(env!("CARGO_BIN_EXE_sixfold-rivals"))
        .args(["--quick", "--seconds", "1", "--only", "cost,reflector", "--json"])
        .arg(&file)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
    assert!(text.contains("| reflector |"), "{text}");
    assert!(text.contains("sixfold / reflector, closed loop: -, goal at most 1.300: not measured"), "{text}");

    let all: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    let rounds = all["sections"]["cost"]["data"]["reflector"]["3,000 q/s"].as_array().unwrap();
    assert_eq!(rounds.len(), 1);
    assert!(rounds[0]["valid"].as_u64().unwrap() > 0, "{rounds:?}");
    assert!(rounds[0]["cpu_us_per_resolution"].as_f64().unwrap() > 0.0, "{rounds:?}");
}
