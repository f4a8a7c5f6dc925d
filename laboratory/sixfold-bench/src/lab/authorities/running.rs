//! A server of the experiment as a running process: found, started, asked until it answers, watched, ended.

use super::limits;
use super::question;
use super::recipe::{Answers, Input, Recipe};
use crate::process::supervisor::LaunchRequest;
use crate::process::{Process, own_program};
use crate::usage::{self, Usage};
use measure::experiment::Program;
use servers::WorkingFolder;
use servers::process::{free_address, may_start_elsewhere};
use servers::program::{command_output, find_in_path, is_confined_by_apparmor};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit of a program that is asked for its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(5);

/// Characters of a server's last output in an error.
const LOG_CHARACTERS: usize = 600;

/// A server that is installed.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Its recipe.
    pub recipe: &'static Recipe,
    /// Path of the program.
    pub program: String,
    /// Version as the program prints it.
    pub version: String,
}

impl Installed {
    /// Finds the program of a recipe: the given one, or one in the usual folders, or our own.
    ///
    /// # Errors
    ///
    /// The program is not installed, or tells no version; the error says how to install it.
    pub fn find(recipe: &'static Recipe, given: Option<&Path>) -> Result<Installed, String> {
        let found = match (given, recipe.program) {
            (Some(given), _) => Some(given.to_owned()).filter(|path| path.is_file()),
            (None, "") => own_program().ok(),
            (None, program) => find_in_path(program),
        };
        let program = found.ok_or_else(|| {
            let shown = given.unwrap_or(Path::new(recipe.program)).display();
            if recipe.packages.is_empty() {
                return format!(
                    "{}: {shown} is not installed; no package has it: build it as docs/papers/authorities.md says, and give --program \
                     {}=PATH",
                    recipe.title, recipe.name
                );
            }
            format!(
                "{}: {shown} is not installed; install it with `apt-get install {}`",
                recipe.title, recipe.packages
            )
        })?;
        let version = match recipe.version.as_slice() {
            // A server that knows no such argument would start.
            [] => "the program tells none".to_owned(),
            arguments => {
                let output = command_output(Command::new(&program).args(arguments), VERSION_TIMEOUT);
                let titled =
                    |line: &str| line.find(recipe.version_prefix).map(|at| line[at..].trim().to_owned());
                output.lines().find_map(titled).unwrap_or_default()
            }
        };
        Ok(Installed { recipe, program: program.display().to_string(), version })
    }

    /// True if AppArmor keeps the program from its files in the temporary folder.
    pub fn is_confined(&self) -> bool {
        !self.recipe.program.is_empty() && is_confined_by_apparmor(&self.program)
    }
}

/// Cores and threads of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Cores, in the syntax of `taskset -c`.
    pub cores: String,
    /// Threads or processes that answer.
    pub threads: usize,
}

impl Place {
    /// The first core.
    fn first_core(&self) -> u16 {
        self.cores.split([',', '-']).next().and_then(|core| core.parse().ok()).unwrap_or(0)
    }
}

/// A server that answers.
pub struct Running {
    process: Process,
    /// Its address.
    pub address: SocketAddr,
    /// Form of its answers.
    pub answers: Answers,
    /// Time from the start to the first correct answer for the last name.
    pub load_s: f64,
    /// CPU time of its processes until then, in seconds.
    pub load_cpu_s: f64,
    /// Program, version, command line and files.
    pub program: Program,
}

impl Running {
    /// Starts a server at a loopback address, with the master file of a zone of 2^n names, and waits until it answers for the last of them.
    /// `stop` ends the wait. If another process takes the port before the server, the server is started at another one.
    ///
    /// # Errors
    ///
    /// The server cannot be started, ends by itself or gives no right answer in time, or `stop` is set. The error has the end of its
    /// output.
    pub fn start(
        server: &Installed,
        place: &Place,
        host: IpAddr,
        zone: (&Path, u32),
        stop: &AtomicBool,
    ) -> Result<Running, String> {
        let mut starts = 0;
        loop {
            starts += 1;
            match Running::start_once(server, place, host, zone, stop) {
                Err(why) if may_start_elsewhere(starts, &why) => {
                    eprintln!(
                        "{}: its port was taken before it had it: it is started at another one",
                        server.recipe.title
                    );
                }
                ended => return ended,
            }
        }
    }

