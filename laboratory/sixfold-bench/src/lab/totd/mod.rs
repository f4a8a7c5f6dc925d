//! Experiments of the paper on TOTD (Lencse and Repas, 2014): its load test (Tables I to IV), the stall of a minute, the
//! prediction of its IDs, and the run over a night.
//!
//! The forwarder of the laboratory behaves like TOTD (`papers::totd`). `proxy.rs` gives it a socket; it runs as a hidden
//! subcommand, so its processor time and memory are those of a process. It listens on loopback addresses only, because
//! its IDs can be predicted by design.

mod hosts;
pub(in crate::lab) mod message;
mod paper;
mod prediction;
mod price;
pub mod proxy;
mod servers;
mod stability;
mod stall;
mod stall_of_programs;
mod tables;

use super::context::Context;
use std::net::Ipv6Addr;

/// Zone of the names.
const ZONE: &str = "dns64perf.test";

/// DNS64 prefix of all servers; its length is 96.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x64, 0, 0, 0, 0, 0);

/// Runs `totd-load`.
///
/// # Errors
///
/// A server that is installed cannot be started or gives no right answer, or the user stops the experiment.
pub fn load(context: &mut Context) -> Result<(), String> {
    context.progress("the stall in virtual time")?;
    stall::simulate(context)?;
    context.progress("Tables I to III in virtual time")?;
    tables::simulate(context)?;
    context.progress("the prediction of IDs")?;
    prediction::run(context);
    context.progress("the price of an ID")?;
    price::run(context);
    tables::measure(context)?;
    context.progress("the stall of the forwarder with sockets")?;
    stall::measure(context)?;
    stall_of_programs::run(context)?;
    differences(context);
    Ok(())
}

/// Runs `totd-stability`.
///
/// # Errors
///
/// `--duration` is below 4 s; otherwise as [`load()`].
pub fn stability(context: &mut Context) -> Result<(), String> {
    stability::run(context)
}

fn differences(context: &mut Context) {
    let is_given = servers::programs(context).is_ok_and(|programs| !programs.is_empty());
    let itself = match is_given {
        true => "TOTD itself has the rows with its name.",
        false => {
            "TOTD itself is not measured: --programs DIR takes totd-1.5.2, totd-1.5.2-fixed and totd-1.5.3 from DIR."
        }
    };
    context.difference(
        "TOTD",
        format!(
            "{itself} The forwarder of the laboratory has its IDs, its table of duplicates, its times and its order of steps, from the \
             published source of TOTD 1.5.1 and 1.5.3, and answers AAAA queries only."
        ),
    );
}
