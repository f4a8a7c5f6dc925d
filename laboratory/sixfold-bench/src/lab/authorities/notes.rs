//! Claims and warnings of the experiment.

use super::buffers::Buffers;
use super::differences;
use super::limits;
use super::question::{self, Property};
use super::results::Results;
use super::schedule::{CoreSplit, Schedule};
use super::zone_file::ZONE;
use crate::lab::context::Context;
use crate::sockets::WANTED;
use authority::{Server, Zone};
use measure::statistics::{median, sorted};
use std::net::{Ipv4Addr, SocketAddr};

/// Enters claims, differences and warnings.
///
/// # Errors
///
/// Our authority cannot be started, or gives wrong answers.
pub fn enter(
    context: &mut Context,
    results: &[Results],
    schedule: &Schedule,
    splits: &[CoreSplit],
) -> Result<(), String> {
    for results in results {
        claim_correct(context, results);
    }
    if let Some(ours) = results.iter().find(|results| results.server.recipe.name == "ours") {
        claim_computed(context, ours);
        claim_properties(context)?;
    }
    claim_equal_buffers(context, results);
    warn(context, splits);
    if !schedule.has_searches() {
        context.warning(
            "the short version searches no highest rate: a few trials of 0.3 s give no order of servers; leave --quick out",
        );
    }
    differences::enter(context, schedule);
    Ok(())
}

fn claim_correct(context: &mut Context, results: &Results) {
    let title = results.server.recipe.title;
    let last = match results.server.recipe.answers.is_authoritative {
        true => "the last name and for one that does not exist",
        false => "the last name, in a form of its own",
    };
    match &results.fault {
        Some(fault) if results.server.is_confined() => context.warning(format!(
            "{title}: {fault}; AppArmor confines it, so it may not read its files in the temporary folder: aa-complain {}",
            results.server.program
        )),
        fault => context.claim(
            format!("{title} answers correctly for the first, a middle and {last}"),
            "a wrong, missing or additional record, or another RCODE, after one start",
            fault.clone().unwrap_or_else(|| format!("correct after each of {} starts", results.checks)),
            fault.is_none(),
        ),
    }
}

/// All servers wait for their core with the same receive buffer.
fn claim_equal_buffers(context: &mut Context, results: &[Results]) {
    let measured: Vec<(&str, &Buffers)> = results
        .iter()
        .filter_map(|results| Some((results.server.recipe.title, results.buffers.as_ref()?)))
        .collect();
    if measured.len() < 2 {
        return;
    }
    let sizes = |sizes: &[u32]| {
        let mut sizes = sizes.to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ")
    };
    let told = measured
        .iter()
        .map(|(title, buffers)| {
            format!("{title} {} (as shipped {})", sizes(&buffers.measured), sizes(&buffers.as_shipped))
        })
        .collect::<Vec<_>>()
        .join("; ");
    let is_equal = measured.iter().all(|(_, buffers)| {
        !buffers.measured.is_empty() && buffers.measured.iter().all(|size| *size == WANTED)
    });
    if rustix::process::geteuid().is_root() {
        context.claim(
        format!(
                "All sockets of all servers have a receive buffer of {WANTED} octets in the measurement, read from the kernel"
            ),
            "a socket with another one",
            told,
            is_equal,
        );
    } else if !is_equal {
        context.warning(format!(
            "the servers have different receive buffers, so their rates cannot be compared: {told}; run this as root, which may change \
             them"
        ));
    }
}

/// Computed answers take no memory for names, and start at once.
fn claim_computed(context: &mut Context, ours: &Results) {
    let middle = |values: Vec<f64>| median(&sorted(&values));
    let memory = middle(ours.starts.iter().map(|start| start.memory_octets).collect());
    let load_s = middle(ours.starts.iter().map(|start| start.load_s).collect());
    let after = ours.rates.iter().map(|rates| rates.memory_octets).next();
    if let (Some(before), Some(after)) = (memory, after) {
        context.claim(
            "Computed answers need no memory for names: less than 20 MB more after answers for the whole zone",
            "memory that grows with the names that were asked",
            format!("{:.1} MB after the start, {:.1} MB after the load", before / 1e6, after / 1e6),
            after - before < limits::COMPUTED_GROWTH_OCTETS,
        );
    }
    if let Some(load_s) = load_s {
        context.claim(
            "The server with computed answers starts in less than a second",
            "a median start of a second or more",
            format!("median {load_s:.3} s"),
            load_s < limits::COMPUTED_START_S,
        );
    }
}

/// Computed answers have the properties that FakeDNS lacks. The server runs in this process.
fn claim_properties(context: &mut Context) -> Result<(), String> {
    let zone = Zone::new(ZONE).map_err(|error| error.to_string())?.aaaa_share(0.5);
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::start(&[listen], zone, 1).map_err(|error| format!("{listen}: {error}"))?;
    let properties = question::check_computed(server.addresses()[0])?;
    let text = |property: &Property| format!("{}: {}", property.name, property.observed);
    context.claim(
        "Computed answers have AA, the SOA record in empty answers, a TTL, OPT, TCP, and AAAA records that stay the same for a \
         name: FakeDNS lacks them",
        "an answer without one of these properties",
        properties.iter().map(text).collect::<Vec<_>>().join("; "),
        properties.iter().all(|property| property.holds),
    );
    Ok(())
}

fn warn(context: &mut Context, splits: &[CoreSplit]) {
    if splits.first().is_none_or(|split| split.is_shared) {
        context.warning(
            "there is one core: server and tester share it, so the rates are those of both together",
        );
    } else if splits.iter().any(|split| split.is_shared) {
        context.warning(
            "with all cores the server shares them with the tester, so its rate is lower than on a host of its own; CPU time for \
             each query is comparable",
        );
    }
    if cfg!(debug_assertions) {
        context.warning(
            "this program was built with debug assertions, which cost our servers and the tester time: cargo build --profile dist",
        );
    }
}
