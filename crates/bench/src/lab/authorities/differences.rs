//! Differences from the paper.

use super::schedule::Schedule;
use crate::lab::context::Context;

/// Differences that no option changes: subject and text.
const FIXED: [(&str, &str); 6] = [
    (
        "Receive buffers",
        "All servers have the same receive buffer, which is raised from outside where a server asks for less: 12,582,912 octets as \
         the kernel counts them. The paper has each server's own. With these, a server with a small one loses queries in a pause that \
         another one survives, and the comparison is one of buffers.",
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
        "The paper's computed answers come from FakeDNS (moreproc), ours from `sixfold-bench authority`. FakeDNS leaves out AA, \
         the SOA record of empty answers, EDNS and TCP, sends a TTL of 0, and draws AAAA records by chance for each query.",
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
    context.difference(
        "Trials",
        format!(
            "Trials of {seconds} s instead of 60 s (--duration 60s), with {} searches on one core instead of 20. The median and \
             the percentiles are those of the strict search, in which one failed trial excludes a rate, as in the paper; on a \
             shared machine such a trial may fail without fault of the server, so the search that repeats failures is beside it.",
            schedule.searches.0
        ),
    );
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
