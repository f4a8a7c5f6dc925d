//! The grid of RFC 8219 section 9.2: shares of names with AAAA records against shares of cached names.

use measure::run::{CellResult, Run};

/// The results of one value of the sweep as a grid.
#[derive(Clone, Debug)]
pub struct Grid<'a> {
    /// The value of the sweep; empty without a sweep.
    pub sweep: &'a str,
    /// The cached shares, ascending.
    pub cached: Vec<f64>,
    /// The AAAA shares, ascending, each with the result for every cached share, if there is one.
    pub rows: Vec<(f64, Vec<Option<&'a CellResult>>)>,
}

/// A grid for each value of the sweep; empty if there is only one cell.
pub fn grids_of(run: &Run) -> Vec<Grid<'_>> {
    let shares = |of: fn(&CellResult) -> f64| {
        let mut shares: Vec<f64> = run.results.iter().map(of).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        shares
    };
    let aaaa = shares(|result| result.cell.aaaa_share);
    let cached = shares(|result| result.cell.cached_share);
    if aaaa.len() < 2 && cached.len() < 2 {
        return Vec::new();
    }
    let mut sweeps: Vec<&str> = run.results.iter().map(|result| &*result.sweep).collect();
    sweeps.dedup();
    let find = |sweep: &str, aaaa_share: f64, cached_share: f64| {
        run.results.iter().find(|result| {
            result.sweep == sweep
                && result.cell.aaaa_share == aaaa_share
                && result.cell.cached_share == cached_share
        })
    };
    let grid = |sweep| Grid {
        sweep,
        cached: cached.clone(),
        rows: aaaa
            .iter()
            .map(|aaaa| (*aaaa, cached.iter().map(|cached| find(sweep, *aaaa, *cached)).collect()))
            .collect(),
    };
    sweeps.into_iter().map(grid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{self, Shape};

    #[test]
    fn cells_that_were_not_measured_stay_empty() {
        let run = sample::run(&Shape { repetitions: 3, seconds: 2, ..Shape::full() });
        let grids = grids_of(&run);
        assert_eq!(grids.iter().map(|grid| grid.sweep).collect::<Vec<_>>(), ["1", "2", "4", "8"]);
        assert_eq!(grids[0].cached, [0.0, 0.4, 1.0]);
        let measured: Vec<Vec<bool>> =
            grids[0].rows.iter().map(|(_, cells)| cells.iter().map(Option::is_some).collect()).collect();
        assert_eq!(measured, [[true, true, true], [true, true, false], [true, false, false]]);
    }

    #[test]
    fn one_cell_is_no_grid() {
        assert!(grids_of(&sample::run(&Shape::quick())).is_empty());
    }
}
