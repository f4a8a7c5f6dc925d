//! Handle to the running server: its workers, its client streams and its configuration, as metrics, control socket,
//! HTTP server and reload use them.
//!
//! The workers share nothing with these threads. A question to a worker is a closure in the worker's mailbox, which
//! the worker runs on its engine between two batches; the result comes back over a channel. A worker that does not
//! respond within `WORKER_TIMEOUT` is reported as such.

use crate::arithmetic;
use crate::config::{Config, Network, Overrides, of_interfaces};
use crate::dnstap_output::DnstapOutput;
use crate::file_limit::FileLimit;
use crate::log;
use crate::observers::{PolicyHits, RunningTraces, WorkerEngine};
use crate::prefixes::report::PrefixStatus;
use crate::prefixes::{Answers, Prefixes};
use crate::process::Process;
use crate::reload::{Prepared, Reloaded, Reloads, Replaced, Request, free, in_background, replace};
use crate::sandbox::Sandbox;
use crate::traffic::{Sample, Traffic};
use crate::trust::TrustAnchors;
use crate::upgrade::state::Upgrade;
use crate::{policy_hits, policy_zones};
use datapath::Shared;
use datapath::remedy::with_remedy;
use engine::limits::HOPS;
use engine::message::cookie::Secret;
use engine::upstream::Server;
use engine::{Counters, Settings};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::oneshot;
use transport::Streams;

/// Time within which a worker must respond.
pub const WORKER_TIMEOUT: Duration = Duration::from_secs(2);

/// The remedy for a worker that does not respond.
pub const SILENT_WORKER: &str = "look for a lack of processor time (`top -H`, CPUQuota= of the unit); if the worker is idle, restart the \
                                 service";

/// Status of one worker.
pub struct WorkerStatus {
    /// Counters of its engine.
    pub counters: Counters,
    /// The upstream servers, as this worker knows them.
    pub servers: Vec<Server>,
    /// Client queries that wait for an answer.
    pub pending: usize,
    /// Questions in flight to upstreams.
    pub outbound_queries: usize,
    /// Open links to upstreams.
    pub links: usize,
    /// Signatures that are being verified, or wait for it.
    pub signatures: usize,
    /// Octets that the cache uses, and entries in it.
    pub cached: (usize, usize),
    /// Answers with each prefix, if its engine counts them.
    pub prefix_answers: Answers,
    /// All of its forwarders strip signatures, so that no reply can be validated.
    pub has_only_stripping: bool,
}

/// State that the threads beside the workers share: workers, client streams, configuration in force, log, and the progress of reloads
/// and upgrades.
pub struct ServerHandle {
    /// The workers.
    pub workers: Arc<Shared<WorkerEngine>>,
    /// The client streams.
    pub streams: Streams,
    /// The configuration in force.
    pub config: Mutex<Arc<Config>>,
    /// File of the configuration; none when only defaults and flags count.
    pub source: Option<PathBuf>,
    /// Flags that override the file.
    pub overrides: Overrides,
    /// True with `--demo`.
    pub demo: bool,
    /// Secret of server cookies for a configuration without one. All workers use it, and it survives a reload.
    pub cookie_secret: Secret,
    /// Last status of each worker.
    pub last_statuses: Arc<Mutex<Vec<Option<Arc<WorkerStatus>>>>>,
    /// Limit of open files, and the need for them.
    pub file_limit: FileLimit,
    /// Time of the start.
    pub started: Instant,
    /// True once the server stops: it takes no new queries.
    pub draining: AtomicBool,
    /// True while the operator has taken the server out of service with `ctl drain`: it goes on answering.
    pub drained: AtomicBool,
    /// The log.
    pub log: log::Handle,
    /// Reloads of the configuration.
    pub reloads: Reloads,
    /// Upgrades: launcher, sockets for a successor, history.
    pub upgrade: Upgrade,
    /// Counters of the last minutes.
    pub traffic: Traffic,
    /// The dnstap output.
    pub dnstap: DnstapOutput,
    /// The traces that operators follow.
    pub traces: RunningTraces,
    /// Hits of policy zones for the log.
    pub policy_hits: Arc<PolicyHits>,
    /// The prefixes in use, with the states of their gateways.
    pub prefixes: Arc<Prefixes>,
    /// The trust anchors in force.
    pub trust: TrustAnchors,
    /// The restrictions of the process.
    pub sandbox: Sandbox,
    /// Memory and descriptors of the process.
    pub process: Process,
}

