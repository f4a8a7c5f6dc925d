//! Reloads and scrapes under load, in windows that take turns: what they do to the queries. Prints a table and the goals; the exit
//! status is 1 if a goal is missed. Everything runs on the loopback interface.
//!
//! Read first: [`measure`], then `window.rs`.

#![forbid(unsafe_code)]

mod server;
mod window;

use clap::Parser;
use server::{Server, Setup};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use window::{Disturbance, Figures, Load, measure_window, median};

/// Goal: the 99.9th percentile with reloads is at most this much higher, in milliseconds.
const P999_MS: f64 = 5.0;

/// Goal: share of one processor that a scrape each second takes.
const SCRAPE_SHARE: f64 = 0.01;

/// Goal: longest answer of `/livez` while a reload is under way.
const PROBE: Duration = Duration::from_millis(100);

/// Scrapes for the processor time of one.
const SCRAPES: u32 = 300;

/// Reloads the configuration of a server under load, and scrapes its metrics, and compares the latencies with those without.
///
/// Example: cargo run --profile dist -p sixfold-interop --bin reloads -- --reloads 1000
#[derive(Parser)]
struct Options {
    /// Reloads in all windows together.
    #[arg(long, default_value_t = 1_000)]
    reloads: u32,
    /// Rounds; each has a window without, with reloads, and with scrapes.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Length of a window, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Queries a second.
    #[arg(long, default_value_t = 5_000)]
    rate: u32,
    /// Share of the queries that the cache can answer.
    #[arg(long, default_value_t = 0.5)]
    cached_share: f64,
    /// Workers of the server.
    #[arg(long, default_value_t = 2)]
    workers: u32,
    /// Lines of a response policy zone that each reload reads.
    #[arg(long, default_value_t = 0)]
    policy_lines: u32,
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("reloads: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all windows. True if all goals are met.
fn measure(options: &Options) -> Result<bool, String> {
    let setup = Setup { workers: options.workers, policy_lines: options.policy_lines };
    let mut server = Server::start(&setup)?;
    let per_window = options.reloads.div_ceil(options.rounds).max(1);
    let kinds = [
        Disturbance::None,
        Disturbance::Reloads(Duration::from_secs(options.seconds.into()) / per_window),
        Disturbance::Scrapes,
    ];
    let load = Load { seconds: options.seconds, rate: options.rate, cached_share: options.cached_share };
    let mut figures: [Vec<Figures>; 3] = Default::default();
    // The first window is for the caches and is not counted.
    measure_window(&mut server, &load, Disturbance::None, 0)?;
    for round in 0..options.rounds {
        for (place, &kind) in kinds.iter().enumerate() {
            let number = 1 + round * kinds.len() as u32 + place as u32;
            figures[place].push(measure_window(&mut server, &load, kind, number)?);
        }
    }
    println!(
        "| window | queries | not answered correctly in time | p50, ms | p99, ms | p99.9, ms | reloads | longest /livez, ms |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (name, all) in ["without", "reloads", "a scrape each second"].into_iter().zip(&figures) {
        println!("{}", row(name, all));
    }
    let scrape = scrape_seconds(&server)?;
    println!("\nprocessor time of a scrape: {:.2} ms", scrape * 1e3);
    let stop = server.stop_during_reload()?;
    println!("end after SIGTERM during a reload: {:.0} ms", stop.as_secs_f64() * 1e3);
    Ok(goals(&figures, scrape))
}

fn row(name: &str, all: &[Figures]) -> String {
    let sum = |value: fn(&Figures) -> u64| all.iter().map(value).sum::<u64>();
    let of = |value: fn(&Figures) -> f64| median(all.iter().map(value).collect());
    let probe = all.iter().map(|one| one.longest_probe).max().unwrap_or_default();
    format!(
        "| {name} | {} | {} | {:.2} | {:.2} | {:.2} | {} | {:.1} |",
        sum(|one| one.sent),
        sum(|one| one.sent - one.valid),
        of(|one| one.p50_ms),
        of(|one| one.p99_ms),
        of(|one| one.p999_ms),
        sum(|one| one.reloads),
        probe.as_secs_f64() * 1e3,
    )
}

/// Processor time of one scrape of an idle server, in seconds.
fn scrape_seconds(server: &Server) -> Result<f64, String> {
    // Sampling and log go on meanwhile, so the time in which nothing is asked is taken off.
    let begun = Instant::now();
    let before = server.processor_seconds()?;
    for _ in 0..SCRAPES {
        server.scrape()?;
    }
    let (after, took) = (server.processor_seconds()?, begun.elapsed());
    std::thread::sleep(took);
    let idle = server.processor_seconds()? - after;
    Ok((after - before - idle) / f64::from(SCRAPES))
}

/// Prints the goals. True if all are met.
fn goals(figures: &[Vec<Figures>; 3], scrape: f64) -> bool {
    let of = |place: usize, value: fn(&Figures) -> f64| median(figures[place].iter().map(value).collect());
    let p999 = |one: &Figures| one.p999_ms;
    let lost: u64 = figures[1].iter().map(|one| one.sent - one.valid).sum();
    let added = of(1, p999) - of(0, p999);
    let probe = figures[1].iter().map(|one| one.longest_probe).max().unwrap_or_default();
    let p99 = |one: &Figures| one.p99_ms;
    let goals = [
        (lost == 0, format!("queries lost in reloads: {lost} (goal: 0)")),
        (added <= P999_MS, format!("p99.9 in reloads: {added:+.2} ms (goal: at most {P999_MS:+} ms)")),
        (probe <= PROBE, format!("longest /livez in reloads: {probe:.1?} (goal: {PROBE:?})")),
        (
            scrape <= SCRAPE_SHARE,
            format!(
                "a scrape each second: {:.3} % of a processor (goal: {} %)",
                scrape * 100.0,
                SCRAPE_SHARE * 100.0
            ),
        ),
        (true, format!("p99 with scrapes: {:+.2} ms (goal: unchanged)", of(2, p99) - of(0, p99))),
    ];
    println!();
    for (met, text) in &goals {
        println!("{} {text}", if *met { "met:   " } else { "MISSED:" });
    }
    goals.iter().all(|(met, _)| *met)
}
