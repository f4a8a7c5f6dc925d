//! Summary of a link: what was asked and what was achieved, for people and as JSON.

use super::pump::{Achieved, Both};
use core::fmt;
use netem::{Counts, Impairments, Loss};
use serde::Serialize;
use std::time::Duration;

/// Result of a link.
#[derive(Debug, Serialize)]
pub struct Summary {
    /// Seed of the random numbers.
    pub seed: u64,
    /// Seconds for which the link was up.
    pub seconds: f64,
    /// From left to right.
    pub to_right: DirectionSummary,
    /// From right to left.
    pub to_left: DirectionSummary,
}

/// One direction.
#[derive(Debug, Serialize)]
pub struct DirectionSummary {
    /// Counts of the line.
    #[serde(flatten)]
    pub counts: Counts,
    /// Packets that the interface did not take.
    pub refused: u64,
    /// Packets that were under way at the end.
    pub under_way: u64,
    /// Median of the delay that was asked, ms, without queueing and transmission.
    pub delay_asked_ms: f64,
    /// Median of the achieved delay, ms; none without packets.
    pub delay_median_ms: Option<f64>,
    /// 99th percentile of the achieved delay, ms.
    pub delay_p99_ms: Option<f64>,
    /// Share of packets that the line was to lose.
    pub loss_asked: f64,
    /// Share of packets that the line lost, of those that reached it.
    pub loss_achieved: Option<f64>,
    /// Half of the 99 % interval of the loss for this number of packets, if each is lost independently.
    pub loss_tolerance: Option<f64>,
    /// Rate that was asked, bits/s.
    pub rate_asked: Option<u64>,
    /// Rate at which packets came out in the busiest second, bits/s.
    pub rate_achieved: Option<f64>,
}

impl Summary {
    /// The summary of a link.
    pub fn new(
        impairments: &Both<Impairments>,
        achieved: &Both<Achieved>,
        seed: u64,
        up: Duration,
    ) -> Summary {
        Summary {
            seed,
            seconds: up.as_secs_f64(),
            to_right: DirectionSummary::new(&impairments.to_right, &achieved.to_right),
            to_left: DirectionSummary::new(&impairments.to_left, &achieved.to_left),
        }
    }
}

impl DirectionSummary {
    fn new(asked: &Impairments, achieved: &Achieved) -> DirectionSummary {
        let counts = achieved.counts;
        let quantile =
            |q| (!achieved.delay_ns.is_empty()).then(|| achieved.delay_ns.value_at_quantile(q) as f64 / 1e6);
        let reached = counts.reached_line();
        let share = asked.loss.share();
        let independent = matches!(asked.loss, Loss::Independent(_));
        DirectionSummary {
            counts,
            refused: achieved.refused,
            under_way: achieved.under_way,
            delay_asked_ms: asked.delay.median().as_secs_f64() * 1e3,
            delay_median_ms: quantile(0.5),
            delay_p99_ms: quantile(0.99),
            loss_asked: share,
            loss_achieved: (reached > 0).then(|| counts.lost as f64 / reached as f64),
            // The 99.5th percentile of the normal distribution is 2.576.
            loss_tolerance: (reached > 0 && independent)
                .then(|| 2.576 * (share * (1.0 - share) / reached as f64).sqrt()),
            rate_asked: asked.rate,
            rate_achieved: achieved.bits_per_second,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "link: {:.1} s, seed {}", self.seconds, self.seed)?;
        writeln!(f, "left to right:\n{}", self.to_right)?;
        write!(f, "right to left:\n{}", self.to_left)
    }
}

impl fmt::Display for DirectionSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  packets   {} in, {} out, {} under way",
            self.counts.offered, self.counts.delivered, self.under_way
        )?;
        let events = [
            ("lost", self.counts.lost),
            ("queue full", self.counts.queue_full),
            ("too big", self.counts.too_big),
            ("overflow", self.counts.overflow),
            ("duplicated", self.counts.duplicated),
            ("reordered", self.counts.reordered),
            ("corrupted", self.counts.corrupted),
            ("refused by the interface", self.refused),
        ];
        let events: Vec<String> = events
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        if !events.is_empty() {
            writeln!(f, "  events    {}", events.join(", "))?;
        }
        if let (Some(median), Some(p99)) = (self.delay_median_ms, self.delay_p99_ms) {
            writeln!(
                f,
                "  delay     asked {:.3} ms, median {median:.3} ms, 99th percentile {p99:.3} ms",
                self.delay_asked_ms
            )?;
        }
        if let Some(achieved) = self.loss_achieved.filter(|_| self.loss_asked > 0.0) {
            write!(
                f,
                "  loss      asked {:.3} %, achieved {:.3} %",
                self.loss_asked * 100.0,
                achieved * 100.0
            )?;
            match self.loss_tolerance {
                Some(tolerance) => writeln!(f, " (99 % interval +- {:.3} %)", tolerance * 100.0)?,
                None => writeln!(f)?,
            }
        }
        if let (Some(asked), Some(achieved)) = (self.rate_asked, self.rate_achieved) {
            writeln!(
                f,
                "  rate      asked {asked} bit/s, achieved {achieved:.0} bit/s in the busiest second"
            )?;
        }
        Ok(())
    }
}
