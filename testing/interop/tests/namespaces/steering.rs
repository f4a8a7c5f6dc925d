//! Distribution of queries over workers by name (`steer = "name"`), including the queries of a client with one
//! address and one port.

use crate::stream::ask_hosts;
use sixfold_interop::{Authority, Configuration, Lab, Program, Sixfold, address, wait_until, zones};

/// Queries, sent one at a time.
const QUESTIONS: u32 = zones::HOSTS;

/// Number of times that each worker has waited for work: at least once for each query of its own.
fn waits(id: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).expect("the process runs").flatten();
    let texts = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("status")).ok());
    let workers = texts.filter(|text| text.starts_with("Name:\tsixfold-"));
    workers
        .map(|text| {
            let count = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            count.and_then(|count| count.trim().parse().ok()).expect("the kernel counts switches")
        })
        .collect()
}

/// Sends queries for many names from one port, and returns the number of messages from one worker to the other.
fn both_workers_work(steer: &str) -> Option<f64> {
    let lab = Lab::new(&["nsd", "curl"])?;
    let _authority = Authority::of_lab(Program::Nsd, &lab);
    let configuration =
        Configuration::forwarding_to(&[address::FIRST]).server(&format!("steer = \"{steer}\"\n"));
    let sixfold = Sixfold::start(&lab, &configuration);
    let letters = |sixfold: &Sixfold<'_>| sixfold.metric("sixfold_worker_handoffs_total");

    // A thread gets its name when it first runs, which may be after the server is ready.
    assert!(wait_until(|| waits(sixfold.id()).len() == 2), "two workers");
    let (waits_before, letters_before) = (waits(sixfold.id()), letters(&sixfold));
    ask_hosts(&lab.kdig().with(&format!("-b {}#5555", address::CLIENT)), 0, QUESTIONS, |_| {});
    let (waits_after, letters_after) = (waits(sixfold.id()), letters(&sixfold));
    for (before, after) in waits_before.iter().zip(&waits_after) {
        assert!(after - before >= u64::from(QUESTIONS) / 4, "{waits_before:?} {waits_after:?}");
    }
    assert!(sixfold.stop().success());
    Some(letters_after - letters_before)
}

#[test]
fn the_kernel_hands_questions_of_one_port_to_the_worker_that_owns_the_name() {
    if let Some(letters) = both_workers_work("name") {
        // Queries that the metrics themselves cause.
        assert!(letters < f64::from(QUESTIONS) / 10.0, "{letters}");
    }
}

#[test]
fn steered_by_flow_one_worker_takes_all_questions_of_a_port_and_hands_on_those_of_the_other() {
    if let Some(letters) = both_workers_work("flow") {
        let share = letters / f64::from(QUESTIONS);
        assert!((0.25..0.75).contains(&share), "{share}");
    }
}
