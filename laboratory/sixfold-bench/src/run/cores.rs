//! Assignment of cores to the roles. The device comes first. Tester and authority share the rest: on one thread if the
//! rest is a single core, because two spinning threads on one core would wait for the scheduler instead of for the
//! network. Cores that the plan names are taken as they are, and the other roles avoid them.

use measure::plan::{Plan, core_list};

/// Cores by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The device's cores if the plan names them, in the syntax of `taskset -c`.
    device: String,
    /// Cores that a device without named cores may have, taken from the front; empty: all of its host.
    device_pool: Vec<u16>,
    /// Cores of the tester.
    pub tester: Vec<u16>,
    /// Cores of the authority; empty: the tester's thread serves it.
    pub authority: Vec<u16>,
    /// Number of sending threads.
    pub senders: u16,
    /// Number of receiving threads; 0: the sending threads receive.
    pub receivers: u16,
    /// Warnings for readers of the results.
    pub warnings: Vec<String>,
}

impl Cores {
    /// The cores of a device with this many workers, in the syntax of `taskset -c`; empty: all.
    pub fn device(&self, workers: u16) -> String {
        if !self.device.is_empty() {
            return self.device.clone();
        }
        let count = usize::from(workers.max(1)).min(self.device_pool.len());
        format_core_list(&self.device_pool[..count])
    }
}

/// Assigns the cores of one host to the roles, or takes those of each role's own host.
pub fn assign(plan: &Plan, hosts: &Hosts) -> Cores {
    let mut warnings = Vec::new();
    let workers = usize::from(max_workers(plan));
    let all = if hosts.tester.is_empty() { vec![0] } else { hosts.tester.clone() };
    let named = core_list(&plan.device.cores).unwrap_or_default();
    let device_pool = device_pool(plan, hosts, &all, named.is_empty());
    if hosts.device_with_tester && named.is_empty() && workers >= all.len() {
        warnings.push(format!(
            "the device has {workers} workers, and this host {} cores: it shares them with the tester, so its results are lower \
             than on a host of its own",
            all.len()
        ));
    }
    let is_here = hosts.device_with_tester || !plan.device.is_started_by_us();
    let taken = if is_here && !named.is_empty() {
        named
    } else {
        // At least one core stays free of the device.
        let most = if device_pool.len() == all.len() { all.len() - 1 } else { device_pool.len() };
        device_pool[..workers.min(most)].to_vec()
    };
    let left = without(&all, &taken);
    let left = if left.is_empty() { all } else { left };
    let (tester, authority) = split_tester_and_authority(plan, &hosts.authority, left);
    let pairs = (tester.len() as u16 / 2).max(1);
    let alone = tester.len() < 2;
    let senders = if plan.tester.senders > 0 { plan.tester.senders } else { pairs };
    // Over connections the sending threads receive.
    let streams = plan.tester.transport.is_stream();
    let receivers = plan.tester.receivers.unwrap_or(if alone || streams { 0 } else { pairs });
    // The authority can share a thread with the tester only if the tester has one thread, over UDP.
    let is_shared = authority.is_empty() && hosts.authority == AuthorityPlace::InTester;
    let authority =
        if is_shared && (streams || (senders, receivers) != (1, 0)) { tester.clone() } else { authority };
    Cores { device: plan.device.cores.clone(), device_pool, tester, authority, senders, receivers, warnings }
}

/// Returns `cores` without those in `others`.
fn without(cores: &[u16], others: &[u16]) -> Vec<u16> {
    cores.iter().copied().filter(|core| !others.contains(core)).collect()
}

/// The cores from which the device gets its own, if the plan names none. A device on a host of its own, or one that runs
/// already, takes nothing from the tester.
fn device_pool(plan: &Plan, hosts: &Hosts, all: &[u16], has_no_cores_named: bool) -> Vec<u16> {
    if !(hosts.device_with_tester && has_no_cores_named && all.len() > 1) {
        return Vec::new();
    }
    let rest = without(&without(all, &plan.tester.cores), &plan.authority.cores);
    if rest.is_empty() { all.to_vec() } else { rest }
}

