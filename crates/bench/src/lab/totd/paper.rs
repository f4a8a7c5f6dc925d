//! Numbers of the paper's Tables I to IV.

/// Requests per second by the number of clients, 1 to 10.
pub(super) type Rates = [f64; 10];

/// Table I: TOTD with the bug.
pub(super) const TABLE_1: Rates = [488.0, 870.0, 997.0, 545.0, 988.0, 825.0, 965.0, 894.0, 931.0, 958.0];

/// Table II: sequential IDs without the bug.
pub(super) const TABLE_2: Rates =
    [494.0, 860.0, 1011.0, 1022.0, 1033.0, 1026.0, 1017.0, 997.0, 1016.0, 1010.0];

/// Table III: permuted IDs.
pub(super) const TABLE_3: Rates =
    [492.0, 862.0, 1009.0, 1007.0, 1022.0, 1000.0, 989.0, 1009.0, 1011.0, 995.0];

/// Table IV: BIND 9.9.1-P1.
pub(super) const TABLE_4: Rates = [308.0, 492.0, 484.0, 456.0, 460.0, 453.0, 467.0, 450.0, 453.0, 448.0];

/// Longest experiment of each of Tables I to III, in seconds: with 4 clients, not given, with 9 clients.
pub(super) const LONGEST_S: [f64; 3] = [117.80, 7.46, 7.23];
