//! The difference of two texts, in the unified form that diff(1) and patch(1) have.

use std::fmt::Write;

/// Lines around a change.
const CONTEXT: usize = 3;

/// Lines of each text that are compared. The table has a cell for each pair: 4 million cells of 4 octets; files of a plan have some hundred
/// lines, and a longer one was not written by it.
const LINES: usize = 2000;

/// One line of the comparison.
#[derive(Clone, Copy)]
enum Step<'t> {
    Same(&'t str),
    Old(&'t str),
    New(&'t str),
}

/// The difference between the old and the new text of a file; empty if there is none. Of texts with more than 2000 lines the whole counts
/// as changed.
pub fn unified(path: &str, old: &str, new: &str) -> String {
    let steps = steps(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>());
    let changed: Vec<usize> = (0..steps.len()).filter(|&at| !matches!(steps[at], Step::Same(_))).collect();
    let Some(&first) = changed.first() else { return String::new() };
    let mut text = format!("--- {path}\n+++ {path}\n");
    let mut start = first;
    for pair in changed.windows(2) {
        // Changes with a common context are one hunk.
        if pair[1] - pair[0] > 2 * CONTEXT + 1 {
            hunk(&mut text, &steps, start, pair[0]);
            start = pair[1];
        }
    }
    hunk(&mut text, &steps, start, changed[changed.len() - 1]);
    text
}

/// Writes the changes from `first` to `last`, and the lines around them.
fn hunk(text: &mut String, steps: &[Step<'_>], first: usize, last: usize) {
    let from = first.saturating_sub(CONTEXT);
    let to = (last + CONTEXT + 1).min(steps.len());
    let count = |steps: &[Step<'_>], is_old: bool| {
        steps
            .iter()
            .filter(|step| !matches!((step, is_old), (Step::Old(_), false) | (Step::New(_), true)))
            .count()
    };
    let range = |is_old| {
        let (before, lines) = (count(&steps[..from], is_old), count(&steps[from..to], is_old));
        // An empty range names the line before it.
        format!("{},{lines}", if lines == 0 { before } else { before + 1 })
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "@@ -{} +{} @@", range(true), range(false));
    for step in &steps[from..to] {
        let _ = match step {
            Step::Same(line) => writeln!(text, " {line}"),
            Step::Old(line) => writeln!(text, "-{line}"),
            Step::New(line) => writeln!(text, "+{line}"),
        };
    }
}

/// The lines of both texts, along a longest common subsequence.
fn steps<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Step<'t>> {
    if old.len() > LINES || new.len() > LINES {
        return old
            .iter()
            .map(|line| Step::Old(line))
            .chain(new.iter().map(|line| Step::New(line)))
            .collect();
    }
    let width = new.len() + 1;
    // Length of the longest common subsequence of the rests from a pair of lines on.
    let mut common = vec![0_u32; (old.len() + 1) * width];
    for (row, one) in old.iter().enumerate().rev() {
        for (column, other) in new.iter().enumerate().rev() {
            common[row * width + column] = match one == other {
                true => common[(row + 1) * width + column + 1] + 1,
                false => common[(row + 1) * width + column].max(common[row * width + column + 1]),
            };
        }
    }
    let (mut row, mut column, mut steps) = (0, 0, Vec::new());
    while row < old.len() || column < new.len() {
        if row < old.len() && column < new.len() && old[row] == new[column] {
            steps.push(Step::Same(old[row]));
            (row, column) = (row + 1, column + 1);
        } else if row < old.len()
            && (column == new.len() || common[(row + 1) * width + column] >= common[row * width + column + 1])
        {
            steps.push(Step::Old(old[row]));
            row += 1;
        } else {
            steps.push(Step::New(new[column]));
            column += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_shown_with_three_lines_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let expected = "--- a\n+++ a\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n";
        assert_eq!(unified("a", old, &old.replace('5', "five")), expected);
        assert_eq!(unified("a", old, old), "");
    }

    #[test]
    fn an_empty_range_names_the_line_before_it() {
        // As `diff -u /dev/null a` prints it.
        assert_eq!(unified("a", "", "x\ny\n"), "--- a\n+++ a\n@@ -0,0 +1,2 @@\n+x\n+y\n");
        assert_eq!(unified("a", "x\n", ""), "--- a\n+++ a\n@@ -1,1 +0,0 @@\n-x\n");
    }

    #[test]
    fn distant_changes_are_hunks_of_their_own() {
        let old: String = (1..=30).map(|line| format!("{line}\n")).collect();
        let new = old.replace("\n5\n", "\n").replace("\n25\n", "\n25\n25.5\n");
        let text = unified("a", &old, &new);
        assert_eq!(text.matches("@@ -").count(), 2, "{text}");
        assert!(text.contains("@@ -2,7 +2,6 @@") && text.contains("@@ -23,6 +22,7 @@"), "{text}");
    }
}
