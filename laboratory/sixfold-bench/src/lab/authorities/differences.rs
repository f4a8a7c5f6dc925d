//! Differences from the paper.

use super::schedule::Schedule;
use crate::lab::context::Context;

/// Differences that no option changes: subject and text.
const FIXED: [(&str, &str); 6] = [
    (
        "Receive buffers",
        "Servers ask for receive buffers from 212,992 octets (the kernel's own, 256 small queries) to several MiB, and one with a small \
         buffer loses queries in every pause of the machine, however fast it is. Here each socket of each server gets the same buffer \
         from outside after its start; the table has both sizes, and the queries that full buffers dropped. The paper says nothing \
         of them.",
    ),
    (
        "Network",
        "Tester and server share a host and the loopback interface, over IPv4 as in the paper. The paper has two hosts and 10 \
         Gbit/s Ethernet with hashing over four fields, so the cost of network card and interrupts is not in our figures. RFC \
         8219 requires IPv6 between client and DNS64 server; the paper tests the authoritative servers over IPv4 because it \
         is faster.",
    ),
    (
        "Load time",
        "From the start of the process to the first correct answer for the last name, with the file in the page cache. NSD 4 has \
         no compiled database unless it is asked for one, so its first start (657 s) and its later ones (210 s) are no longer \
         different, and the 84.1 GB on disk are gone.",
    ),
    (
        "Memory",
        "Proportional set size of all processes of the server: pages that processes share count once.",
    ),
    (
        "FakeDNS",
        "The paper's computed answers come from FakeDNS (branch feature/moreproc), which is measured where --program fakedns=PATH names \
         it, on one core: each of its processes has a port of its own, which the paper joined by a kernel module. It leaves out AA, \
         the SOA record of empty answers, EDNS and TCP, sends a TTL of 0, gives no answer for a name without an address, and draws \
         AAAA records by chance for each query, so it is held against answers of that form. Ours are those of `sixfold-bench \
         authority`.",
    ),
    (
        "Servers",
        "BIND, NSD, Knot DNS and YADIFA in the versions of the table of programs; PowerDNS with the BIND backend is not in the \
         paper. All send minimal responses, without rate limits.",
    ),
];

/// Enters all differences.
pub fn enter(context: &mut Context, schedule: &Schedule) {
    let (seconds, bits) = (schedule.trial.as_secs_f64(), schedule.rate_bits());
    let trials = match schedule.has_searches() {
        false => format!("One trial of {seconds} s; the short version searches no rate."),
        true => format!(
            "Trials of {seconds} s instead of 60 s (--duration 60s), with {} searches on one core instead of 20. The median and \
             the percentiles are those of the strict search, in which one failed trial excludes a rate, as in the paper; on a \
             shared machine such a trial may fail without fault of the server, so the search that repeats failures is beside it.",
            schedule.searches.0
        ),
    };
    context.difference("Trials", trials);
    context.difference(
        "Zone",
        format!(
            "At most 2^{bits} names instead of 2^27, each with an A and an AAAA record; memory and load time for 2^27 names are \
             extrapolated from a straight line through all starts. The paper prints memory in MB; it must be GB."
        ),
    );
    context.difference(
        "Ceiling",
        format!(
            "A trial asks each name at most once, so no rate above 2^{bits} / {seconds} s is tried; the paper's ceiling is \
             2,236,962 queries per second, at which NSD and Knot DNS ended."
        ),
    );
    for (subject, text) in FIXED {
        context.difference(subject, text);
    }
}
