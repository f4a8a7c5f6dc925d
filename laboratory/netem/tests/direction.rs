//! A direction of a link in virtual time: every impairment alone, and all of them together.

use core::time::Duration;
use proptest::prelude::*;
use sixfold_netem::{Delay, Direction, Distribution, Impairments, Loss, limits};

const MS: Duration = Duration::from_millis(1);

/// A packet that came out: its time, the time at which it was offered, its octets.
type Delivery = (Duration, Duration, Vec<u8>);

/// Offers packets at their times and takes each packet at the time at which it is due.
fn run(impairments: Impairments, seed: u64, packets: &[(Duration, Vec<u8>)]) -> (Direction, Vec<Delivery>) {
    impairments.check().expect("settings within their limits");
    let mut direction = Direction::new(impairments, seed);
    let mut delivered = Vec::new();
    for (at, packet) in packets {
        take_until(&mut direction, *at, &mut delivered);
        direction.offer(*at, packet);
    }
    take_until(&mut direction, Duration::MAX, &mut delivered);
    (direction, delivered)
}

fn take_until(direction: &mut Direction, end: Duration, delivered: &mut Vec<Delivery>) {
    while let Some(due) = direction.next_due().filter(|&due| due <= end) {
        assert!(direction.take_due(due, |octets, offered| delivered.push((due, offered, octets.to_vec()))));
    }
}

/// Numbered packets of `octets` octets, one each `gap`.
fn packets(count: u32, octets: usize, gap: Duration) -> Vec<(Duration, Vec<u8>)> {
    (0..count)
        .map(|number| {
            let mut packet = vec![0; octets];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            (gap * number, packet)
        })
        .collect()
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[..4].try_into().expect("four octets"))
}

#[test]
fn without_impairments_a_packet_comes_out_as_it_went_in() {
    let sent = packets(100, 64, MS);
    let (direction, delivered) = run(Impairments::default(), 1, &sent);
    let came: Vec<_> = delivered.into_iter().map(|(at, offered, octets)| (at.max(offered), octets)).collect();
    assert_eq!(came, sent);
    assert_eq!(direction.counts().delivered_octets, 6400);
    assert_eq!(direction.counts().dropped(), 0);
}

#[test]
fn nothing_comes_out_before_it_is_due() {
    let delay = Delay { mean: 20 * MS, ..Delay::default() };
    let mut direction = Direction::new(Impairments { delay, ..Impairments::default() }, 1);
    assert_eq!(direction.next_due(), None);
    direction.offer(5 * MS, b"packet");
    assert_eq!(direction.next_due(), Some(25 * MS));
    assert!(!direction.take_due(25 * MS - Duration::from_nanos(1), |_, _| panic!("too early")));
    assert!(
        direction
            .take_due(25 * MS, |octets, offered| assert_eq!((octets, offered), (&b"packet"[..], 5 * MS)))
    );
    assert_eq!((direction.next_due(), direction.under_way()), (None, 0));
}

#[test]
fn a_rate_spaces_packets_by_their_transmission_time() {
    // 1250 octets at 10 Mbit/s take 1 ms.
    let impairments = Impairments { rate: Some(10_000_000), queue_octets: 100_000, ..Impairments::default() };
    let (_, delivered) = run(impairments, 1, &packets(50, 1250, Duration::ZERO));
    let times: Vec<_> = delivered.iter().map(|(at, ..)| *at).collect();
    assert_eq!(times, (1..=50).map(|n| n * MS).collect::<Vec<_>>());
}

#[test]
fn a_full_queue_drops_what_comes_and_counts_it() {
    // One packet is being sent, and the queue with the rest of it holds four more of 1250 octets.
    let impairments =
        Impairments { rate: Some(10_000_000), queue_octets: 5 * 1250, ..Impairments::default() };
    let (direction, delivered) = run(impairments, 1, &packets(20, 1250, Duration::ZERO));
    assert_eq!(delivered.iter().map(|(.., octets)| number(octets)).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(direction.counts().queue_full, 15);
}

#[test]
fn an_idle_line_takes_a_packet_larger_than_its_queue() {
    let impairments = Impairments { rate: Some(10_000_000), queue_octets: 0, ..Impairments::default() };
    // Each packet comes when the line has just sent the one before.
    let (direction, delivered) = run(impairments, 1, &packets(10, 1250, MS));
    assert_eq!((delivered.len(), direction.counts().queue_full), (10, 0));
}

#[test]
fn a_lost_packet_has_used_its_share_of_the_rate() {
    let impairments = Impairments {
        rate: Some(10_000_000),
        queue_octets: 1_000_000,
        loss: Loss::Independent(0.5),
        ..Impairments::default()
    };
    let (direction, delivered) = run(impairments, 1, &packets(200, 1250, Duration::ZERO));
    assert_eq!(direction.counts().lost + direction.counts().delivered, 200);
    for (at, _, octets) in &delivered {
        assert_eq!(*at, (number(octets) + 1) * MS);
    }
}

#[test]
fn a_reordered_packet_is_overtaken_by_exactly_the_next_one() {
    let impairments = Impairments { reorder: 0.2, ..Impairments::default() };
    let (direction, delivered) = run(impairments, 4, &packets(1000, 64, MS));
    let order: Vec<u32> = delivered.iter().map(|(.., octets)| number(octets)).collect();
    let swaps = order.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    assert_eq!(order.len(), 1000);
    // The last packet, if held, finds none to overtake it.
    assert!(direction.counts().reordered - swaps <= 1);
    // A fifth of the packets that can be held: while one is held, the next is not. 0.2 / 1.2 of 1000, four deviations.
    assert!((120..=215).contains(&swaps), "{swaps}");
    assert!(order.iter().enumerate().all(|(place, &number)| (place as i64 - i64::from(number)).abs() <= 1));
}

#[test]
fn a_reordered_packet_that_nothing_overtakes_comes_out_late() {
    let impairments = Impairments { reorder: 1.0, ..Impairments::default() };
    let (_, delivered) = run(impairments, 1, &packets(1, 64, MS));
    assert_eq!(delivered[0].0, limits::OVERTAKING);
}

#[test]
fn corruption_flips_one_bit_and_keeps_the_length() {
    let impairments = Impairments { corrupt: 1.0, ..Impairments::default() };
    let sent = packets(500, 40, MS);
    let (direction, delivered) = run(impairments, 1, &sent);
    assert_eq!(direction.counts().corrupted, 500);
    for ((_, before), (.., after)) in sent.iter().zip(&delivered) {
        let flipped: u32 = before.iter().zip(after).map(|(a, b)| (a ^ b).count_ones()).sum();
        assert_eq!((flipped, after.len()), (1, before.len()));
    }
}

#[test]
fn a_duplicate_follows_its_original() {
    let impairments = Impairments { duplicate: 1.0, ..Impairments::default() };
    let (direction, delivered) = run(impairments, 1, &packets(10, 64, MS));
    let order: Vec<u32> = delivered.iter().map(|(.., octets)| number(octets)).collect();
    assert_eq!(order, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9]);
    assert_eq!(direction.counts().duplicated, 10);
}

