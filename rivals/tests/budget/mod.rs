//! Budget of instructions: each step of a query may cost what `rivals/budget.txt` says, 2 % more or less.
//!
//! valgrind counts instructions, which repeat exactly where compiler, C library and processor are alike. Two runs of different
//! lengths are subtracted, so that the start of the program does not count.

use std::path::Path;
use std::process::{Command, Stdio};

/// Most a count may differ from its budget. A lower count is a reason to lower the budget, or the next change may waste the gain.
const TOLERANCE: f64 = 0.02;

/// The file with the budget.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/budget.txt");

/// A line of the budget.
struct Row<'t> {
    /// Subcommand and workload of `sixfold-rivals`.
    step: [&'t str; 2],
    /// Lengths of the two runs.
    runs: [u64; 2],
    instructions: f64,
    /// The line without its comment.
    text: &'t str,
}

impl Row<'_> {
    /// Reads `resolve whole 256 1280 8540`.
    fn read(text: &str) -> Row<'_> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let &[command, workload, short, long, instructions] = &words[..] else {
            panic!("{FILE}: five words are wanted: {text}")
        };
        let number =
            |word: &str| word.parse().unwrap_or_else(|error| panic!("{FILE}: {text}: {word}: {error}"));
        Row {
            step: [command, workload],
            runs: [number(short), number(long)],
            instructions: number(instructions) as f64,
            text,
        }
    }

    /// Instructions of one step.
    fn count(&self) -> f64 {
        let [short, long] = self.runs.map(|count| callgrind(self.step, count));
        (long - short) / (self.runs[1] - self.runs[0]) as f64
    }
}

/// Instructions of the program for this number of steps.
fn callgrind([command, workload]: [&str; 2], count: u64) -> f64 {
    let file = std::env::temp_dir().join(format!("sixfold-budget-{}-{workload}-{count}", std::process::id()));
    let run = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env!("CARGO_BIN_EXE_sixfold-rivals"))
        .args([command, workload, &count.to_string()])
        .stdout(Stdio::null())
        .output()
        .unwrap();
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let _ = std::fs::remove_file(&file);
    let total = text.lines().find_map(|line| line.strip_prefix("summary: "));
    total
        .or_else(|| text.lines().find_map(|line| line.strip_prefix("totals: ")))
        .and_then(|figure| figure.trim().parse().ok())
        .unwrap_or_else(|| {
            panic!("valgrind counted nothing: {}: {}", run.status, String::from_utf8_lossy(&run.stderr))
        })
}

/// What the counts depend on, as the first line of the budget names it.
fn platform() -> String {
    let version = Command::new("rustc").arg("--version").output().map(|run| run.stdout).unwrap_or_default();
    let compiler = String::from_utf8_lossy(&version).split(" (").next().unwrap_or_default().to_owned();
    let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let vectors = if processor.contains(" avx2 ") { "with AVX2" } else { "without AVX2" };
    let id = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = id.lines().find_map(|line| line.strip_prefix("VERSION_ID=")).unwrap_or_default();
    format!("{compiler}, {} {vectors}, Debian {}", std::env::consts::ARCH, system.trim_matches('"'))
}

#[test]
fn each_step_costs_the_instructions_of_its_budget() {
    let text = std::fs::read_to_string(FILE).unwrap_or_else(|error| panic!("{FILE}: {error}"));
    let wanted =
        text.lines().find_map(|line| line.strip_prefix("platform: ")).expect("the budget names its platform");
    if wanted != platform() {
        return test_skip::skip(&format!("the budget is for {wanted}, and this is {}", platform()));
    }
    if !Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|run| run.success())
    {
        return test_skip::missing("valgrind", "apt-get install valgrind");
    }
    assert!(Path::new(FILE).is_absolute());
    let rows = text.lines().filter(|line| !line.starts_with("platform: "));
    let rows = rows.filter_map(|line| line.split('#').next().map(str::trim)).filter(|line| !line.is_empty());
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in rows.map(Row::read) {
        let measured = row.count();
        let ratio = measured / row.instructions;
        println!("{:<40} measured {measured:>8.0}, ratio {ratio:.3}", row.text);
        count += 1;
        if (ratio - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{}: measured {measured:.0}, {ratio:.3} of the budget", row.text));
        }
    }
    assert!(count >= 8, "{FILE} has {count} rows");
    assert!(
        wrong.is_empty(),
        "{}\nIf the change is worth it, write the measured count into {FILE} in the same commit, with the reason behind the #.",
        wrong.join("\n")
    );
}
