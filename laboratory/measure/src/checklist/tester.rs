//! RFC 8219 sections 9.2.1 and 12: the tester's certificate, and the summary of results.

use super::results::highest_rate;
use super::{Assessment, shown};
use crate::run::{Certificate, Purpose, Rule, Run, Summary};

/// RFC 8219 section 9.2.1.
const DELTA: f64 = 0.1;

/// Section 9.2.1, "Requirements for the Tester".
pub(super) fn section_9_2_1(run: &Run) -> Vec<Rule> {
    vec![
        self_test(run).rule("9.2.1", "MUST", "The tester passed a self-test, without the device"),
        margin(run).rule(
            "9.2.1",
            "SHOULD",
            "The self-test is at 2 * (1 + delta) times the rate within a quarter of the timeout, delta at least 0.1",
        ),
        authority(run).rule(
            "9.2.1",
            "described",
            "The authority answers at the rate of the device's queries within half of the timeout",
        ),
    ]
}

/// Section 12, "Summarizing Function and Variation".
pub(super) fn section_12(run: &Run) -> Vec<Rule> {
    vec![
        iterations(run).rule("12", "RECOMMENDED", "Several iterations"),
        rfc_2330(run).rule("12", "SHOULD", "Median and percentiles by section 11.3 of RFC 2330"),
    ]
}

fn self_test(run: &Run) -> Assessment {
    let Some(test) = &run.self_test else { return Assessment::not_kept("there was no self-test") };
    let shown_by = run.trials.iter().any(|trial| {
        trial.purpose == Purpose::SelfTest
            && trial.passed()
            && trial.rate_qps >= test.certified_qps * (1.0 - 1e-9)
    });
    if test.certified_qps <= 0.0 || !shown_by {
        return Assessment::not_kept(format!("no trial shows {:.0} queries/s", test.certified_qps));
    }
    if run.trials.iter().any(|trial| trial.purpose == Purpose::SelfTest && trial.cell.aaaa_share < 1.0) {
        return Assessment::not_kept(format!(
            "passed at {:.0} queries/s, but with an already running authority whose answers have no AAAA records; the RFC \
             requires an authority that answers all with AAAA records",
            test.certified_qps
        ));
    }
    Assessment::when(
        test.sufficient,
        format!(
            "passed at {:.0} queries/s, so devices may be tested at up to {:.0} queries/s",
            test.certified_qps, test.device_qps
        ),
    )
}

/// The RFC prints "2*(r+delta)", which adds a number to a rate. The papers of its authors use 2.2 times the rate, so
/// 2 * (1 + delta) * r is meant.
fn margin(run: &Run) -> Assessment {
    let Some(test) = &run.self_test else { return Assessment::not_kept("there was no self-test") };
    let highest = highest_rate(run);
    let factor = 2.0 * (1.0 + test.delta);
    let reached = if highest > 0.0 { test.certified_qps / highest } else { f64::INFINITY };
    let said = format!(
        "the highest tested rate was {highest:.0} queries/s; the self-test is {reached:.2} times that, {factor:.2} is needed, \
         within {} (delta {}). The RFC prints 2*(r+delta), which is a misprint",
        shown(test.timeout_ms),
        test.delta
    );
    if highest <= 0.0 {
        return Assessment::not_kept("the device was tested at no rate");
    }
    Assessment::when(
        test.delta >= DELTA - 1e-12
            && 4 * test.timeout_ms <= run.settings.timeout_ms
            // Rates are rounded, so the ratio of two of them is not exact.
            && reached >= factor * (1.0 - 1e-9),
        said,
    )
}

/// The self-test shows this for the traffic that it has. So it is done for each result with the traffic that the authority
/// received from the device; within a quarter of the timeout, because a device asks up to twice.
fn authority(run: &Run) -> Assessment {
    let certificates: Vec<_> = run.results.iter().filter_map(|result| result.certificate.as_ref()).collect();
    let Some(worst) = certificates.iter().min_by(|a, b| {
        let margin = |it: &Certificate| it.certified_qps / it.required_qps.max(1.0);
        margin(a).total_cmp(&margin(b))
    }) else {
        return Assessment::not_checked("there was no self-test with the traffic of the device");
    };
    let failed = certificates.iter().filter(|it| !it.sufficient).count();
    let said = format!(
        "with queries like those of the device the authority is certified for {:.0} queries/s within {}, where {:.0} are required",
        worst.certified_qps,
        shown(worst.timeout_ms),
        worst.required_qps
    );
    match (failed, certificates.len()) {
        (0, all) if all < run.results.len() => Assessment::not_checked(format!(
            "{said}; {} results have no such self-test",
            run.results.len() - all
        )),
        (0, _) => Assessment::kept(said),
        (failed, all) => Assessment::not_kept(format!("{failed} of {all} results are not certified: {said}")),
    }
}

fn iterations(run: &Run) -> Assessment {
    let fewest = run.results.iter().map(|result| result.strict.len()).min().unwrap_or(0);
    Assessment::when(fewest >= 2, format!("{fewest} iterations for each result"))
}

fn rfc_2330(run: &Run) -> Assessment {
    let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(1.0);
    let differs = |values: &[f64], summary: &Summary| {
        let again = Summary::of(values);
        !(near(again.median, summary.median) && near(again.p1, summary.p1) && near(again.p99, summary.p99))
    };
    match run.results.iter().any(|result| differs(&result.strict, &result.summary)) {
        _ if run.results.is_empty() => Assessment::not_kept("there are no results"),
        true => Assessment::not_kept("a new calculation from the repetitions gives different values"),
        false => Assessment::kept("a new calculation from the repetitions gives the same values"),
    }
}
