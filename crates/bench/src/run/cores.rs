//! Who gets which cores. The device comes first; tester and authority share what is left, on one thread when that is a
//! single core: two that spin beside each other would wait for the scheduler instead of for the network.

use measure::plan::Plan;

/// Cores by role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cores {
    /// The device's, when the plan names them, as `taskset -c` takes them.
    device: String,
    /// How many cores a device without cores of its own may have; 0: all of its host.
    device_most: u16,
    /// The tester's.
    pub tester: Vec<u16>,
    /// The authority's; empty: it is served by the tester's thread.
    pub authority: Vec<u16>,
    /// Sending threads.
    pub senders: u16,
    /// Receiving threads; 0: the sending threads receive.
    pub receivers: u16,
    /// What a reader of the results should know.
    pub warnings: Vec<String>,
}

impl Cores {
    /// The cores of a device with so many workers, as `taskset -c` takes them; empty: all.
    pub fn device(&self, workers: u16) -> String {
        if !self.device.is_empty() || self.device_most == 0 {
            return self.device.clone();
        }
        range(0, workers.clamp(1, self.device_most))
    }
}

/// Divides the cores of one host, or takes those of each role's own host.
pub fn divide(plan: &Plan, host: Hosts) -> Cores {
    let mut warnings = Vec::new();
    let workers = most_workers(plan);
    let shared_device = host.device_with_tester;
    let total = host.tester_cores.max(1);
    // One core at least stays free of it.
    let device_cores = if shared_device { workers.min(total.saturating_sub(1)).max(1) } else { 0 };
    if shared_device && plan.device.cores.is_empty() && workers >= total {
        warnings.push(format!(
            "the device has {workers} workers, and this host {total} cores: it shares them with the tester, so its results are lower \
             than on hosts of its own"
        ));
    }
    let left: Vec<u16> = if total == 1 { vec![0] } else { (device_cores..total).collect() };
    let (tester, authority) = match (plan.tester.cores.as_slice(), plan.authority.cores.as_slice()) {
        ([], []) if !host.authority_with_tester => (left, (0..host.authority_cores.max(1)).collect()),
        ([], []) if left.len() == 1 => (left, Vec::new()),
        ([], []) => {
            // The authority has up to two questions for each of the tester's.
            let (authority, tester) = left.split_at(left.len() / 2);
            (tester.to_vec(), authority.to_vec())
        }
        ([], authority) => {
            let rest: Vec<u16> = left.iter().copied().filter(|core| !authority.contains(core)).collect();
            (if rest.is_empty() { left } else { rest }, authority.to_vec())
        }
        (tester, []) if tester.len() == 1 && host.authority_with_tester => (tester.to_vec(), Vec::new()),
        (tester, []) => {
            let rest: Vec<u16> = left.iter().copied().filter(|core| !tester.contains(core)).collect();
            (tester.to_vec(), if rest.is_empty() { tester.to_vec() } else { rest })
        }
        (tester, authority) => (tester.to_vec(), authority.to_vec()),
    };
    let pairs = (tester.len() as u16 / 2).max(1);
    let alone = tester.len() < 2;
    let senders = if plan.tester.senders > 0 { plan.tester.senders } else { pairs };
    let receivers = plan.tester.receivers.unwrap_or(if alone { 0 } else { pairs });
    Cores {
        device: plan.device.cores.clone(),
        device_most: if shared_device && total > 1 { total } else { 0 },
        tester,
        authority,
        senders,
        receivers,
        warnings,
    }
}

/// What is known of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// Cores of the tester's host.
    pub tester_cores: u16,
    /// Cores of the authority's host.
    pub authority_cores: u16,
    /// Whether the authority is served by the tester's process.
    pub authority_with_tester: bool,
    /// Whether the device runs on the tester's host.
    pub device_with_tester: bool,
}

/// The largest number of workers that the device will have.
fn most_workers(plan: &Plan) -> u16 {
    let swept = plan.sweep.as_ref().filter(|sweep| sweep.parameter == "workers");
    let values = swept.iter().flat_map(|sweep| &sweep.values).filter_map(|value| value.parse().ok());
    values.chain([plan.device.workers]).max().unwrap_or(1)
}

fn range(first: u16, count: u16) -> String {
    if count == 1 { first.to_string() } else { format!("{first}-{}", first + count - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::plan::Draft;

    fn plan(text: &str) -> Plan {
        Draft::parse(&format!("{text}\n[device]\ntemplate = \"unbound\"\n")).unwrap().finish().unwrap()
    }

    fn one(cores: u16) -> Hosts {
        Hosts {
            tester_cores: cores,
            authority_cores: cores,
            authority_with_tester: true,
            device_with_tester: true,
        }
    }

    #[test]
    fn on_two_cores_tester_and_authority_share_a_thread_beside_the_device() {
        let cores = divide(&plan(""), one(2));
        assert_eq!((cores.device(1).as_str(), &cores.tester, &cores.authority), ("0", &vec![1], &vec![]));
        assert_eq!((cores.senders, cores.receivers), (1, 0));
        assert_eq!(cores.warnings, Vec::<String>::new());
    }

    #[test]
    fn on_many_cores_everybody_has_some() {
        let cores = divide(&plan("[sweep]\nparameter = \"workers\"\nvalues = [\"1\", \"4\"]"), one(12));
        assert_eq!((cores.device(1).as_str(), cores.device(4).as_str()), ("0", "0-3"));
        assert_eq!((cores.authority, cores.tester), (vec![4, 5, 6, 7], vec![8, 9, 10, 11]));
        assert_eq!((cores.senders, cores.receivers), (2, 2));
    }

    #[test]
    fn a_device_as_large_as_the_host_is_warned_of() {
        let cores = divide(&plan("[sweep]\nparameter = \"workers\"\nvalues = [\"2\"]"), one(2));
        assert_eq!((cores.device(2).as_str(), &cores.tester), ("0-1", &vec![1]));
        assert!(cores.warnings[0].contains("2 workers"), "{:?}", cores.warnings);
    }

    #[test]
    fn hosts_of_their_own_give_all_their_cores() {
        let hosts = Hosts {
            tester_cores: 4,
            authority_cores: 8,
            authority_with_tester: false,
            device_with_tester: false,
        };
        let cores = divide(&plan(""), hosts);
        assert_eq!((cores.device(2).as_str(), cores.tester.len(), cores.authority.len()), ("", 4, 8));
        assert_eq!((cores.senders, cores.receivers), (2, 2));
    }

    #[test]
    fn the_plan_has_the_last_word() {
        let cores = divide(
            &plan("[tester]\ncores = [5, 6]\nsenders = 3\nreceivers = 1\n[authority]\ncores = [7]"),
            one(8),
        );
        assert_eq!((cores.tester, cores.authority), (vec![5, 6], vec![7]));
        assert_eq!((cores.senders, cores.receivers), (3, 1));
    }

    #[test]
    fn one_core_is_shared_by_all() {
        let cores = divide(&plan(""), one(1));
        assert_eq!((cores.device(1).as_str(), cores.tester, cores.authority), ("", vec![0], vec![]));
    }
}
