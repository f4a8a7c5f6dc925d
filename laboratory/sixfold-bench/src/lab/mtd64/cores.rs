//! Cores of the roles of an experiment on this host.

use crate::agent_client::AgentClient;
use crate::lab::context::Context;

/// Cores of the device, and of tester and authority; both unset on a machine with one core.
#[derive(Clone, Debug)]
pub struct Cores {
    /// Those of the device, in the syntax of `taskset -c`.
    pub device: String,
    /// That of tester and authority.
    pub tester: Option<u16>,
}

impl Cores {
    /// Gives the device the first core that this program may use, and tester and authority the last one.
    pub fn choose(context: &mut Context, agent: &AgentClient) -> Cores {
        match agent.greeting().allowed.as_slice() {
            [first, .., last] => Cores { device: first.to_string(), tester: Some(*last) },
            _ => {
                context.warning("device and tester share the only core of this machine");
                Cores { device: String::new(), tester: None }
            }
        }
    }
}
