//! Tests of server cookies: the test vectors of RFC 9018 appendix A, lengths, lifetimes, secrets.

use super::*;

/// Secret of appendices A.1 to A.3; below, the secrets before and after the change in appendix A.4.
const FIRST: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const BEFORE: &str = "dd3bdf9344b678b185a6f5cb60fca715";
const AFTER: &str = "445536bcd2513298075a5d379663c962";

fn secrets(texts: &[&str]) -> Vec<Secret> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn octets(digits: &str) -> Vec<u8> {
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn digits(cookie: &Cookie) -> String {
    cookie.data().iter().map(|octet| format!("{octet:02x}")).collect()
}

/// Cookie for the answer to a query whose option data are `data`.
fn answered(data: &str, from: &str, with: &[&str], now_secs: u32) -> Result<Option<Cookie>, MalformedCookie> {
    let mut record = [0; wire::OPT_LEN + 600];
    let octets_before = wire::write_opt(&mut record, 1232, 0, 0, false, None).unwrap();
    let end = wire::add_option(&mut record, octets_before, wire::COOKIE, &octets(data)).unwrap();
    let mut message = b"\0\0\x01\0\0\x01\0\0\0\0\0\x01\0\0\x01\0\x01".to_vec();
    message.extend(&record[..end]);
    let message = wire::Message::parse(&message).unwrap();
    Cookie::of_query(&message.opt().unwrap(), from.parse().unwrap(), &secrets(with), now_secs)
}

fn cookie(data: &str, from: &str, with: &[&str], now_secs: u32) -> Cookie {
    answered(data, from, with, now_secs).unwrap().unwrap()
}

/// RFC 9018 appendix A.1.
#[test]
fn a_client_gets_the_cookie_of_the_rfc() {
    let made = cookie("2464c4abcf10c957", "::ffff:198.51.100.100", &[FIRST], 1_559_731_985);
    assert_eq!(digits(&made), "2464c4abcf10c957010000005cf79f111f8130c3eee29480");
    assert_eq!((made.is_valid(), made.is_invalid()), (false, false));
}

/// RFC 9018 appendix A.2.
#[test]
fn a_cookie_of_forty_minutes_is_valid_and_renewed() {
    let received = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";
    let made = cookie(received, "::ffff:198.51.100.100", &[FIRST], 1_559_734_385);
    assert_eq!(digits(&made), "2464c4abcf10c957010000005cf7a871d4a564a1442aca77");
    assert!(made.is_valid());
}

/// RFC 9018 appendix A.3. The cookie there is almost two hours old, so section 4.3 does not require that it is accepted.
#[test]
fn reserved_octets_are_hashed_as_received_and_written_as_zero() {
    let received = "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5";
    let from = "::ffff:203.0.113.203";
    let made = cookie(received, from, &[FIRST], 1_559_734_700);
    assert_eq!(digits(&made), "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e");
    assert!(made.is_invalid());
    assert!(cookie(received, from, &[FIRST], 1_559_727_985 + 60).is_valid());
    // With other reserved octets the hash does not match.
    assert!(cookie(&received.replace("abcdef", "000000"), from, &[FIRST], 1_559_727_985).is_invalid());
}

/// RFC 9018 appendix A.4.
#[test]
fn a_cookie_made_with_the_previous_secret_is_valid_and_renewed_with_the_new_one() {
    let received = "22681ab97d52c298010000005cf7c57926556bd0934c72f8";
    let from = "2001:db8:220:1:59de:d0f4:8769:82b8";
    let made = cookie(received, from, &[AFTER, BEFORE], 1_559_741_961);
    assert_eq!(digits(&made), "22681ab97d52c298010000005cf7c609a6bb79d16625507a");
    assert!(made.is_valid());
    assert!(cookie(received, from, &[AFTER], 1_559_741_961).is_invalid());
}

#[test]
fn a_cookie_made_with_the_next_secret_by_another_server_is_accepted() {
    let from = "2001:db8::1";
    let made = cookie("0123456789abcdef", from, &[AFTER], 1_000_000);
    assert!(cookie(&digits(&made), from, &[BEFORE, AFTER], 1_000_000).is_valid());
}

#[test]
fn a_cookie_is_valid_for_an_hour_and_renewed_after_half_an_hour() {
    let from = "2001:db8::1";
    let made_secs = 1_700_000_000;
    let first = cookie("0123456789abcdef", from, &[FIRST], made_secs);
    let at = |now_secs| {
        let made = cookie(&digits(&first), from, &[FIRST], now_secs);
        (made.is_valid(), digits(&made) == digits(&first))
    };
    assert_eq!(at(made_secs), (true, true));
    assert_eq!(at(made_secs + 1_800), (true, true));
    assert_eq!(at(made_secs + 1_801), (true, false));
    assert_eq!(at(made_secs + 3_600), (true, false));
    assert_eq!(at(made_secs + 3_601), (false, false));
    // The clock of the server that made it may be ahead; the cookie stays unchanged.
    assert_eq!(at(made_secs - 1), (true, true));
    assert_eq!(at(made_secs - 300), (true, true));
    assert_eq!(at(made_secs - 301), (false, false));
}

#[test]
fn the_timestamp_may_overflow() {
    let from = "2001:db8::1";
    let first = cookie("0123456789abcdef", from, &[FIRST], u32::MAX - 10);
    assert!(cookie(&digits(&first), from, &[FIRST], 100).is_valid());
    assert!(cookie(&digits(&first), from, &[FIRST], 4_000).is_invalid());
}

#[test]
fn a_cookie_of_another_client_address_secret_or_version_is_invalid() {
    let from = "2001:db8::1";
    let first = digits(&cookie("0123456789abcdef", from, &[FIRST], 1_000_000));
    let is_valid = |data: &str, from, with: &[&str]| cookie(data, from, with, 1_000_000).is_valid();
    assert!(is_valid(&first, from, &[FIRST]));
    assert!(!is_valid(&first, "2001:db8::2", &[FIRST]));
    assert!(!is_valid(&first, from, &[AFTER, BEFORE]));
    assert!(!is_valid(&format!("1{}", &first[1..]), from, &[FIRST]));
    assert!(!is_valid(&first.replacen("ef01", "ef02", 1), from, &[FIRST]));
    for place in 16..48 {
        let mut wrong = first.clone();
        let digit = if &first[place..=place] == "0" { "1" } else { "0" };
        wrong.replace_range(place..=place, digit);
        assert!(!is_valid(&wrong, from, &[FIRST]), "{wrong}");
    }
    // Server cookies of other lengths, as other servers make them.
    assert!(!is_valid(&first[..32], from, &[FIRST]));
    assert!(!is_valid(&format!("{first}00"), from, &[FIRST]));
}

/// RFC 7873 section 5.2.2.
#[test]
fn lengths_that_are_not_allowed_are_malformed() {
    for length in 0..=64 {
        let result = answered(&"5a".repeat(length), "::1", &[FIRST], 1_000_000);
        let allowed = length == 8 || (16..=40).contains(&length);
        assert_eq!(result.is_ok(), allowed, "{length} octets");
        if let Ok(Some(made)) = result {
            assert_eq!((made.is_invalid(), made.is_valid()), (length > 8, false));
        }
    }
}

#[test]
fn without_a_secret_no_cookie_is_made() {
    assert_eq!(answered("0123456789abcdef", "::1", &[], 1_000_000), Ok(None));
}

#[test]
fn a_secret_is_32_hexadecimal_digits_and_is_not_shown() {
    let secret: Secret = FIRST.to_uppercase().parse().unwrap();
    assert_eq!(secret.0[..3], [0xe5, 0xe9, 0x73]);
    for wrong in ["", "e5", &FIRST[1..], &format!("{FIRST}0"), &FIRST.replace('e', "g"), &"é".repeat(16)] {
        assert_eq!(wrong.parse::<Secret>(), Err(NotASecret));
    }
    assert!(!format!("{secret:?}").contains("e5"));
}
