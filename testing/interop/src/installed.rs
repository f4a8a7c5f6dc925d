//! Servers that are compared: Sixfold of this build, and others of this system or of Debian 13, each by its recipe. A start writes the
//! files, finds a port, and waits until the server is ready.

use crate::debian::Debian13;
use crate::process::{Process, run, words};
use crate::requirement::{Unable, missing_program};
use crate::scratch::Scratch;
use crate::sixfold::binary;
use conform::differential::quirk::Server;
use kit::free_port;
use servers::process::{at_free_port, write_files};
use servers::{Place, Recipe, Task};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

/// Recipe of a server.
fn recipe(server: Server) -> &'static Recipe {
    match server {
        Server::Sixfold => &servers::SIXFOLD,
        Server::Unbound => &servers::UNBOUND,
        Server::Bind => &servers::BIND,
        Server::PowerDns => &servers::POWERDNS,
        Server::KnotResolver => &servers::KNOT_RESOLVER,
    }
}

/// A server in its system: Debian 13, or this one. Sixfold is that of this build.
#[derive(Clone, Copy)]
pub struct Installed<'d> {
    server: Server,
    debian: Option<&'d Debian13>,
}

impl<'d> Installed<'d> {
    /// The server of this system.
    pub fn here(server: Server) -> Installed<'static> {
        Installed { server, debian: None }
    }

    /// The server of Debian 13.
    pub fn of(debian: &'d Debian13, server: Server) -> Installed<'d> {
        Installed { server, debian: (server != Server::Sixfold).then_some(debian) }
    }

    /// Reason why the server cannot be started here; `None` if it can.
    pub fn missing(self) -> Option<Unable> {
        if self.server == Server::Sixfold { None } else { missing_program(&self.program()) }
    }

    /// Path of the program, or its name.
    fn program(self) -> String {
        let name = recipe(self.server).program;
        match (self.server, self.debian) {
            (Server::Sixfold, _) => binary().to_owned(),
            (_, Some(_)) => format!("/usr/sbin/{name}"),
            (_, None) => name.to_owned(),
        }
    }

    /// Version that the program reports.
    pub fn version(self) -> String {
        let (program, place) = (self.program(), Scratch::new());
        let argv = [&[program.as_str()], recipe(self.server).version].concat();
        let ran = match self.debian {
            Some(debian) => debian.run(place.path(), &argv),
            None => run(&argv),
        };
        recipe(self.server).version_in(&(ran.stdout + &ran.stderr))
    }

    /// Starts the server with this task, at a port of 127.0.0.1, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn start(self, task: &Task) -> RunningServer {
        let version = self.version();
        let started = at_free_port(|| self.try_start(task, &version));
        started.unwrap_or_else(|why| panic!("{} does not answer: {why}", self.server.name()))
    }

    fn try_start(self, task: &Task, version: &str) -> Result<RunningServer, String> {
        let (place, port) = (Scratch::new(), free_port());
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let folder = self.debian.map_or(place.path(), |_| Path::new(Debian13::FOLDER));
        let program = self.program();
        // Its default port for metrics may be another one's.
        let no_metrics = (self.server == Server::Sixfold).then(|| "metrics.listen = \"\"".to_owned());
        let options = task.options.iter().cloned().chain(no_metrics).collect();
        let task = Task { listen: vec![at], options, ..task.clone() };
        let plan = recipe(self.server).plan(&task, &Place { program: &program, version, folder });
        write_files(&plan.files, place.path()).map_err(|error| error.to_string())?;
        let command = match self.debian {
            Some(debian) => debian.command_in_namespace(place.path(), &words(&plan.command)),
            None => plan.command,
        };
        let mut process = Process::start(&words(&command), &place.path().join("server.log"));
        process.wait_for(|log| recipe(self.server).ready.is_given(log, at))?;
        Ok(RunningServer { port, process, _place: place })
    }
}

/// Writes the files of a server of this system, or of Sixfold of this build, into its folder. Returns the command line.
///
/// # Panics
///
/// If a file cannot be written.
pub fn configure(recipe: &Recipe, task: &Task, folder: &Path) -> Vec<String> {
    let program = if recipe.name == servers::SIXFOLD.name { binary() } else { recipe.program };
    let ran = run(&[&[program], recipe.version].concat());
    let version = recipe.version_in(&(ran.stdout + &ran.stderr));
    let plan = recipe.plan(task, &Place { program, version: &version, folder });
    write_files(&plan.files, folder).unwrap_or_else(|error| panic!("{error}"));
    plan.command
}

/// Running server.
pub struct RunningServer {
    /// Port on 127.0.0.1.
    pub port: u16,
    process: Process,
    _place: Scratch,
}

impl RunningServer {
    /// True if the process still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.is_running()
    }

    /// Log so far.
    pub fn log(&self) -> String {
        self.process.log()
    }
}
