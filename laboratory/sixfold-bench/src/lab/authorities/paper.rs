//! Numbers of the paper: Lencse, Pivoda and Shima, 2021, on machines with two Xeon E5-2683 v4 and 10 Gbit/s Ethernet.

/// A number of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperNumber {
    /// Value.
    pub value: f64,
    /// Figure, and what differs from the row beside it.
    pub place: &'static str,
}

const fn number(value: f64, place: &'static str) -> Option<PaperNumber> {
    Some(PaperNumber { value, place })
}

/// Queries per second on one core.
pub fn rate_qps(server: &str) -> Option<PaperNumber> {
    match server {
        "bind" => number(57_670.0, "Fig. 4, BIND 9.12.4 tuned; 10,564 of BIND 9.10.3 in Fig. 3"),
        "yadifa" => number(154_800.0, "Fig. 5, YADIFA 2.2.3"),
        "nsd" => number(188_872.0, "Fig. 6, NSD 4.1.14"),
        _ => None,
    }
}

/// Queries per second by number of cores, as far as the paper's text has them: on one core (Figures 4 to 6), and the 1st percentile of
/// Knot DNS on 32 cores (Figure 10). The others are drawn there without digits.
pub fn rates_by_cores(server: &str) -> &'static [(u32, f64)] {
    match server {
        "bind" => &[(1, 57_670.0)],
        "yadifa" => &[(1, 154_800.0)],
        "nsd" => &[(1, 188_872.0)],
        "knot" => &[(32, 2_236_824.0)],
        _ => &[],
    }
}

/// Memory with 2^27 names, in GB. The paper prints MB, which 2^27 names cannot fit.
pub fn memory_gb(server: &str) -> Option<PaperNumber> {
    match server {
        "yadifa" => number(23.0, "Fig. 11, the lowest; printed as MB"),
        "nsd" => number(38.1, "Fig. 11, the highest; printed as MB"),
        _ => None,
    }
}

/// Load time of 2^27 names, in seconds.
pub fn load_s(server: &str) -> Option<PaperNumber> {
    match server {
        "nsd" => number(657.0, "Fig. 12, the first start, which compiles a database; 210 s later"),
        "knot" => number(315.0, "Fig. 12"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::authorities::recipe::RECIPES;

    #[test]
    fn every_number_of_the_paper_belongs_to_a_server_here() {
        let count = |number: fn(&str) -> Option<PaperNumber>| {
            RECIPES.iter().filter(|recipe| number(recipe.name).is_some()).count()
        };
        assert_eq!((count(rate_qps), count(memory_gb), count(load_s)), (3, 2, 2));
        for recipe in RECIPES.iter() {
            let one_core =
                rates_by_cores(recipe.name).iter().find(|(cores, _)| *cores == 1).map(|(_, qps)| *qps);
            assert_eq!(one_core, rate_qps(recipe.name).map(|number| number.value), "{}", recipe.name);
        }
    }
}
