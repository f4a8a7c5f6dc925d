//! Conformance cases against servers that have a configuration of their own: the templates of [`crate::device`], told in
//! their own words what a case asks for; and the scorecard of what came of it, as text, JSON and a page.

mod scorecard;
mod words;

pub use scorecard::Scorecard;

use crate::agent::devices::is_confined;
use crate::device::{DeviceError, Known, Settings};
use conform::configuration::RunParameters;
use conform::{Case, ConfigDemands, ForeignServer, Launch, Program, Target};
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;
use words::Words;

/// A server of a template.
#[derive(Debug)]
struct Templated {
    known: Known,
    words: Words,
}

/// What is tested when a template is named, and the version of its program.
pub fn templated(name: &str, program: Option<&str>) -> Result<(Target, String), DeviceError> {
    let known = Known::find(name, program)?;
    let version = known.version().to_owned();
    let subject = match words::find(known.name()) {
        Some(words) => Target::Foreign(Box::new(Templated { known, words })),
        None => Target::Program(Program::sixfold(Path::new(known.program()))),
    };
    Ok((subject, version))
}

/// What may be the matter with a program that does not start.
pub fn hint(program: &str) -> &'static str {
    if is_confined(program) {
        "; AppArmor confines it, so that it may not read its files in the temporary folder (aa-complain)"
    } else {
        ""
    }
}

impl ForeignServer for Templated {
    fn launch(&self, case: &Case, places: &RunParameters) -> Result<Launch, String> {
        let wishes = ConfigDemands::of(case)?;
        let setup = (self.words)(&wishes, places.port)?;
        let settings = Settings {
            listen: SocketAddr::from((Ipv6Addr::LOCALHOST, places.port)),
            upstream: places.upstream,
            prefix: setup.prefix,
            zone: "example".to_owned(),
            workers: 1,
            value: String::new(),
            options: setup.options,
        };
        let plan = self.known.plan(&settings, places.directory);
        // The server must not outlive us, however we end.
        let keep = ["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned);
        let command = keep.into_iter().chain(plan.command).collect();
        Ok(Launch { command, files: plan.files, environment: plan.environment })
    }
}
