//! The request to upgrade, as `sixfold ctl upgrade` sends it.

use crate::config::limits;
use std::path::PathBuf;
use std::time::Duration;

/// Time within which a new process must be ready, unless the operator says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request to upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The program; none: that of this process.
    pub program: Option<PathBuf>,
    /// Time within which the new process must be ready.
    pub patience: Duration,
}

impl Default for Request {
    fn default() -> Request {
        Request { program: None, patience: PATIENCE }
    }
}

impl Request {
    /// A request for this program. The path must be absolute.
    pub fn new(program: Option<PathBuf>, patience: Option<Duration>) -> Request {
        Request { program, patience: patience.unwrap_or(PATIENCE) }
    }

    /// The request as the line of the control socket: `upgrade MILLISECONDS [PROGRAM]`.
    pub fn to_line(&self) -> String {
        let program = self.program.as_ref().map(|program| format!(" {}", program.display()));
        format!("upgrade {}{}", self.patience.as_millis(), program.unwrap_or_default())
    }

    /// Reads the line of the control socket.
    pub fn from_line(line: &str) -> Option<Request> {
        let rest = line.strip_prefix("upgrade ")?;
        let (patience, program) =
            rest.split_once(' ').map_or((rest, None), |(time, path)| (time, Some(path)));
        let patience = Duration::from_millis(patience.parse().ok()?);
        let program = program.map(PathBuf::from);
        let is_whole = program.as_ref().is_none_or(|program| program.is_absolute());
        (is_whole && limits::UPGRADE_PATIENCE.contains(&patience)).then_some(Request { program, patience })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_reads_back_as_itself_and_a_relative_path_is_none() {
        for program in [None, Some(PathBuf::from("/opt/new version/sixfold"))] {
            for patience in [None, Some(Duration::from_millis(1_500))] {
                let request = Request::new(program.clone(), patience);
                assert_eq!(Request::from_line(&request.to_line()), Some(request));
            }
        }
        for line in
            ["upgrade", "upgrade x", "upgrade 1000 sixfold", "upgrade 1000000000 /bin/true", "upgrade 0"]
        {
            assert_eq!(Request::from_line(line), None, "{line}");
        }
    }
}