impl ServerHandle {
    /// Makes the workers read the UDP sockets, which another process has read until now.
    pub fn read_sockets(&self) {
        if let Err(error) = self.workers.listen() {
            tracing::warn!(event = "steering_warning", "{}", steering_warning(&error));
        }
    }

    /// Asks every worker for its status. None for a worker that does not respond in time.
    pub async fn worker_statuses(&self) -> Vec<Option<Arc<WorkerStatus>>> {
        self.streams.report_answers().await;
        let last_statuses = Arc::clone(&self.last_statuses);
        self.ask_each(move |worker, engine, _| {
            let status = Arc::new(WorkerStatus {
                counters: engine.counters().clone(),
                servers: engine.servers().cloned().collect(),
                pending: engine.pending(),
                outbound_queries: engine.outbound_queries(),
                links: engine.open_links(),
                signatures: engine.signatures(),
                cached: engine.cached(),
                prefix_answers: engine.prefix_answers(),
                has_only_stripping: engine.has_only_stripping_forwarders(),
            });
            // The worker stores its status itself: a later status always replaces an earlier one, whatever the order
            // in which the results arrive.
            let mut last = last_statuses.lock().unwrap_or_else(PoisonError::into_inner);
            if last.len() <= worker {
                last.resize(worker + 1, None);
            }
            last[worker] = Some(Arc::clone(&status));
            drop(last);
            status
        })
        .await
    }

    /// Counters of all workers, as their last statuses have them.
    pub fn last_sample(&self) -> Sample {
        let mut sample = Sample { at: Instant::now(), ..Sample::at_start(self.started) };
        self.last_statuses().iter().for_each(|status| sample.engine.include(&status.counters));
        sample.datapath = self.workers.total();
        sample
    }

    /// Answers with each prefix, as the last statuses of the workers have them.
    pub fn prefix_answers(&self) -> Answers {
        let mut all = Answers::new();
        for (prefix, count) in self.last_statuses().iter().flat_map(|status| &status.prefix_answers) {
            match all.iter_mut().find(|(other, _)| other == prefix) {
                Some((_, sum)) => *sum += count,
                None => all.push((*prefix, *count)),
            }
        }
        all
    }

    /// The prefixes in use, with the answers as the last statuses of the workers have them.
    pub fn prefix_statuses(&self) -> Vec<PrefixStatus> {
        let started = SystemTime::now() - self.started.elapsed();
        self.prefixes.statuses(started, &self.prefix_answers())
    }

    /// Last status of each worker, however old.
    pub fn last_statuses(&self) -> Vec<Arc<WorkerStatus>> {
        self.last_statuses.lock().unwrap_or_else(PoisonError::into_inner).iter().flatten().cloned().collect()
    }

    /// The engine settings in force; large parts are shared, not copied. None when no worker responds in time.
    pub async fn settings(&self) -> Option<Settings> {
        let settings = self.ask_all(|engine, _| engine.settings().clone()).await;
        settings.into_iter().flatten().next()
    }

    /// Checks that the server answers queries.
    ///
    /// # Errors
    ///
    /// The reason why it does not: the server stops or is drained by the operator, a worker does not respond, or no upstream
    /// answers.
    pub async fn health(&self) -> Result<(), String> {
        match self.out_of_service() {
            Some(why) => Err(why.into()),
            None => health(&self.worker_statuses().await),
        }
    }

