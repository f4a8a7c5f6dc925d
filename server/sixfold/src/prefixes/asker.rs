//! The question of the discovery to the upstreams, through the engine of a worker: for the AAAA records of `ipv4only.arpa` (RFC 7050).
//!
//! Before it stands a question for a name below that, which is new each time: if an upstream forwards to this server again, over however many
//! others, then that question comes back, and what the upstream tells is this server's own word.

use crate::observers::WorkerEngine;
use datapath::Shared;
use engine::upstream::OwnReply;
use gateways::Told;
use gateways::told::IPV4ONLY_ARPA;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use wire::Type;

/// The worker whose engine asks.
const ASKS: usize = 0;

/// A question that is under way.
pub struct Asker {
    workers: Arc<Shared<WorkerEngine>>,
    step: Option<Step>,
}

enum Step {
    /// The question for the name that nobody else knows. Its reply, once it is there, comes over the channel.
    Mark(Receiver<Option<OwnReply>>),
    /// The question for the addresses.
    Addresses(Receiver<Option<OwnReply>>),
    /// Prefixes that were told; each worker says over the channel if the first question came back to it.
    Compare(Told, Receiver<bool>, Vec<bool>),
}

impl Asker {
    /// Nothing is asked.
    pub fn new(workers: Arc<Shared<WorkerEngine>>) -> Asker {
        Asker { workers, step: None }
    }

    /// True while a question is under way.
    pub fn is_waiting(&self) -> bool {
        self.step.is_some()
    }

    /// Begins a question, which takes the place of one that is under way. False: the workers cannot take it now.
    pub fn begin(&mut self) -> bool {
        let mut random = [0; 8];
        if getrandom::fill(&mut random).is_err() {
            return false;
        }
        let label = format!("{:016x}", u64::from_ne_bytes(random));
        let mark: Arc<[u8]> = [&[16], label.as_bytes(), IPV4ONLY_ARPA].concat().into();
        for worker in 0..self.workers.workers() {
            let mark = Arc::clone(&mark);
            let expect = move |machine: &mut WorkerEngine, _| machine.expect_mark(&mark);
            if self.workers.mailbox(worker).submit(expect).is_err() {
                return false;
            }
        }
        self.step = self.ask(&mark).map(Step::Mark);
        self.step.is_some()
    }

    /// Gives the question up that is under way, if there is one.
    pub fn give_up(&mut self) {
        self.step = None;
    }

    /// Asks for the AAAA records of a name.
    fn ask(&self, name: &[u8]) -> Option<Receiver<Option<OwnReply>>> {
        let name = name.to_vec();
        let ask = move |machine: &mut WorkerEngine, _| machine.ask_own(&name, Type::AAAA);
        self.workers.mailbox(ASKS).submit(ask).ok()?;
        self.look()
    }

    /// Looks for the reply.
    fn look(&self) -> Option<Receiver<Option<OwnReply>>> {
        let (sender, receiver) = channel();
        let look = move |machine: &mut WorkerEngine, _| {
            // The receiver may be gone, with the question.
            let _ = sender.send(machine.take_own_reply(Type::AAAA));
        };
        self.workers.mailbox(ASKS).submit(look).ok().map(|()| receiver)
    }

    /// Goes on. Returns what the upstreams have told, once it is known, and true if the question came back.
    pub fn poll(&mut self) -> Option<(Told, bool)> {
        let failed = Some((Told::Failure, false));
        match self.step.take()? {
            Step::Mark(receiver) => match receiver.try_recv() {
                // Whatever the reply is: the question was under way long enough to come back.
                Ok(Some(_)) => {
                    self.step = self.ask(IPV4ONLY_ARPA).map(Step::Addresses);
                    if self.step.is_none() { failed } else { None }
                }
                answer => self.look_again(answer, receiver, Step::Mark),
            },
            Step::Addresses(receiver) => match receiver.try_recv() {
                Ok(Some(OwnReply::Message(reply))) => self.compare(Told::of(&reply)),
                Ok(Some(OwnReply::None)) => failed,
                answer => self.look_again(answer, receiver, Step::Addresses),
            },
            Step::Compare(told, receiver, mut met) => {
                met.extend(receiver.try_iter());
                if met.len() == self.workers.workers() {
                    return Some((told, met.contains(&true)));
                }
                self.step = Some(Step::Compare(told, receiver, met));
                None
            }
        }
    }

    /// Goes on with a question whose reply is not there yet.
    fn look_again(
        &mut self,
        answer: Result<Option<OwnReply>, TryRecvError>,
        receiver: Receiver<Option<OwnReply>>,
        step: impl FnOnce(Receiver<Option<OwnReply>>) -> Step,
    ) -> Option<(Told, bool)> {
        let next = match answer {
            Err(TryRecvError::Empty) => Some(receiver),
            // The worker has looked, and found nothing yet.
            Ok(_) => self.look(),
            Err(TryRecvError::Disconnected) => None,
        };
        self.step = next.map(step);
        if self.step.is_none() { Some((Told::Failure, false)) } else { None }
    }

    /// Asks all workers if the first question came back.
    fn compare(&mut self, told: Told) -> Option<(Told, bool)> {
        let (sender, receiver) = channel();
        for worker in 0..self.workers.workers() {
            let sender = sender.clone();
            let compare = move |machine: &mut WorkerEngine, _| {
                let _ = sender.send(machine.has_met_mark());
            };
            if self.workers.mailbox(worker).submit(compare).is_err() {
                return Some((Told::Failure, false));
            }
        }
        self.step = Some(Step::Compare(told, receiver, Vec::new()));
        None
    }
}
