//! Claims, differences and warnings of the experiment.

use super::limits;
use super::question::{self, Property};
use super::results::Results;
use super::schedule::{CoreSplit, Schedule};
use super::zone_file::ZONE;
use crate::lab::context::Context;
use authority::{Server, Zone};
use measure::statistics::{median, sorted};
use std::net::{Ipv4Addr, SocketAddr};

/// Enters claims, differences and warnings.
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
    warn(context, splits);
    differ(context, schedule);
    Ok(())
}

fn claim_correct(context: &mut Context, results: &Results) {
    let title = results.server.recipe.title;
    match &results.fault {
        Some(fault) if results.server.is_confined() => context.warning(format!(
            "{title}: {fault}; AppArmor confines it, so it may not read its files in the temporary folder: aa-complain {}",
            results.server.program
        )),
        fault => context.claim(
            format!("{title} answers correctly for the first, a middle and the last name and for one that does not exist"),
            fault.clone().unwrap_or_else(|| format!("correct after each of {} starts", results.checks)),
            fault.is_none(),
        ),
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
            format!("{:.1} MB after the start, {:.1} MB after the load", before / 1e6, after / 1e6),
            after - before < limits::COMPUTED_GROWTH_OCTETS,
        );
    }
    if let Some(load_s) = load_s {
        context.claim(
            "The server with computed answers starts in less than a second",
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
            "this program was built without optimization: rates of our servers and of the tester are too low",
        );
    }
}

fn differ(context: &mut Context, schedule: &Schedule) {
    let seconds = schedule.trial.as_secs_f64();
    let bits = schedule.rate_bits();
    for (subject, text) in [
        (
            "Network",
            "Tester and server share a host and the loopback interface, over IPv4 as in the paper. The paper has two hosts and \
             10 Gbit/s Ethernet with hashing over four fields, so the cost of network card and interrupts is not in our figures. \
             RFC 8219 requires IPv6 between client and DNS64 server; the paper tests the authoritative servers over IPv4 because \
             it is faster."
                .to_owned(),
        ),
        (
            "Trials",
            format!(
                "Trials of {seconds} s instead of 60 s (--duration 60s), with {} searches on one core instead of 20. The median \
                 and the percentiles are those of the strict search, in which one failed trial excludes a rate, as in the paper; \
                 on a shared machine such a trial may fail without fault of the server, so the search that repeats failures is \
                 beside it.",
                schedule.searches.0
            ),
        ),
        (
            "Zone",
            format!(
                "At most 2^{bits} names instead of 2^27, each with an A and an AAAA record; memory and load time for 2^27 names are \
                 extrapolated from a straight line through all starts. The paper prints memory in MB; it must be GB."
            ),
        ),
        (
            "Ceiling",
            format!(
                "A trial asks each name at most once, so no rate above 2^{bits} / {seconds} s is tried; the paper's ceiling is \
                 2,236,962 queries per second, at which NSD and Knot DNS ended."
            ),
        ),
        (
            "Load time",
            "From the start of the process to the first correct answer for the last name, with the file in the page cache. NSD 4 \
             has no compiled database unless it is asked for one, so its first start (657 s) and its later ones (210 s) are no \
             longer different, and the 84.1 GB on disk are gone."
                .to_owned(),
        ),
        (
            "Memory",
            "Proportional set size of all processes of the server: pages that processes share count once.".to_owned(),
        ),
        (
            "FakeDNS",
            "The paper's computed answers come from FakeDNS (moreproc), ours from `sixfold-bench authority`. FakeDNS leaves out AA, \
             the SOA record of empty answers, EDNS and TCP, sends a TTL of 0, and draws AAAA records by chance for each query."
                .to_owned(),
        ),
        (
            "Servers",
            "BIND, NSD, Knot DNS and YADIFA in the versions of the table of programs; PowerDNS with the BIND backend is not in the \
             paper. All send minimal responses, without rate limits."
                .to_owned(),
        ),
    ] {
        context.difference(subject, text);
    }
}
