//! The tester itself: its self-test on loopback and with the traffic of devices (RFC 8219 section 9.2.1), the search for a rate under transient failures,
//! and the misprint in the RFC's formula.

mod behind_device;
mod loopback;
mod minima;
mod searches;

use super::context::{Context, figure};
use measure::experiment::Origin;
use papers::bisection::self_test_rates;

/// Rate of interest of the paper on mtd64-ng, in queries per second.
const RATE_OF_INTEREST_QPS: f64 = 10_000.0;

/// Margin of the paper on mtd64-ng.
const PAPER_DELTA: f64 = 0.2;

/// Place of the self-test in the paper on mtd64-ng.
const PLACE: &str = "section 4.3";

/// Limit of the model server in queries per second, near the paper's median with 8 threads (8,542).
const LIMIT_QPS: f64 = 8500.0;

/// Probabilities of a transient failure of a trial.
const FAILURES: [f64; 5] = [0.0, 0.005, 0.01, 0.02, 0.05];

/// Searches behind a row of the paper's Table 2.
const REPETITIONS: usize = 20;

/// The experiment.
///
/// # Errors
///
/// The first error of a part: a run or a trial fails, or the user stops the experiment.
pub fn run(context: &mut Context) -> Result<(), String> {
    formulas(context);
    searches::run(context)?;
    minima::run(context)?;
    loopback::run(context)?;
    behind_device::run(context)
}

/// The rate of the self-test as the RFC prints it, and as it is meant.
fn formulas(context: &mut Context) {
    let table = "Rate of the self-test for a device that is tested at r";
    for rate_qps in [1_000.0, RATE_OF_INTEREST_QPS, 100_000.0] {
        for delta in [0.1, PAPER_DELTA] {
            let row = format!("r = {rate_qps}/s, δ = {delta}");
            let (printed, meant) = self_test_rates(rate_qps, delta);
            context.figure(figure(table, &row, "as printed: 2 (r + δ)", printed, "1/s", Origin::Arithmetic));
            let mut meant = figure(table, &row, "as meant: 2 (1 + δ) r", meant, "1/s", Origin::Arithmetic);
            if (rate_qps, delta) == (RATE_OF_INTEREST_QPS, PAPER_DELTA) {
                (meant.paper, meant.place) = (Some(24_000.0), PLACE.to_owned());
            }
            context.figure(meant);
        }
    }
}

/// A probability as a percentage.
fn percent_text(share: f64) -> String {
    format!("{} %", 100.0 * share)
}
