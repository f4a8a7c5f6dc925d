//! The refusal of an impossible order: times, pace, threads, expectations, and cached names. Each message names the option to change.
//! `stream_order` checks an order over connections.

use crate::error::{LoadError, rates, refuse};
use crate::limits;
use measure::order::{Load, Pace};
use std::time::Duration;

/// Refuses an impossible order.
///
/// # Errors
///
/// `LoadError::Order` with the option that must change: a duration, rate, number of threads or addresses, or an expectation is outside
/// its limits, or two of them contradict each other. `LoadError::Family`: a source address has another family than the server's.
pub fn check(order: &Load) -> Result<(), LoadError> {
    check_times(order)?;
    check_pace(order)?;
    check_lanes(order)?;
    check_expectation(order)?;
    check_cached_names(order)
}

/// Longest time in milliseconds after its answer at which a name may be queried again, so that the device still has
/// it cached. The device may have had the records for as long as the answer took, at most a timeout, and it counts
/// whole seconds.
pub fn max_requery_age_ms(order: &Load) -> u64 {
    let cached_ms = (u64::from(order.expect.ttl.1) * 1000).saturating_sub(1000 + order.timeout_ms);
    cached_ms.min(limits::MAX_REQUERY_AGE.as_millis() as u64)
}

/// The time of the load, including the warm-up.
fn whole_time(order: &Load) -> Duration {
    Duration::from_millis(order.duration_ms).saturating_add(Duration::from_millis(order.warm_up_ms))
}

fn check_times(order: &Load) -> Result<(), LoadError> {
    if order.duration_ms == 0 || whole_time(order) > limits::DURATION {
        return refuse("the duration must be 1 ms to 7 days, warm-up included (--duration 60s)");
    }
    let timeout = Duration::from_millis(order.timeout_ms);
    if timeout.is_zero() || timeout > limits::TIMEOUT {
        return refuse("the timeout must be 1 ms to 60 s (--timeout 1s)");
    }
    Ok(())
}

fn check_pace(order: &Load) -> Result<(), LoadError> {
    match order.pace {
        Pace::Open { rate_qps, .. } if !(limits::RATES_QPS.0..=limits::RATES_QPS.1).contains(&rate_qps) => {
            return refuse(format!("the rate is {rate_qps} queries per second; {} (--rate)", rates()));
        }
        Pace::Open { burst: 0, .. } => return refuse("a burst must have at least 1 query (--burst 1)"),
        Pace::Closed { outstanding } if !(1..=limits::OUTSTANDING).contains(&outstanding) => {
            return refuse(format!(
                "{outstanding} outstanding queries; the number must be 1 to {} (--outstanding)",
                limits::OUTSTANDING
            ));
        }
        _ => {}
    }
    Ok(())
}

/// Refuses impossible numbers of threads, ports and queries in a group, and source addresses of another family.
fn check_lanes(order: &Load) -> Result<(), LoadError> {
    let lanes = &order.lanes;
    // A receiving thread serves the ports of one or more sending threads.
    if !(1..=limits::THREADS).contains(&lanes.senders) || lanes.receivers > lanes.senders {
        return refuse(format!(
            "{} sending and {} receiving threads; use 1 to {} sending threads (--threads) and at most as many receiving \
             threads (--receivers)",
            lanes.senders,
            lanes.receivers,
            limits::THREADS
        ));
    }
    if let Pace::Closed { outstanding } = order.pace
        && outstanding < u32::from(lanes.senders)
    {
        return refuse(
            "each sending thread needs at least one outstanding query; use fewer threads (--threads)",
        );
    }
    let ports = usize::from(lanes.ports) * lanes.sources.len().max(1);
    if !(1..=limits::PORTS).contains(&ports) {
        return refuse(format!(
            "{ports} ports per thread (ports times sources); the number must be 1 to {} (--ports)",
            limits::PORTS
        ));
    }
    if !(1..=limits::GROUP).contains(&lanes.group) {
        return refuse(format!(
            "a group of {}; the size must be 1 to {} (--group)",
            lanes.group,
            limits::GROUP
        ));
    }
    if let Some(source) = lanes.sources.iter().find(|source| source.is_ipv6() != order.server.is_ipv6()) {
        return Err(LoadError::Family(*source));
    }
    Ok(())
}

fn check_expectation(order: &Load) -> Result<(), LoadError> {
    for (share, of, option) in [
        (order.cached_share, "queries for names that were answered before", "--cached-share"),
        (order.expect.aaaa_share, "names with real AAAA records", "--aaaa-share"),
    ] {
        if !(0.0..=1.0).contains(&share) {
            return refuse(format!("the share of {of} is {share}; it must be 0 to 1 ({option})"));
        }
    }
    let expect = &order.expect;
    if expect.addresses == 0 || expect.cname_depth > limits::CNAMES || expect.ttl.0 > expect.ttl.1 {
        return refuse(format!(
            "a name must have at least 1 address and at most {} CNAME records before it, and the lowest TTL must not exceed the highest",
            limits::CNAMES
        ));
    }
    Ok(())
}

/// Refuses a load with cached names that the device cannot keep in its cache until they are queried again.
fn check_cached_names(order: &Load) -> Result<(), LoadError> {
    let most_ms = max_requery_age_ms(order);
    if order.cached_share > 0.0 && most_ms < 3 * order.timeout_ms {
        return refuse(format!(
            "names with a TTL of {} s leave the device's cache before they may be queried again, two timeouts after their \
             answer; use a higher TTL (--ttl, and the authority's) or a shorter timeout (--timeout)",
            order.expect.ttl.1
        ));
    }
    if order.cached_share == 1.0 && whole_time(order) > Duration::from_millis(most_ms) {
        return refuse(format!(
            "to query only cached names, the device must keep all of them to the end: use at most {} s, warm-up \
             included; use a shorter duration (--duration), a higher TTL (--ttl) up to {} s, or a share below 1",
            most_ms / 1000,
            limits::MAX_REQUERY_AGE.as_secs()
        ));
    }
    if order.cached_share == 1.0 && order.warm_up_ms < 3 * order.timeout_ms {
        return refuse(
            "to query only cached names, they must be answered first: use a warm-up of at least three timeouts \
             (--warm-up 3s)",
        );
    }
    Ok(())
}
