//! Facts of a host that influence measurements, and warnings where they make the results doubtful.
//!
//! The facts come from `/proc` and `/sys` and a few commands, read with the rights of the calling user: nothing is
//! changed, and nothing needs root.

use crate::clock;
use crate::usage;
use measure::run::Environment;
use servers::program::command_output;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit of a command that reports a fact.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(5);

/// With fewer cores than this, device, tester and authority cannot each have one.
const MIN_CORES: usize = 3;

/// Highest load average, as a share of the cores, at which the host counts as idle. Other programs disturb the results
/// above it.
const MAX_IDLE_LOAD: f64 = 0.1;

/// A receive buffer below this may overflow during one scheduling delay: 2 MiB hold 2,700 datagrams (768 octets of
/// kernel memory each), 27 ms at 100,000 a second.
const MIN_RECEIVE_BUFFER: u64 = 2 << 20;

/// Kernel settings that bound the memory of sockets.
const SYSCTLS: [&str; 6] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "net/core/netdev_max_backlog",
    "net/ipv4/udp_mem",
    "net/ipv4/ip_local_port_range",
];

/// Parameters of the kernel's command line that concern measurements. The others may be private and are not recorded.
const BOOT_PARAMETERS: [&str; 8] = [
    "isolcpus",
    "nohz_full",
    "rcu_nocbs",
    "mitigations",
    "nosmt",
    "idle",
    "intel_idle.max_cstate",
    "preempt",
];

/// Reads the facts of this host. Describes the interfaces that lead to `addresses`.
pub fn read(addresses: &[IpAddr]) -> Environment {
    let mut facts = FactCollector { root: PathBuf::from("/"), environment: Environment::default() };
    facts.collect_host();
    facts.collect_processor();
    facts.collect_power();
    facts.collect_kernel();
    for address in addresses {
        facts.collect_interface(*address);
    }
    facts.environment
}

/// The name of this host.
pub fn host_name() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned()
}

/// Number of processors that this process may use.
pub fn core_count() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The ID of this machine's boot, which every process sees in every namespace. Empty if the kernel does not report it.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// The numbers of the processors that this process may use: in a container or under `taskset` they need not begin at 0.
/// With a CPU quota these are the first ones, as many as the quota is worth.
pub fn allowed_cores() -> Vec<u16> {
    let mut allowed = usage::cores_of(Path::new("/proc/self/status"));
    allowed.truncate(core_count());
    allowed
}

struct FactCollector {
    /// Root of `/proc` and `/sys`; another folder in tests.
    root: PathBuf,
    environment: Environment,
}

