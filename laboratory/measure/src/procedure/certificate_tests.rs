//! Certificates with the traffic of a device.

use super::tests::{QUICK, World, procedure, world};
use super::*;
use crate::outcome::Verdict;
use crate::run::Upstream;

/// Runs a procedure whose authority counts 3 datagrams with one receive call and 40 ports behind the device, and sustains this
/// rate in the self-test of a cell. A query costs it 5 us behind the device, and 4 us in the self-test.
fn certified(procedure: &mut Procedure, sustained_qps: f64) -> Vec<Task> {
    let mut tasks = Vec::new();
    while let Some(mut event) = world().step(procedure) {
        if let (Action::Trial(task), Event::Trial(trial)) = (procedure.next(), &mut event) {
            let datagrams = 2 * trial.outcome.sent;
            let cost_us = if task.purpose.is_self_test() { 4 } else { 5 };
            trial.outcome.seconds = 1.5;
            trial.authority.extend(
                [
                    ("datagrams", datagrams),
                    ("receives", datagrams / 3),
                    ("buffers", datagrams),
                    ("source_ports", 40 * 15),
                    ("port_intervals", 15),
                    ("cpu_us", cost_us * datagrams),
                ]
                .map(|(name, count)| (name.to_owned(), count)),
            );
            if task.purpose == Purpose::CellSelfTest {
                let passes = task.rate_qps <= sustained_qps;
                trial.outcome.verdict = if passes { Verdict::Pass } else { Verdict::Fail };
                tasks.push(task);
            }
        }
        procedure.record(event).unwrap();
    }
    tasks
}

#[test]
fn the_tester_takes_the_place_of_the_device_for_each_result() {
    let mut procedure = procedure(&format!("{QUICK}[grid]\naaaa = [0, 0.5, 1]\n"));
    let tasks = certified(&mut procedure, 90_000.0);
    let results = procedure.results();
    assert_eq!(results.len(), 3);
    // Of 2 - p answers one has an address.
    for (result, share) in results.iter().zip([0.5, 1.0 / 1.5, 1.0]) {
        let it = result.certificate.unwrap();
        assert_eq!(it.device_qps, result.strict.iter().chain(&result.confirmed).copied().fold(0.0, f64::max));
        assert!((it.required_qps - 2.2 * it.device_qps).abs() < 1e-6 && it.sufficient, "{it:?}");
        assert!((81_000.0..=90_000.0).contains(&it.passed_qps), "within 10 %: {it:?}");
        // A query cost 4 us in place of 5 us.
        assert_eq!(it.certified_qps, 0.8 * it.passed_qps);
        assert_eq!((it.timeout_ms, it.with_address, it.censored), (250, share, false));
        assert_eq!(it.form, TrafficForm { ports: 40, group: 1, burst: 3 });
        let (device, test) = (it.behind_device.unwrap(), it.in_self_test.unwrap());
        // Two datagrams a query in these counters.
        assert!((device.rate_qps - 2.0 * it.device_qps).abs() < 0.01 * device.rate_qps, "{device:?}");
        assert_eq!((device.cpu_us, device.full_qps), (Some(5.0), Some(200_000.0)));
        assert_eq!((test.cpu_us, it.cost_ratio()), (Some(4.0), Some(0.8)));
        let mine: Vec<_> = tasks.iter().filter(|task| task.cell == result.cell).collect();
        assert!(mine[0].rate_qps >= it.required_qps && mine[0].rate_qps < 1.002 * it.required_qps);
        for task in mine {
            assert_eq!((&task.setup.device, task.setup.aaaa_share), (&None, share));
            assert_eq!((task.form, task.first_name), (Some(it.form), 0));
        }
    }
}

#[test]
fn an_authority_that_sustains_less_is_not_certified() {
    let mut procedure = procedure(QUICK);
    certified(&mut procedure, 30_000.0);
    let it = procedure.results()[0].certificate.unwrap();
    assert!(it.required_qps > 45_000.0 && !it.sufficient, "{it:?}");
    assert!((27_000.0..=30_000.0).contains(&it.passed_qps), "{it:?}");
    // And the device's result stands.
    assert!(procedure.results()[0].summary.median > 20_000.0);
}

#[test]
fn a_query_that_is_cheaper_in_the_self_test_reduces_the_certificate_and_a_dearer_one_does_not_raise_it() {
    let cost = |cpu_us| Some(Upstream { cpu_us, ..Upstream::default() });
    let between = |device, test| {
        let known =
            Certificate { required_qps: 22_000.0, behind_device: cost(device), ..Certificate::default() };
        let it = Certificate { in_self_test: cost(test), ..known }.passed_at(24_000.0);
        (it.passed_qps, it.certified_qps, it.sufficient)
    };
    assert_eq!(between(Some(5.0), Some(5.0)), (24_000.0, 24_000.0, true));
    assert_eq!(between(Some(5.0), Some(2.5)), (24_000.0, 12_000.0, false));
    assert_eq!(between(Some(5.0), Some(10.0)), (24_000.0, 24_000.0, true));
    // A cost that is not known changes nothing.
    assert_eq!(between(None, Some(2.5)), (24_000.0, 24_000.0, true));
}

#[test]
fn without_counters_the_traffic_is_that_of_the_plan() {
    let mut procedure = procedure(&format!("{QUICK}[tester]\nports = 7\nburst = 2\n"));
    world().run(&mut procedure);
    let it = procedure.results()[0].certificate.unwrap();
    assert_eq!(it.form, TrafficForm { ports: 7, group: 1, burst: 2 });
    assert_eq!((it.behind_device, it.cost_ratio()), (None, None));
}

#[test]
fn the_run_of_an_earlier_release_goes_on_without_certificates() {
    let mut plan = procedure(QUICK).plan().clone();
    plan.search.certify = false;
    let mut procedure = Procedure::new(plan);
    world().run(&mut procedure);
    assert_eq!((procedure.next(), procedure.results()[0].certificate), (Action::Done, None));
    assert!(procedure.trials().iter().all(|trial| trial.purpose != Purpose::CellSelfTest));
}

#[test]
fn a_device_that_passes_at_no_rate_needs_no_certificate() {
    let mut procedure = procedure(QUICK);
    World { capacity_qps: |_| 0.0, ..world() }.run(&mut procedure);
    assert_eq!(procedure.next(), Action::Done);
    assert_eq!(procedure.results()[0].certificate, None);
}
