//! Tests of the client subnet option: reading, writing, malformed options, and the scope of replies.

use super::*;

/// Builds an OPT record with these options.
fn record(options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut record = vec![0; 512];
    let mut octets = wire::write_opt(&mut record, 1232, 0, 0, false, None).unwrap();
    for (code, data) in options {
        octets = wire::add_option(&mut record, octets, *code, data).unwrap();
    }
    record.truncate(octets);
    record
}

/// Builds a message with a question for the root and an OPT record with these options.
fn message(options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1];
    bytes.extend(record(options));
    bytes
}

fn of_query(options: &[(u16, &[u8])]) -> Result<Option<Subnet>, MalformedSubnet> {
    let bytes = message(options);
    Subnet::of_query(&Message::parse(&bytes).unwrap().opt().unwrap())
}

fn one(data: &[u8]) -> Result<Option<Subnet>, MalformedSubnet> {
    of_query(&[(8, data)])
}

#[test]
fn an_option_is_read_and_written_unchanged() {
    let v6 = [0, 2, 56, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 1];
    let whole = [&[0, 2, 128, 0][..], &[0xff; 16]].concat();
    for data in [
        &[0, 1, 24, 0, 203, 0, 113][..],
        &[0, 1, 32, 0, 203, 0, 113, 7],
        &[0, 1, 25, 0, 203, 0, 113, 128],
        &[0, 1, 1, 0, 128],
        &v6,
        &whole,
        // The client wants no subnet to be sent (RFC 7871 section 7.1.2): IPv4, IPv6 and family 0.
        &[0, 1, 0, 0],
        &[0, 2, 0, 0],
        &[0, 0, 0, 0],
    ] {
        let subnet = one(data).unwrap().unwrap();
        assert_eq!(subnet.write(0, &mut [0xff; MAX_DATA]), data);
        assert_eq!(subnet.octets(), data.len() + 4);
        assert_eq!(subnet.write(17, &mut [0xff; MAX_DATA])[3], 17);
    }
}

#[test]
fn a_query_without_the_option_has_no_subnet() {
    assert_eq!(of_query(&[]), Ok(None));
    assert_eq!(of_query(&[(10, &[1; 8]), (12, &[])]), Ok(None));
}

#[test]
fn a_malformed_option_is_rejected() {
    for (data, why) in [
        (&[][..], "empty"),
        (&[0, 1, 24], "shorter than its fixed part"),
        (&[0, 1, 24, 0, 203, 0], "too few octets"),
        (&[0, 1, 24, 0, 203, 0, 113, 0], "too many octets"),
        (&[0, 1, 0, 0, 0], "an octet without a prefix"),
        (&[0, 1, 24, 0], "a prefix without octets"),
        (&[0, 1, 23, 0, 203, 0, 113], "a bit set after the prefix of 23"),
        (&[0, 1, 1, 0, 192], "a bit set after the prefix of 1"),
        (&[0, 1, 33, 0, 203, 0, 113, 7, 128], "longer than an address"),
        (&[0, 1, 24, 24, 203, 0, 113], "a scope in a query"),
        (&[0, 3, 8, 0, 10], "an unknown family"),
        (&[1, 1, 8, 0, 10], "an unknown family that ends in 1"),
        (&[0, 3, 0, 0], "an unknown family without an address"),
        (&[0, 0, 8, 0, 10], "an address with family 0"),
    ] {
        assert_eq!(one(data), Err(MalformedSubnet), "{why}");
    }
    let too_long = [&[0, 2, 129, 0][..], &[0xff; 16], &[0x80]].concat();
    assert_eq!(one(&too_long), Err(MalformedSubnet), "longer than an IPv6 address");
}

#[test]
fn two_options_in_a_query_are_malformed_even_if_they_are_equal() {
    let option: (u16, &[u8]) = (8, &[0, 1, 8, 0, 10]);
    assert_eq!(of_query(&[option, option]), Err(MalformedSubnet));
    assert_eq!(of_query(&[option, (10, &[1; 8]), (8, &[0, 1, 8, 0, 11])]), Err(MalformedSubnet));
    assert_eq!(of_query(&[(8, &[]), option]), Err(MalformedSubnet));
    assert!(of_query(&[(10, &[1; 8]), option, (12, &[])]).unwrap().is_some());
}

/// Scope of a reply with these options to a query with the subnet `asked`.
fn scope(asked: &[u8], options: &[(u16, &[u8])]) -> Option<u8> {
    let bytes = message(options);
    one(asked).unwrap().unwrap().scope_of_reply(&Message::parse(&bytes).unwrap())
}

const ASKED: &[u8] = &[0, 1, 24, 0, 203, 0, 113];

#[test]
fn the_scope_of_a_reply_counts_if_its_subnet_is_that_of_the_query() {
    assert_eq!(scope(ASKED, &[(8, &[0, 1, 24, 16, 203, 0, 113])]), Some(16));
    // Longer than the source prefix: the upstream needs more bits for a better answer (RFC 7871 section 7.2.1).
    assert_eq!(scope(ASKED, &[(8, &[0, 1, 24, 28, 203, 0, 113])]), Some(28));
    assert_eq!(scope(ASKED, &[(8, &[0, 1, 24, 0, 203, 0, 113])]), Some(0));
    assert_eq!(scope(ASKED, &[(8, &[0, 1, 24, 255, 203, 0, 113])]), Some(32), "no more than an address");
}

#[test]
fn a_reply_without_the_option_is_valid_for_all_clients() {
    assert_eq!(scope(ASKED, &[]), Some(0));
    assert_eq!(scope(ASKED, &[(10, &[1; 8])]), Some(0));
    let without_opt = [0, 0, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
    let subnet = one(ASKED).unwrap().unwrap();
    assert_eq!(subnet.scope_of_reply(&Message::parse(&without_opt).unwrap()), Some(0));
}

#[test]
fn a_reply_with_another_subnet_is_rejected() {
    for (data, why) in [
        (&[0, 1, 24, 24, 203, 0, 114][..], "another address"),
        (&[0, 1, 16, 16, 203, 0], "a shorter prefix"),
        (&[0, 1, 25, 24, 203, 0, 113, 0], "a longer prefix"),
        (&[0, 2, 24, 24, 203, 0, 113], "another family"),
        (&[0, 1, 0, 0], "no address"),
        (&[0, 1, 24, 24, 203, 0], "malformed"),
        (&[], "empty"),
    ] {
        assert_eq!(scope(ASKED, &[(8, data)]), None, "{why}");
    }
    let right: (u16, &[u8]) = (8, &[0, 1, 24, 16, 203, 0, 113]);
    assert_eq!(
        scope(ASKED, &[right, (8, &[0, 1, 24, 16, 203, 0, 114])]),
        None,
        "one of two has another subnet"
    );
    assert_eq!(
        scope(ASKED, &[right, (8, &[0, 1, 24, 20, 203, 0, 113])]),
        Some(20),
        "both have the subnet of the query"
    );
}

#[test]
fn a_reply_to_a_query_that_hides_the_client_may_have_any_subnet() {
    for asked in [&[0, 1, 0, 0][..], &[0, 2, 0, 0], &[0, 0, 0, 0]] {
        assert_eq!(scope(asked, &[(8, &[0, 1, 24, 24, 198, 51, 100])]), Some(0));
        assert_eq!(scope(asked, &[(8, asked)]), Some(0));
        assert_eq!(scope(asked, &[(8, &[0, 9])]), None, "a malformed option is rejected all the same");
    }
}
