//! `sixfold-sim`: runs worlds of the simulator. See `docs/simulation.md`.
#![forbid(unsafe_code)]

use sixfold_sim::run::{Plan, replay_command, run};
use sixfold_sim::spoofing::{Knowledge, Score, spoof_all};
use sixfold_sim::world::World;
use sixfold_sim::{keyed_worlds, policy_worlds};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "\
Runs the engine in a simulated network, in worlds that each follow from one seed, and checks every answer.

Usage: sixfold-sim [--seeds N] [--from S] [--queries M] [--minutes T] [--threads N] [--keep-going]
       sixfold-sim --seed S [--queries M] [--trace]
       sixfold-sim forge [--replies N] [--knows WHAT] [--from S] [--threads N]
       sixfold-sim policy [--seeds N] [--from S] [--threads N]
       sixfold-sim keys [--seeds N] [--from S] [--queries M] [--threads N]
       sixfold-sim keys --seed S [--queries M] [--trace]

  --seeds N      number of worlds (default 100; unlimited with --minutes)
  --from S       seed of the first world (default 1)
  --queries M    client queries in each world (default 10000)
  --minutes T    stop after this many minutes
  --threads N    number of threads (default: one for each processor)
  --keep-going   continue after a failure
  --seed S       run only the world of this seed
  --trace        print every event to standard error
  forge          simulate spoofing: attackers send forged replies, and none may succeed
  --replies N    forged replies of each attacker (default 1000000)
  --knows WHAT   run only this attacker: address, port, letters, all-but-cookie, changed-letters, old-cookie
  policy         run worlds of response policy zones, whose answers a model of its own predicts
  keys           run worlds of signed zones, with a forger who has everything but the keys

Example: sixfold-sim --seeds 1000 --queries 10000
";

struct Options {
    seed: Option<u64>,
    trace: bool,
    seeds: Option<u64>,
    minutes: Option<f64>,
    plan: Plan,
    forge: Option<Spoofing>,
    policy: bool,
    keys: bool,
}

/// Options of `sixfold-sim forge`.
struct Spoofing {
    replies: u64,
    knows: Vec<Knowledge>,
}

