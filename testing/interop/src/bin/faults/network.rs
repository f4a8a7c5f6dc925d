//! Network of the experiments: a DNS64 server between a client and two upstreams in network namespaces. The faults
//! between server and upstreams is a packet filter in the namespace `world`, which drops, refuses and counts.

use crate::server;
use sixfold_interop::steady::Exchange;
use sixfold_interop::{Kdig, Lab, Process, address, program, wait_until};
use std::process::{Child, Command, Stdio};

/// Addresses of the upstreams.
pub const BOTH: [&str; 2] = [address::FIRST, address::SECOND];

/// Packet filter of the namespace `world`. It counts queries; the rules of the faults go into `input`.
const FILTER: &str = "table ip faults {
    counter asked { }
    chain count { type filter hook prerouting priority -300; udp dport 53 counter name asked; }
    chain input { type filter hook input priority 0; }
}";

/// Network and the processes in it. Fields are dropped in this order: the server first, the network last.
pub struct FaultLab {
    server: Option<Process>,
    upstreams: [Option<Process>; 2],
    lab: Lab,
    options: [String; 2],
}

impl FaultLab {
    /// Starts the server, and upstreams with this TTL in seconds and this delay of replies.
    ///
    /// # Errors
    ///
    /// The reason why they cannot be started: no network namespaces, no nftables, or the server is not installed.
    pub fn new(device: &str, ttl_secs: u32, delay: &str) -> Result<FaultLab, String> {
        let lab = Lab::new(&["nft"]).ok_or("network namespaces cannot be had here")?;
        let ran = lab.world.filter(FILTER);
        if !ran.success {
            return Err(format!("nft: {}", ran.stderr));
        }
        let options = [format!("--ttl={ttl_secs}"), format!("--delay={delay}")];
        let mut lab = FaultLab { server: None, upstreams: [None, None], lab, options };
        lab.restart();
        lab.server = Some(server::start(device, &lab.lab, BOTH)?);
        Ok(lab)
    }

    /// Starts the upstreams that do not run.
    pub fn restart(&mut self) {
        let authority = program("sixfold-bench");
        for (place, address) in BOTH.iter().enumerate() {
            if self.upstreams[place].is_none() {
                let listen = format!("{address}:53");
                let [ttl, delay] = &self.options;
                let argv = [&authority, "authority", "--listen", &listen, ttl, delay];
                let log = self.lab.scratch.path().join(format!("authority{place}.log"));
                self.upstreams[place] = Some(self.lab.world.start(&argv, &log));
            }
        }
        for address in BOTH {
            let kdig = Kdig::new(&self.lab.world, address).with("+timeout=1");
            let answers = || !kdig.ask_all(&[("010-255-000-001.dns64perf.test", "A")]).is_empty();
            assert!(wait_until(answers), "the authority at {address} does not answer");
        }
    }

    /// Kills the upstreams, which closes their ports.
    pub fn kill(&mut self) {
        self.upstreams.iter_mut().filter_map(Option::take).for_each(|mut process| process.kill());
    }

    /// Changes the faults: these rules for incoming packets replace all rules before.
    pub fn set_weather(&self, rules: &[String]) {
        let rules: String = rules.iter().map(|rule| format!("add rule ip faults input {rule}\n")).collect();
        let ran = self.lab.world.filter(&format!("flush chain ip faults input\n{rules}"));
        assert!(ran.success, "nft: {rules}: {}", ran.stderr);
    }

    /// Number of queries to the upstreams so far.
    pub fn upstream_queries(&self) -> f64 {
        let text = self.lab.world.run_checked(&["nft", "list", "counter", "ip", "faults", "asked"]);
        let mut words = text.split_whitespace().skip_while(|word| *word != "packets").skip(1);
        words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no counter in {text}"))
    }

    /// Starts a load in the client's namespace; [`finish`] waits for it.
    pub fn load(&self, rate: u32, seconds: f64, first: u32, names: Option<u32>) -> Child {
        let own = std::env::current_exe().expect("a program knows its own file");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.lab.client.name()]).arg(own);
        command.args(["load", &format!("[{}]:53", address::GATEWAY), &rate.to_string()]);
        command.args([seconds.to_string(), first.to_string()]).args(names.map(|names| names.to_string()));
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.spawn().unwrap_or_else(|error| panic!("ip netns exec: {error}"))
    }
}

/// Waits for the end of a load and returns its exchanges.
pub fn finish(load: Child) -> Vec<Exchange> {
    let output = load.wait_with_output().expect("our own child");
    assert!(output.status.success(), "the load has failed");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(Exchange::read).collect()
}

/// Rule that drops queries to an upstream.
pub fn drop_rule(address: &str) -> String {
    format!("ip daddr {address} udp dport 53 drop")
}

/// Rule that refuses queries to an upstream with ICMP port unreachable.
pub fn reject_rule(address: &str) -> String {
    format!("ip daddr {address} udp dport 53 reject with icmp type port-unreachable")
}

/// Rule that loses this percentage of queries.
pub fn loss_rule(percent: u32) -> String {
    format!("udp dport 53 numgen random mod 100 < {percent} drop")
}