    /// The reason for which the server is to get no more queries; none: it is in service.
    pub fn out_of_service(&self) -> Option<&'static str> {
        if self.draining.load(Ordering::Relaxed) {
            return Some("draining");
        }
        self.drained
            .load(Ordering::Relaxed)
            .then_some("drained by the operator; `sixfold ctl undrain` ends that")
    }

    /// Takes the server out of service or back into it. True if that changes anything.
    pub fn set_drained(&self, drained: bool) -> bool {
        self.drained.swap(drained, Ordering::Relaxed) != drained
    }

    /// Runs a function on the machine of every worker and collects the results. None for a worker that does not
    /// respond in time.
    pub async fn ask_all<T: Send + 'static>(
        &self,
        ask: impl Fn(&mut WorkerEngine, engine::Instant) -> T + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        self.ask_each(move |_, machine, now| ask(machine, now)).await
    }

    /// Like [`ServerHandle::ask_all`]; the function also gets the number of the worker.
    async fn ask_each<T: Send + 'static>(
        &self,
        ask: impl Fn(usize, &mut WorkerEngine, engine::Instant) -> T + Clone + Send + 'static,
    ) -> Vec<Option<T>> {
        let receivers: Vec<_> = (0..self.workers.workers())
            .map(|worker| {
                let ask = ask.clone();
                self.submit(worker, move |machine, now| ask(worker, machine, now))
            })
            .collect();
        let deadline = tokio::time::Instant::now() + WORKER_TIMEOUT;
        let mut results = Vec::new();
        for receiver in receivers {
            results.push(match receiver {
                Some(receiver) => tokio::time::timeout_at(deadline, receiver).await.ok().and_then(Result::ok),
                None => None,
            });
        }
        results
    }

    /// Has one worker run a function on its machine. The receiver gets the result. None if the worker's mailbox takes no more.
    pub fn submit<T: Send + 'static>(
        &self,
        worker: usize,
        task: impl FnOnce(&mut WorkerEngine, engine::Instant) -> T + Send + 'static,
    ) -> Option<oneshot::Receiver<T>> {
        let (sender, receiver) = oneshot::channel();
        let posted = self.workers.mailbox(worker).submit(move |machine: &mut WorkerEngine, now| {
            // The receiver may have given up.
            let _ = sender.send(task(machine, now));
        });
        posted.is_ok().then_some(receiver)
    }

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration again. After success the workers use the new configuration. A second reload waits for the first.
    ///
    /// # Errors
    ///
    /// The configuration has errors, a key has changed that needs a restart, a worker cannot take the change, or a certificate or a
    /// thread fails. The old configuration stays in force then, with all its parts.
    pub async fn reload(&self) -> Result<Reloaded, String> {
        let _one_at_a_time = self.reloads.turn.lock().await;
        let request = Request {
            source: self.source.clone(),
            overrides: self.overrides.clone(),
            demo: self.demo,
            old: self.config(),
            cookie_secret: self.cookie_secret,
            workers: self.workers.workers(),
        };
        let result = match in_background(|| request.prepare()).await {
            Ok(Ok(prepared)) => self.use_configuration(prepared).await,
            Ok(Err(error)) | Err(error) => Err(error),
        };
        self.reloads.record(&result);
        result
    }

    /// Uses a configuration that was read.
    async fn use_configuration(&self, prepared: Prepared) -> Result<Reloaded, String> {
        let Prepared { config: mut new, warnings: mut notes, changes, mut settings } = prepared;
        // Addresses may have changed since the thread read them, and the news about that is taken.
        if new.server.allow.has_local()
            && let Ok(networks) = of_interfaces()
            && networks != new.server.allow.interfaces
        {
            new.server.allow.interfaces = networks;
            settings.iter_mut().for_each(|settings| settings.allow = new.allowed_networks());
        }
        let prefixes = self.prefixes.prepare(&new, &settings[0].dns64);
        settings.iter_mut().for_each(|settings| settings.dns64.clone_from(&prefixes.dns64));
        // Until `configure` nothing waits, so no change of the anchors comes between.
        let mut trust = match self.trust.prepare(&new) {
            Ok(trust) => trust,
            Err(error) => {
                free((new, settings));
                return Err(error);
            }
        };
        settings.iter_mut().for_each(|settings| settings.validation.clone_from(&trust.validation));
        notes.append(&mut trust.warnings);
        let applied = match self.apply(&new, settings) {
            Ok(applied) => applied,
            Err(error) => {
                free(new);
                return Err(error);
            }
        };
        notes.extend(self.file_limit.warning(&new).filter(|_| !self.demo));
        self.log.configure(&new.log);
        new.tls.keep_listening(&self.config().tls);
        let old = {
            let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *config, Arc::new(new))
        };
        let config = self.config();
        self.prefixes.configure(&config, prefixes);
        self.trust.configure(trust);
        policy_zones::log_changes(&old.filter.zones, &config.filter.zones);
        notes.extend(policy_hits::configure(&self.policy_hits, &config, &self.workers).err());
        if config.log.dnstap != old.log.dnstap {
            notes.extend(self.dnstap.configure(&config, &self.workers, self.streams.addresses()).err());
        }
        let deadline = tokio::time::Instant::now() + WORKER_TIMEOUT;
        let mut former = Vec::new();
        for (worker, mut replaced) in applied.into_iter().enumerate() {
            let is_done = tokio::time::timeout_at(deadline, &mut replaced.0).await;
            if let Ok(Ok(settings)) = is_done {
                former.push(settings);
            } else {
                notes.push(format!(
                    "worker {worker} does not respond: it uses the new configuration as soon as it does"
                ));
                replaced.free_later();
            }
        }
        if former.len() == self.workers.workers() {
            // The listeners of dnstap and policy zones went into the mailboxes after the settings.
            self.ask_all(|_, _| ()).await;
        }
        free((old, former));
        Ok(Reloaded { changes, notes })
    }

    /// Sends the new configuration to all workers and to the streams; if one worker cannot take it, nothing changes. Each part of the
    /// result is about one worker.
    fn apply(&self, new: &Config, settings: Vec<Settings>) -> Result<Vec<Replaced>, String> {
        let replaced = configure(&self.workers, &self.config(), new, settings)?;
        self.streams.configure(stream_limits(new, &self.file_limit));
        Ok(replaced)
    }

    /// Gives the workers the networks of this machine's interfaces, if they are others than before. False: a worker cannot take
    /// them now.
    pub fn set_interface_networks(&self, networks: Vec<Network>) -> bool {
        let old = self.config();
        if old.server.allow.interfaces == networks {
            return true;
        }
        let shown: Vec<String> = networks.iter().map(ToString::to_string).collect();
        let mut new = (*old).clone();
        new.server.allow.interfaces = networks;
        let allowed = new.allowed_networks();
        for worker in 0..self.workers.workers() {
            let allowed = allowed.clone();
            let posted = self
                .workers
                .mailbox(worker)
                .submit(move |machine: &mut WorkerEngine, _| machine.set_allow(allowed));
            if posted.is_err() {
                return false;
            }
        }
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
        tracing::info!(
            event = "addresses_changed",
            "addresses of this machine have changed: \"local\" in `server.allow` now has, beside the private networks, {}",
            if shown.is_empty() { "none of its interfaces".to_owned() } else { shown.join(", ") }
        );
        true
    }
}

