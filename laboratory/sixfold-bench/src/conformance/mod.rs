//! Conformance cases against servers that have a configuration of their own. `dialects` translates a case for the
//! templates of [`crate::device`]; the scorecard shows the results as text, JSON and a page; `servers` compares several
//! servers. The cases themselves, and the player, are in `conform`.

mod dialects;
mod page;
mod scorecard;
mod servers;

pub use scorecard::{Circumstances, Scorecard, further_lines};
pub use servers::{Comparison, Results, ServerResult, commit_of};

use crate::device::program::is_confined_by_apparmor;
use crate::device::{DeviceError, InstalledTemplate, Settings};
use conform::configuration::RunParameters;
use conform::{Case, ConfigDemands, ForeignServer, Launch, Program, Target};
use dialects::Dialect;
use std::net::{Ipv6Addr, SocketAddr};
use std::path::Path;

/// Server of a template, and the translation for it.
#[derive(Debug)]
struct TemplateServer {
    known: InstalledTemplate,
    dialect: Dialect,
}

/// Finds the server of a template, as the subject of the cases, and the version of its program.
///
/// # Errors
///
/// As [`InstalledTemplate::find`].
pub fn find_template(name: &str, program: Option<&str>) -> Result<(Target, String), DeviceError> {
    let known = InstalledTemplate::find(name, program)?;
    let version = known.version().to_owned();
    let subject = match dialects::find(known.name()) {
        Some(dialect) => Target::Foreign(Box::new(TemplateServer { known, dialect })),
        None => Target::Program(Program::sixfold(Path::new(known.program()))),
    };
    Ok((subject, version))
}

/// Possible cause of a failed start, appended to the error.
pub fn confinement_hint(program: &str) -> &'static str {
    if is_confined_by_apparmor(program) {
        "; AppArmor confines it, so it may not read its files in the temporary folder (use aa-complain)"
    } else {
        ""
    }
}

impl ForeignServer for TemplateServer {
    fn launch(&self, case: &Case, places: &RunParameters) -> Result<Launch, String> {
        let demands = ConfigDemands::of(case)?;
        let setup = (self.dialect)(&demands, places)?;
        let listen = SocketAddr::from((Ipv6Addr::LOCALHOST, places.port));
        let settings = Settings {
            options: setup.options,
            ..Settings::new(listen, places.upstream, setup.prefix, "example")
        };
        let mut plan = self.known.plan(&settings, places.directory);
        // A template has one file, its configuration.
        plan.files.values_mut().for_each(|text| text.push_str(&setup.statements));
        plan.files.extend(setup.files);
        // The kernel kills the server if this process ends in any way.
        let keep = ["setpriv", "--pdeathsig", "KILL", "--"].map(str::to_owned);
        let command = keep.into_iter().chain(plan.command).collect();
        Ok(Launch { command, files: plan.files, environment: plan.environment })
    }
}
