//! Servers of the experiments: the devices that are installed, and the forwarder of the laboratory. An agent starts and ends
//! them, so they end with it, whatever happens.

use super::super::context::Context;
use super::super::device::{self, RunningDevice, Template};
use super::super::mtd64::devices::{TOTD_PROGRAMS, recipe};
use super::{PREFIX, ZONE, message};
use crate::agent::protocol::Start;
use crate::agent_client::AgentClient;
use crate::device::{Recipe, Settings};
use crate::exchange;
use crate::usage::Usage;
use authority::{Server, Zone};
use measure::run::DeviceUse;
use papers::totd::ids::{SCHEMES, Scheme};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// Devices of the experiments, of the load test, unless the user names others: the paper's comparator, and the two that are compared most.
pub(super) const DEVICES: [&str; 3] = ["sixfold", "bind", "unbound"];

/// A server that can be started.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// Name in tables.
    pub name: String,
    /// IDs of the forwarder; none for a device.
    pub scheme: Option<Scheme>,
    /// Lines for its configuration.
    pub options: Vec<String>,
    recipe: Recipe,
}

impl Candidate {
    /// The forwarder of the laboratory, with further options of its command line.
    ///
    /// # Errors
    ///
    /// The path of this program is unknown, or is not UTF-8.
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
}

/// Forwarders of TOTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forwarders {
    /// One.
    One,
    /// Two with different addresses.
    Two,
    /// One that is listed twice.
    SameTwice,
}

impl Forwarders {
    /// The forwarders in words.
    pub fn words(self) -> &'static str {
        match self {
            Forwarders::One => "one forwarder",
            Forwarders::Two => "two forwarders",
            Forwarders::SameTwice => "one forwarder listed twice",
        }
    }

    /// Address of the second forwarder, as it is written in the configuration.
    fn second(self) -> Option<String> {
        match self {
            Forwarders::One => None,
            Forwarders::Two => Some(SECOND_FORWARDER.to_string()),
            Forwarders::SameTwice => Some("{upstream_address}".to_owned()),
        }
    }
}

/// Address of the second authority, on loopback; its port is that of the first one.
const SECOND_FORWARDER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

impl Candidate {
    /// TOTD with these forwarders: its configuration gets another line.
    pub fn with_forwarders(mut self, forwarders: Forwarders) -> Candidate {
        if let (Some(second), Recipe::Custom { files, .. }) = (forwarders.second(), &mut self.recipe) {
            for text in files.values_mut() {
                text.push_str(&format!("forwarder {second} port {{upstream_port}}\n"));
            }
        }
        self
    }
}

/// Installed devices: those of the user, or those of `default`.
///
/// # Errors
///
/// A device that the user named is missing.
pub(super) fn devices(context: &mut Context, default: &[&str]) -> Result<Vec<Candidate>, String> {
    let candidate = |Template { name, program }: Template| Candidate {
        name: name.clone(),
        scheme: None,
        recipe: Recipe::Template { name, program },
        options: Vec::new(),
    };
    Ok(device::templates(context, default)?.into_iter().map(candidate).collect())
}

/// TOTD itself, as far as the user gave it with `--program`.
///
/// # Errors
///
/// A program is not at the path that `--program` gives.
pub(super) fn programs(context: &Context) -> Result<Vec<Candidate>, String> {
    let given = context.options.programs.iter().filter(|(name, _)| TOTD_PROGRAMS.contains(&name.as_str()));
    let mut found = Vec::new();
    for (name, path) in given {
        if let Some(recipe) = recipe(name, path)? {
            found.push(Candidate { name: name.clone(), scheme: None, options: Vec::new(), recipe });
        }
    }
    Ok(found)
}

/// The forwarder with each of its three ways of making IDs, with further options of its command line.
///
/// # Errors
///
/// As [`Candidate::forwarder`].
pub(super) fn forwarders(options: &[&str]) -> Result<Vec<Candidate>, String> {
    SCHEMES.into_iter().map(|scheme| Candidate::forwarder(scheme, options)).collect()
}

/// Authority and servers of an experiment.
pub(super) struct Bench {
    agent: AgentClient,
    _authorities: Vec<Server>,
    upstream: SocketAddr,
    /// Zone in wire form.
    pub zone: Vec<u8>,
}

