//! Numbers of the paper's Tables I to IV. The rates are complete. Of the times, the processor and the memory, the cells are those that
//! the paper's text and the ends of its tables give; an average time follows from its rate in every cell ([`PaperTable::average_s`]).

/// Requests per second by the number of clients, 1 to 10.
pub(super) type Rates = [f64; 10];

/// A cell of a table: the number of clients, and the value.
type Cells = &'static [(usize, f64)];

/// Names of an experiment, which its time is for.
const NAMES: f64 = 256.0;

/// One of the paper's tables.
#[derive(Debug)]
pub(super) struct PaperTable {
    /// Its number, such as `Table I`.
    pub place: &'static str,
    /// Program in it.
    pub program: &'static str,
    /// Requests per second.
    pub rates: Rates,
    /// Longest experiment, in seconds.
    longest_s: Cells,
    /// Average time of an experiment, in seconds.
    average_s: Cells,
    /// Average use of the processor, in percent.
    processor_percent: Cells,
    /// Change of the free memory, in MiB.
    memory_mib: Cells,
}

/// Quantity of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    /// Requests per second.
    Rate,
    /// Longest experiment.
    Longest,
    /// Average time of an experiment.
    Average,
    /// Standard deviation of the time of an experiment.
    Deviation,
    /// Average use of the processor.
    Processor,
    /// Standard deviation of the use of the processor.
    ProcessorDeviation,
    /// Memory.
    Memory,
}

impl Quantity {
    /// Name of the table of the quantity.
    pub fn title(self) -> &'static str {
        match self {
            Quantity::Rate => "Requests per second",
            Quantity::Longest => "Longest experiment of 256 names",
            Quantity::Average => "Average experiment of 256 names",
            Quantity::Deviation => "Standard deviation of the experiments",
            Quantity::Processor => "Processor in use",
            Quantity::ProcessorDeviation => "Standard deviation of the processor in use",
            Quantity::Memory => "Memory",
        }
    }

    /// Unit.
    pub fn unit(self) -> &'static str {
        match self {
            Quantity::Rate => "1/s",
            Quantity::Longest | Quantity::Average | Quantity::Deviation => "s",
            Quantity::Processor | Quantity::ProcessorDeviation => "%",
            Quantity::Memory => "MiB",
        }
    }
}

impl PaperTable {
    /// The printed number for this many clients; none where it is not at hand.
    pub fn cell(&self, quantity: Quantity, clients: usize) -> Option<f64> {
        let cells = match quantity {
            Quantity::Rate => return self.rates.get(clients - 1).copied(),
            Quantity::Longest => self.longest_s,
            Quantity::Average => self.average_s,
            Quantity::Processor => self.processor_percent,
            Quantity::Memory => self.memory_mib,
            Quantity::Deviation | Quantity::ProcessorDeviation => &[],
        };
        cells.iter().find(|(number, _)| *number == clients).map(|(_, value)| *value)
    }

    /// Average time of an experiment in seconds, as it follows from the rate: n clients have n experiments at a time, of 256 names each.
    pub fn average_s(&self, clients: usize) -> f64 {
        NAMES * clients as f64 / self.rates[clients - 1]
    }
}

/// Octets of a kB of the paper, in MiB.
const KB: f64 = 1024.0 / 1_048_576.0;

/// Table I: TOTD with the bug.
pub(super) const TABLE_1: PaperTable = PaperTable {
    place: "Table I",
    program: "TOTD 1.5",
    rates: [488.0, 870.0, 997.0, 545.0, 988.0, 825.0, 965.0, 894.0, 931.0, 958.0],
    longest_s: &[(4, 117.80)],
    average_s: &[],
    processor_percent: &[(1, 22.3), (4, 50.94)],
    memory_mib: &[],
};

/// Table II: sequential IDs without the bug.
pub(super) const TABLE_2: PaperTable = PaperTable {
    place: "Table II",
    program: "TOTD, sequential IDs fixed",
    rates: [494.0, 860.0, 1011.0, 1022.0, 1033.0, 1026.0, 1017.0, 997.0, 1016.0, 1010.0],
    longest_s: &[],
    average_s: &[],
    processor_percent: &[(1, 18.9)],
    memory_mib: &[(1, 808.0 * KB), (10, 1768.0 * KB)],
};

/// Table III: permuted IDs.
pub(super) const TABLE_3: PaperTable = PaperTable {
    place: "Table III",
    program: "TOTD, permuted IDs",
    rates: [492.0, 862.0, 1009.0, 1007.0, 1022.0, 1000.0, 989.0, 1009.0, 1011.0, 995.0],
    longest_s: &[(9, 7.23)],
    average_s: &[(1, 0.520), (10, 2.574)],
    processor_percent: &[(1, 20.8)],
    memory_mib: &[(1, 808.0 * KB), (10, 1992.0 * KB)],
};

/// Table IV: BIND 9.9.1-P1.
pub(super) const TABLE_4: PaperTable = PaperTable {
    place: "Table IV",
    program: "BIND 9.9.1",
    rates: [308.0, 492.0, 484.0, 456.0, 460.0, 453.0, 467.0, 450.0, 453.0, 448.0],
    longest_s: &[],
    average_s: &[(1, 0.831), (10, 5.719)],
    processor_percent: &[(1, 58.27)],
    memory_mib: &[(1, 24.0), (10, 54.0)],
};

/// All tables.
pub(super) const TABLES: [&PaperTable; 4] = [&TABLE_1, &TABLE_2, &TABLE_3, &TABLE_4];

/// Longest experiment of each of Tables I to III, in seconds: with 4 clients, not given, with 9 clients.
pub(super) const LONGEST_S: [f64; 3] = [117.80, 7.46, 7.23];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_averages_that_the_paper_prints_follow_from_its_rates() {
        for (table, clients) in [(&TABLE_3, 1), (&TABLE_3, 10), (&TABLE_4, 1), (&TABLE_4, 10)] {
            let printed = table.cell(Quantity::Average, clients).unwrap();
            // A rate without decimals is uncertain by half a request, of 308 to 995.
            assert!((table.average_s(clients) / printed - 1.0).abs() < 0.002, "{}, {clients}", table.place);
        }
    }

    #[test]
    fn a_cell_is_that_of_its_quantity_and_number_of_clients() {
        assert_eq!(TABLE_1.cell(Quantity::Rate, 4), Some(545.0));
        assert_eq!(TABLE_1.cell(Quantity::Longest, 4), Some(117.80));
        assert_eq!(TABLE_1.cell(Quantity::Longest, 5), None);
        assert_eq!(TABLE_4.cell(Quantity::Memory, 10), Some(54.0));
        assert_eq!(TABLE_2.cell(Quantity::Deviation, 1), None);
        // 256 names of 10 clients at 1,010 requests/s.
        assert!((TABLE_2.average_s(10) - 2.5347).abs() < 1e-4);
    }
}
