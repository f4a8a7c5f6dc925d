//! Response policy in the oracle: a rule decides a question before a leg is asked, or when its reply has come, and then for all that
//! follows.

use crate::config::Config;
use crate::leg::Leg;
use crate::oracle::Case;
use crate::policy::{Action, DENIED, Rule};
use crate::truth::NameId;

/// Which rule decides a question.
#[derive(Clone, Copy, Debug)]
pub enum Mode<'a> {
    /// None so far.
    Open,
    /// None at all.
    Exempt,
    /// This one, with its data.
    Data(&'a Rule),
}

/// What a rule makes of a leg.
pub(crate) enum Ruled<'a> {
    /// There is none.
    Not,
    /// The answer is that of the rule; whether it is the one that came.
    Over(bool),
    /// It goes on like this.
    Goes(Mode<'a>),
}

impl<'a> Case<'a> {
    /// Whether something is allowed in another mode.
    pub(crate) fn within(&self, mode: Mode<'a>, is_allowed: impl FnOnce() -> bool) -> bool {
        let before = self.mode.replace(mode);
        let is_allowed = is_allowed();
        self.mode.set(before);
        is_allowed
    }

    /// Before a leg is asked.
    pub(crate) fn before_leg(
        &self,
        name: NameId,
        rtype: u16,
        before: &[Leg<'a>],
        config: &'a Config,
    ) -> Ruled<'a> {
        let is_open = matches!(self.mode.get(), Mode::Open) && !self.knows(name, rtype, config);
        let client = before.is_empty().then_some(self.client);
        match config.policy.of_question(client, name) {
            Some(rule) if is_open && !config.policy.is_open(rule, rtype) => self.enforced(rule, before, None),
            _ => Ruled::Not,
        }
    }

    /// When it was answered, or was not.
    pub(crate) fn after_leg(
        &self,
        name: NameId,
        leg: &Leg<'a>,
        before: &[Leg<'a>],
        config: &'a Config,
    ) -> Ruled<'a> {
        if !matches!(self.mode.get(), Mode::Open) || leg.is_own {
            return Ruled::Not;
        }
        let client = before.is_empty().then_some(self.client);
        let found = match leg.said {
            Some(said) => config.policy.of_reply(client, name, said),
            None => config.policy.of_question(client, name).map(|rule| (rule, 0)),
        };
        match found {
            Some((rule, place)) => self.enforced(rule, before, Some((leg, place))),
            None => Ruled::Not,
        }
    }

    fn enforced(&self, rule: &'a Rule, before: &[Leg<'a>], way: Option<(&Leg<'a>, usize)>) -> Ruled<'a> {
        let mut legs = before.to_vec();
        // What an upstream says ends with the name that the rule is about.
        if let Some((leg, place)) = way.filter(|way| way.1 > 0) {
            legs.push(Leg { way: Some(place), ..*leg });
        }
        let seen = self.seen;
        let is_empty = seen.v4.is_empty() && seen.v6.is_empty() && seen.pointers.is_empty() && !seen.ad();
        let leads = self.has_edges(&legs) && (!seen.is_cut() || self.may_be_cut(&legs, 2));
        match rule.action {
            Action::NxDomain | Action::NoData => {
                let rcode = if rule.action == Action::NxDomain { 3 } else { 0 };
                let is_denied = seen.soa == Some(DENIED) || seen.is_cut();
                Ruled::Over(seen.rcode() == rcode && is_empty && is_denied && leads)
            }
            Action::Drop => Ruled::Over(false),
            Action::TcpOnly if !self.asked.tcp => {
                Ruled::Over(seen.rcode() == 0 && seen.is_cut() && is_empty && seen.edges.is_empty())
            }
            Action::Passthru | Action::TcpOnly => Ruled::Goes(Mode::Exempt),
            Action::V4 | Action::V6 if legs.len() == before.len() => Ruled::Goes(Mode::Data(rule)),
            // What the configuration says of that name goes before the rule.
            Action::V4 | Action::V6 if self.configs.iter().any(|config| config.own.is_in_use()) => {
                Ruled::Over(true)
            }
            // Behind an alias: the data of the rule, or what is made of them.
            Action::V4 | Action::V6 => {
                let is_data = |address: &[u8]| {
                    address.windows(3).any(|part| part == [255, 255, 251])
                        || address.windows(3).any(|part| part == [255, 255, 0])
                        || address.ends_with(&[251, 9])
                        || address.windows(2).any(|part| part == [44, 255])
                };
                let all = seen.v4.iter().all(|record| is_data(&record.2))
                    && seen.v6.iter().all(|record| is_data(&record.2));
                Ruled::Over(seen.rcode() == 0 && all && !seen.ad() && leads)
            }
        }
    }
}