impl Bench {
    /// An authority with these names, on loopback, and an agent for the servers.
    ///
    /// # Errors
    ///
    /// As [`Bench::with`].
    pub fn new() -> Result<Bench, String> {
        Bench::with(Forwarders::One)
    }

    /// As many authorities as the forwarders of TOTD need.
    ///
    /// # Errors
    ///
    /// An authority cannot listen at its loopback address, or the agent cannot be started.
    pub fn with(forwarders: Forwarders) -> Result<Bench, String> {
        let authority = |listen: SocketAddr| {
            let zone = Zone::new(ZONE).map_err(|error| error.to_string())?;
            Server::start(&[listen], zone, 1).map_err(|error| format!("the authority at {listen}: {error}"))
        };
        let first = authority((Ipv4Addr::LOCALHOST, 0).into())?;
        let upstream = *first.addresses().first().ok_or("the authority listens nowhere")?;
        let mut authorities = vec![first];
        if forwarders == Forwarders::Two {
            authorities.push(authority((SECOND_FORWARDER, upstream.port()).into())?);
        }
        let agent = AgentClient::connect("device", None).map_err(|error| error.to_string())?;
        let zone = Zone::new(ZONE).map_err(|error| error.to_string())?.name().to_vec();
        Ok(Bench { agent, _authorities: authorities, upstream, zone })
    }

    /// Starts a server and waits until it answers.
    ///
    /// # Errors
    ///
    /// As [`Bench::launch`].
    pub fn start(&mut self, context: &mut Context, candidate: &Candidate) -> Result<RunningDevice, String> {
        let zone = self.zone.clone();
        // Names of 10.255.0.0/16, which no client asks for.
        let is_answering = |server, number: u16| {
            let [high, low] = number.to_be_bytes();
            is_answering(server, [10, 255, high, low], number, &zone).unwrap_or(false)
        };
        self.launch(context, candidate, is_answering)
    }

    /// Starts a server and waits until `is_answering` says that it is ready.
    ///
    /// # Errors
    ///
    /// The server cannot be started, or is not ready in time; then the error has the end of its output.
    pub fn launch(
        &mut self,
        context: &mut Context,
        candidate: &Candidate,
        is_answering: impl Fn(SocketAddr, u16) -> bool,
    ) -> Result<RunningDevice, String> {
        let listen = (Ipv4Addr::LOCALHOST, 0).into();
        let settings = Settings {
            options: candidate.options.clone(),
            ..Settings::new(listen, self.upstream, (PREFIX, 96), ZONE)
        };
        let recipe = candidate.recipe.clone();
        let order = Start { recipe, settings, cores: String::new(), environment: BTreeMap::new() };
        let own = candidate.scheme.map(|_| format!("sixfold-bench {}", env!("CARGO_PKG_VERSION")));
        RunningDevice::start(context, &mut self.agent, &candidate.name, &order, own, is_answering)
    }

    /// Resources that a server has used so far.
    ///
    /// # Errors
    ///
    /// The agent has ended, or does not answer.
    pub fn usage(&mut self, running: &RunningDevice) -> Result<Usage, String> {
        running.usage(&mut self.agent)
    }

    /// Resources that a server has used since `before`.
    ///
    /// # Errors
    ///
    /// As [`Bench::usage`].
    pub fn used(
        &mut self,
        running: &RunningDevice,
        before: &Usage,
        replies: u64,
    ) -> Result<DeviceUse, String> {
        Ok(self.usage(running)?.since(before, replies))
    }

    /// Ends a server. Returns its last output.
    pub fn stop(&mut self, running: RunningDevice) -> String {
        running.stop(&mut self.agent).text.trim().to_owned()
    }
}

/// True if a server answers this query within a moment.
fn is_answering(server: SocketAddr, address: [u8; 4], id: u16, zone: &[u8]) -> std::io::Result<bool> {
    let query = message::query(id, address, zone);
    let is_right = |reply: &[u8]| message::is_right(reply, &query, address);
    let reply = exchange::ask(&exchange::socket_to(server)?, &query, Duration::from_millis(300), is_right);
    Ok(reply?.is_some())
}
