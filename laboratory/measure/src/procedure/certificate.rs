//! Certificate of the authority for a result: the self-test of RFC 8219 section 9.2.1 with the traffic that the authority
//! received from the device.
//!
//! The self-test before all measurements cannot know that traffic. It is the tester's own, and an authority that receives its
//! queries in large batches sustains several times the rate of one that is woken up for each. So after the repetitions of a
//! cell the tester takes the place of the device: its queries come from as many source ports and as many at a time as the
//! authority's counters show, and as large a part of the answers is negative. The search begins at the rate that the RFC
//! demands for the highest rate of the result. The traffic is never quite the same: where tester and authority share a core, the
//! authority finds more queries at a time than behind the device. So the rate that passes is reduced by the ratio of the CPU times
//! that a query cost the authority.

use super::results::{best_trials, rates};
use super::{FAILURES, Procedure, STEPS_MAX};
use crate::run::{
    BUFFERS, CPU_US, Certificate, DATAGRAMS, PORT_INTERVALS, RECEIVES, SOURCE_PORTS, TrafficForm, Trial,
    Upstream,
};
use crate::search::{Limits, Method, Search};

/// The search ends when its interval is at most this share of its upper end: certificates are to be within 20 % of what the
/// authority sustains.
const PRECISION: f64 = 0.1;

/// Factor of the first rate: the search rounds its rates, by up to 0.05 % downwards.
const ROUNDING: f64 = 1.001;

/// Most source ports of the tester in all. Each is a file descriptor, of which a process usually has 1,024.
const PORTS_MAX: u16 = 512;

/// Most queries at a time: as many datagrams as the kernel sends or hands over as one (UDP_MAX_SEGMENTS).
const AT_A_TIME_MAX: f64 = 64.0;

/// The certificate of one cell while its self-test runs.
#[derive(Clone, Debug)]
pub(super) struct Certification {
    pub sweep: usize,
    pub cell: usize,
    /// All that is known before the first trial.
    pub known: Certificate,
    pub search: Search,
    /// Number of the first trial.
    first_trial: usize,
}

/// The self-test of a cell whose repetitions have ended; `None` if its device passed at no rate, or if the plan is of a release
/// without such self-tests.
pub(super) fn begin(procedure: &Procedure, sweep: usize, cell: usize) -> Option<Certification> {
    let plan = procedure.plan();
    let device_qps = rates(procedure, sweep, cell).fold(0.0, f64::max);
    if !plan.search.certify || device_qps < 1.0 {
        return None;
    }
    let behind_device = upstream(procedure, &best_trials(procedure, sweep, cell));
    let required_qps = procedure.factor() * device_qps;
    let limits = Limits {
        method: Method::Geometric { start_qps: required_qps * ROUNDING, precision: PRECISION },
        steps_max: STEPS_MAX,
        ..procedure.self_test_limits()
    };
    Some(Certification {
        sweep,
        cell,
        known: Certificate {
            device_qps,
            required_qps,
            timeout_ms: plan.trial.timeout.ms() / 4,
            with_address: with_address(procedure, cell),
            form: form(procedure, behind_device),
            behind_device,
            ..Certificate::default()
        },
        search: Search::confirmed(limits, FAILURES),
        first_trial: procedure.trials.len(),
    })
}

/// The certificate after the search has ended.
pub(super) fn end(procedure: &Procedure, certification: &Certification) -> Certificate {
    let known = certification.known;
    let found = match certification.search.next() {
        crate::search::Step::Done(found) => found,
        crate::search::Step::Try { .. } => Default::default(),
    };
    let trials = procedure.trials.get(certification.first_trial..).unwrap_or_default();
    let rate_qps = known.behind_device.map_or(known.required_qps, |it| it.rate_qps);
    let distance = |trial: &&Trial| (trial.rate_qps / rate_qps.max(1.0)).ln().abs();
    let nearest =
        trials.iter().filter(|trial| trial.passed()).min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let certificate = Certificate {
        censored: found.censored || found.cut_short,
        in_self_test: nearest.and_then(|trial| upstream(procedure, &[trial])),
        ..known
    };
    certificate.passed_at(found.rate_qps)
}

/// Share of the answers that have an address behind a device, in a cell. For each name that the device has not cached it asks
/// for AAAA records, and for A records if there are none: of 2 - p answers, 1 has an address. In the self-test all queries are
/// for AAAA records, as the RFC has it, so this share of the names gets them. An authority that the run did not start keeps its
/// share.
pub(super) fn with_address(procedure: &Procedure, cell: usize) -> f64 {
    let aaaa_share = procedure.plan.cells[cell].aaaa_share;
    if procedure.plan.authority.external { aaaa_share } else { 1.0 / (2.0 - aaaa_share) }
}

/// The form of the tester's traffic that equals that of the device.
fn form(procedure: &Procedure, behind_device: Option<Upstream>) -> TrafficForm {
    let tester = &procedure.plan.tester;
    let as_planned = TrafficForm { ports: tester.ports, group: tester.group, burst: tester.burst };
    let Some(seen) = behind_device else { return as_planned };
    let equipment = procedure.surroundings.equipment.as_ref();
    let senders = equipment.map_or(1, |it| it.senders).max(1);
    let at_a_time = |count: f64| count.round().clamp(1.0, AT_A_TIME_MAX);
    // If the tester's thread serves the authority, the queries at a time are those that came while it did something else.
    let is_polled = equipment.is_some_and(|it| it.authority_threads == Some(0));
    let group = at_a_time(seen.per_buffer) as u16;
    // Each sending thread has these ports for each source address.
    let sets = senders.saturating_mul(tester.sources.len().max(1) as u16);
    TrafficForm {
        ports: ((seen.ports / f64::from(sets)).round() as u16).clamp(1, (PORTS_MAX / sets).max(1)),
        group,
        burst: if is_polled { u32::from(group) } else { at_a_time(seen.per_receive) as u32 },
    }
}

/// The traffic that the authority received in trials; `None` without counters, and without queries.
fn upstream(procedure: &Procedure, trials: &[&Trial]) -> Option<Upstream> {
    let sum = |name: &str| -> f64 {
        trials.iter().map(|trial| trial.authority.get(name).copied().unwrap_or(0) as f64).sum()
    };
    let (datagrams, receives, buffers) = (sum(DATAGRAMS), sum(RECEIVES), sum(BUFFERS));
    if datagrams == 0.0 || receives == 0.0 || buffers == 0.0 {
        return None;
    }
    let seconds = |trial: &&Trial| {
        let warm_up_ms = if trial.purpose.is_self_test() { 0 } else { procedure.plan.warm_up_ms(trial.cell) };
        trial.outcome.seconds + warm_up_ms as f64 / 1e3
    };
    let seconds: f64 = trials.iter().map(seconds).sum();
    let threads = procedure.surroundings.equipment.as_ref().and_then(|it| it.authority_threads).unwrap_or(0);
    let threads = f64::from(threads.max(1));
    // Each thread counts its own ports, and a port belongs to one thread.
    let ports = threads * sum(SOURCE_PORTS) / sum(PORT_INTERVALS).max(1.0);
    let cpu_us = Some(sum(CPU_US) / datagrams).filter(|cost| *cost > 0.0);
    Some(Upstream {
        rate_qps: if seconds > 0.0 { datagrams / seconds } else { 0.0 },
        per_receive: datagrams / receives,
        per_buffer: datagrams / buffers,
        ports,
        cpu_us,
        full_qps: cpu_us.map(|cost| threads * 1e6 / cost),
    })
}