/// Gives the workers the settings of a new configuration, or none of them: they would not agree about the upstreams, nor about the
/// addresses that questions leave from.
fn configure(
    workers: &Shared<WorkerEngine>,
    old: &Config,
    new: &Config,
    settings: Vec<Settings>,
) -> Result<Vec<Replaced>, String> {
    let mut places = Vec::new();
    for worker in 0..workers.workers() {
        match workers.mailbox(worker).reserve() {
            Ok(place) => places.push(place),
            Err(full) => {
                free(settings);
                return Err(format!("worker {worker} cannot take the new configuration: {full}; try again"));
            }
        }
    }
    if let Err(error) = workers.verify_signatures(new.signature_threads(), arithmetic::verify) {
        free(settings);
        return Err(format!("cannot start the threads for signatures: {}", with_remedy(&error)));
    }
    // Before the workers know the new upstreams, and open connections to them.
    workers.tls_upstreams().replace(new.upstream.tls_upstreams());
    let sources = new.upstream.query_sources(new.server.freebind);
    // The links that are open then take no more questions.
    let leaves_elsewhere = sources != old.upstream.query_sources(old.server.freebind);
    workers.sources().replace(sources);
    let replaced = places.into_iter().zip(settings).map(|(place, settings)| {
        let (sender, replaced) = oneshot::channel();
        // A worker that has ended meanwhile drops the sender.
        let _ = place.submit(move |machine: &mut WorkerEngine, _| {
            if leaves_elsewhere {
                machine.retire_links();
            }
            replace(machine, settings, sender);
        });
        Replaced(replaced)
    });
    let replaced = replaced.collect();
    workers.set_client_prefix(new.limits.client_prefix);
    Ok(replaced)
}

/// Checks by the statuses of the workers that the server answers queries.
///
/// # Errors
///
/// The reason why it does not: a worker does not respond, the upstreams of all workers are dead, or a worker has found that they strip
/// signatures. Those of the others are the same, whether they have asked for a signed name or not.
pub fn health(statuses: &[Option<Arc<WorkerStatus>>]) -> Result<(), String> {
    if let Some(stuck) = statuses.iter().position(Option::is_none) {
        return Err(format!("worker {stuck} does not respond"));
    }
    let has_only_dead_upstreams = |status: &Arc<WorkerStatus>| {
        !status.servers.is_empty() && status.servers.iter().all(|server| server.is_dead())
    };
    if statuses.iter().flatten().all(has_only_dead_upstreams) {
        return Err("no upstream answers".into());
    }
    if statuses.iter().flatten().any(|status| status.has_only_stripping) {
        return Err("no upstream passes on signatures, so nothing can be validated".into());
    }
    Ok(())
}

