//! Lists of CPU cores in the syntax of `taskset -c`: `0`, `0,2`, `4-7`, `0-10:2`.

/// The highest core number for which a kernel can be built (NR_CPUS).
const MAX_CORE: u16 = 8191;

/// Parses a list of cores: ascending, without duplicates.
///
/// # Errors
///
/// A part is no number, range or range with a step, a range has no core, or a number is above the largest core. The error says how to
/// write a list.
pub fn core_list(text: &str) -> Result<Vec<u16>, String> {
    let refused = || {
        format!(
            "\"{text}\" is not a list of cores; write numbers and ranges with commas between, like 0,2 or 4-7"
        )
    };
    let number = |text: &str| text.parse::<u16>().ok().filter(|core| *core <= MAX_CORE);
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (Some(first), Some(last), Some(step @ 1..)) = (number(first), number(last), number(step)) else {
            return Err(refused());
        };
        if first > last {
            return Err(refused());
        }
        cores.extend((first..=last).step_by(usize::from(step)));
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_steps_are_read() {
        for (text, cores) in [
            ("0", vec![0]),
            ("5,0,2-3", vec![0, 2, 3, 5]),
            ("0-6:3", vec![0, 3, 6]),
            ("1-2,2", vec![1, 2]),
            ("0-8191:8191", vec![0, 8191]),
        ] {
            assert_eq!(core_list(text), Ok(cores), "{text}");
        }
    }

    #[test]
    fn an_invalid_list_is_refused_with_the_way_to_write_one() {
        for text in ["", ",", "a", "3-1", "0-", "-1", "1-2:0", "1:", "99999", "8192", "0-65535", "1 2"] {
            assert!(core_list(text).unwrap_err().contains("like 0,2"), "{text}");
        }
    }
}
