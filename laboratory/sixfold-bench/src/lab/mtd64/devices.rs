//! Devices under test of these experiments: the templates that are installed, and the papers' own programs if the user has them.
//!
//! MTD64 and mtd64-ng are not in any distribution; `--program mtd64-ng=PATH` names a program that the user has built. Its
//! configuration has the keys of the published example. mtd64-ng reads a fixed file in `/etc`: it gets a mount namespace in which
//! `/etc` is its working folder.

use super::client::Client;
use super::place::Place;
use crate::agent::protocol::Start;
use crate::agent_client::AgentClient;
use crate::device::{Recipe, Settings};
use crate::lab::context::Context;
use crate::lab::device::{self, RunningDevice, Template};
use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;

/// The prefix of the paper's test of the reply length.
pub const PREFIX: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 0xdb8, 0x63a9, 0, 0, 0, 0, 0), 96);

/// Names of TOTD, as `--program` takes them: of any version, with the sequential IDs, with the paper's quick fix of them, and with those
/// from permutations.
pub const TOTD_PROGRAMS: [&str; 4] = ["totd", "totd-1.5.2", "totd-1.5.2-fixed", "totd-1.5.3"];

/// Names of the papers' programs, as `--program` takes them.
pub const PAPER_PROGRAMS: [&str; 6] =
    ["mtd64", "mtd64-ng", TOTD_PROGRAMS[0], TOTD_PROGRAMS[1], TOTD_PROGRAMS[2], TOTD_PROGRAMS[3]];

/// A device under test.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Name in tables: a template's, or one of [`PAPER_PROGRAMS`].
    pub name: String,
    /// Its recipe.
    pub recipe: Recipe,
}

impl Subject {
    /// True for MTD64, mtd64-ng and TOTD: UDP alone, no EDNS of their own, fixed ports.
    pub fn is_of_the_papers(&self) -> bool {
        PAPER_PROGRAMS.contains(&self.name.as_str())
    }

    /// True if a socket of the device on `::` must leave IPv4 alone.
    pub fn is_v6only(&self) -> bool {
        !TOTD_PROGRAMS.contains(&self.name.as_str())
    }

    /// Address at which the device listens; port 0: any free port. MTD64 has port 53 built in.
    pub fn listen(&self) -> SocketAddr {
        (Ipv6Addr::LOCALHOST, if self.name == "mtd64" { 53 } else { 0 }).into()
    }
}

/// Devices of an experiment: its templates (`device::templates`), and the papers' programs of `--program`.
///
/// # Errors
///
/// A device that the user named is missing, or none is installed.
pub fn subjects(context: &mut Context, default: &[&str]) -> Result<Vec<Subject>, String> {
    let subject = |Template { name, program }: Template| Subject {
        name: name.clone(),
        recipe: Recipe::Template { name, program },
    };
    let mut found: Vec<Subject> = device::templates(context, default)?.into_iter().map(subject).collect();
    let programs = context.options.programs.clone();
    for (name, program) in &programs {
        if let Some(recipe) = recipe(name, program)? {
            found.push(Subject { name: name.clone(), recipe });
        }
    }
    if found.is_empty() {
        return Err("no device is installed: build sixfold, or give --device or --program".to_owned());
    }
    Ok(found)
}

