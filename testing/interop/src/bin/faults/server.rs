//! Servers of the experiments, all with equal configurations: one worker, DNS64, two upstreams, no validation, and
//! expired data when upstreams fail, if the server has an option for it. Everything else is the default.

use servers::{Demands, Task};
use sixfold_interop::{Lab, Process, address, configure, missing_program, words};
use std::net::SocketAddr;

/// Names of all servers.
pub const ALL: [&str; 4] = ["sixfold", "unbound", "powerdns", "bind"];

/// Task of a server.
fn task(device: &str, upstreams: [&str; 2]) -> Task {
    let at = |address: &str| SocketAddr::new(address.parse().expect("an address"), 53);
    let (prefix, length) = address::PREFIX.split_once('/').expect("a prefix");
    let prefix = (prefix.parse().expect("an address"), length.parse().expect("a number"));
    let options: &[&str] = match device {
        "sixfold" => &["metrics.listen = \"127.0.0.1:9464\""],
        "unbound" => &["ede: yes", "ede-serve-expired: yes", "serve-expired-client-timeout: 1800"],
        "bind" => &["stale-answer-client-timeout 1800;"],
        _ => &[],
    };
    Task {
        listen: vec![at(address::GATEWAY)],
        forwarders: upstreams.map(at).into(),
        names: vec!["test".to_owned()],
        workers: 1,
        demands: Demands {
            prefixes: vec![prefix],
            allow: Some(vec!["2001:db8:c::/64".to_owned()]),
            stale: true,
            ..Demands::default()
        },
        options: options.iter().map(|&option| option.to_owned()).collect(),
        ..Task::default()
    }
}

/// Starts a server in the gateway and waits until it answers.
///
/// # Errors
///
/// The server is not installed. A server that does not answer in time is a panic with its log.
pub fn start(device: &str, lab: &Lab, upstreams: [&str; 2]) -> Result<Process, String> {
    let recipe = servers::find(device).ok_or_else(|| format!("no recipe is called {device}"))?;
    if device != "sixfold"
        && let Some(why) = missing_program(recipe.program)
    {
        return Err(why.why());
    }
    let argv = configure(recipe, &task(device, upstreams), lab.scratch.path());
    let mut process = lab.gateway.start(&words(&argv), &lab.scratch.path().join("server.log"));
    let kdig = lab.kdig().with("+timeout=1");
    process.expect(&format!("{device} answers"), |_| {
        kdig.ask_all(&[("010-255-000-001.dns64perf.test", "AAAA")])
            .first()
            .is_some_and(|answer| answer.status == "NOERROR")
    });
    Ok(process)
}