/// Divides the cores that the device leaves between tester and authority.
fn split_tester_and_authority(plan: &Plan, place: &AuthorityPlace, left: Vec<u16>) -> (Vec<u16>, Vec<u16>) {
    match (plan.tester.cores.as_slice(), plan.authority.cores.as_slice()) {
        (tester, authority) if !tester.is_empty() && !authority.is_empty() => {
            (tester.to_vec(), authority.to_vec())
        }
        (tester, authority)
            if matches!(place, AuthorityPlace::OtherMachine(_) | AuthorityPlace::External) =>
        {
            let tester = if tester.is_empty() { left } else { tester.to_vec() };
            let own = match place {
                AuthorityPlace::OtherMachine(cores) if authority.is_empty() => cores.clone(),
                _ => authority.to_vec(),
            };
            (tester, own)
        }
        ([], []) if left.len() == 1 => match place {
            AuthorityPlace::InTester => (left, Vec::new()),
            _ => (left.clone(), left),
        },
        ([], []) => {
            // The authority gets up to two queries for each query of the tester.
            let (authority, tester) = left.split_at(left.len() / 2);
            (tester.to_vec(), authority.to_vec())
        }
        ([], authority) => {
            let rest = without(&left, authority);
            (if rest.is_empty() { left } else { rest }, authority.to_vec())
        }
        ([only], _) if *place == AuthorityPlace::InTester => (vec![*only], Vec::new()),
        (tester, _) => {
            let rest = without(&left, tester);
            (tester.to_vec(), if rest.is_empty() { tester.to_vec() } else { rest })
        }
    }
}

/// Facts of the hosts that decide the assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Cores that the tester's host allows this program to use.
    pub tester: Vec<u16>,
    /// Place of the authority.
    pub authority: AuthorityPlace,
    /// True if the run starts the device on the tester's machine.
    pub device_with_tester: bool,
}

/// Place of an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthorityPlace {
    /// In the tester's process.
    InTester,
    /// In a process of its own on the tester's machine, for example in another network namespace.
    SameMachine,
    /// On another machine, which has these cores.
    OtherMachine(Vec<u16>),
    /// It runs already and is not started by the run.
    External,
}

/// The largest number of workers that the device will have.
fn max_workers(plan: &Plan) -> u16 {
    let swept = plan.sweep.as_ref().filter(|sweep| sweep.parameter == "workers");
    let values = swept.iter().flat_map(|sweep| &sweep.values).filter_map(|value| value.parse().ok());
    match values.max() {
        Some(most) => most,
        None => plan.device.workers,
    }
}