/// Recipe of a program of the papers. None for another name.
///
/// # Errors
///
/// The program of the papers is not at the path that `--program` gives.
pub fn recipe(name: &str, program: &Path) -> Result<Option<Recipe>, String> {
    if !PAPER_PROGRAMS.contains(&name) {
        return Ok(None);
    }
    let program = program.canonicalize().map_err(|error| {
        format!("--program {name}={}: {error}; give the path of the built program", program.display())
    })?;
    let program = program.display().to_string();
    let shared = "nameserver {upstream_address}\nselection-mode random\ndns64-prefix {prefix}\ndebugging no\n\
                  resend-attempts 2\nresponse-maxlength {value}\n";
    let (command, file, text) = match name {
        "mtd64" => {
            let text = format!("{shared}timeout-time-sec 1\ntimeout-time-usec 0\n");
            (vec![program], "settings.conf", text)
        }
        "mtd64-ng" => {
            let text = format!("{shared}timeout-time 1.0\nnum-threads {{workers}}\nport {{listen_port}}\n");
            (in_etc(&program), "mtd64-ng.conf", text)
        }
        _ => {
            // With the usual file a second TOTD would refuse to start, and remove the file.
            let text = "forwarder {upstream_address} port {upstream_port}\nprefix {prefix_address}\nport {listen_port}\n\
                        pidfile {dir}/totd.pid\n";
            let script = format!("'{program}' -c {{dir}}/totd.conf; exec sleep 2147483647");
            (vec!["sh".to_owned(), "-c".to_owned(), script], "totd.conf", text.to_owned())
        }
    };
    Ok(Some(Recipe::Custom { command, files: BTreeMap::from([(file.to_owned(), text)]) }))
}

/// Command that starts a daemon whose configuration is in `/etc`. The first process stays, so that the device has not ended when
/// the daemon has left it.
fn in_etc(program: &str) -> Vec<String> {
    let script = format!("mount --bind {{dir}} /etc && '{program}'; exec sleep 2147483647");
    ["unshare", "--mount", "sh", "-c", &script].map(str::to_owned).to_vec()
}

/// Parameters of a start.
pub struct Launch<'a> {
    /// Address of the authority.
    pub upstream: SocketAddr,
    /// Zone of the names.
    pub zone: &'a str,
    /// Threads.
    pub workers: u16,
    /// Cores, in the syntax of `taskset -c`; empty: all.
    pub cores: String,
    /// Longest reply of the papers' programs, in octets.
    pub response_maximum: u16,
    /// Lines for the configuration of a template, in its own syntax.
    pub options: Vec<String>,
}

impl<'a> Launch<'a> {
    /// One worker on any core, replies of at most 512 octets, and no further lines.
    pub fn new(upstream: SocketAddr, zone: &'a str) -> Launch<'a> {
        Launch {
            upstream,
            zone,
            workers: 1,
            cores: String::new(),
            response_maximum: 512,
            options: Vec::new(),
        }
    }
}

/// Starts a device, waits until it answers for a name, and enters it into the record.
///
/// # Errors
///
/// As `RunningDevice::start`.
pub fn start<'p>(
    context: &mut Context,
    place: &'p Place,
    agent: &mut AgentClient,
    subject: &Subject,
    launch: &Launch<'_>,
    name: &str,
) -> Result<(RunningDevice, Client<'p>), String> {
    let settings = Settings {
        workers: launch.workers,
        value: launch.response_maximum.to_string(),
        options: launch.options.clone(),
        ..Settings::new(subject.listen(), launch.upstream, PREFIX, launch.zone)
    };
    let recipe = subject.recipe.clone();
    let order = Start { recipe, settings, cores: launch.cores.clone(), environment: BTreeMap::new() };
    let client = |server| Client { place, server };
    let is_answering = |server, _| client(server).has_answer_for(name);
    let device = RunningDevice::start(context, agent, &subject.name, &order, None, is_answering)?;
    let client = client(device.address);
    Ok((device, client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configurations_of_the_papers_programs_have_their_keys() {
        let own = std::env::current_exe().unwrap();
        for (name, keys) in [
            ("mtd64", ["nameserver {upstream_address}", "response-maxlength {value}", "timeout-time-sec 1"]),
            ("mtd64-ng", ["num-threads {workers}", "port {listen_port}", "timeout-time 1.0"]),
            ("totd", ["forwarder {upstream_address} port", "port {listen_port}", "pidfile {dir}/"]),
        ] {
            let Some(Recipe::Custom { files, .. }) = recipe(name, &own).unwrap() else { panic!("{name}") };
            let text = files.into_values().next().unwrap();
            for key in keys {
                assert!(text.contains(key), "{name}: {key}: {text}");
            }
        }
        assert_eq!(recipe("bind", &own), Ok(None));
        assert!(recipe("mtd64", Path::new("/nowhere")).unwrap_err().contains("built program"));
    }
}
