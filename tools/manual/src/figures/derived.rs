//! Figures that follow from the constants: quotients and products that a page quotes, and the arithmetic of sizing.

use super::Constants;

/// Value of an expression such as `134217728/3/entry.mean`: numbers and paths, multiplied and divided from left to right. Paths that begin
/// with `computed.` are those of [`sizing`].
pub fn value(constants: &Constants, expression: &str) -> Option<f64> {
    let mut value = 1.0;
    let mut rest = expression;
    let mut divides = false;
    loop {
        let end = rest.find(['*', '/']).unwrap_or(rest.len());
        let operand = operand(constants, &rest[..end])?;
        value = if divides { value / operand } else { value * operand };
        let Some(sign) = rest[end..].chars().next() else { return Some(value) };
        divides = sign == '/';
        rest = &rest[end + 1..];
    }
}

fn operand(constants: &Constants, text: &str) -> Option<f64> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number.or_else(|| constants.figure(text)).or_else(|| sizing(constants, text.strip_prefix("computed.")?))
}

/// Figures of sizing, with the share of answers from the cache, in percent, behind the name: `mean-90` is the processor time of a query in
/// microseconds, `core-90` the rate of a core per second, `half-90` that of a core that is half busy.
fn sizing(constants: &Constants, name: &str) -> Option<f64> {
    let (name, share) = name.rsplit_once('-')?;
    let share = share.parse::<f64>().ok()? / 100.0;
    let [cached, resolution] = times(constants)?;
    let mean = share * cached + (1.0 - share) * resolution;
    match name {
        "mean" => Some(mean),
        "core" => Some(1e6 / mean),
        "half" => Some(5e5 / mean),
        _ => None,
    }
}

/// Processor time of an answer from the cache and of a resolution, in microseconds.
pub fn times(constants: &Constants) -> Option<[f64; 2]> {
    let time = |key: &str| constants.figure(constants.text(&format!("sizing.{key}"))?);
    Some([time("cached")?, time("resolution")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_computed_from_left_to_right() {
        let constants = Constants::read("[a]\nb = [8.0, 7.0, 9.0]\n").unwrap();
        let value = |expression| value(&constants, expression);
        assert_eq!(
            (value("a.b"), value("a.b/2*3"), value("12/a.b.most/4")),
            (Some(8.0), Some(12.0), Some(12.0 / 9.0 / 4.0))
        );
        assert_eq!(
            (value("a.c"), value("a.b/"), value("inf"), value("computed.core-90")),
            (None, None, None, None)
        );
    }

    #[test]
    fn the_rate_of_a_core_follows_from_the_mean_time_of_a_query() {
        let text = "[sizing]\ncached = \"a.c\"\nresolution = \"a.r\"\n[a]\nc = 2.0\nr = 12.0\n";
        let constants = Constants::read(text).unwrap();
        // 0.9 x 2 + 0.1 x 12 = 3 us; a million of them in a second.
        let figures = ["computed.mean-90", "computed.core-90", "computed.half-50"]
            .map(|path| value(&constants, path).unwrap());
        let expected = [3.0, 1e6 / 3.0, 5e5 / 7.0];
        assert!(
            figures.iter().zip(expected).all(|(is, should)| (is - should).abs() < should * 1e-9),
            "{figures:?}"
        );
    }
}
