//! Progress of a load on standard error.

use indicatif::{ProgressBar, ProgressStyle};
use load::Progress;
use measure::units::grouped;
use std::fmt::Write as _;
use std::io::IsTerminal;

/// Progress display: a bar on a terminal, else a line for each second.
pub enum LoadDisplay {
    /// Shows nothing.
    None,
    /// Prints lines.
    Lines,
    /// Draws a bar.
    Bar(ProgressBar),
}

impl LoadDisplay {
    /// The display for the present standard error; `quiet`: none.
    pub fn new(quiet: bool) -> LoadDisplay {
        if quiet {
            return LoadDisplay::None;
        }
        if !std::io::stderr().is_terminal() {
            return LoadDisplay::Lines;
        }
        let bar = ProgressBar::new(0);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {msg}") {
            bar.set_style(style);
        }
        LoadDisplay::Bar(bar)
    }

    /// Shows the progress.
    pub fn show(&self, progress: &Progress) {
        let text = progress_line(progress);
        match self {
            LoadDisplay::None => {}
            LoadDisplay::Lines => eprintln!("{text}"),
            LoadDisplay::Bar(bar) => {
                bar.set_length(progress.whole.as_millis() as u64);
                bar.set_position(progress.elapsed.as_millis() as u64);
                bar.set_message(text);
            }
        }
    }

    /// Removes the bar.
    pub fn end(&self) {
        if let LoadDisplay::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Progress of a load as a line.
fn progress_line(progress: &Progress) -> String {
    let (elapsed, whole) = (progress.elapsed.as_secs_f64(), progress.whole.as_secs_f64());
    let mut text = format!("{elapsed:.0} of {whole:.0} s: ");
    if progress.warm_up {
        text.push_str("warming up");
    } else {
        let _ = write!(text, "{} sent, {} valid", grouped(progress.sent), grouped(progress.valid));
    }
    for (count, name) in [
        (progress.invalid, "invalid"),
        (progress.late, "late"),
        (progress.lost, "lost"),
        (progress.refused, "connection refused"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {} {name}", grouped(count));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn progress_names_only_what_happened() {
        let mut progress = Progress {
            elapsed: Duration::from_secs(3),
            whole: Duration::from_secs(60),
            sent: 150_000,
            valid: 149_990,
            ..Progress::default()
        };
        assert_eq!(progress_line(&progress), "3 of 60 s: 150,000 sent, 149,990 valid");
        progress.lost = 10;
        assert_eq!(progress_line(&progress), "3 of 60 s: 150,000 sent, 149,990 valid, 10 lost");
        progress.refused = 3;
        assert!(progress_line(&progress).ends_with("10 lost, 3 connection refused"));
        progress.refused = 0;
        progress.warm_up = true;
        assert_eq!(progress_line(&progress), "3 of 60 s: warming up, 10 lost");
    }
}