impl FactCollector {
    fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.environment.facts.insert(name.to_owned(), value.into());
    }

    fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.environment.warnings.contains(&warning) {
            self.environment.warnings.push(warning);
        }
    }

    /// Sets a fact to the content of a file, if the file exists.
    fn copy(&mut self, name: &str, path: &str) {
        if let Some(text) = self.text(path) {
            self.set(name, text.split_ascii_whitespace().collect::<Vec<_>>().join(" "));
        }
    }

    /// Collects the host's name, system, memory and load.
    fn collect_host(&mut self) {
        self.set("tool", concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("SIXFOLD_COMMIT"), ")"));
        self.set("time", clock::now_utc());
        self.copy("hostname", "proc/sys/kernel/hostname");
        self.copy("kernel", "proc/sys/kernel/osrelease");
        let release = self.text("etc/os-release").unwrap_or_default();
        if let Some(name) = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")) {
            self.set("distribution", name.trim_matches('"'));
        }
        if let Some(kib) = usage::numbers(self.root.join("proc/meminfo")).get("MemTotal") {
            self.set("memory", format!("{} MiB", kib / 1024));
        }
        let load = self.text("proc/loadavg").unwrap_or_default();
        let loads: Vec<&str> = load.split_ascii_whitespace().take(3).collect();
        if let Some(minute) = loads.first().and_then(|text| text.parse::<f64>().ok()) {
            self.set("load average", loads.join(" "));
            if minute > MAX_IDLE_LOAD * core_count() as f64 {
                self.warn(format!(
                    "the host was not idle (load average {minute} over the last minute): stop the other programs on it"
                ));
            }
        }
    }

    /// Collects the facts of the processors.
    fn collect_processor(&mut self) {
        let about = self.text("proc/cpuinfo").unwrap_or_default();
        let field = |names: &[&str]| {
            let lines = about.lines().filter_map(|line| line.split_once(':'));
            lines.map(|(key, value)| (key.trim(), value.trim())).find(|(key, _)| names.contains(key))
        };
        // The first key is that of x86, the others are those of other architectures.
        if let Some((_, model)) = field(&["model name", "Model", "cpu", "uarch", "CPU part"]) {
            self.set("processor", model);
        }
        if let Some((_, microcode)) = field(&["microcode"]) {
            self.set("microcode", microcode);
        }
        let is_guest =
            field(&["flags"]).is_some_and(|(_, flags)| flags.split(' ').any(|flag| flag == "hypervisor"));
        let online = self.text("sys/devices/system/cpu/online").unwrap_or_default();
        self.set("cores", format!("{} usable, online {online}", core_count()));
        if core_count() < MIN_CORES {
            self.warn(format!(
                "{} cores: device, tester and authority cannot have one each, and disturb each other; use a larger \
                 host, or several",
                core_count()
            ));
        }
        self.copy("numa nodes", "sys/devices/system/node/online");
        self.copy("isolated cores", "sys/devices/system/cpu/isolated");
        match self.text("sys/devices/system/cpu/smt/active").as_deref() {
            Some("1") => {
                self.set("smt", "on");
                self.warn(
                    "simultaneous multithreading is on: two workers may share a core; `echo off > \
                     /sys/devices/system/cpu/smt/control`",
                );
            }
            Some(_) => self.set("smt", "off"),
            None => {}
        }
        self.collect_virtualization(is_guest);
        self.collect_mitigations();
    }

    fn collect_virtualization(&mut self, is_guest: bool) {
        let said = command_output(&mut Command::new("systemd-detect-virt"), COMMAND_TIMEOUT);
        let kind = match said.lines().next().map(str::trim).unwrap_or_default() {
            "" | "none" if is_guest || self.root.join("sys/hypervisor/type").exists() => "unknown hypervisor",
            "" => "none found",
            kind => kind,
        };
        // For a container on a virtual machine, the command reports the container alone.
        let kind = match (kind, is_guest) {
            ("docker" | "podman" | "lxc" | "lxc-libvirt" | "systemd-nspawn" | "container-other", true) => {
                format!("{kind} in a virtual machine")
            }
            _ => kind.to_owned(),
        };
        if is_guest {
            self.warn(format!(
                "a virtual machine ({kind}): the hypervisor takes its cores away at times, so single losses may not be the \
                 device's; RFC 8219 requires dedicated hardware"
            ));
        }
        self.set("virtualization", kind);
    }

    fn collect_mitigations(&mut self) {
        let folder = self.root.join("sys/devices/system/cpu/vulnerabilities");
        let (mut mitigated, mut open) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            let name = entry.file_name().to_string_lossy().into_owned();
            if text.starts_with("Mitigation") {
                mitigated.push(name);
            } else if text.starts_with("Vulnerable") {
                open.push(name);
            }
        }
        mitigated.sort();
        open.sort();
        let list = |names: Vec<String>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        self.set("mitigations", format!("active: {}; vulnerable: {}", list(mitigated), list(open)));
    }

    /// Collects the clock speed and the settings that change it.
    fn collect_power(&mut self) {
        let cpus = fs::read_dir(self.root.join("sys/devices/system/cpu")).into_iter().flatten().flatten();
        let governors: BTreeSet<String> = cpus
            .filter_map(|cpu| fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")).ok())
            .map(|text| text.trim().to_owned())
            .collect();
        if governors.is_empty() {
            self.set("governor", "none: the kernel does not set the clock speed");
        } else {
            let names: Vec<String> = governors.into_iter().collect();
            if names != ["performance"] {
                self.warn(format!(
                    "the clock speed follows the load (governor {}): `cpupower frequency-set -g performance`",
                    names.join(", ")
                ));
            }
            self.set("governor", names.join(", "));
        }
        let boost = self.text("sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1");
        let no_turbo = self.text("sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "1");
        match boost.or(no_turbo.map(|no| !no)) {
            Some(true) => {
                self.set("turbo", "on");
                self.warn(
                    "turbo is on: the clock speed depends on heat and on the load of the other cores; switch it off for \
                     repeatable results",
                );
            }
            Some(false) => self.set("turbo", "off"),
            None => {}
        }
        self.copy("clock source", "sys/devices/system/clocksource/clocksource0/current_clocksource");
        let source = self.environment.facts.get("clock source").cloned();
        if let Some(source) = source.filter(|source| source == "hpet" || source == "acpi_pm") {
            self.warn(format!("the clock source is slow ({source}): every time stamp costs microseconds"));
        }
    }

    /// Collects the settings of the kernel.
    fn collect_kernel(&mut self) {
        for path in SYSCTLS {
            self.copy(&path.replace('/', "."), &format!("proc/sys/{path}"));
        }
        let most = self.text("proc/sys/net/core/rmem_max").and_then(|text| text.parse::<u64>().ok());
        if let Some(most) = most.filter(|most| *most < MIN_RECEIVE_BUFFER && !datapath::privileges::is_root())
        {
            self.warn(format!(
                "receive buffers are limited to {most} octets: replies may be lost here, not at the device; run as \
                 root, or `sysctl net.core.rmem_max={}`",
                8 << 20
            ));
        }
        let boot = self.text("proc/cmdline").unwrap_or_default();
        let is_relevant = |word: &&str| BOOT_PARAMETERS.contains(&word.split('=').next().unwrap_or_default());
        let boot: Vec<&str> = boot.split_ascii_whitespace().filter(is_relevant).collect();
        if !boot.is_empty() {
            self.set("boot parameters", boot.join(" "));
        }
        // The file exists whenever the module is in the kernel. Without rules that need it, the module tracks nothing.
        let tracked = self.text("proc/sys/net/netfilter/nf_conntrack_count");
        match tracked.as_deref() {
            None => self.set("connection tracking", "not loaded"),
            Some("0") => self.set("connection tracking", "loaded, nothing tracked"),
            // The number of tracked connections varies, and would appear as a difference between any two runs.
            Some(_) => {
                self.set("connection tracking", "active");
                self.warn(
                    "connections are tracked: every datagram costs a look-up, and the table may fill; remove the \
                     firewall's rules that need it, or exempt the test's traffic (`notrack`)",
                );
            }
        }
    }

    /// Collects the offloads of an interface that put datagrams together or take them apart, if `ethtool` is installed.
    fn collect_offloads(&mut self, interface: &str) {
        let output = command_output(Command::new("ethtool").args(["-k", interface]), COMMAND_TIMEOUT);
        let offloads = offloads(&output);
        if !offloads.is_empty() {
            self.set(&format!("offloads of {interface}"), offloads);
        }
    }

    /// Collects the facts of the interface that leads to an address.
    fn collect_interface(&mut self, address: IpAddr) {
        let route = command_output(
            Command::new("ip").args(["-o", "route", "get", &address.to_string()]),
            COMMAND_TIMEOUT,
        );
        let mut words = route.split_ascii_whitespace().skip_while(|word| *word != "dev");
        let name = words.nth(1).map(str::to_owned);
        self.collect_offloads(name.as_deref().unwrap_or("lo"));
        if address.is_loopback() || name.as_deref() == Some("lo") {
            self.set(
                &format!("interface to {address}"),
                "loopback: no network card, no driver, no wire; the kernel delivers datagrams in the sender's CPU time",
            );
            self.warn(
                "the traffic stays on one host (loopback): RFC 8219 requires tester and device on separate hosts",
            );
            return;
        }
        let Some(name) = name.filter(|name| !name.contains('/')) else { return };
        let folder = format!("sys/class/net/{name}");
        let mut parts = vec![name.clone()];
        let driver = fs::read_link(self.root.join(&folder).join("device/driver"));
        let driver = driver.ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        parts.push(format!("driver {}", driver.as_deref().unwrap_or("none (a virtual interface)")));
        if let Some(mtu) = self.text(&format!("{folder}/mtu")) {
            parts.push(format!("MTU {mtu}"));
        }
        if let Some(speed) = self.text(&format!("{folder}/speed")).filter(|speed| !speed.starts_with('-')) {
            parts.push(format!("{speed} Mbit/s"));
        }
        let queues = fs::read_dir(self.root.join(&folder).join("queues")).into_iter().flatten().flatten();
        let queues: Vec<String> =
            queues.map(|queue| queue.file_name().to_string_lossy().into_owned()).collect();
        let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
        parts.push(format!("queues: {} receive, {} transmit", count("rx-"), count("tx-")));
        self.set(&format!("interface to {address}"), parts.join(", "));
    }
}

/// Offloads of UDP in the output of `ethtool -k`.
fn offloads(output: &str) -> String {
    const OF_UDP: [&str; 5] = [
        "generic-segmentation-offload",
        "tx-udp-segmentation",
        "generic-receive-offload",
        "rx-udp-gro-forwarding",
        "rx-gro-list",
    ];
    let lines = output.lines().filter_map(|line| line.trim().split_once(": "));
    let known: BTreeMap<&str, &str> =
        lines.filter_map(|(name, state)| Some((name, state.split(' ').next()?))).collect();
    let told = OF_UDP.iter().filter_map(|name| Some(format!("{name} {}", known.get(name)?)));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn the_offloads_of_udp_are_picked_from_all() {
        let output = "Features for lo:\nrx-checksumming: on [fixed]\ntcp-segmentation-offload: on\n\ttx-udp-segmentation: on [fixed]\n\
                      generic-receive-offload: off\n";
        assert_eq!(offloads(output), "tx-udp-segmentation on, generic-receive-offload off");
        assert_eq!(offloads("netlink error: no device\n"), "");
    }

    /// Root of a host whose files a test writes.
    struct Tree(kit::Folder);

    impl Tree {
        fn new(files: &[(&str, &str)]) -> Tree {
            let root = kit::Folder::new();
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Tree(root)
        }

        fn facts(&self) -> FactCollector {
            FactCollector { root: self.0.to_owned(), environment: Environment::default() }
        }
    }

    #[test]
    fn this_host_has_a_kernel_cores_and_memory() {
        let environment = read(&[IpAddr::V4(Ipv4Addr::LOCALHOST)]);
        for name in ["tool", "hostname", "kernel", "cores", "memory", "virtualization", "net.core.rmem_max"] {
            assert!(
                environment.facts.get(name).is_some_and(|value| !value.is_empty()),
                "{name}: {environment:?}"
            );
        }
        assert!(environment.facts["interface to 127.0.0.1"].starts_with("loopback"));
        assert!(environment.warnings.iter().any(|warning| warning.contains("one host")));
    }

    #[test]
    fn the_processors_that_may_be_used_are_known_by_number() {
        let allowed = allowed_cores();
        assert_eq!(allowed.len(), core_count());
        let last = allowed.last().unwrap().to_string();
        let run = Command::new("taskset").args(["-c", &last, "cat", "/proc/self/status"]).output();
        let Ok(run) = run else { return kit::missing("taskset", "apt-get install util-linux") };
        assert!(String::from_utf8_lossy(&run.stdout).contains(&format!("Cpus_allowed_list:\t{last}\n")));
    }

    #[test]
    fn settings_that_change_the_clock_speed_are_warned_of() {
        let cpu = "sys/devices/system/cpu";
        let tree = Tree::new(&[
            (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave\n"),
            (&format!("{cpu}/cpu1/cpufreq/scaling_governor"), "performance\n"),
            (&format!("{cpu}/intel_pstate/no_turbo"), "0\n"),
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n"),
        ]);
        let mut facts = tree.facts();
        facts.collect_power();
        assert_eq!(facts.environment.facts["governor"], "performance, powersave");
        assert_eq!(facts.environment.facts["turbo"], "on");
        assert_eq!(facts.environment.warnings.len(), 3, "{:?}", facts.environment.warnings);
        fs::write(tree.0.join(format!("{cpu}/cpu0/cpufreq/scaling_governor")), "performance").unwrap();
        fs::write(tree.0.join(format!("{cpu}/intel_pstate/no_turbo")), "1").unwrap();
        fs::write(tree.0.join("sys/devices/system/clocksource/clocksource0/current_clocksource"), "tsc")
            .unwrap();
        let mut facts = tree.facts();
        facts.collect_power();
        assert_eq!(facts.environment.warnings, Vec::<String>::new());
    }

    #[test]
    fn of_the_boot_parameters_only_those_that_matter_are_told() {
        let tree = Tree::new(&[
            ("proc/cmdline", "root=/dev/secret isolcpus=2-3 mitigations=off token=abc\n"),
            ("proc/sys/net/netfilter/nf_conntrack_count", "12\n"),
        ]);
        let mut facts = tree.facts();
        facts.collect_kernel();
        assert_eq!(facts.environment.facts["boot parameters"], "isolcpus=2-3 mitigations=off");
        assert!(facts.environment.warnings.iter().any(|warning| warning.contains("tracked")));
        assert_eq!(facts.environment.facts["connection tracking"], "active");
    }

    #[test]
    fn smt_and_open_vulnerabilities_are_told() {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        let tree = Tree::new(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Example 9000\nmicrocode\t: 0x2\nflags\t\t: fpu ht\n",
            ),
            ("sys/devices/system/cpu/smt/active", "1\n"),
            (&format!("{folder}/meltdown"), "Mitigation: PTI\n"),
            (&format!("{folder}/mds"), "Vulnerable\n"),
            (&format!("{folder}/l1tf"), "Not affected\n"),
        ]);
        let mut facts = tree.facts();
        facts.collect_processor();
        let told = &facts.environment.facts;
        assert_eq!((told["processor"].as_str(), told["smt"].as_str()), ("Example 9000", "on"));
        assert_eq!(told["mitigations"], "active: meltdown; vulnerable: mds");
        assert!(facts.environment.warnings.iter().any(|warning| warning.contains("multithreading")));
        assert!(!facts.environment.warnings.iter().any(|warning| warning.contains("virtual machine")));
    }
}
