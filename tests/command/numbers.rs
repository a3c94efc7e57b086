//! The page, the exit codes, and arguments that are none.

use crate::program::run;

#[test]
fn what_fits_is_a_page_and_code_0() {
    let ran = run(&["check"], b"");
    assert_eq!((ran.code, &*ran.err), (0, ""));
    for line in [
        "lease, ttl                     900 s, 604800 s\n",
        "attempts burned meanwhile      8              if delays are 0.5 as long as they should be; 7 if they are exact\n",
        "attempts set                   12             2 to spare\n",
        "\nIt fits.\n",
    ] {
        assert!(ran.out.contains(line), "{line:?} is not in\n{}", ran.out);
    }
}

#[test]
fn what_is_refused_is_told_on_the_page_and_code_1() {
    let ran = run(&["check", "--max-delivery-attempts", "9", "--ttl", "1h"], b"");
    assert_eq!((ran.code, &*ran.err), (1, ""));
    let first = ran.out.find("\nrefused  attempts: max_delivery_attempts is 9: expected at least 10");
    let second = ran.out.find("\nwarned   ttl: ttl is 3600 s: expected at least retention, 604800 s");
    assert!(first.is_some() && second.is_some(), "{}", ran.out);
    assert!(ran.out.ends_with("\n\nRefused.\n"), "{}", ran.out);
}

#[test]
fn a_warning_is_refused_only_where_it_is_strict() {
    assert_eq!(run(&["check", "--ttl", "1h"], b"").code, 0);
    assert_eq!(run(&["check", "--ttl", "1h", "--strict"], b"").code, 1);
    assert_eq!(run(&["check", "--strict"], b"").code, 0);
}

#[test]
fn times_have_units() {
    let plain = run(&["check", "--lease=1800", "--ttl=604800", "--request-timeout=540"], b"").out;
    assert!(plain.contains("1800 s, 604800 s"), "{plain}");
    for [lease, ttl, request] in [["1800s", "7d", "9m"], ["30m", "168h", "540s"]] {
        let args = ["check", "--lease", lease, "--ttl", ttl, "--request-timeout", request];
        assert_eq!(run(&args, b"").out, plain, "{args:?}");
    }
}

#[test]
fn arguments_that_are_none_are_code_2_and_nothing_on_stdout() {
    for bad in [
        &["check", "--lease", "15 minutes"][..],
        &["check", "--lease", ""],
        &["check", "--lease=-1"],
        &["check", "--lease", "1.5"],
        &["check", "--lease", "1w"],
        &["check", "--lease", "18446744073709551616"],
        &["check", "--ttl", "18446744073709551615d"],
        &["check", "--max-delivery-attempts", "-1"],
        &["check", "--floor-ratio", "half"],
        &["check", "--plan", "p.json", "--ack-deadline", "600"],
        &["check", "--plan", "p.json", "--max-delivery-attempts", "12"],
        &["check", "p.json"],
        &["chekc"],
        &[],
    ] {
        let ran = run(bad, b"");
        assert_eq!((ran.code, &*ran.out), (2, ""), "{bad:?}: {}", ran.err);
        assert!(!ran.err.is_empty(), "{bad:?}");
    }
}

/// What cannot be meant is a finding, not a crash.
#[test]
fn numbers_without_sense_are_refused() {
    for wild in [
        &["--lease", "18446744073709551615"][..],
        &["--floor-ratio", "NaN"],
        &["--floor-ratio", "0"],
        &["--min-backoff", "0"],
        &["--holders-ahead", "4294967295"],
        &["--real-failures", "4294967295"],
        &["--max-delivery-attempts", "4294967295"],
    ] {
        for json in [&[][..], &["--json"]] {
            let arguments: Vec<_> = ["check"].iter().chain(wild).chain(json).copied().collect();
            let ran = run(&arguments, b"");
            assert_eq!((ran.code, &*ran.err), (1, ""), "{arguments:?}: {}", ran.out);
        }
    }
}

#[test]
fn help_and_version_are_on_stdout() {
    for (asked, word) in [("--help", "check"), ("--version", env!("CARGO_PKG_VERSION"))] {
        let ran = run(&[asked], b"");
        assert!(ran.code == 0 && ran.out.contains(word) && ran.err.is_empty(), "{}", ran.out);
    }
    let help = run(&["check", "--help"], b"").out;
    for flag in ["--plan <FILE>", "--strict", "[default: 12]", "Exit code: 0"] {
        assert!(help.contains(flag), "{flag} is not in\n{help}");
    }
}