#[test]
fn a_packet_beyond_the_mtu_is_dropped_and_counted() {
    let impairments = Impairments { mtu: 1280, ..Impairments::default() };
    let mut direction = Direction::new(impairments, 1);
    direction.offer(MS, &[0; 1281]);
    direction.offer(MS, &[0; 1280]);
    assert_eq!((direction.counts().too_big, direction.under_way()), (1, 1));
}

#[test]
fn what_is_under_way_is_bounded_in_octets() {
    let delay = Delay { mean: Duration::from_secs(60), ..Delay::default() };
    let mut direction = Direction::new(Impairments { delay, mtu: 65_535, ..Impairments::default() }, 1);
    let packet = vec![0; 65_535];
    let fit = limits::OCTETS_UNDER_WAY / packet.len();
    for _ in 0..fit + 10 {
        direction.offer(Duration::ZERO, &packet);
    }
    assert_eq!((direction.under_way(), direction.counts().overflow), (fit, 10));
}

#[test]
fn a_jitter_lets_packets_overtake_and_a_constant_delay_does_not() {
    let delays = |jitter| Delay { mean: 50 * MS, jitter, distribution: Distribution::Normal };
    for (jitter, overtakes) in [(Duration::ZERO, false), (10 * MS, true)] {
        let impairments = Impairments { delay: delays(jitter), ..Impairments::default() };
        let (_, delivered) = run(impairments, 1, &packets(1000, 64, MS));
        let order: Vec<u32> = delivered.iter().map(|(.., octets)| number(octets)).collect();
        assert_eq!(!order.is_sorted(), overtakes);
    }
}

fn any_impairments() -> impl Strategy<Value = Impairments> {
    let delay = (0..50_000_u64, 0..20_000_u64, 0..3_u8).prop_map(|(mean, jitter, shape)| Delay {
        mean: Duration::from_micros(mean),
        jitter: Duration::from_micros(jitter),
        distribution: [Distribution::Constant, Distribution::Normal, Distribution::Pareto]
            [usize::from(shape)],
    });
    let loss = prop_oneof![
        (0.0..=1.0).prop_map(Loss::Independent),
        (0.0..=1.0, 0.0..=1.0).prop_map(|(begin, end)| Loss::Bursts { begin, end }),
    ];
    let rate = proptest::option::of(1_000..100_000_000_u64);
    let shares = (0.0..=1.0, 0.0..=1.0, 0.0..=1.0);
    (delay, loss, rate, 0..100_000_usize, shares, 68..2000_usize).prop_map(
        |(delay, loss, rate, queue_octets, (duplicate, reorder, corrupt), mtu)| Impairments {
            delay,
            loss,
            rate,
            queue_octets,
            duplicate,
            reorder,
            corrupt,
            mtu,
        },
    )
}

proptest! {
    /// Every packet is delivered or counted as dropped, whatever the impairments; none comes out early; a seed repeats.
    #[test]
    fn no_packet_is_forgotten(impairments in any_impairments(), seed: u64, sizes in prop::collection::vec(0..2500_usize, 0..200)) {
        let packets: Vec<_> =
            sizes.iter().enumerate().map(|(n, &size)| (MS * n as u32 / 2, vec![7; size])).collect();
        let (direction, delivered) = run(impairments, seed, &packets);
        let counts = direction.counts();
        prop_assert_eq!(counts.offered, packets.len() as u64);
        prop_assert_eq!(counts.offered + counts.duplicated, counts.delivered + counts.dropped());
        prop_assert_eq!(counts.delivered, delivered.len() as u64);
        prop_assert_eq!(direction.under_way(), 0);
        prop_assert!(delivered.iter().all(|(at, offered, _)| at >= offered));
        prop_assert!(delivered.is_sorted_by_key(|(at, ..)| *at));
        prop_assert_eq!(run(impairments, seed, &packets).1, delivered);
    }
}
