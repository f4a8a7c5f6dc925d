//! Forger against Sixfold, over real sockets in network namespaces. Prints a table. The exit status is 1 if a forged
//! reply was accepted.

#![forbid(unsafe_code)]

use clap::{Parser, Subcommand, ValueEnum};
use sixfold_interop::Lab;
use sixfold_interop::forgery::{Cookies, Knowledge, attack, heading, prepare, run_attack, serve};
use std::net::SocketAddrV4;
use std::process::ExitCode;

/// Floods a running Sixfold with forged replies of its upstream and counts those that are accepted.
///
/// Example: cargo run --profile dist -p sixfold-interop --bin forger -- --replies 10000000
#[derive(Parser)]
struct Options {
    /// Number of forged replies for each kind of forger.
    #[arg(long, default_value_t = 10_000_000)]
    replies: u64,
    /// Knowledge of the forger. Default: all kinds, one after the other.
    #[arg(long, value_parser = knowledge)]
    knowledge: Vec<Knowledge>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Processes that this program starts in a namespace.
#[derive(Subcommand)]
enum Part {
    /// Upstream, forger and client.
    #[command(hide = true)]
    Act {
        #[arg(long, value_parser = knowledge)]
        knowledge: Knowledge,
        #[arg(long)]
        replies: u64,
    },
    /// The upstream alone.
    #[command(hide = true)]
    Serve {
        #[arg(long)]
        at: SocketAddrV4,
        #[arg(long, value_enum)]
        cookies: Conduct,
    },
}

/// Behaviour of the upstream with cookies.
#[derive(Clone, Copy, ValueEnum)]
enum Conduct {
    None,
    Returned,
    Wrong,
}

fn knowledge(name: &str) -> Result<Knowledge, String> {
    let names = Knowledge::ALL.map(Knowledge::name).join(", ");
    Knowledge::named(name).ok_or_else(|| format!("one of {names}"))
}

fn main() -> ExitCode {
    let options = Options::parse();
    let result = match options.part {
        Some(Part::Act { knowledge, replies }) => {
            run_attack(knowledge, replies).map_err(|error| error.to_string())
        }
        Some(Part::Serve { at, cookies }) => {
            let cookies = match cookies {
                Conduct::None => Cookies::None,
                Conduct::Returned => Cookies::Returned,
                Conduct::Wrong => Cookies::Wrong,
            };
            serve(at, cookies).map_err(|error| error.to_string())
        }
        None => table(&options.knowledge, options.replies),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("forger: {error}");
            ExitCode::FAILURE
        }
    }
}

fn table(wanted: &[Knowledge], replies: u64) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let Some(lab) = Lab::new(&["curl"]) else { return Err("needs root and network namespaces".into()) };
    prepare(&lab);
    println!("{}", heading());
    let mut rows = vec![];
    for knowledge in if wanted.is_empty() { &Knowledge::ALL[..] } else { wanted } {
        let row = attack(&lab, &program.to_string_lossy(), *knowledge, replies)?;
        println!("{row}");
        rows.push(row);
    }
    println!();
    for row in &rows {
        println!("suspects by reason, {}: {:?}", row.knowledge.description(), row.suspects);
    }
    match rows.iter().map(|row| row.accepted).sum::<u64>() {
        0 => Ok(()),
        accepted => Err(format!("{accepted} forged answers were believed")),
    }
}
