//! `ttcp-attacks`: attacks on T/TCP, which the paper calls immune, and the same attacks on TCP Fast Open.
//!
//! The attacks are of virtual time, against the state machine of the crate `ttcp`; no forged packet leaves the process.
//! `kernel.rs` lets the kernel's Fast Open speak with that of the crate, so that the successor is the real one.

mod kernel;
mod memory;
mod repeats;

use super::context::{self, Context, figure};
use measure::experiment::{Figure, Origin, proportion_interval};
use papers::attacks::{self, Hits, MECHANISMS, Mechanism};

/// Runs the experiment.
///
/// # Errors
///
/// As [`kernel::check`].
pub fn run(context: &mut Context) -> Result<(), String> {
    context.progress("blind guesses")?;
    guesses(context);
    context.progress("lockout")?;
    lockout(context);
    context.progress("floods")?;
    memory::floods(context)?;
    context.progress("reflection")?;
    memory::reflections(context)?;
    context.progress("requests that are executed twice")?;
    repeats::repeats(context);
    kernel::check(context)?;
    Ok(())
}

/// Name of a mechanism.
fn name(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Tcp => "TCP",
        Mechanism::Transactions => "T/TCP",
        Mechanism::FastOpen => "TCP Fast Open",
    }
}

/// A share of trials in virtual time.
fn share(table: &str, row: &str, column: &str, Hits { hits, trials }: Hits) -> Figure {
    context::share(table, row, column, (hits, trials), Origin::Virtual)
}

/// Blind guesses of the connection count and of the cookie.
fn guesses(context: &mut Context) {
    const TABLE: &str = "Forged requests that are executed, by blind guesses";
    let trials = context.choose(5000, 100_000);
    for mechanism in MECHANISMS {
        let hits = attacks::guess(mechanism, trials, context.seed(1));
        context.figure(share(TABLE, name(mechanism), "one guess", hits));
        let bound = match mechanism {
            Mechanism::Tcp => 0.0,
            Mechanism::Transactions => 50.0,
            Mechanism::FastOpen => 100.0 * 2f64.powi(-64),
        };
        context.figure(figure(TABLE, name(mechanism), "by arithmetic", bound, "%", Origin::Arithmetic));
        claim_guess(context, mechanism, hits);
    }
    let pairs = attacks::guess_in_pairs(trials, context.seed(2));
    let hits = Hits { hits: pairs[1] + pairs[2], trials };
    context.figure(share(TABLE, name(Mechanism::Transactions), "two guesses 2^31 apart", hits));
    context.claim(
        "T/TCP: of two guesses 2^31 apart exactly one is executed",
        "a pair of which none or both are executed",
        format!("none, one and two in {pairs:?} of {trials} trials"),
        pairs == [0, trials, 0],
    );
}

/// Tests the share of one guess.
fn claim_guess(context: &mut Context, mechanism: Mechanism, Hits { hits, trials }: Hits) {
    let (low, high) = proportion_interval(hits, trials).unwrap_or_default();
    let observed = format!("{hits} of {trials}, 95 % interval {:.2} to {:.2} %", 100.0 * low, 100.0 * high);
    if mechanism == Mechanism::Transactions {
        // Four standard errors of a share of 1/2: one seed of 16,000 is further away.
        let distance = (hits as f64 / trials as f64 - 0.5).abs();
        let holds = distance <= 4.0 * 0.5 / (trials as f64).sqrt();
        context.claim(
            "T/TCP: a blind guess of the count is executed every second time",
            "a share that is more than four standard errors from one half, such as the paper's 0",
            observed,
            holds,
        );
    } else {
        let sentence = format!("{}: no blind guess is executed", name(mechanism));
        context.claim(sentence, "one guess that is executed", observed, hits == 0);
    }
}

/// The lockout of the true client.
fn lockout(context: &mut Context) {
    const TABLE: &str = "Queries of the true client that make a handshake after the attack";
    let mut fits = true;
    let mut observed = Vec::new();
    for ahead in [1, 10, 100, 1000] {
        let queries = attacks::lockout(Mechanism::Transactions, ahead, 2000, context.seed(3));
        let column = format!("count {ahead} ahead");
        context.figure(figure(TABLE, "T/TCP", &column, queries as f64, "", Origin::Virtual));
        fits &= queries == u64::from(ahead);
        observed.push(format!("{ahead}: {queries}"));
    }
    context.claim(
        "T/TCP: one forged count locks the client out for as many queries as it is ahead",
        "a lockout that ends earlier, as the paper's cleared cache would make it after one query",
        observed.join(", "),
        fits,
    );
    let most = f64::from(i32::MAX);
    context.figure(figure(TABLE, "T/TCP", "count 2^31 - 1 ahead", most, "", Origin::Arithmetic));
    // The paper's rate, 1,900 queries a second.
    let days = most / 1900.0 / 86_400.0;
    context.figure(figure(
        TABLE,
        "T/TCP",
        "the same at 1,900 queries a second",
        days,
        "d",
        Origin::Arithmetic,
    ));
    ends_of_the_lockout(context, TABLE);
}

/// The end of a lockout: CC.NEW. Fast Open has no lockout.
fn ends_of_the_lockout(context: &mut Context, table: &str) {
    let limit = context.choose(200, 5000);
    let far = attacks::lockout(Mechanism::Transactions, 0x4000_0000, limit, context.seed(4));
    context.figure(figure(
        table,
        "T/TCP",
        "count 2^30 ahead, queries tried",
        far as f64,
        "",
        Origin::Virtual,
    ));
    let restarted = attacks::lockout_after_restart(0x4000_0000, limit, context.seed(5));
    context.figure(figure(
        table,
        "T/TCP",
        "after a restart of the client",
        restarted as f64,
        "",
        Origin::Virtual,
    ));
    context.claim(
        "T/TCP: only CC.NEW ends the lockout, after a restart of the client; failed tests leave the cache as it is",
        "a query without a handshake before the restart, or one with a handshake after the first one that follows it",
        format!("{far} of {limit} queries without a restart, {restarted} with one"),
        far == limit && restarted == 1,
    );
    let guesses = context.choose(1000, 50_000);
    let fast_open = attacks::lockout(Mechanism::FastOpen, guesses, limit, context.seed(6));
    let column = format!("after {guesses} guesses");
    context.figure(figure(table, "TCP Fast Open", &column, fast_open as f64, "", Origin::Virtual));
    context.claim(
        "TCP Fast Open: guesses lock nobody out",
        "a handshake of the true client after the guesses",
        format!("{fast_open} handshakes after {guesses} guesses"),
        fast_open == 0,
    );
}
