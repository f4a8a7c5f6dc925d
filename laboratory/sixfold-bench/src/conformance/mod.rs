//! Conformance cases against servers that have a configuration of their own. What a case demands becomes the task of a template of
//! [`crate::device`], whose recipe translates it, or names the option that the server lacks; then the case does not apply to that server.
//! The scorecard shows the results as text, JSON and a page; `servers` compares several servers. The cases themselves, and the player, are
//! in `conform`.

mod page;
mod scorecard;
mod servers;

pub use self::servers::{Comparison, Results, ServerResult, commit_of};
pub use scorecard::{Circumstances, Scorecard, further_lines};

use crate::device::{DeviceError, InstalledTemplate};
use ::servers::program::is_confined_by_apparmor;
use ::servers::{Demands, Lack, LaunchPlan, Limits, Task, Validation};
use conform::configuration::RunParameters;
use conform::{Case, ForeignServer, Program, Target, config_demands};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Server of a template.
#[derive(Debug)]
struct TemplateServer {
    known: InstalledTemplate,
    /// Demands that it cannot meet.
    lacks: &'static [Lack],
}

/// Finds the server of a template, as the subject of the cases, and the version of its program.
///
/// # Errors
///
/// As [`InstalledTemplate::find`].
pub fn find_template(name: &str, program: Option<&str>) -> Result<(Target, String), DeviceError> {
    let known = InstalledTemplate::find(name, program)?;
    let version = known.version().to_owned();
    let subject = match known.recipe().lacks {
        Some(lacks) => Target::Foreign(Box::new(TemplateServer { known, lacks })),
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

/// Task of a server for a case. It keeps its defaults, except built-in zones for private reverse names, and has room for few queries. It
/// listens on both loopback addresses. The signatures in the cases are invented.
fn task(demands: Demands, places: &RunParameters) -> Task {
    let listen = [Ipv6Addr::LOCALHOST.into(), Ipv4Addr::LOCALHOST.into()];
    Task {
        listen: listen.map(|address| SocketAddr::new(address, places.port)).into(),
        forwarders: vec![places.upstream],
        names: vec!["test".to_owned()],
        workers: 1,
        limits: Limits::Small,
        validation: Validation::Passes,
        demands,
        ..Task::default()
    }
}

impl ForeignServer for TemplateServer {
    fn launch(&self, case: &Case, places: &RunParameters) -> Result<LaunchPlan, String> {
        let demands = config_demands::of(case)?;
        demands.check(self.lacks)?;
        Ok(self.known.plan(&task(demands, places), places.directory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::servers::{Place, RECIPES};

    fn wishes(config: &str) -> Demands {
        let line = format!(
            r#"{{"id": "w", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST", "config": {{"dns64": {config}}},
                "query": {{"name": "a.", "type": "AAAA"}}, "expect": {{}}}}"#
        );
        config_demands::of(&Case::read(&line).unwrap()).unwrap()
    }

    /// Files and command line of a server for a case, one text.
    fn said(name: &str, demands: &Demands) -> Result<String, String> {
        let places = RunParameters {
            directory: Path::new("/d"),
            upstream: SocketAddr::from(([127, 0, 0, 1], 5302)),
            port: 5353,
            metrics_port: 0,
            user: "u",
        };
        let recipe = ::servers::find(name).unwrap();
        demands.check(recipe.lacks.unwrap())?;
        let place = Place { program: "p", version: "", folder: places.directory };
        let LaunchPlan { command, files, .. } = recipe.plan(&task(demands.clone(), &places), &place);
        Ok(command.into_iter().chain(files.into_values()).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn every_recipe_but_that_of_sixfold_translates_cases() {
        let without = RECIPES.into_iter().filter(|recipe| recipe.lacks.is_none());
        assert_eq!(without.map(|recipe| recipe.name).collect::<Vec<_>>(), ["sixfold"]);
    }

    #[test]
    fn a_missing_option_of_a_server_is_the_reason() {
        let refused = |name: &str, config| said(name, &wishes(config)).unwrap_err();
        assert!(refused("knot-resolver", r#"{"prefixes": ["2001:db8::/32"]}"#).contains("96"));
        assert!(refused("unbound", r#"{"exclude-aaaa": ["2001:db8::/32"]}"#).contains("count as absent"));
        assert!(refused("coredns", r#"{"prefixes": ["2001:db8::/32", "64:ff9b::/96"]}"#).contains("several"));
        assert!(refused("dnsproxy", r#"{"suffix": "::1"}"#).contains("suffix"));
        assert!(refused("powerdns", r#"{"recursive-only": true}"#).contains("RD"));
    }

    #[test]
    fn all_aaaa_records_are_ignored_in_each_server_s_dialect() {
        let demands = wishes(r#"{"exclude-aaaa": ["::/0"]}"#);
        for (name, word) in [
            ("unbound", "dns64-synthall: yes"),
            ("bind", "exclude { ::/0; }"),
            ("knot-resolver", "exclude_subnets = { '::/0' }"),
            ("coredns", "translate_all"),
        ] {
            let said = said(name, &demands).unwrap();
            assert!(said.contains(word), "{name}: {said}");
        }
    }

    /// Demands of a case with a policy zone, a blocked name, own records and one client network.
    fn local_demands() -> Demands {
        let line = r#"{"id": "w", "category": "c", "rfc": "RFC 6147 5", "source": "", "level": "MUST",
            "config": {"filter": {"rpz": ["{dir}/p.rpz"], "block": ["ads.example"]}, "server": {"allow": ["::1/128"]},
                       "local": {"records": ["nas.HOME. 60 IN A 192.0.2.1", "a.b.home. 60 IN A 192.0.2.2"]}},
            "files": {"p.rpz": "$ORIGIN policy.test.\n"},
            "query": {"name": "a.", "type": "AAAA"}, "expect": {}}"#;
        config_demands::of(&Case::read(&line.replace('\n', " ")).unwrap()).unwrap()
    }

    #[test]
    fn local_settings_are_written_as_each_server_reads_them() {
        for (name, words) in [
            (
                "unbound",
                &[
                    "access-control: ::1/128 allow",
                    "access-control: ::/0 refuse",
                    "local-data: 'nas.HOME. 60 IN A 192.0.2.1'",
                    "local-zone: \"ads.example.\" always_nxdomain",
                    "rpz:\n  name: \"policy.test.\"\n  zonefile: \"p.rpz\"",
                ][..],
            ),
            (
                "bind",
                &[
                    "allow-query { ::1/128; };",
                    "response-policy { zone \"policy.test\"; zone \"block.invalid\"; };",
                    "zone \"home\" { type primary; file \"home.zone\"; };",
                    "zone \"b.home\" { type primary; file \"b.home.zone\"; };",
                    "ads.example IN CNAME .\n*.ads.example IN CNAME .\n",
                ],
            ),
            (
                "powerdns",
                &[
                    "allow-from=::1/128",
                    "auth-zones=b.home=/d/b.home.zone,home=/d/home.zone",
                    "lua-config-file=/d/settings.lua",
                    "rpzFile(\"/d/p.rpz\", { policyName = \"policy.test\" })",
                ],
            ),
        ] {
            let text = said(name, &local_demands()).unwrap();
            for word in words {
                assert!(text.contains(word), "{name}: no {word} in\n{text}");
            }
        }
        for name in ["knot-resolver", "coredns", "dnsproxy"] {
            let reason = said(name, &local_demands()).unwrap_err();
            assert_eq!(reason, "our template has no translation for server.allow", "{name}");
        }
    }
}