fn main() -> ExitCode {
    let options = match parse_options(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("sixfold-sim: {error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    if let Some(spoofing) = &options.forge {
        return run_spoofing(spoofing, &options.plan);
    }
    if options.policy {
        return run_policy(&options.plan);
    }
    if options.keys {
        return run_keys(&options);
    }
    match options.seed {
        Some(seed) => run_one(seed, options.plan.queries, options.trace),
        None => run_many(&options.plan),
    }
}

fn parse_options(mut words: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let plan = Plan { first_seed: 1, seeds: 100, queries: 10_000, time: None, threads, keep_going: false };
    let mut options = Options {
        seed: None,
        trace: false,
        seeds: None,
        minutes: None,
        plan,
        forge: None,
        policy: false,
        keys: false,
    };
    while let Some(word) = words.next() {
        let mut number = || -> Result<u64, String> {
            let text = words.next().ok_or(format!("{word}: the number is missing"))?;
            text.parse().map_err(|_| format!("{word}: {text:?} is not a number"))
        };
        match word.as_str() {
            "policy" if options.forge.is_none() && !options.keys => options.policy = true,
            "keys" if options.forge.is_none() && !options.policy => options.keys = true,
            "forge" if options.forge.is_none() && !options.policy && !options.keys => {
                options.forge = Some(Spoofing { replies: 1_000_000, knows: Knowledge::ALL.to_vec() });
            }
            "--replies" | "--knows" if options.forge.is_none() => {
                return Err(format!("{word} must follow `forge`"));
            }
            "--seed" => options.seed = Some(number()?),
            "--seeds" => options.seeds = Some(number()?),
            "--from" => options.plan.first_seed = number()?,
            "--queries" => options.plan.queries = number()?,
            "--minutes" => {
                let text = words.next().ok_or("--minutes: the number is missing")?;
                options.minutes =
                    Some(text.parse().map_err(|_| format!("--minutes: {text:?} is not a number"))?);
            }
            "--replies" => {
                let replies = number()?;
                if let Some(spoofing) = &mut options.forge {
                    spoofing.replies = replies;
                }
            }
            "--knows" => {
                let text = words.next().unwrap_or_default();
                let knows = Knowledge::ALL.into_iter().find(|knows| knows.name() == text);
                let knows = knows.ok_or(format!(
                    "--knows: {text:?} is not one of {}",
                    Knowledge::ALL.map(Knowledge::name).join(", ")
                ))?;
                if let Some(spoofing) = &mut options.forge {
                    spoofing.knows = vec![knows];
                }
            }
            "--threads" => options.plan.threads = number()?.max(1) as usize,
            "--keep-going" => options.plan.keep_going = true,
            "--trace" => options.trace = true,
            "--help" | "-h" => return Ok(None),
            _ => return Err(format!("{word}: unknown option")),
        }
    }
    options.plan.time =
        options.minutes.map(|minutes| Duration::from_secs_f64(minutes.clamp(0.0, 1e6) * 60.0));
    options.plan.seeds = options.seeds.unwrap_or(if options.plan.time.is_some() { u64::MAX } else { 100 });
    Ok(Some(options))
}

fn run_one(seed: u64, queries: u64, is_traced: bool) -> ExitCode {
    match World::new(seed, queries, is_traced).run() {
        Ok(tally) => {
            println!("seed {seed}: {tally:?}");
            ExitCode::SUCCESS
        }
        Err(violation) => {
            println!("seed {seed}: {}: {}", violation.invariant, violation.what);
            ExitCode::FAILURE
        }
    }
}

fn run_spoofing(spoofing: &Spoofing, plan: &Plan) -> ExitCode {
    let mut all = Score::default();
    println!(
        "attacker knows    forged replies   seen by the engine   questions   believed   by mere luck   seconds"
    );
    for &knows in &spoofing.knows {
        let start = Instant::now();
        let score = spoof_all(knows, spoofing.replies, plan.first_seed, plan.threads);
        println!(
            "{:<15} {:>16} {:>20} {:>11} {:>10} {:>14.1e} {:>9.1}",
            knows.name(),
            score.sent,
            score.delivered,
            score.questions,
            score.accepted,
            score.expected_by_luck,
            start.elapsed().as_secs_f64(),
        );
        if !score.is_in_order() {
            let Score { accepted, unserved, .. } = score;
            println!(
                "spoofing: {}: {accepted} believed, {unserved} questions not answered rightly",
                knows.name()
            );
        }
        all.add(&score);
    }
    println!(
        "{} forged replies, {} seen by the engine, {} believed; {} client questions not answered rightly",
        all.sent, all.delivered, all.accepted, all.unserved
    );
    if all.is_in_order() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_policy(plan: &Plan) -> ExitCode {
    let start = Instant::now();
    let score = policy_worlds::play_all(plan.first_seed, plan.seeds, plan.threads);
    for difference in &score.shown {
        println!("{difference}\nreplay with: sixfold-sim policy --seeds 1 --from SEED");
    }
    println!(
        "{} worlds, {} answers ({} with the mark of a zone), {} worlds with a difference, {:.1} s",
        score.worlds,
        score.answers,
        score.marked,
        score.different,
        start.elapsed().as_secs_f64()
    );
    if score.different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_keys(options: &Options) -> ExitCode {
    let Plan { first_seed, seeds, queries, threads, .. } = options.plan;
    if let Some(seed) = options.seed {
        return match keyed_worlds::play(seed, queries, options.trace) {
            Ok(tally) => {
                println!("seed {seed}: {tally:?}");
                ExitCode::SUCCESS
            }
            Err(what) => {
                println!("seed {seed}: {what}");
                ExitCode::FAILURE
            }
        };
    }
    let start = Instant::now();
    let score = keyed_worlds::play_all(first_seed, seeds, queries, threads);
    for (seed, what) in &score.shown {
        println!(
            "seed {seed}: {what}\nreplay with: sixfold-sim keys --queries {queries} --trace --seed {seed}"
        );
    }
    let (tally, seconds) = (&score.tally, start.elapsed().as_secs_f64());
    println!(
        "{} worlds, {} answers ({} with AD, {} SERVFAIL), {} questions upstream, {} replies forged, \
         {} verifications, {} worlds with a broken invariant, {seconds:.1} s, {:.0} answers/s on {threads} threads",
        score.worlds,
        tally.answers,
        tally.secure,
        tally.failed,
        tally.asked,
        tally.forged,
        tally.verifications,
        score.failures,
        tally.answers as f64 / seconds,
    );
    if score.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_many(plan: &Plan) -> ExitCode {
    let start = Instant::now();
    let outcome = run(plan);
    let seconds = start.elapsed().as_secs_f64();
    for failure in &outcome.failures {
        println!("seed {}: {}: {}", failure.seed, failure.violation.invariant, failure.violation.what);
        println!("replay with: {}", replay_command(failure.seed, plan.queries));
    }
    let tally = &outcome.tally;
    println!(
        "{} seeds, {} queries ({} judged, {} synthesized, {} SERVFAIL, {} answered at once), {} questions upstream, \
         {} forged replies, {} reloads, {} changes of gateways, {} of discovered prefixes, {} mapped answers, {} verdicts with {} healed answers, {} failures, {seconds:.1} s, {:.0} queries/s on {} threads",
        outcome.seeds,
        tally.queries,
        tally.judged,
        tally.synthesized,
        tally.failed,
        tally.hits,
        tally.asked,
        tally.forged,
        tally.reloads,
        tally.gateway_changes,
        tally.discoveries,
        tally.mapped,
        tally.trials,
        tally.healed,
        outcome.failures.len(),
        tally.queries as f64 / seconds,
        plan.threads,
    );
    if outcome.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
