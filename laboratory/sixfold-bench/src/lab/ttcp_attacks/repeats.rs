//! Requests that are executed twice.

use super::{name, share};
use crate::lab::context::{Context, figure};
use measure::experiment::Origin;
use papers::attacks::{self, Hits, MECHANISMS, Mechanism, Replay};

const TABLE: &str = "Requests that are executed twice";

/// States in which an observer sends a SYN again, with their names.
const REPLAYS: [(Replay, &str); 3] = [
    (Replay::AfterTheConnection, "SYN sent again by an observer, after the connection"),
    (Replay::AfterServerRestart, "SYN sent again by an observer, after a restart of the server"),
    (Replay::AfterClientRestart, "SYN sent again by an observer, after a restart of the client"),
];

/// A crash of the server, and SYNs that an observer sends again.
pub fn repeats(context: &mut Context) {
    let executions = MECHANISMS.map(|mechanism| {
        let (executions, answered) = attacks::crash_before_the_answer(mechanism, context.seed(20));
        let column = "executions of one request, crash of the server";
        context.figure(figure(TABLE, name(mechanism), column, executions as f64, "", Origin::Virtual));
        (executions, answered)
    });
    context.claim(
        "A crash of the server after the request makes T/TCP and TCP Fast Open execute it twice; TCP fails and leaves it to the \
         client",
        "another number of executions, or an answer over TCP",
        format!("executions, and answer, with TCP, T/TCP, Fast Open: {executions:?}"),
        executions == [(1, false), (2, true), (2, true)],
    );
    let trials = context.choose(1000, 20_000);
    for (when, column) in REPLAYS {
        let hits = MECHANISMS.map(|mechanism| {
            let hits = attacks::replay(mechanism, when, trials, context.seed(21));
            context.figure(share(TABLE, name(mechanism), column, Hits { hits, trials }));
            hits
        });
        let [tcp, t_tcp, fast_open] = hits;
        let observed = format!(
            "{} {tcp}, {} {t_tcp}, {} {fast_open} of {trials}",
            name(Mechanism::Tcp),
            name(Mechanism::Transactions),
            name(Mechanism::FastOpen)
        );
        // Four standard errors of a share of 1/2.
        let half = (t_tcp as f64 - trials as f64 / 2.0).abs() <= 2.0 * (trials as f64).sqrt();
        let (sentence, t_tcp_fits) = match when {
            Replay::AfterClientRestart => ("T/TCP takes every second one", half),
            _ => ("T/TCP refuses it", t_tcp == 0),
        };
        context.claim(
            format!("{column}: TCP refuses it, {sentence}, TCP Fast Open takes it"),
            "one repeated SYN that TCP executes or Fast Open refuses, or another share over T/TCP",
            observed,
            tcp == 0 && t_tcp_fits && fast_open == trials,
        );
    }
}
