//! Servers of the experiments: the devices that are installed, and the forwarder of the laboratory. An agent starts and ends
//! them, so they end with it, whatever happens.

use super::super::context::Context;
use super::{PREFIX, ZONE, message};
use crate::agent::protocol::{Start, Started};
use crate::agent_client::AgentClient;
use crate::device::{InstalledTemplate, Recipe, Settings};
use crate::usage::Usage;
use authority::{Server, Zone};
use experiments::totd::ids::{SCHEMES, Scheme};
use measure::experiment::Program;
use measure::run::DeviceUse;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time for a server to answer its first query.
const READY: Duration = Duration::from_secs(15);

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);

/// Devices of the experiments, unless the user names others: the paper's comparator, and the two that are compared most.
const DEVICES: [&str; 3] = ["sixfold", "bind", "unbound"];

/// A server that can be started.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Name in tables.
    pub name: String,
    /// IDs of the forwarder; none for a device.
    pub scheme: Option<Scheme>,
    recipe: Recipe,
    options: Vec<String>,
}

impl Candidate {
    /// The forwarder of the laboratory, with further options of its command line.
    pub fn forwarder(scheme: Scheme, options: &[&str]) -> Result<Candidate, String> {
        let own = crate::process::own_program().map_err(|error| format!("own program: {error}"))?;
        let own = own.to_str().ok_or("the path of this program is not text")?;
        let fixed = [own, "totd-forwarder", "--listen", "{listen}", "--upstream", "{upstream}"];
        let chosen = ["--prefix", "{prefix_address}", "--ids", scheme.name()];
        let command = fixed.iter().chain(&chosen).chain(options).map(|word| (*word).to_owned()).collect();
        Ok(Candidate {
            name: format!("forwarder, {} IDs", scheme.name()),
            scheme: Some(scheme),
            recipe: Recipe::Custom { command, files: BTreeMap::new() },
            options: Vec::new(),
        })
    }

    /// An installed device, with lines for its configuration.
    pub fn device(name: &str, program: Option<&Path>, options: &[String]) -> Result<Candidate, String> {
        let program = program.map(|path| path.display().to_string());
        let found = InstalledTemplate::find(name, program.as_deref()).map_err(|error| error.to_string())?;
        Ok(Candidate {
            name: found.name().to_owned(),
            scheme: None,
            recipe: Recipe::Template { name: found.name().to_owned(), program },
            options: options.to_vec(),
        })
    }
}

/// The devices of the user, or those of [`DEVICES`] that are installed. A missing one is a warning, or an error if the user named it.
pub(super) fn devices(context: &mut Context, only: Option<&str>) -> Result<Vec<Candidate>, String> {
    let named = context.options.devices.clone();
    let names: Vec<String> = match (named.is_empty(), only) {
        (false, _) => named.clone(),
        (true, Some(name)) => vec![name.to_owned()],
        (true, None) => DEVICES.map(str::to_owned).to_vec(),
    };
    let mut found = Vec::new();
    for name in names {
        let program = context.options.programs.iter().find(|(program, _)| *program == name);
        match Candidate::device(&name, program.map(|(_, path)| path.as_path()), &[]) {
            Ok(candidate) => found.push(candidate),
            Err(error) if named.is_empty() => context.warning(format!("{name} was left out: {error}")),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// The forwarder with each of its three ways of making IDs.
pub(super) fn forwarders() -> Result<Vec<Candidate>, String> {
    SCHEMES.into_iter().map(|scheme| Candidate::forwarder(scheme, &[])).collect()
}

/// Authority and servers of an experiment.
pub(super) struct Bench {
    agent: AgentClient,
    _authority: Server,
    upstream: SocketAddr,
    /// Zone in wire form.
    pub zone: Vec<u8>,
}

/// A server that runs.
pub(super) struct Running {
    number: u32,
    /// Its address.
    pub address: SocketAddr,
}

impl Bench {
    /// An authority with these names, on loopback, and an agent for the servers.
    pub fn new() -> Result<Bench, String> {
        let zone = Zone::new(ZONE).map_err(|error| error.to_string())?;
        let name = zone.name().to_vec();
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let authority =
            Server::start(&[listen], zone, 1).map_err(|error| format!("the authority: {error}"))?;
        let upstream = *authority.addresses().first().ok_or("the authority listens nowhere")?;
        let agent = AgentClient::connect("device", None).map_err(|error| error.to_string())?;
        Ok(Bench { agent, _authority: authority, upstream, zone: name })
    }

    /// Starts a server and waits until it answers.
    pub fn start(&mut self, context: &mut Context, candidate: &Candidate) -> Result<Running, String> {
        let settings = Settings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            upstream: self.upstream,
            prefix: (PREFIX, 96),
            zone: ZONE.to_owned(),
            workers: 1,
            value: String::new(),
            options: candidate.options.clone(),
        };
        let recipe = candidate.recipe.clone();
        let order = Start { recipe, settings, cores: String::new(), environment: BTreeMap::new() };
        let Started { device, listen, version, command, files, .. } =
            self.agent.start(&order).map_err(|error| format!("{}: {error}", candidate.name))?;
        let own = format!("sixfold-bench {}", env!("CARGO_PKG_VERSION"));
        let version = if candidate.scheme.is_some() { own } else { version };
        let files = files.into_iter().collect();
        context.program(Program { name: candidate.name.clone(), version, command, files });
        let running = Running { number: device, address: listen };
        self.wait_until_ready(&running, &candidate.name)?;
        Ok(running)
    }

    fn wait_until_ready(&mut self, running: &Running, name: &str) -> Result<(), String> {
        let end = Instant::now() + READY;
        let mut tries = 0u16;
        while Instant::now() < end {
            tries += 1;
            // Names of 10.255.0.0/16, which no client asks for.
            let [high, low] = tries.to_be_bytes();
            if is_answering(running.address, [10, 255, high, low], tries, &self.zone).unwrap_or(false) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let log = self.agent.log(running.number).unwrap_or_default();
        let ended = log.ended.unwrap_or_else(|| "it still runs".to_owned());
        Err(format!(
            "{name} gave no right answer within {} s ({ended}): {}",
            READY.as_secs(),
            log.text.trim()
        ))
    }

    /// Resources that a server has used so far.
    pub fn usage(&mut self, running: &Running) -> Result<Usage, String> {
        self.agent.usage(running.number).map_err(|error| error.to_string())
    }

    /// Resources that a server has used since `before`.
    pub fn used(&mut self, running: &Running, before: &Usage, replies: u64) -> Result<DeviceUse, String> {
        Ok(self.usage(running)?.since(before, replies))
    }

    /// Ends a server. Returns its last output.
    pub fn stop(&mut self, running: Running) -> String {
        // A server that has ended already is ended, too.
        self.agent.stop(running.number, GRACE).unwrap_or_default().text.trim().to_owned()
    }
}

/// True if a server answers this query within a moment.
fn is_answering(server: SocketAddr, address: [u8; 4], id: u16, zone: &[u8]) -> std::io::Result<bool> {
    let socket = UdpSocket::bind(SocketAddr::new(server.ip(), 0))?;
    socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    socket.connect(server)?;
    let query = message::query(id, address, zone);
    socket.send(&query)?;
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer)?;
    Ok(message::is_right(&buffer[..length], &query, address))
}
