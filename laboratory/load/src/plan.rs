//! A checked order with all derived values that are constant while the load runs. All threads share it.

use crate::error::{LoadError, refuse};
use crate::judge::{self, Judge};
use crate::limits;
use crate::names::{HEADER, Template};
use crate::options::LoadOptions;
use crate::order_check;
use crate::query_list::QueryList;
use crate::random::threshold;
use crate::reason::Reason;
use crate::request_form::RequestForm;
use crate::schedule::Schedule;
use crate::stream_order;
use crate::tls_client::TlsClient;
use measure::order::{Load, Pace, Transport};
use std::sync::Arc;

/// Sending times.
#[derive(Clone, Copy, Debug)]
pub enum Timing {
    /// Open loop, on a schedule: the number of warm-up queries, and of all queries.
    Open { schedule: Schedule, warm: u64, total: u64 },
    /// Closed loop: the number of outstanding queries, over all threads.
    Closed { outstanding: u64 },
}

/// Constants of a load. Instants are in nanoseconds since `origin`.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The order.
    pub order: Load,
    /// Sending times.
    pub timing: Timing,
    /// The queries of a file, asked in place of computed names.
    pub list: Option<Arc<QueryList>>,
    /// Numbers of the names in the order of the queries, asked again and again.
    pub turns: Option<Arc<[u32]>>,
    /// True if the times of every query are recorded.
    pub query_times: bool,
    /// Template of the queries for computed names.
    pub template: Template,
    /// Expected contents of the replies to these.
    pub judge: Judge,
    /// Settings of TLS; `None` for the other transports.
    pub tls: Option<TlsClient>,
    /// Form of the requests over HTTPS; `None` for the other transports.
    pub requests: Option<RequestForm>,
    /// Sending threads.
    pub threads: u64,
    /// Names of the range, from the first one of this load on.
    pub names_left: u64,
    /// Timeout in nanoseconds: later replies are late.
    pub timeout: u64,
    /// A name is queried again if a 32-bit random number is below this.
    pub cached_below: u64,
    /// [`datapath::now`] at instant 0, in nanoseconds of its clock.
    pub origin: u64,
    /// Due time of the first query.
    pub start: u64,
    /// Start of the measured time.
    pub measured: u64,
    /// End of the measured time.
    pub end: u64,
    /// The shortest sleep, in nanoseconds.
    pub min_sleep: u64,
}

impl Plan {
    /// Checks an order and derives the plan, for computed names. Instants count from now.
    ///
    /// # Errors
    ///
    /// As [`Plan::with`].
    #[cfg(test)]
    pub fn new(order: &Load, companion: bool) -> Result<Plan, LoadError> {
        Plan::with(order, &LoadOptions::default(), companion)
    }

