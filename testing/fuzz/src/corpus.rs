//! The choice of the inputs that the project keeps: few inputs that together cover the most edges. libFuzzer lists the edges of
//! each input. The input that adds most is chosen, again and again, until none adds any or the limit of the target is reached.

use crate::program::{self, Error, Programs};
use crate::search;
use sixfold_fuzz::Target;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Prefix of the names of inputs that were added by hand, each for a bug that was mended. They stay.
const MANUAL_PREFIX: &str = "found";

/// The kept inputs of a target.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Number of inputs.
    pub inputs: usize,
    /// Sum of their octets.
    pub octets: u64,
    /// Edges that they cover together.
    pub edges: u64,
}

/// An input, its length in octets, and the edges that it covers.
#[derive(Clone, Debug, Default, PartialEq)]
struct Candidate {
    file: PathBuf,
    octets: u64,
    edges: Vec<u32>,
}

/// Chooses from all inputs, found and kept ones, and replaces the kept inputs in the project.
///
/// # Errors
///
/// `Error::Io`: a file or the program cannot be used. `Error::Failed`: the program has failed, for example at an input that finds a
/// bug. The kept inputs stay as they were.
pub fn update(programs: &Programs, target: &Target) -> Result<Kept, Error> {
    let (control, log) = (programs.file(target, "control"), programs.file(target, "log-keep"));
    let scratch = programs.file(target, "merged");
    if let Err(error) = std::fs::remove_file(&control)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::at(&control, error));
    }
    // Inputs in this folder count as known already, so it must be empty.
    if scratch.exists() {
        std::fs::remove_dir_all(&scratch).map_err(|error| Error::at(&scratch, error))?;
    }
    std::fs::create_dir_all(&scratch).map_err(|error| Error::at(&scratch, error))?;
    let output = File::create(&log).map_err(|error| Error::at(&log, error))?;
    let mut command = programs.command(target);
    command.args(["-merge=1", "-set_cover_merge=1", "-use_counters=0"]);
    command.arg(format!("-merge_control_file={}", control.display()));
    command.args([&scratch, &programs.found(target), &programs.kept(target)]).stderr(output);
    let status = command.status().map_err(|error| Error::at(&log, error))?;
    if !status.success() {
        return Err(Error::Failed(log));
    }
    let text = std::fs::read_to_string(&control).map_err(|error| Error::at(&control, error))?;
    let chosen = choose(parse_control_file(&text), target.kept, target.longest_octets as u64);
    let contents: Result<Vec<Vec<u8>>, Error> = chosen
        .iter()
        .map(|candidate| std::fs::read(&candidate.file).map_err(|error| Error::at(&candidate.file, error)))
        .collect();
    replace(&programs.kept(target), &contents?)?;
    let octets = chosen.iter().map(|candidate| candidate.octets).sum();
    Ok(Kept {
        inputs: chosen.len(),
        octets,
        edges: search::count_edges(programs, target, &programs.kept(target))?,
    })
}

/// Parses libFuzzer's control file: first the names of all inputs, then for each input its number with its length, and its
/// number with its edges.
fn parse_control_file(text: &str) -> Vec<Candidate> {
    let mut lines = text.lines();
    let mut count = || lines.next().and_then(|line| line.trim().parse::<usize>().ok()).unwrap_or(0);
    let (files, _in_first_folder) = (count(), count());
    let mut candidates: BTreeMap<usize, Candidate> = lines
        .by_ref()
        .take(files)
        .map(|file| Candidate { file: file.into(), ..Candidate::default() })
        .enumerate()
        .collect();
    for line in lines {
        let mut words = line.split(' ');
        let kind = words.next();
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        let Some(candidate) = number.and_then(|number| candidates.get_mut(&number)) else { continue };
        match kind {
            Some("STARTED") => {
                candidate.octets = words.next().and_then(|word| word.parse().ok()).unwrap_or(0)
            }
            Some("FT") => candidate.edges = words.filter_map(|word| word.parse().ok()).collect(),
            _ => {}
        }
    }
    candidates.into_values().filter(|candidate| !candidate.edges.is_empty()).collect()
}

/// The inputs that cover most together: at most `most`, none longer than `longest`. Of two that add as much, the shorter one is
/// chosen.
fn choose(mut candidates: Vec<Candidate>, most: usize, longest: u64) -> Vec<Candidate> {
    candidates.retain(|candidate| candidate.octets <= longest);
    let mut seen: HashSet<u32> = HashSet::new();
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let adds = |candidate: &Candidate| candidate.edges.iter().filter(|edge| !seen.contains(edge)).count();
        let best = (0..candidates.len()).max_by_key(|&place| {
            (adds(&candidates[place]), std::cmp::Reverse((candidates[place].octets, &candidates[place].file)))
        });
        let Some(best) = best.filter(|&place| adds(&candidates[place]) > 0) else { break };
        let best = candidates.swap_remove(best);
        seen.extend(&best.edges);
        chosen.push(best);
    }
    chosen
}

/// Replaces the inputs in a folder. Inputs that were added by hand stay.
fn replace(folder: &Path, inputs: &[Vec<u8>]) -> Result<(), Error> {
    for file in program::inputs(folder)? {
        if !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(MANUAL_PREFIX)) {
            std::fs::remove_file(&file).map_err(|error| Error::at(&file, error))?;
        }
    }
    for (number, input) in inputs.iter().enumerate() {
        let file = folder.join(format!("{number:02}"));
        std::fs::write(&file, input).map_err(|error| Error::at(&file, error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTROL: &str = "3\n0\n/f/a\n/f/b\n/f/c\nSTARTED 0 5\nFT 0 1 2 3\nCOV 0 7 8\nSTARTED 1 9\nFT 1 1 2 3 4\nSTARTED 2 2\nFT 2 9\n";

    #[test]
    fn a_control_file_says_which_edges_an_input_takes() {
        let candidates = parse_control_file(CONTROL);
        let expected = [("/f/a", 5, vec![1, 2, 3]), ("/f/b", 9, vec![1, 2, 3, 4]), ("/f/c", 2, vec![9])]
            .map(|(file, octets, edges)| Candidate { file: file.into(), octets, edges });
        assert_eq!(candidates, expected);
    }

    #[test]
    fn the_input_that_adds_most_is_chosen_first_and_one_that_adds_nothing_is_not() {
        let names = |chosen: Vec<Candidate>| -> Vec<_> {
            chosen.into_iter().map(|candidate| candidate.file).collect()
        };
        let path = |name: &str| PathBuf::from(name);
        assert_eq!(names(choose(parse_control_file(CONTROL), 9, 99)), [path("/f/b"), path("/f/c")]);
        assert_eq!(names(choose(parse_control_file(CONTROL), 1, 99)), [path("/f/b")]);
        assert_eq!(names(choose(parse_control_file(CONTROL), 9, 8)), [path("/f/a"), path("/f/c")]);
    }
}