/// Formats cores in the syntax of `taskset -c`, with ranges for consecutive cores.
fn format_core_list(cores: &[u16]) -> String {
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for &core in cores {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let range = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::plan::Draft;

    fn plan(text: &str) -> Plan {
        Draft::parse(&format!("{text}\n[device]\ntemplate = \"unbound\"\n")).unwrap().finish().unwrap()
    }

    fn one(cores: u16) -> Hosts {
        Hosts { tester: (0..cores).collect(), authority: AuthorityPlace::InTester, device_with_tester: true }
    }

    #[test]
    fn on_two_cores_tester_and_authority_share_a_thread_beside_the_device() {
        let cores = assign(&plan(""), &one(2));
        assert_eq!((cores.device(1).as_str(), &cores.tester, &cores.authority), ("0", &vec![1], &vec![]));
        assert_eq!((cores.senders, cores.receivers), (1, 0));
        assert_eq!(cores.warnings, Vec::<String>::new());
    }

    #[test]
    fn over_connections_the_senders_receive_and_the_authority_has_threads_of_its_own() {
        let cores = assign(&plan("[tester]\ntransport = \"tls\""), &one(2));
        assert_eq!((&cores.tester, &cores.authority), (&vec![1], &vec![1]));
        assert_eq!((cores.senders, cores.receivers), (1, 0));
        let cores = assign(&plan("[tester]\ntransport = \"quic\""), &one(12));
        assert_eq!((cores.senders, cores.receivers, cores.authority.len()), (3, 0, 5));
    }

    #[test]
    fn on_many_cores_everybody_has_some() {
        let cores = assign(&plan("[sweep]\nparameter = \"workers\"\nvalues = [\"1\", \"4\"]"), &one(12));
        assert_eq!((cores.device(1).as_str(), cores.device(4).as_str()), ("0", "0-3"));
        assert_eq!((cores.authority, cores.tester), (vec![4, 5, 6, 7], vec![8, 9, 10, 11]));
        assert_eq!((cores.senders, cores.receivers), (2, 2));
    }

    #[test]
    fn a_device_as_large_as_the_host_is_warned_of() {
        let cores = assign(&plan("[sweep]\nparameter = \"workers\"\nvalues = [\"2\"]"), &one(2));
        assert_eq!((cores.device(2).as_str(), &cores.tester), ("0-1", &vec![1]));
        assert!(cores.warnings[0].contains("2 workers"), "{:?}", cores.warnings);
    }

    #[test]
    fn hosts_of_their_own_give_all_their_cores() {
        let hosts = Hosts {
            tester: (0..4).collect(),
            authority: AuthorityPlace::OtherMachine((0..8).collect()),
            device_with_tester: false,
        };
        let apart = plan("[authority]\naddress = \"[2001:2::54]:53\"");
        let cores = assign(&apart, &hosts);
        assert_eq!((cores.device(2).as_str(), cores.tester.len(), cores.authority.len()), ("", 4, 8));
        assert_eq!((cores.senders, cores.receivers), (2, 2));
    }

    #[test]
    fn the_plan_has_the_last_word() {
        let cores = assign(
            &plan("[tester]\ncores = [5, 6]\nsenders = 3\nreceivers = 1\n[authority]\ncores = [7]"),
            &one(8),
        );
        assert_eq!((cores.tester, cores.authority), (vec![5, 6], vec![7]));
        assert_eq!((cores.senders, cores.receivers), (3, 1));
    }

    #[test]
    fn roles_without_named_cores_avoid_the_named_cores_of_others() {
        let text = "[device]\ntemplate = \"unbound\"\ncores = \"2-3\"\n";
        let cores = assign(&Draft::parse(text).unwrap().finish().unwrap(), &one(4));
        assert_eq!((cores.device(1).as_str(), cores.tester, cores.authority), ("2-3", vec![1], vec![0]));
        // The others also avoid the named cores of a device that runs already.
        let text =
            "[device]\naddress = \"[::1]:53\"\ncores = \"0,3\"\n[authority]\naddress = \"[::1]:5300\"\n";
        let there = Hosts { device_with_tester: false, ..one(4) };
        let cores = assign(&Draft::parse(text).unwrap().finish().unwrap(), &there);
        assert_eq!((cores.tester, cores.authority), (vec![2], vec![1]));
        let cores = assign(&plan("[tester]\ncores = [0]\n"), &one(4));
        assert_eq!((cores.device(2).as_str(), cores.tester, cores.authority), ("1-2", vec![0], vec![]));
        let cores = assign(&plan("[tester]\ncores = [0, 1]\n[authority]\ncores = [3]\n"), &one(4));
        assert_eq!(cores.device(3), "2");
    }

    #[test]
    fn only_cores_that_this_process_may_use_are_given_out() {
        // As in a container with these cores.
        let hosts = Hosts { tester: vec![4, 5, 7], ..one(1) };
        let cores = assign(&plan(""), &hosts);
        assert_eq!((cores.device(1).as_str(), cores.device(3).as_str()), ("4", "4-5,7"));
        assert_eq!((cores.authority, cores.tester), (vec![5], vec![7]));
    }

    #[test]
    fn an_authority_that_runs_already_needs_none_of_our_cores() {
        let hosts = Hosts { authority: AuthorityPlace::External, ..one(4) };
        let text = "[authority]\nexternal = true\naddress = \"[::1]:5300\"";
        let cores = assign(&plan(text), &hosts);
        assert_eq!((cores.tester, cores.authority), (vec![1, 2, 3], vec![]));
    }

    #[test]
    fn an_authority_has_a_thread_of_its_own_beside_several_of_the_tester() {
        for text in ["senders = 2", "receivers = 1"] {
            let cores = assign(&plan(&format!("[tester]\n{text}\n")), &one(2));
            assert_eq!((cores.tester, cores.authority), (vec![1], vec![1]), "{text}");
        }
    }

    #[test]
    fn namespaces_of_one_machine_share_its_cores() {
        let beside = |cores| Hosts { authority: AuthorityPlace::SameMachine, ..one(cores) };
        let cores = assign(&plan(""), &beside(2));
        assert_eq!((cores.device(1).as_str(), cores.tester, cores.authority), ("0", vec![1], vec![1]));
        let cores = assign(&plan(""), &beside(6));
        assert_eq!(
            (cores.device(1).as_str(), cores.tester, cores.authority),
            ("0", vec![3, 4, 5], vec![1, 2])
        );
        let cores = assign(&plan("[tester]\ncores = [2]\n"), &beside(4));
        assert_eq!((cores.tester, cores.authority), (vec![2], vec![1, 3]));
    }

    #[test]
    fn one_core_is_shared_by_all() {
        let cores = assign(&plan(""), &one(1));
        assert_eq!((cores.device(1).as_str(), cores.tester, cores.authority), ("", vec![0], vec![]));
    }
}
