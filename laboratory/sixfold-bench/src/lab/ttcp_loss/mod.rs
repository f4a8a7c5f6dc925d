//! `ttcp-loss`: failed queries over UDP, TCP and T/TCP on a link that loses packets (the paper on T/TCP for DNS, figures 6
//! and 7).
//!
//! `sweep.rs` runs all points in virtual time, `presentation.rs` makes figures and charts of them, `claims.rs` tests the
//! sentences, `real_link.rs` repeats one point with sockets over a TUN link, and `real_servers.rs` puts Unbound and Sixfold themselves there.

mod claims;
mod presentation;
mod real_link;
mod real_servers;
mod sweep;

use super::context::Context;

/// Runs the experiment.
///
/// # Errors
///
/// As `real_link::run` and `real_servers::run`.
pub fn run(context: &mut Context) -> Result<(), String> {
    let points = sweep::run(context)?;
    presentation::add_figures(context, &points);
    presentation::add_charts(context, &points);
    claims::add(context, &points);
    real_link::run(context)?;
    real_servers::run(context)?;
    add_differences(context);
    Ok(())
}

/// Notes on what differs from the paper.
fn add_differences(context: &mut Context) {
    for (subject, text) in [
        (
            "Direction of the delay",
            "The paper gives its delay as 500 ms and does not say if that is the round trip. This experiment takes \
             500 ms in each direction, because the paper's loss applies to each direction, too, and both are settings \
             of one dummynet pipe. The table with 500 ms of round trip shows the other reading.",
        ),
        (
            "Number of sends of djbdns",
            "The paper speaks of 3 retransmissions, of at most 4 packets, and of waits that sum to 59 s. The source of \
             djbdns explains all three: its table of timeouts is 1, 3, 11 and 45 s, and a client that asks for recursion \
             skips the first one. So such a client sends 3 times within 59 s, and a cache that asks an authoritative \
             server 4 times within 60 s. The paper's client asks a cache, so the charts show 3 sends; the tables have \
             both.",
        ),
        (
            "Number of queries",
            "The paper has 1,000 queries for each point. A share of 13 % of 1,000 has a 95 % interval of 2.1 percentage \
             points to both sides, so the paper's curves go up and down by chance (its point at 25 %). Here the queries \
             run in batches of 1,000 as well, but many batches make a point.",
        ),
        (
            "Hosts",
            "The paper measured FreeBSD 4.6.2 and 4.7. Here both ends are this laboratory's own T/TCP in virtual time. \
             Its first retransmission timer is that of FreeBSD 4 (3 s, RFC 1122) or 1 s (RFC 6298), and it doubles with \
             each retransmission; packets are lost by the link only, never by a full queue or a busy host.",
        ),
        (
            "Ratio of UDP to T/TCP",
            "The paper's UDP fails about twice as often as its T/TCP from 30 % loss on. Here the ratio is much larger, if a \
             query over T/TCP may take 60 s. Two causes make it: the retry schedule (the control, UDP with TCP's timer, shows its \
             part) and the transport, in which the server repeats a lost answer without another query. The ratio \
             depends on the patience of the client: djbdns gives up a connection after 10 s, and then T/TCP is no better \
             than UDP; with 20 s the ratio is 1.2 to 2.",
        ),
        (
            "Models of the retry policies",
            "Each client has one server, knows no round trip of it, and keeps nothing from other queries. glibc and \
             systemd-resolved have constant timers. Unbound and Sixfold learn the round trip, so their later queries \
             have other timers than the first ones shown here; the number of tries stays. systemd-resolved \
             changes to TCP after several losses, and Sixfold and Unbound stop asking a server that seems dead; the \
             models leave both out.",
        ),
    ] {
        context.difference(subject, text);
    }
}
