//! Which inputs the project keeps: as few as show most. libFuzzer tells which edges each input takes; then the one that adds
//! most is chosen, again and again, until nothing is added or the bound of the target is reached.

use crate::program::{self, Error, Programs};
use crate::search;
use sixfold_fuzz::Target;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// What begins the names of inputs that were put there by hand, for a bug that was mended: they stay.
const BY_HAND: &str = "found";

/// What is kept.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    /// Inputs.
    pub inputs: usize,
    /// Their octets.
    pub octets: u64,
    /// Edges that they take together.
    pub edges: u64,
}

/// An input, its octets, and the edges that it takes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    file: PathBuf,
    octets: u64,
    edges: Vec<u32>,
}

/// Chooses from all that was found and what was kept before, and writes it into the project.
pub fn keep(programs: &Programs, target: &Target) -> Result<Kept, Error> {
    let (control, log) = (programs.file(target, "control"), programs.file(target, "log-keep"));
    let scratch = programs.file(target, "merged");
    if let Err(error) = std::fs::remove_file(&control)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        return Err(Error::at(&control, error));
    }
    // What is in the folder counts as known already, so it must be empty.
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
    let chosen = choose(read(&text), target.kept, target.longest_octets as u64);
    let contents: Result<Vec<Vec<u8>>, Error> = chosen
        .iter()
        .map(|known| std::fs::read(&known.file).map_err(|error| Error::at(&known.file, error)))
        .collect();
    replace(&programs.kept(target), &contents?)?;
    let octets = chosen.iter().map(|known| known.octets).sum();
    Ok(Kept { inputs: chosen.len(), octets, edges: search::edges(programs, target, &programs.kept(target))? })
}

/// Reads libFuzzer's control file: the names of all inputs, then for each its number with its octets, and with what it shows.
fn read(text: &str) -> Vec<Known> {
    let mut lines = text.lines();
    let mut count = || lines.next().and_then(|line| line.trim().parse::<usize>().ok()).unwrap_or(0);
    let (files, _in_first_folder) = (count(), count());
    let mut known: BTreeMap<usize, Known> = lines
        .by_ref()
        .take(files)
        .map(|file| Known { file: file.into(), ..Known::default() })
        .enumerate()
        .collect();
    for line in lines {
        let mut words = line.split(' ');
        let kind = words.next();
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        let Some(known) = number.and_then(|number| known.get_mut(&number)) else { continue };
        match kind {
            Some("STARTED") => known.octets = words.next().and_then(|word| word.parse().ok()).unwrap_or(0),
            Some("FT") => known.edges = words.filter_map(|word| word.parse().ok()).collect(),
            _ => {}
        }
    }
    known.into_values().filter(|known| !known.edges.is_empty()).collect()
}

/// The inputs that show most together, at most so many, none longer than a bound; of two that add as much, the shorter one.
fn choose(mut known: Vec<Known>, most: usize, longest: u64) -> Vec<Known> {
    known.retain(|known| known.octets <= longest);
    let mut seen: HashSet<u32> = HashSet::new();
    let mut chosen = Vec::new();
    while chosen.len() < most {
        let adds = |known: &Known| known.edges.iter().filter(|edge| !seen.contains(edge)).count();
        let best = (0..known.len()).max_by_key(|&place| {
            (adds(&known[place]), std::cmp::Reverse((known[place].octets, &known[place].file)))
        });
        let Some(best) = best.filter(|&place| adds(&known[place]) > 0) else { break };
        let best = known.swap_remove(best);
        seen.extend(&best.edges);
        chosen.push(best);
    }
    chosen
}

/// Writes inputs into a folder, in the place of what is there, but for what was put there by hand.
fn replace(folder: &Path, inputs: &[Vec<u8>]) -> Result<(), Error> {
    for file in program::inputs(folder)? {
        if !file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(BY_HAND)) {
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
        let known = read(CONTROL);
        let expected = [("/f/a", 5, vec![1, 2, 3]), ("/f/b", 9, vec![1, 2, 3, 4]), ("/f/c", 2, vec![9])]
            .map(|(file, octets, edges)| Known { file: file.into(), octets, edges });
        assert_eq!(known, expected);
    }

    #[test]
    fn what_adds_most_is_chosen_first_and_what_adds_nothing_is_not() {
        let names = |chosen: Vec<Known>| -> Vec<_> { chosen.into_iter().map(|known| known.file).collect() };
        let path = |name: &str| PathBuf::from(name);
        assert_eq!(names(choose(read(CONTROL), 9, 99)), [path("/f/b"), path("/f/c")]);
        assert_eq!(names(choose(read(CONTROL), 1, 99)), [path("/f/b")]);
        assert_eq!(names(choose(read(CONTROL), 9, 8)), [path("/f/a"), path("/f/c")]);
    }
}