    /// Checks an order with options and derives the plan. Instants count from now.
    ///
    /// # Errors
    ///
    /// `LoadError::Order` with the option that must change: a value is outside its limits, or two options contradict each other.
    /// `LoadError::Family`: a source address has another family than the server's. `LoadError::Companion`: a load with a companion must
    /// have one thread. `LoadError::Zone`, `LoadError::Prefix`: the zone or a prefix is malformed. `LoadError::Names`: the range has
    /// too few names.
    pub fn with(order: &Load, options: &LoadOptions, companion: bool) -> Result<Plan, LoadError> {
        order_check::check(order)?;
        if options.queries.is_some() && order.cached_share > 0.0 {
            return refuse(
                "a query file is asked in its order, so no share of cached names can be chosen; leave out --cached-share, and \
                 repeat lines of the file instead",
            );
        }
        stream_order::check(order, companion)?;
        let lanes = &order.lanes;
        if companion && (lanes.senders != 1 || lanes.receivers != 0) {
            return Err(LoadError::Companion);
        }
        let judge = judge(order)?;
        let template = template(order, judge.max_records(), options.edns)?;
        let start = limits::START_DELAY.as_nanos() as u64;
        let (timing, measured) = timing(order, start);
        let (tls, requests) = encryption(order, options)?;
        let plan = Plan {
            tls,
            requests,
            timing,
            list: options.queries.clone(),
            turns: options.turns.clone().filter(|turns| !turns.is_empty()),
            query_times: options.query_times,
            template,
            judge,
            threads: u64::from(lanes.senders),
            // A list begins again after its last query, and turns after their last name.
            names_left: match (&options.queries, &options.turns) {
                (Some(_), _) | (_, Some(_)) => u64::MAX,
                (None, None) => order.names.names().saturating_sub(order.first_name),
            },
            timeout: order.timeout_ms * 1_000_000,
            cached_below: threshold(order.cached_share),
            origin: datapath::now().0,
            start,
            measured,
            end: measured + order.duration_ms * 1_000_000,
            min_sleep: if companion { limits::MIN_SLEEP_COMPANION_NS } else { limits::MIN_SLEEP_NS },
            order: order.clone(),
        };
        if let Timing::Open { warm, total, .. } = plan.timing
            && plan.query_times
            && total - warm > limits::QUERY_TIMES
        {
            return refuse(format!(
                "the load has {} queries, and the times of at most {} can be recorded (--rtt); use a lower rate (--rate) or a shorter \
                 duration (--duration)",
                total - warm,
                limits::QUERY_TIMES
            ));
        }
        let needed = plan.names_needed();
        if needed > plan.names_left {
            return Err(LoadError::Names(needed, plan.names_left));
        }
        Ok(plan)
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub fn now(&self) -> u64 {
        datapath::now().0.saturating_sub(self.origin)
    }

    /// The number of a thread's query over all threads.
    #[inline]
    pub fn number(&self, lane: u64, k: u64) -> u64 {
        lane + k * self.threads
    }

    /// The share of a thread in the first `count` queries of all threads.
    pub fn share_of(&self, lane: u64, count: u64) -> u64 {
        count.saturating_sub(lane).div_ceil(self.threads)
    }

    /// True if a message has exactly one question, equal octet for octet to that of a query. `name` is the address in its
    /// computed name, or its index in the list.
    #[inline]
    pub fn asks(&self, message: &[u8], name: [u8; 4]) -> bool {
        match &self.list {
            None => self.template.asks(message, name),
            Some(list) => list.asks(message, name),
        }
    }

    /// Checks a reply that has the question of a query. Inlined into the receivers over UDP and over TCP.
    ///
    /// # Errors
    ///
    /// As [`Judge::judge`]; for a query of a file as [`judge::answered`].
    #[inline(always)]
    pub fn judge(&self, message: &[u8], name: [u8; 4]) -> Result<(), Reason> {
        match &self.list {
            None => self.judge.judge(message, self.template.end(), name),
            Some(list) => judge::answered(message, HEADER + list.question(name).len()),
        }
    }

    /// Intended sending time of a thread's query; in the closed loop its actual sending time.
    #[inline]
    pub fn intended(&self, lane: u64, k: u64, sent: u64) -> u64 {
        match self.timing {
            Timing::Open { schedule, .. } => self.start + schedule.due(self.number(lane, k)),
            Timing::Closed { .. } => sent,
        }
    }

    /// Number of entries of a table by seconds: one for each second that begins in the measured time, and one for a
    /// schedule that overruns.
    pub fn seconds(&self) -> usize {
        self.order.duration_ms.div_ceil(1000) as usize + 1
    }

    /// The second of the measured time, from 0, that contains an instant.
    #[inline]
    pub fn second(&self, instant: u64) -> usize {
        (instant.saturating_sub(self.measured) / 1_000_000_000) as usize
    }

    /// Slots of a thread: three timeouts at its rate, and a whole burst, which may begin at any time.
    ///
    /// # Errors
    ///
    /// `LoadError::Order`: the rate, the timeout and the burst need more slots than [`limits::MAX_SLOTS`].
    pub fn slots(&self) -> Result<u64, LoadError> {
        let Pace::Open { rate_qps, burst } = self.order.pace else { return Ok(limits::CLOSED_LOOP_SLOTS) };
        let rate = rate_qps / self.threads as f64;
        let within = rate * self.order.timeout_ms as f64 / 1e3 * limits::SLOT_TIMEOUTS as f64;
        let covered = within + f64::from(burst) / self.threads as f64;
        if covered > limits::MAX_SLOTS as f64 {
            return refuse(format!(
                "{rate:.0} queries per second and thread over three timeouts, with bursts of {burst} in all, need {covered:.0} \
                 slots, and the maximum is {}; use more threads (--threads), a shorter timeout or smaller bursts (--burst)",
                limits::MAX_SLOTS
            ));
        }
        Ok((covered as u64 + limits::QUERIES_PER_POLL as u64).max(limits::MIN_SLOTS))
    }

    /// Ring entries of a thread for answered names: two timeouts at its rate, the names that are drawn from, and an
    /// eighth that is not drawn from.
    pub fn cached_names(&self) -> u64 {
        let Pace::Open { rate_qps, .. } = self.order.pace else { return limits::CLOSED_LOOP_CACHED_NAMES };
        let waiting = rate_qps / self.threads as f64 * self.order.timeout_ms as f64 / 1e3 * 2.0;
        ((waiting as u64 + limits::CACHED_NAMES) * 8 / 7 + 8).min(limits::MAX_SLOTS)
    }

    /// Lowest number of names that the load needs; unknown in the closed loop.
    fn names_needed(&self) -> u64 {
        let Timing::Open { warm, total, .. } = self.timing else { return 1 };
        match self.order.cached_share {
            0.0 => total,
            // The warm-up queries only new names.
            share => warm + ((total - warm) as f64 * (1.0 - share)) as u64,
        }
    }
}

/// The settings of TLS and of HTTP that the transport needs. Refuses those that contradict it.
fn encryption(
    order: &Load,
    options: &LoadOptions,
) -> Result<(Option<TlsClient>, Option<RequestForm>), LoadError> {
    let (server, transport) = (order.server, order.transport);
    if !transport.is_encrypted() {
        return Ok((None, None));
    }
    if transport == Transport::Https && options.tls.early_data {
        return refuse(
            "early data over https is not supported; use --transport tls or quic, or leave out --early-data",
        );
    }
    let tls = TlsClient::new(server, transport, &options.tls)?;
    let requests = match transport {
        Transport::Https => Some(RequestForm::new(server, options.tls.name.as_deref(), &options.http)?),
        _ => None,
    };
    Ok((Some(tls), requests))
}

/// The judge of the replies. Refuses an invalid prefix.
fn judge(order: &Load) -> Result<Judge, LoadError> {
    let expect = &order.expect;
    if let Some(judge) = Judge::new(expect) {
        return Ok(judge);
    }
    let wrong =
        expect.prefixes.iter().find(|(prefix, bits)| crate::embed::Embedding::new(*prefix, *bits).is_none());
    let (prefix, bits) = wrong.copied().unwrap_or((std::net::Ipv6Addr::UNSPECIFIED, 0));
    Err(LoadError::Prefix(prefix, bits))
}

/// The template of the queries, with an OPT record if an answer of `records` records needs it or `edns` asks for it. Refuses too large
/// answers.
fn template(order: &Load, records: usize, edns: bool) -> Result<Template, LoadError> {
    let expect = &order.expect;
    if records > limits::RECORDS {
        return refuse(format!(
            "an answer would have {records} records; the maximum is {}: use fewer addresses or prefixes",
            limits::RECORDS
        ));
    }
    // Header, question, and records of 28 octets with a compressed owner; CNAME records have at least 16.
    let template = Template::new(&expect.zone, false).map_err(LoadError::Zone)?;
    let is_stream = order.transport.is_stream();
    let large = !is_stream && template.length() + 28 * records > 512;
    let least = template.length() + 28 * records - 12 * usize::from(expect.cname_depth);
    let (most, by) =
        if is_stream { (limits::TCP_SIZE, "TCP") } else { (usize::from(limits::UDP_SIZE), "UDP") };
    if least > most {
        return refuse(format!(
            "an answer would have at least {least} octets; the maximum over {by} is {most}: use fewer addresses or prefixes \
             (--addresses, --prefix)"
        ));
    }
    Template::new(&expect.zone, large || edns).map_err(LoadError::Zone)
}

/// The sending times, and the start of the measured time of a load that begins at `start`.
fn timing(order: &Load, start: u64) -> (Timing, u64) {
    match order.pace {
        Pace::Open { rate_qps, burst } => {
            let queries = |rate_qps: f64, ms: u64| (rate_qps * ms as f64 / 1e3).round() as u64;
            let warm_qps = warm_up_qps(rate_qps, order.cached_share);
            let warm = queries(warm_qps, order.warm_up_ms);
            let total = warm + queries(rate_qps, order.duration_ms).max(1);
            let schedule = Schedule::new(rate_qps, burst).after(warm, warm_qps);
            (Timing::Open { schedule, warm, total }, start + schedule.due(warm))
        }
        Pace::Closed { outstanding } => {
            (Timing::Closed { outstanding: u64::from(outstanding) }, start + order.warm_up_ms * 1_000_000)
        }
    }
}

/// Rate of the warm-up. It queries new names only, at the rate of new names in the measured time: a server that later
/// has most names in its cache would be overloaded if all were new to it at the full rate. If the measured time
/// queries only cached names, the warm-up has a low fixed rate.
fn warm_up_qps(rate_qps: f64, cached_share: f64) -> f64 {
    if cached_share < 1.0 { rate_qps * (1.0 - cached_share) } else { rate_qps.min(limits::PRIMING_QPS) }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(crate) mod tests;
