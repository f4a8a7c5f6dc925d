//! Settings of a direction as words: `delay=20ms`, `loss=0.01`. The options of the command line and the lists of `--to-left` and
//! `--to-right` use the same keys.

use core::str::FromStr;
use measure::units;
use netem::{Distribution, Impairments, Loss};

/// Keys of a direction.
pub const KEYS: [&str; 11] = [
    "delay",
    "jitter",
    "distribution",
    "loss",
    "burst-loss",
    "rate",
    "queue",
    "duplicate",
    "reorder",
    "corrupt",
    "mtu",
];

/// Changes one setting.
///
/// # Errors
///
/// The key is unknown, or the value is malformed or outside its limits; the error names the expected form.
pub fn apply(impairments: &mut Impairments, key: &str, value: &str) -> Result<(), String> {
    match key {
        "delay" => impairments.delay.mean = units::duration(value)?,
        "jitter" => impairments.delay.jitter = units::duration(value)?,
        "distribution" => impairments.delay.distribution = distribution(value)?,
        "loss" => impairments.loss = Loss::Independent(share(value)?),
        "burst-loss" => {
            let wrong =
                || format!("{value:?} is not P13,P31: the probabilities that a burst begins and ends");
            let (begin, end) = value.split_once([',', '/']).ok_or_else(wrong)?;
            impairments.loss = Loss::Bursts { begin: share(begin)?, end: share(end)? };
        }
        "rate" => {
            impairments.rate = Some(scaled(value, &[("kbit", 1e3), ("Mbit", 1e6), ("Gbit", 1e9), ("", 1.0)])?)
        }
        "queue" => {
            let units = [("KiB", 1024.0), ("MiB", 1_048_576.0), ("", 1.0)];
            impairments.queue_octets = scaled(value, &units)? as usize;
        }
        "duplicate" => impairments.duplicate = share(value)?,
        "reorder" => impairments.reorder = share(value)?,
        "corrupt" => impairments.corrupt = share(value)?,
        "mtu" => impairments.mtu = number(value)?,
        _ => return Err(format!("no setting {key:?}; there are {}", KEYS.join(", "))),
    }
    impairments.check().map_err(|error| error.to_string())
}

/// Changes the settings of a list such as `delay=20ms,loss=0.01`. In a list the two numbers of `burst-loss` are separated by a
/// slash.
///
/// # Errors
///
/// A part is not KEY=VALUE, or as [`apply`], with the key.
pub fn apply_list(impairments: &mut Impairments, list: &str) -> Result<(), String> {
    for setting in list.split(',') {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("{setting:?} is not KEY=VALUE; the keys are {}", KEYS.join(", ")))?;
        apply(impairments, key.trim(), value.trim()).map_err(|error| format!("{key}: {error}"))?;
    }
    Ok(())
}

fn distribution(value: &str) -> Result<Distribution, String> {
    match value {
        "constant" => Ok(Distribution::Constant),
        "normal" => Ok(Distribution::Normal),
        "pareto" => Ok(Distribution::Pareto),
        _ => Err(format!("{value:?} is not constant, normal or pareto")),
    }
}

fn share(value: &str) -> Result<f64, String> {
    let share: f64 = number(value)?;
    if (0.0..=1.0).contains(&share) { Ok(share) } else { Err(format!("{value:?} is not from 0 to 1")) }
}

fn number<T: FromStr>(value: &str) -> Result<T, String> {
    value.trim().parse().map_err(|_| format!("{value:?} is no number of this kind"))
}

/// A number with one of several units.
fn scaled(value: &str, units: &[(&str, f64)]) -> Result<u64, String> {
    for (unit, factor) in units {
        if let Some(amount) = value.strip_suffix(unit).and_then(|rest| rest.trim().parse::<f64>().ok())
            && amount >= 0.0
            && amount * factor < 1e18
        {
            return Ok((amount * factor).round() as u64);
        }
    }
    let names: Vec<&str> = units.iter().map(|(unit, _)| *unit).filter(|unit| !unit.is_empty()).collect();
    Err(format!("{value:?} is no number, alone or with {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn set(key: &str, value: &str) -> Result<Impairments, String> {
        let mut impairments = Impairments::default();
        apply(&mut impairments, key, value).map(|()| impairments)
    }

    #[test]
    fn every_key_changes_its_setting() {
        let values =
            ["20ms", "1ms", "pareto", "0.1", "0.01,0.3", "10Mbit", "64KiB", "0.1", "0.2", "0.3", "1280"];
        for (key, value) in KEYS.into_iter().zip(values) {
            assert_ne!(set(key, value), Ok(Impairments::default()), "{key}");
        }
        assert_eq!(set("rate", "1.5Mbit").unwrap().rate, Some(1_500_000));
        assert_eq!(set("rate", "9600").unwrap().rate, Some(9600));
        assert_eq!(set("queue", "64KiB").unwrap().queue_octets, 65_536);
    }

    #[test]
    fn a_wrong_value_is_an_error_that_names_the_form() {
        let wrong = [
            ("delay", "20", "unit"),
            ("loss", "1.5", "from 0 to 1"),
            ("loss", "5%", "number"),
            ("burst-loss", "0.1", "P13,P31"),
            ("rate", "0", "sends nothing"),
            ("rate", "10mb", "kbit"),
            ("mtu", "20", "68"),
            ("distribution", "uniform", "pareto"),
            ("colour", "red", "burst-loss"),
            ("delay", "2h", "longer"),
        ];
        for (key, value, text) in wrong {
            let error = set(key, value).expect_err(key);
            assert!(error.contains(text), "{key}={value}: {error}");
        }
    }

    #[test]
    fn a_list_sets_one_direction() {
        let mut impairments = Impairments::default();
        apply_list(&mut impairments, "delay=30ms, burst-loss=0.01/0.25,rate=8Mbit").unwrap();
        assert_eq!(impairments.delay.mean, Duration::from_millis(30));
        assert_eq!(impairments.loss, Loss::Bursts { begin: 0.01, end: 0.25 });
        assert!(apply_list(&mut impairments, "delay").unwrap_err().contains("KEY=VALUE"));
    }
}