/// The warning that the kernel does not steer by name.
pub fn steering_warning(error: &std::io::Error) -> String {
    let remedy = match error.raw_os_error() {
        Some(_) => datapath::remedy::remedy(error),
        None => "set `server.workers` to the number of sockets, or `server.steer` to \"flow\"",
    };
    format!(
        "the kernel does not steer by name ({error}): workers pass on the queries that other workers own, which takes processor \
         time; {remedy}"
    )
}

/// Limits of client streams.
pub fn stream_limits(config: &Config, file_limit: &FileLimit) -> transport::Limits {
    transport::Limits {
        connections: file_limit.grant(config.limits.tcp_connections),
        per_client: config.limits.tcp_per_client,
        client_prefix: config.limits.client_prefix,
        idle: config.limits.tcp_idle,
        answer_wait: answer_wait(config.upstream.timeout * u32::from(config.upstream.tries)),
    }
}

/// Time for which a connection waits for an answer, when one question to an upstream takes at most `tries`: an answer
/// that has not come by then never comes. The two lookups and each hop of a CNAME chain are one question each. More than
/// two minutes are of no use to a client, unless the operator lets the two lookups alone take longer.
fn answer_wait(tries: Duration) -> Duration {
    let resolution = tries * (2 + HOPS as u32);
    resolution
        .clamp(Duration::from_secs(15), Duration::from_secs(120))
        .max(tries * 2 + Duration::from_secs(5))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use std::net::{IpAddr, UdpSocket};

    #[test]
    fn a_configuration_that_one_worker_cannot_take_changes_nothing_for_the_others() {
        let config = |source: &str| {
            let text = format!(
                "[upstream]\nforwarders = [\"192.0.2.53\"]\nsource = [\"{source}\"]\n[server]\nworkers = 3"
            );
            let read = parse("x.toml", &text, &Overrides::default(), "/etc/resolv.conf".as_ref());
            read.map_or_else(|_| panic!("a configuration without faults"), |(config, _)| config)
        };
        let [old, new] = ["127.0.0.2", "127.0.0.3"].map(config);
        let options = datapath::Options {
            listen: vec!["127.0.0.1:0".parse().expect("an address")],
            workers: 3,
            steer: datapath::Steer::Flow,
            udp_size: 1232,
            tcp_fast_open: false,
            proxies: old.proxies(),
            freebind: false,
        };
        // They do not run, so their mailboxes stay as they are.
        let (workers, shared) = datapath::build::<WorkerEngine>(&options).expect("three workers");
        shared.sources().replace(old.upstream.query_sources(false));
        let upstream =
            UdpSocket::bind("127.0.0.1:0").expect("an upstream").local_addr().expect("its address");
        let leaves_from = |shared: &Shared<WorkerEngine>| -> IpAddr {
            let socket = shared.sources().udp(upstream, 0).expect("a socket");
            socket.local_addr().expect("its address").as_socket().expect("an IP address").ip()
        };
        let try_new = |shared: &Shared<WorkerEngine>| {
            configure(shared, &old, &new, vec![new.settings(); 3]).map(|replaced| replaced.len())
        };
        let places = datapath::limits::QUEUED_TASKS;
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            for _ in 0..places {
                shared.mailbox(1).submit(|_, _| ()).expect("room");
            }
            let refusal =
                "worker 1 cannot take the new configuration: the worker's mailbox is full; try again";
            assert_eq!(try_new(&shared), Err(refusal.to_owned()));
            assert_eq!(leaves_from(&shared), IpAddr::from([127, 0, 0, 2]));
        });
        // The others have got nothing: all their places are free.
        for worker in [0, 2] {
            let taken = (0..=places).take_while(|_| shared.mailbox(worker).submit(|_, _| ()).is_ok()).count();
            assert_eq!(taken, places, "worker {worker}");
        }
        drop(workers);
        let (_workers, shared) = datapath::build::<WorkerEngine>(&options).expect("three workers");
        assert_eq!(try_new(&shared), Ok(3));
        assert_eq!(leaves_from(&shared), IpAddr::from([127, 0, 0, 3]));
    }

    #[test]
    fn an_answer_may_take_two_lookups_and_a_chain() {
        let seconds = |tries| answer_wait(Duration::from_secs(tries)).as_secs();
        assert_eq!([seconds(0), seconds(3), seconds(20), seconds(240)], [15, 30, 120, 485]);
    }
}
