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
    }
}
