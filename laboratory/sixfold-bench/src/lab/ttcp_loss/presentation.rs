//! Figures and charts of the points.

use super::sweep::{AddedDelay, DELAYS, LOSSES, LossPoint};
use crate::lab::context::{Context, figure, percent, share};
use measure::experiment::{Chart, ChartAxis, ChartLine, Figure, Origin, Point};
use papers::loss::retry::{
    DJBDNS, DJBDNS_CACHE, GLIBC, SIXFOLD, SYSTEMD, TCP_TIMER, TCP_TIMER_1122, UNBOUND,
};
use papers::loss::tcp::{TCP_FREEBSD, TTCP, TTCP_10S, TTCP_20S, TTCP_ALONE, TTCP_FREEBSD};

/// Enters every point as a figure, and its arithmetic beside it.
pub fn add_figures(context: &mut Context, points: &[LossPoint]) {
    for point in points {
        let delay = DELAYS[point.delay];
        let row = format!("{} %", point.loss_percent);
        let table = format!("Failed queries, {}", delay.words);
        // The paper's text gives no number for a point but this one: no failures up to 5 %.
        let is_in_paper = (point.name == DJBDNS.name || point.name == TTCP_FREEBSD.name)
            && point.loss_percent <= 5
            && !delay.place.is_empty();
        context.figure(Figure {
            paper: is_in_paper.then_some(0.0),
            place: if is_in_paper { delay.place.to_owned() } else { String::new() },
            ..share(&table, &row, point.name, (point.failures, point.queries), Origin::Virtual)
        });
        if let Some(arithmetic) = point.arithmetic {
            let table = format!("Failed queries by arithmetic, {}", delay.words);
            context.figure(figure(&table, &row, point.name, 100.0 * arithmetic, "%", Origin::Arithmetic));
        }
    }
    add_tao_figures(context, points);
    add_ratios(context, points);
}

/// Share of the SYNs that passed the TAO test.
fn add_tao_figures(context: &mut Context, points: &[LossPoint]) {
    for point in points.iter().filter(|point| point.name.starts_with("T/TCP") && point.delay == 0) {
        let (passed, failed) = point.tao;
        if passed + failed > 0 {
            let (row, trials) = (format!("{} %", point.loss_percent), (passed, passed + failed));
            context.figure(share("SYNs that pass the TAO test", &row, point.name, trials, Origin::Virtual));
        }
    }
}

/// The ratio of djbdns over UDP to T/TCP, as a product: the retry schedule, and the transport.
fn add_ratios(context: &mut Context, points: &[LossPoint]) {
    for (delay, words) in DELAYS.iter().enumerate().take(2).map(|(number, delay)| (number, delay.words)) {
        let table = format!("Failures of djbdns over UDP as a multiple of those of T/TCP, {words}");
        for loss in LOSSES.into_iter().filter(|&loss| loss >= 30) {
            let share = |name| at(points, name, delay, loss).map_or(f64::NAN, LossPoint::share);
            let [udp, control, ttcp] = [DJBDNS.name, TCP_TIMER_1122.name, TTCP_FREEBSD.name].map(share);
            for (column, ratio, paper) in [
                ("djbdns / T/TCP, 3 s", udp / ttcp, Some(2.0)),
                ("by the schedule: djbdns / UDP with TCP's timer, 3 s", udp / control, None),
                ("by the transport: UDP with TCP's timer, 3 s / T/TCP, 3 s", control / ttcp, None),
                ("djbdns / T/TCP, 3 s, until 20 s", udp / share(TTCP_20S.name), None),
                ("djbdns / T/TCP, 3 s, until 10 s", udp / share(TTCP_10S.name), None),
            ] {
                let figure = figure(&table, &format!("{loss} %"), column, ratio, "", Origin::Virtual);
                let place = if paper.is_some() { DELAYS[delay].place } else { "" };
                // No failure at all leaves no ratio.
                let value = figure.value.filter(|ratio| ratio.is_finite());
                context.figure(Figure { value, paper, place: place.to_owned(), ..figure });
            }
        }
    }
}

/// The point of a policy or transport.
pub fn at<'a>(points: &'a [LossPoint], name: &str, delay: usize, loss: u32) -> Option<&'a LossPoint> {
    points.iter().find(|point| point.name == name && point.delay == delay && point.loss_percent == loss)
}

