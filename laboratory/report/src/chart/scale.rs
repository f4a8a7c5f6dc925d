//! Conversion from values to positions: linear and logarithmic scales, and ticks at round numbers.

/// The values between the two ends of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Equal distances are equal differences.
    Linear {
        /// The value at the start.
        low: f64,
        /// The value at the end.
        high: f64,
    },
    /// Equal distances are equal ratios.
    Log {
        /// The value at the start, above 0.
        low: f64,
        /// The value at the end.
        high: f64,
    },
}

impl Scale {
    /// A linear scale from zero, with a round number beyond the largest value at its end.
    pub fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let high = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let high = if high > 0.0 { high } else { 1.0 };
        let step = step(high, 5);
        Scale::Linear { low: 0.0, high: (high / step).ceil() * step }
    }

    /// A linear scale around the values, which need not contain zero. For points, never for bars.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Scale {
        let (mut low, mut high) = ends(values).unwrap_or((0.0, 1.0));
        if high - low < high.abs() * 1e-6 {
            // All values are equal: add a tenth on each side, so that a tick beside the values shows their size.
            let margin = if high == 0.0 { 1.0 } else { high.abs() * 0.1 };
            (low, high) = (low - margin, high + margin);
        }
        let step = step(high - low, 5);
        Scale::Linear { low: (low / step).floor() * step, high: (high / step).ceil() * step }
    }

    /// A logarithmic scale around those values that are above 0, from one power of ten to another.
    pub fn decades(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = ends(values.into_iter().filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        // A value that is a power of ten up to rounding belongs to it.
        let (from, to) = ((low.log10() + 1e-9).floor(), (high.log10() - 1e-9).ceil());
        Scale::Log { low: 10f64.powf(from), high: 10f64.powf(to.max(from + 1.0)) }
    }

    /// A logarithmic scale that ends soon after the values, at 1, 2 or 5 times a power of ten.
    pub fn near(values: impl IntoIterator<Item = f64>) -> Scale {
        let (low, high) = ends(values.into_iter().filter(|value| *value > 0.0)).unwrap_or((1.0, 10.0));
        let round = |value: f64, up: bool| {
            let decade = 10f64.powf(value.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * decade);
            if up {
                steps.into_iter().find(|step| *step >= value * (1.0 - 1e-9)).unwrap_or(10.0 * decade)
            } else {
                steps.into_iter().rev().find(|step| *step <= value * (1.0 + 1e-9)).unwrap_or(decade)
            }
        };
        let (low, high) = (round(low, false), round(high, true));
        Scale::Log { low, high: if high > low { high } else { low * 10.0 } }
    }

    /// The position of a value: 0 at the start, 1 at the end; values beyond are clamped to the ends.
    pub fn place(&self, value: f64) -> f64 {
        let part = match *self {
            Scale::Linear { low, high } => (value - low) / (high - low),
            Scale::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        };
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Round numbers on the scale: about `wanted` of them on a linear scale; powers of ten on a logarithmic one, and
    /// 2 and 5 times these if they are few.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        match *self {
            Scale::Linear { low, high } => {
                let step = step(high - low, wanted);
                let first = (low / step - 1e-9).ceil();
                let last = (high / step + 1e-9).floor();
                (0..=((last - first).max(0.0) as usize).min(100))
                    .map(|at| (first + at as f64) * step)
                    .collect()
            }
            Scale::Log { low, high } => {
                let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
                let decades = (to - from).clamp(1, 600);
                let factors: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let every = (decades as usize).div_ceil(wanted.max(1)).max(1);
                (from..=from + decades)
                    .step_by(every)
                    .flat_map(|exponent| factors.iter().map(move |factor| factor * 10f64.powi(exponent)))
                    .filter(|tick| *tick >= low * (1.0 - 1e-9) && *tick <= high * (1.0 + 1e-9))
                    .collect()
            }
        }
    }
}

/// The smallest and the largest value.
fn ends(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| value.is_finite()).fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((low.min(value), high.max(value))),
    })
}

/// The step of 1, 2 or 5 times a power of ten that divides the distance into about as many steps as wanted.
fn step(distance: f64, wanted: usize) -> f64 {
    let raw = distance / wanted.max(1) as f64;
    if !(raw.is_finite() && raw > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(raw.log10().floor());
    let factor = match raw / decade {
        part if part <= 1.000_001 => 1.0,
        part if part <= 2.000_001 => 2.0,
        part if part <= 5.000_001 => 5.0,
        _ => 10.0,
    };
    factor * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (a, b) in found.iter().zip(expected) {
            assert!((a - b).abs() <= b.abs() * 1e-9, "{found:?} is not {expected:?}");
        }
    }

    #[test]
    fn a_scale_from_zero_ends_at_a_round_number() {
        let scale = Scale::from_zero([24_300.0, 9_000.0, f64::NAN]);
        assert_eq!(scale, Scale::Linear { low: 0.0, high: 25_000.0 });
        near(&scale.ticks(5), &[0.0, 5_000.0, 10_000.0, 15_000.0, 20_000.0, 25_000.0]);
    }

    #[test]
    fn a_scale_around_values_holds_all_of_them() {
        let scale = Scale::around([24_100.0, 24_500.0]);
        assert_eq!(scale, Scale::Linear { low: 24_100.0, high: 24_500.0 });
        let same = Scale::around([100.0, 100.0]);
        assert!(same.place(100.0) > 0.4 && same.place(100.0) < 0.6, "{same:?}");
    }

    #[test]
    fn decades_begin_and_end_at_powers_of_ten() {
        let Scale::Log { low, high } = Scale::decades([0.0, 0.003, 0.7]) else { panic!() };
        near(&[low, high], &[0.001, 1.0]);
        near(&Scale::decades([0.001, 1.0]).ticks(8), &[0.001, 0.01, 0.1, 1.0]);
        near(&Scale::Log { low: 1.0, high: 100.0 }.ticks(8), &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }

    #[test]
    fn a_near_logarithmic_scale_wastes_less_than_a_decade() {
        let Scale::Log { low, high } = Scale::near([130.0, 4_100.0]) else { panic!() };
        near(&[low, high], &[100.0, 5_000.0]);
    }

    #[test]
    fn places_are_in_proportion_or_in_ratio() {
        assert_eq!(Scale::Linear { low: 0.0, high: 8.0 }.place(2.0), 0.25);
        assert!((Scale::Log { low: 1.0, high: 10_000.0 }.place(100.0) - 0.5).abs() < 1e-12);
        assert_eq!(Scale::Log { low: 1.0, high: 10.0 }.place(0.0), 0.0);
        assert_eq!(Scale::Linear { low: 0.0, high: 8.0 }.place(9.0), 1.0);
    }

    #[test]
    fn scales_of_nothing_and_of_absurd_values_still_have_ticks() {
        for scale in [
            Scale::from_zero([]),
            Scale::around([]),
            Scale::decades([]),
            Scale::near([]),
            Scale::from_zero([f64::INFINITY]),
            Scale::around([-5.0]),
            Scale::decades([1e-300, 1e300]),
            Scale::around([1e-12, 2e300]),
        ] {
            let ticks = scale.ticks(5);
            assert!((2..=101).contains(&ticks.len()), "{scale:?}: {ticks:?}");
            assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
        }
    }
}