    fn start_once(
        server: &Installed,
        place: &Place,
        host: IpAddr,
        zone: (&Path, u32),
        stop: &AtomicBool,
    ) -> Result<Running, String> {
        let failed = |error: String| format!("{}: {error}", server.recipe.title);
        let folder = WorkingFolder::new().map_err(|error| failed(error.to_string()))?;
        let listen =
            free_address(host).map_err(|error| failed(format!("no free port on {host}: {error}")))?;
        let plan = server.recipe.plan(&Input {
            program: &server.program,
            listen,
            threads: place.threads,
            core: place.first_core(),
            zone_file: zone.0,
            folder: folder.path(),
        });
        let program = Program {
            name: server.recipe.title.to_owned(),
            version: server.version.clone(),
            command: plan.command.clone(),
            files: plan.files.clone().into_iter().collect(),
        };
        let request = LaunchRequest { folder: folder.path().to_owned(), plan, cores: place.cores.clone() };
        let begin = Instant::now();
        let mut process = Process::start(request, folder).map_err(|error| failed(error.to_string()))?;
        let answers = server.recipe.answers;
        wait_for_last_name(&mut process, listen, (zone.1, answers), begin, stop).map_err(failed)?;
        let load_s = begin.elapsed().as_secs_f64();
        let load_cpu_s = Usage::read(&process.members()).cpu_s();
        Ok(Running { process, address: listen, answers, load_s, load_cpu_s, program })
    }

    /// Memory of all its processes, in octets: proportional set size, in which a page that processes share counts once.
    pub fn memory_octets(&self) -> f64 {
        self.members().into_iter().map(memory_of).sum::<u64>() as f64
    }

    /// Resources that its processes have used so far.
    pub fn usage(&self) -> Usage {
        Usage::read(&self.process.members())
    }

    /// Its processes.
    pub fn members(&self) -> Vec<u32> {
        self.process.members()
    }

    /// Ends all its processes.
    ///
    /// # Errors
    ///
    /// The supervisor of its processes has failed.
    pub fn stop(self) -> Result<(), String> {
        self.process.stop(limits::STOP_GRACE).map(|_| ()).map_err(|error| error.to_string())
    }
}

/// Asks until the last name has a correct answer.
fn wait_for_last_name(
    process: &mut Process,
    server: SocketAddr,
    (bits, answers): (u32, Answers),
    begin: Instant,
    stop: &AtomicBool,
) -> Result<(), String> {
    let limit = limits::START_TIMEOUT + limits::START_TIMEOUT_PER_NAME * (1 << bits);
    let last = (1u32 << bits) - 1;
    let mut fault = "no answer".to_owned();
    while begin.elapsed() < limit {
        if stop.load(Ordering::Relaxed) {
            return Err("stopped by a signal".to_owned());
        }
        match question::check_address(server, last, answers) {
            Ok(()) => return Ok(()),
            Err(error) => fault = error,
        }
        let log = process.log().map_err(|error| error.to_string())?;
        if let Some(ended) = &log.ended {
            return Err(format!("it ended ({ended}): {}", tail(&log.text)));
        }
        thread::sleep(limits::READY_INTERVAL);
    }
    let text = process.log().map(|log| log.text).unwrap_or_default();
    Err(format!("no correct answer within {} s: {fault}: {}", limit.as_secs(), tail(&text)))
}

fn tail(text: &str) -> String {
    let text = text.trim();
    let skipped = text.chars().count().saturating_sub(LOG_CHARACTERS);
    text.chars().skip(skipped).collect()
}

/// Proportional set size of a process, or its resident size if the kernel does not report it, in octets.
fn memory_of(pid: u32) -> u64 {
    let kib = |file: &str, key: &str| usage::numbers(format!("/proc/{pid}/{file}")).get(key).copied();
    kib("smaps_rollup", "Pss").or_else(|| kib("status", "VmRSS")).unwrap_or(0) * 1024
}

/// Path of a program that the user gave for a recipe.
pub fn given_program<'a>(programs: &'a [(String, PathBuf)], recipe: &Recipe) -> Option<&'a Path> {
    programs.iter().rev().find(|(name, _)| name == recipe.name).map(|(_, path)| path.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::authorities::recipe::RECIPES;

    #[test]
    fn the_memory_of_a_process_is_known() {
        assert!(memory_of(std::process::id()) > 100_000);
        assert_eq!(memory_of(u32::MAX), 0);
    }

    #[test]
    fn a_program_that_does_not_exist_is_named_with_its_package() {
        let programs = [("nsd".to_owned(), PathBuf::from("/nowhere/nsd"))];
        let nsd = RECIPES.iter().find(|recipe| recipe.name == "nsd").unwrap();
        let error = Installed::find(nsd, given_program(&programs, nsd)).unwrap_err();
        assert_eq!(error, "NSD: /nowhere/nsd is not installed; install it with `apt-get install nsd`");
    }
}
