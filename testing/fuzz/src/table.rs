//! The results of all searches as a Markdown table.

use crate::corpus::Kept;
use crate::search::Outcome;
use sixfold_fuzz::Target;
use std::fmt::Write;

/// A target and its results.
pub struct Row {
    pub target: Target,
    pub outcome: Outcome,
    pub kept: Option<Kept>,
}

/// The table, with a last row of sums, and below it the inputs that broke an invariant.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| target | seconds | executions | per second | edges taken | of | inputs found | kept | octets | edges of these | slowest input, ms | memory, MiB | failures |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    let mut sum = Outcome::default();
    let (mut inputs, mut octets) = (0, 0);
    for Row { target, outcome, kept } in rows {
        let slowest_ms = outcome.slowest_us as f64 / 1e3;
        let [count, size, edges] = kept.map_or(["", "", ""].map(String::from), |kept| {
            inputs += kept.inputs;
            octets += kept.octets;
            [kept.inputs.to_string(), kept.octets.to_string(), kept.edges.to_string()]
        });
        let Outcome { executions, secs, edges: taken, edges_in_all, found, memory_mib, .. } = outcome;
        let _ = writeln!(
            text,
            "| {} | {secs} | {executions} | {} | {taken} | {edges_in_all} | {found} | {count} | {size} | {edges} | {slowest_ms:.1} | {memory_mib} | {} |",
            target.name,
            executions / (*secs).max(1),
            outcome.failures.len(),
        );
        sum.executions += executions;
        sum.secs += secs;
        sum.found += found;
        sum.failures.extend_from_slice(&outcome.failures);
    }
    let Outcome { executions, secs, found, failures, .. } = sum;
    let each = executions / secs.max(1);
    let _ = writeln!(
        text,
        "| all | {secs} | {executions} | {each} | | | {found} | {inputs} | {octets} | | | | {} |",
        failures.len()
    );
    for failure in failures {
        let _ = writeln!(text, "\nfailure: {}", failure.display());
    }
    text
}
