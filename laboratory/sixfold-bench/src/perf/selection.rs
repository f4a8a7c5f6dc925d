//! The parts of the benchmark that `--only` selects: experiments, and devices.

use crate::perf::kind::Kind;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use std::sync::LazyLock;

/// An experiment of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    Cost,
    Cached,
    Hot,
    Memory,
    Workers,
    Overload,
    Lossless,
    Engine,
    Authority,
    Generator,
    Validation,
    ValidationAttacks,
}

/// A part of the benchmark that can be selected.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    Experiment(Experiment),
    Device(Kind),
}

static SELECTIONS: LazyLock<Vec<Selection>> = LazyLock::new(|| {
    let experiments = Experiment::value_variants().iter().copied().map(Selection::Experiment);
    experiments.chain(Kind::ALL.map(Selection::Device)).collect()
});

impl ValueEnum for Selection {
    fn value_variants<'a>() -> &'a [Selection] {
        &SELECTIONS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Selection::Experiment(experiment) => experiment.to_possible_value(),
            Selection::Device(kind) => Some(PossibleValue::new(kind.name())),
        }
    }
}
