//! A network namespace that exists already: a name of `ip netns`, or the ID of a process in it.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::str::FromStr;

/// A network namespace, by the file that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    name: String,
    path: PathBuf,
}

impl FromStr for Namespace {
    type Err = String;

    /// Reads a name or a process ID. A number is a process ID, as with `ip netns`.
    fn from_str(text: &str) -> Result<Namespace, String> {
        if text.is_empty() || text.contains('/') || text.starts_with('.') {
            return Err("expected a name of `ip netns list`, or the ID of a process".into());
        }
        let path = match text.parse::<u32>() {
            Ok(process) => format!("/proc/{process}/ns/net"),
            Err(_) => format!("/run/netns/{text}"),
        };
        Ok(Namespace { name: text.to_owned(), path: path.into() })
    }
}

impl Namespace {
    /// The namespace of an open file of `/proc/PID/ns/net`. The file must stay open; without another user the namespace ends with
    /// it.
    pub fn of_file(file: &File) -> Namespace {
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        Namespace { name: "of this process".to_owned(), path: path.into() }
    }

    /// The name or process ID, as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` in the namespace, in a thread of its own. Programs that it starts run there, too. What it opens stays in the
    /// namespace and can be used from any thread.
    ///
    /// # Errors
    ///
    /// There is no such namespace, it cannot be entered, which needs root, or the error of `work`.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
        let file = File::open(&self.path).map_err(|error| {
            format!(
                "no network namespace {}: {}: {error}; see `ip netns list`",
                self.name,
                self.path.display()
            )
        })?;
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(
                    |error| {
                        format!("cannot enter the network namespace {}: {error}; this needs root", self.name)
                    },
                )?;
                work()
            });
            thread.join().unwrap_or_else(|_| Err("the thread in the namespace has failed".into()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_process_and_a_word_a_name() {
        let path =
            |text: &str| text.parse::<Namespace>().map(|namespace| namespace.path.display().to_string());
        assert_eq!(path("12"), Ok("/proc/12/ns/net".into()));
        assert_eq!(path("left"), Ok("/run/netns/left".into()));
        for wrong in ["", "../x", "/proc/1/ns/net", "."] {
            assert!(path(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_missing_namespace_is_named_with_the_remedy() {
        let missing: Namespace = "no-such-namespace".parse().unwrap();
        let error = missing.run(|| Ok(())).unwrap_err();
        assert!(error.contains("no-such-namespace") && error.contains("ip netns list"), "{error}");
    }
}
