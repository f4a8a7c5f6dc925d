//! Runs that are shown together, with names that tell them apart.

use measure::run::Run;

/// A run and its name.
#[derive(Clone, Debug)]
pub struct Named<'a> {
    /// Product and version of the device, and the folder's name if another run has the same device.
    pub name: String,
    /// The run.
    pub run: &'a Run,
}

/// Names runs, each given with the name of its folder.
pub fn named<'a>(runs: &[(&str, &'a Run)]) -> Vec<Named<'a>> {
    let titles: Vec<String> = runs.iter().map(|(_, run)| run.device.title()).collect();
    let name = |(at, (folder, run)): (usize, &(&str, &'a Run))| {
        let is_shared = titles.iter().filter(|title| **title == titles[at]).count() > 1;
        let title = &titles[at];
        let name = if is_shared { format!("{title} [{folder}]") } else { title.clone() };
        Named { name, run }
    };
    runs.iter().enumerate().map(name).collect()
}

/// The different texts of runs, each with the names of the runs that share it, in the order of the runs.
pub fn grouped<'a>(runs: &'a [Named], text: impl Fn(&Run) -> String) -> Vec<(Vec<&'a str>, String)> {
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    for named in runs {
        let text = text(named.run);
        match groups.iter_mut().find(|(_, other)| *other == text) {
            Some((names, _)) => names.push(&named.name),
            None => groups.push((vec![&named.name], text)),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};

    #[test]
    fn runs_of_one_device_are_told_apart_by_their_folders() {
        let one = sample::run(&Shape::quick());
        let mut other = one.clone();
        other.device.version = "Unbound 1.23.0".to_owned();
        let names = |runs: &[(&str, &Run)]| named(runs).into_iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names(&[("a", &one), ("b", &other)]), ["Unbound 1.22.0", "Unbound 1.23.0"]);
        let shared = names(&[("a", &one), ("b", &other), ("c", &one)]);
        assert_eq!(shared, ["Unbound 1.22.0 [a]", "Unbound 1.23.0", "Unbound 1.22.0 [c]"]);
    }
}
