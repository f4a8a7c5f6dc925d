//! Conformance cases against servers that have a configuration of their own: the templates of [`crate::device`], told in
//! their own words what a case asks for; and the scorecard of what came of it, as text, JSON and a page.

mod dialects;
mod scorecard;

pub use scorecard::Scorecard;

use crate::device::program::is_confined_by_apparmor;
use crate::device::{DeviceError, InstalledTemplate, Settings};
use conform::configuration::Places;
use conform::{Case, Foreign, Launch, Program, Subject, Wishes};
use dialects::Dialect;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;

/// A server of a template.
#[derive(Debug)]
struct TemplateServer {
    known: InstalledTemplate,
    dialect: Dialect,
}

/// What is tested when a template is named, and the version of its program.
pub fn find_template(name: &str, program: Option<&str>) -> Result<(Subject, String), DeviceError> {
    let known = InstalledTemplate::find(name, program)?;
    let version = known.version().to_owned();
    let subject = match dialects::find(known.name()) {
        Some(dialect) => Subject::Foreign(Box::new(TemplateServer { known, dialect })),
        None => Subject::Program(Program::sixfold(Path::new(known.program()))),
    };
    Ok((subject, version))
}

/// What may be the matter with a program that does not start.
pub fn confinement_hint(program: &str) -> &'static str {
    if is_confined_by_apparmor(program) {
        "; AppArmor confines it, so that it may not read its files in the temporary folder (aa-complain)"
    } else {
        ""
    }
}

impl Foreign for TemplateServer {
    fn launch(&self, case: &Case, places: &Places) -> Result<Launch, String> {
        let demands = Wishes::of(case)?;
        let setup = (self.dialect)(&demands, places.port)?;
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
