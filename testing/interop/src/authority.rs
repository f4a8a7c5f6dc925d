//! Name servers in the namespace `world`: NSD, Knot DNS and BIND as authorities, and Unbound as a resolver in front
//! of one of them.

use crate::installed::configure;
use crate::kdig::Kdig;
use crate::lab::{Lab, address};
use crate::namespace::Namespace;
use crate::process::{Process, words};
use crate::zones::{self, Zone};
use servers::authority::{Program, ZoneTask};
use servers::process::write_files;
use servers::{Anchors, Place, Task, UNBOUND, Validation};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Writes the files of an authoritative server for these zones into `place`. Returns its command line. `secrets`: those of its cookies.
pub(crate) fn configure_zones(
    program: Program,
    place: &Path,
    (addresses, port): (&[&str], u16),
    secrets: &[&str],
    zones: &[Zone],
) -> Vec<String> {
    let task = ZoneTask {
        listen: addresses.iter().map(|address| at(address, port)).collect(),
        zones: zones.iter().map(|zone| (zone.name.to_owned(), zone.file.clone())).collect(),
        workers: 1,
        secrets: secrets.iter().map(|&secret| secret.to_owned()).collect(),
        ..ZoneTask::default()
    };
    let plan = program.plan(&task, &Place { program: program.file(), version: "", folder: place });
    write_files(&plan.files, place).unwrap_or_else(|error| panic!("{error}"));
    plan.command
}

fn at(address: &str, port: u16) -> SocketAddr {
    SocketAddr::new(address.parse().expect("an address"), port)
}

/// True if the server at this address has the SOA record of a zone.
pub(crate) fn has_zone(namespace: &Namespace, address: &str, port: u16, zone: &str) -> bool {
    let kdig = Kdig::new(namespace, address).with(&format!("+timeout=1 -p {port}"));
    kdig.ask_all(&[(zone, "SOA")]).first().is_some_and(|answer| !answer.data("SOA").is_empty())
}

/// Running name server on port 53 of one address.
pub struct Authority<'a> {
    namespace: &'a Namespace,
    argv: Vec<String>,
    address: String,
    asked: String,
    log: PathBuf,
    process: Process,
}

impl<'a> Authority<'a> {
    /// Starts an authority at the first address of a lab's world, for the zones without signatures.
    pub fn of_lab(program: Program, lab: &'a Lab) -> Authority<'a> {
        let place = lab.scratch.directory(program.file());
        let zones = zones::plain(&place);
        Authority::start(program, &lab.world, &place, address::FIRST, &zones)
    }

    /// Starts an authority for `zones` and waits until it answers. `place` is a new directory for it.
    pub fn start(
        program: Program,
        namespace: &'a Namespace,
        place: &Path,
        address: &str,
        zones: &[Zone],
    ) -> Authority<'a> {
        let argv = configure_zones(program, place, (&[address], 53), &[], zones);
        Authority::launch(namespace, argv, place, address, zones[0].name)
    }

    /// Starts Unbound, which queries the authority at `authority` for these zones, validates with their trust
    /// anchors, and returns the reason of bogus data as an extended error (RFC 8914).
    pub fn start_unbound(
        namespace: &'a Namespace,
        place: &Path,
        address: &str,
        authority: &str,
        zones: &[Zone],
    ) -> Authority<'a> {
        let anchor = |anchor: &String| anchor.parse().expect("a DS record");
        let positive = zones.iter().filter_map(|zone| zone.anchor.as_ref()).map(anchor).collect();
        let anchors = Anchors { positive, ..Anchors::default() };
        let task = Task {
            listen: vec![at(address, 53)],
            zones: zones.iter().map(|zone| (format!("{}.", zone.name), vec![at(authority, 53)])).collect(),
            names: vec!["test".to_owned()],
            workers: 1,
            validation: Validation::Anchors(anchors),
            options: vec!["ede: yes".to_owned()],
            ..Task::default()
        };
        let argv = configure(&UNBOUND, &task, place);
        Authority::launch(namespace, argv, place, address, zones[0].name)
    }

    fn launch(
        namespace: &'a Namespace,
        argv: Vec<String>,
        place: &Path,
        address: &str,
        asked: &str,
    ) -> Authority<'a> {
        let log = place.join("server.log");
        let mut authority = Authority {
            namespace,
            address: address.into(),
            asked: asked.into(),
            process: namespace.start(&words(&argv), &log),
            log,
            argv,
        };
        authority.expect_answers();
        authority
    }

    fn expect_answers(&mut self) {
        let (namespace, address, asked) = (self.namespace, &self.address, &self.asked);
        let what = format!("{} answers", self.argv[0]);
        self.process.expect(&what, |_| has_zone(namespace, address, 53, asked));
    }

    /// Kills the server at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Starts the server again with the same configuration, and waits until it answers.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = self.namespace.start(&words(&self.argv), &self.log);
        self.expect_answers();
    }
}
