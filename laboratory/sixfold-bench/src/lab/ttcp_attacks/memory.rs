//! Memory and blocks under a flood, and answers that reach a victim.

use super::name;
use crate::lab::context::{Context, figure};
use measure::experiment::{Figure, Origin};
use papers::attacks::{self, Flood, Forger, MECHANISMS, Mechanism, SiteSettings, VictimReply};

/// Octets of data on a forged SYN: as many as a packet of Ethernet holds, with the options.
const DATA: usize = 1400;

/// Floods: half of the server's blocks, and more than all.
const SENT: [u32; 2] = [4000, 8100];

/// Connection blocks of the server, as `SiteSettings::new` has it.
const BLOCKS: u64 = 8000;

/// Limit of pending connections of Fast Open, as `SiteSettings::new` has it.
const PENDING: u64 = 256;

/// Floods of SYNs with data.
///
/// # Errors
///
/// The user stops the experiment.
pub fn floods(context: &mut Context) -> Result<(), String> {
    for sent in SENT {
        for (mechanism, forger, row) in [
            (Mechanism::Tcp, Forger::Blind, "TCP, forged addresses"),
            (Mechanism::Transactions, Forger::Blind, "T/TCP, forged addresses"),
            (Mechanism::FastOpen, Forger::Blind, "TCP Fast Open, forged addresses"),
            (Mechanism::FastOpen, Forger::WithCookie, "TCP Fast Open, valid cookie"),
        ] {
            context.progress(&format!("flood of {sent}: {row}"))?;
            // TCP has no data on its SYNs.
            let octets = if mechanism == Mechanism::Tcp { 0 } else { DATA };
            let flood = attacks::flood(SiteSettings::new(mechanism), forger, sent, octets, context.seed(10));
            enter(context, row, &flood);
            claims(context, mechanism, forger, row, &flood);
        }
    }
    Ok(())
}

/// Enters the figures of a flood.
fn enter(context: &mut Context, row: &str, flood: &Flood) {
    let table = format!("Flood of {} SYNs with data, {BLOCKS} blocks, {PENDING} pending", flood.sent);
    let mut add = |column: &str, value: f64, unit: &str| {
        context.figure(Figure {
            samples: flood.sent,
            ..figure(&table, row, column, value, unit, Origin::Virtual)
        });
    };
    add("blocks in use", flood.blocks as f64, "");
    add("octets held", flood.octets_held as f64, "octets");
    add("octets held for each SYN", flood.octets_held as f64 / flood.sent as f64, "octets");
    add("requests executed", flood.executed as f64, "");
    add("SYNs without a block", flood.refused as f64, "");
    add("blocks free again after", flood.free_after.as_secs_f64(), "s");
    add("handshake of the true client", f64::from(u8::from(!flood.client_is_fast)), "");
    let answered = flood.client_answered.map(|time| time.as_secs_f64() * 1e3);
    context.figure(Figure {
        value: answered,
        ..figure(&table, row, "answer to the true client", 0.0, "ms", Origin::Virtual)
    });
}

/// Tests memory and service.
fn claims(context: &mut Context, mechanism: Mechanism, forger: Forger, row: &str, flood: &Flood) {
    let observed = format!(
        "{} blocks, {} octets, {} executed, {}",
        flood.blocks,
        flood.octets_held,
        flood.executed,
        flood.client_answered.map_or("no answer".to_owned(), |time| format!("answer after {time:?}"))
    );
    let is_full = flood.sent > BLOCKS;
    let client_fits = flood.client_answered.is_some() != is_full;
    let (sentence, holds) = match mechanism {
        Mechanism::Tcp => ("no data is held", flood.octets_held == 0),
        Mechanism::Transactions => (
            "the data of every SYN is held until the blocks are used up",
            flood.octets_held == flood.blocks * flood.octets && flood.octets > 0,
        ),
        Mechanism::FastOpen if forger == Forger::Blind => {
            ("no data is held, and no request is executed", flood.octets_held == 0 && flood.executed == 0)
        }
        Mechanism::FastOpen => (
            "no data is held, and as many requests are executed without a handshake as may be pending",
            flood.octets_held == 0 && flood.executed == PENDING,
        ),
    };
    let service = if is_full { "the true client finds no block" } else { "the true client is answered" };
    context.claim(
        format!("{row}, {} SYNs: {sentence}; each SYN takes a block of the {BLOCKS}; {service}", flood.sent),
        "other octets, blocks or executions, or a true client that fares otherwise",
        observed,
        holds && client_fits && flood.blocks as u64 == flood.sent.min(BLOCKS),
    );
}

/// Reflection by forged queries.
///
/// # Errors
///
/// The user stops the experiment.
pub fn reflections(context: &mut Context) -> Result<(), String> {
    let trials = context.choose(200, 5000);
    for (reply, victim) in
        [(VictimReply::Reset, "victim that resets"), (VictimReply::Silent, "silent victim")]
    {
        let table = format!("Reflection: octets at the victim for each octet of the attacker, {victim}");
        for answer in [230, 1200, 4000] {
            context.progress(&format!("reflection of {answer} octets, {victim}"))?;
            let column = format!("answer of {answer} octets");
            // IP and UDP have 28 octets, and UDP has no octets of length: 17 of query.
            let udp = (28.0 + answer as f64 - 2.0) / (28.0 + 17.0);
            context.figure(figure(&table, "UDP", &column, udp, "", Origin::Arithmetic));
            let factors = MECHANISMS.map(|mechanism| {
                let settings = SiteSettings { answer, ..SiteSettings::new(mechanism) };
                let reflection = attacks::reflect(settings, reply, trials, context.seed(11));
                let factor = reflection.amplification();
                let row = name(mechanism);
                context.figure(Figure {
                    samples: trials,
                    ..figure(&table, row, &column, factor, "", Origin::Virtual)
                });
                (factor, reflection)
            });
            let [(tcp, _), (t_tcp, executed), (fast_open, none)] = factors;
            context.claim(
                format!(
                    "{victim}, {answer} octets: Fast Open reflects no answer and no more octets than TCP, T/TCP reflects \
                     answers"
                ),
                "an answer over Fast Open to the victim, more octets than over TCP, or no more than 1.5 times TCP's over T/TCP",
                format!(
                    "factor TCP {tcp:.2}, Fast Open {fast_open:.2}, T/TCP {t_tcp:.2} ({} of {trials} answered)",
                    executed.executed
                ),
                none.executed == 0 && fast_open <= tcp && executed.executed > 0 && t_tcp > 1.5 * tcp,
            );
        }
    }
    Ok(())
}
