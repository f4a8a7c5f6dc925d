//! Differences from the paper.

use super::schedule::Schedule;
use crate::lab::context::Context;

/// Enters the differences that depend on the schedule.
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
}
