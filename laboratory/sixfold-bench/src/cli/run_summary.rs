//! Results of a run in a few lines.

use crate::run::thousands;
use measure::run::Run;
use std::path::Path;

/// The results of a device in a few lines.
pub(super) fn summary(name: &str, run: &Run, out: &Path) -> String {
    let mut text = String::new();
    for result in &run.results {
        let sweep = if result.sweep.is_empty() { String::new() } else { format!(" [{}]", result.sweep) };
        let (strict, confirmed) = (&result.summary, &result.confirmed_summary);
        text += &format!(
            "{name}{}{sweep}, AAAA {:.0} %, cached {:.0} %: {}{} queries/s{} (median of {}; p1 {}, p99 {})",
            if run.settings.as_shipped { " as shipped" } else { "" },
            result.cell.aaaa_share * 100.0,
            result.cell.cached_share * 100.0,
            if result.censored { ">= " } else { "" },
            thousands(strict.median),
            if report::indicative(run, strict).is_some() { ", indicative" } else { "" },
            strict.count,
            thousands(strict.p1),
            thousands(strict.p99)
        );
        if confirmed.count > 0 {
            text += &format!("; failures confirmed: {}", thousands(confirmed.median));
        }
        for goal in &result.loss_goals {
            text += &format!(
                "; at most {} % lost: {}{}",
                100.0 * goal.goal,
                if goal.censored { ">= " } else { "" },
                thousands(goal.summary.median)
            );
        }
        if let (Some(cost), Some(power)) = (result.cpu_us_per_query, result.replies_per_cpu_second()) {
            text += &format!(
                "; {cost:.1} us CPU per query (computing-power-relative performance {} queries per CPU second)",
                thousands(power)
            );
        }
        if let Some(it) = &result.certificate {
            text += &format!(
                "; authority {} with this traffic: {} queries/s of {} required",
                if it.sufficient { "certified" } else { "NOT certified" },
                thousands(it.certified_qps),
                thousands(it.required_qps)
            );
        }
        if let Some(repeated) = report::repeated(result) {
            text += &format!("; {repeated}");
        }
        text.push('\n');
    }
    let compliant = measure::checklist::is_compliant(&run.checklist);
    text += &format!(
        "RFC 8219 compliant: {}\n",
        if compliant { "yes" } else { "no (the report gives the reasons)" }
    );
    text + &format!("report: {}\n", out.join("report.html").display())
}
