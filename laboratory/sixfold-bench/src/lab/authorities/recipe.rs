//! Recipes of authoritative servers: how each is found, configured and started. `recipes.toml` has them.

use super::zone_file::{TTL_SECS, ZONE};
use crate::device::placeholder::fill_with;
use serde::Deserialize;
use servers::authority::ZoneTask;
use servers::{LaunchPlan, Place};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::LazyLock;

/// A server of the experiment.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    /// Name of `--device`.
    pub name: &'static str,
    /// Name in tables.
    pub title: &'static str,
    /// File name of its program; empty: our own.
    #[serde(default)]
    pub program: &'static str,
    /// Debian packages that have it.
    #[serde(default)]
    pub packages: &'static str,
    /// Arguments that print its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// Text with which the version begins.
    #[serde(default)]
    pub version_prefix: &'static str,
    /// True if it reads the master file.
    #[serde(default)]
    pub reads_zone: bool,
    /// True if it can use one core alone at one port.
    #[serde(default)]
    pub is_single: bool,
    /// Form of its answers.
    #[serde(default)]
    pub answers: Answers,
    /// Its recipe, if tests start it too.
    configured_as: Option<servers::authority::Program>,
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Form of the answers of a server, as far as servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Answers {
    /// True if they have the bit AA, and if a name that does not exist gets NXDOMAIN with the SOA record of the zone.
    pub is_authoritative: bool,
    /// TTL of all records, in seconds.
    pub ttl: u32,
}

impl Default for Answers {
    /// Answers of an authoritative server (RFC 1035) for the zone.
    fn default() -> Answers {
        Answers { is_authoritative: true, ttl: TTL_SECS }
    }
}

/// Input of a recipe.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Path of the program.
    pub program: &'a str,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Threads or processes that answer.
    pub threads: usize,
    /// First core of the server.
    pub core: u16,
    /// The master file.
    pub zone_file: &'a Path,
    /// The server's own folder.
    pub folder: &'a Path,
}

/// All servers, the paper's first.
pub static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| {
    let mut file: BTreeMap<String, Vec<Recipe>> =
        toml::from_str(include_str!("recipes.toml")).expect("tests read this file");
    file.remove("recipe").unwrap_or_default()
});

impl Recipe {
    /// Command line and files of the server.
    pub fn plan(&self, input: &Input) -> LaunchPlan {
        if let Some(program) = self.configured_as {
            let task = ZoneTask {
                listen: vec![input.listen],
                zones: vec![(ZONE.to_owned(), input.zone_file.to_owned())],
                workers: input.threads,
                is_minimal: true,
                ..ZoneTask::default()
            };
            return program.plan(&task, &Place { program: input.program, version: "", folder: input.folder });
        }
        let fill =
            |text: &String| fill_with(text, |word| input.value(word)).expect("tests fill every recipe");
        let files = self.files.iter().map(|(name, text)| (name.clone(), fill(text)));
        let command = self.command.iter().map(fill).collect();
        LaunchPlan { command, files: files.collect(), ..LaunchPlan::default() }
    }
}

impl Input<'_> {
    /// The value of a placeholder.
    fn value(&self, word: &str) -> Option<String> {
        Some(match word {
            "program" => self.program.to_owned(),
            "listen" => self.listen.to_string(),
            "listen_address" => self.listen.ip().to_string(),
            "listen_port" => self.listen.port().to_string(),
            "workers" => self.threads.to_string(),
            "core" => self.core.to_string(),
            "zone" => ZONE.to_owned(),
            "zone_file" => self.zone_file.display().to_string(),
            "dir" => self.folder.display().to_string(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_tells_address_threads_and_zone_file() {
        for listen in ["127.0.0.1:5399", "[::1]:5399"] {
            let listen: SocketAddr = listen.parse().unwrap();
            for recipe in RECIPES.iter().filter(|recipe| !recipe.is_single) {
                let plan = recipe.plan(&Input {
                    program: "/bin/program",
                    listen,
                    threads: 7,
                    core: 3,
                    zone_file: Path::new("/zones/the-zone"),
                    folder: Path::new("/tmp/folder"),
                });
                let mut said = plan.command.join("\n");
                plan.files.values().for_each(|text| said.push_str(text));
                assert_eq!(plan.command[0], "/bin/program");
                for needed in ["5399", "7", &listen.ip().to_string()] {
                    assert!(said.contains(needed), "{}: no {needed} in\n{said}", recipe.name);
                }
                assert_eq!(said.contains("/zones/the-zone"), recipe.reads_zone, "{}\n{said}", recipe.name);
                assert_eq!(
                    said.contains(ZONE),
                    recipe.reads_zone && !recipe.program.is_empty(),
                    "{}",
                    recipe.name
                );
            }
        }
    }

    #[test]
    fn fakedns_gets_one_port_and_one_core_in_a_file_of_its_own_etc() {
        let fakedns = RECIPES.iter().find(|recipe| recipe.name == "fakedns").unwrap();
        let plan = fakedns.plan(&Input {
            program: "/opt/fakedns",
            listen: "127.0.0.1:5399".parse().unwrap(),
            threads: 1,
            core: 3,
            zone_file: Path::new("/z"),
            folder: Path::new("/tmp/folder"),
        });
        assert!(plan.command.join(" ").contains("mount --bind '/tmp/folder' /etc && '/opt/fakedns';"));
        let text = "have-AAAA 1\nnum-servers 1\nstart-port 5399\nstart-cpu 3\ndebug no\n";
        assert_eq!(plan.files["fakedns.conf"], text);
    }

    #[test]
    fn a_configuration_file_is_named_in_the_command_line() {
        let input = Input {
            program: "p",
            listen: "127.0.0.1:1".parse().unwrap(),
            threads: 1,
            core: 3,
            zone_file: Path::new("/z"),
            folder: Path::new("/d"),
        };
        for recipe in RECIPES.iter().filter(|recipe| !recipe.program.is_empty() && !recipe.is_single) {
            let plan = recipe.plan(&input);
            let command = plan.command.join(" ");
            let is_named = plan.files.keys().any(|file| command.ends_with(&format!("/d/{file}")));
            assert!(is_named || command.ends_with("--config-dir=/d"), "{command}");
        }
    }
}