/// Charts: the two figures of the paper, and the policies at both delays.
pub fn add_charts(context: &mut Context, points: &[LossPoint]) {
    for (number, delay) in DELAYS.iter().enumerate().filter(|(_, delay)| !delay.place.is_empty()) {
        context.chart(paper_chart(points, number, delay));
        context.chart(policy_chart(points, number, delay));
    }
    let lines = [TTCP_FREEBSD.name, TTCP_ALONE.name].map(|name| ChartLine {
        name: name.to_owned(),
        origin: Origin::Virtual,
        points: of(points, name, 0)
            .filter_map(|point| {
                let y = 100.0 * point.tao_share()?;
                Some(Point { x: f64::from(point.loss_percent), y, interval: None })
            })
            .collect(),
    });
    context.chart(Chart {
        id: "tao".to_owned(),
        title: "SYNs that pass the TAO test, no delay".to_owned(),
        description: "Of 1,000 concurrent queries, a SYN that was lost comes after SYNs with greater connection counts, so \
                      it fails the TAO test: the share that passes falls by one percentage point for each percent of loss. \
                      Queries one at a time all pass."
            .to_owned(),
        x: loss_axis(),
        y: ChartAxis { label: "SYNs (%)".to_owned(), logarithmic: false },
        lines: lines.into(),
    });
}

/// The chart of the paper: UDP, T/TCP, the arithmetic, and the control.
fn paper_chart(points: &[LossPoint], number: usize, delay: &AddedDelay) -> Chart {
    let arithmetic = ChartLine {
        name: format!("{}, arithmetic", DJBDNS.name),
        origin: Origin::Arithmetic,
        points: of(points, DJBDNS.name, number)
            .filter_map(|point| {
                let y = 100.0 * point.arithmetic?;
                Some(Point { x: f64::from(point.loss_percent), y, interval: None })
            })
            .collect(),
    };
    let none = |x| Point { x, y: 0.0, interval: None };
    let paper = ChartLine {
        name: "paper: UDP and T/TCP".to_owned(),
        origin: Origin::Paper,
        points: vec![none(0.0), none(5.0)],
    };
    let names =
        [DJBDNS.name, TCP_TIMER_1122.name, TTCP_FREEBSD.name, TTCP_10S.name, TCP_FREEBSD.name, TTCP.name];
    let mut lines: Vec<ChartLine> = names.iter().map(|name| line(points, name, number)).collect();
    lines.extend([arithmetic, paper]);
    Chart {
        id: format!("failures-{}ms", delay.one_way_ms),
        title: format!("Failed queries, {} ({})", delay.words, delay.place),
        description: "Failed queries over the loss rate in each direction. djbdns over UDP follows its arithmetic. UDP with \
                      the retransmission timer of TCP fails much less often, and T/TCP within 60 s still less; T/TCP of \
                      a client that gives up after 10 s is about as bad as djbdns over UDP. Of the paper's points the text gives \
                      only that there is no failure up to 5 %."
            .to_owned(),
        x: loss_axis(),
        y: ChartAxis { label: "failed queries (%)".to_owned(), logarithmic: false },
        lines,
    }
}

/// The chart of the retry policies over UDP.
fn policy_chart(points: &[LossPoint], number: usize, delay: &AddedDelay) -> Chart {
    let policies = [DJBDNS, DJBDNS_CACHE, GLIBC, SYSTEMD, UNBOUND, SIXFOLD, TCP_TIMER];
    Chart {
        id: format!("policies-{}ms", delay.one_way_ms),
        title: format!("Failed queries over UDP by retry policy, {}", delay.words),
        description: "Failed queries over UDP over the loss rate in each direction, for each retry policy. The number of \
                      sends whose answer is in time decides: 2 for glibc, 3 for djbdns, 12 within 60 s for \
                      systemd-resolved."
            .to_owned(),
        x: loss_axis(),
        y: ChartAxis { label: "failed queries (%)".to_owned(), logarithmic: false },
        lines: policies.iter().map(|policy| line(points, policy.name, number)).collect(),
    }
}

/// The curve of a policy or transport.
fn line(points: &[LossPoint], name: &str, delay: usize) -> ChartLine {
    ChartLine {
        name: name.to_owned(),
        origin: Origin::Virtual,
        points: of(points, name, delay)
            .map(|point| {
                let (y, interval) = percent((point.failures, point.queries));
                Point { x: f64::from(point.loss_percent), y, interval }
            })
            .collect(),
    }
}

/// The points of a policy or transport, by loss.
fn of<'a>(points: &'a [LossPoint], name: &'a str, delay: usize) -> impl Iterator<Item = &'a LossPoint> {
    points.iter().filter(move |point| point.name == name && point.delay == delay)
}

/// The horizontal axis.
fn loss_axis() -> ChartAxis {
    ChartAxis { label: "loss in each direction (%)".to_owned(), logarithmic: false }
}
