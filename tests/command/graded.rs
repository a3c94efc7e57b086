//! Numbers as flags: every case of the sizing's own table, by the program.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::program::{ids, run};

#[test]
fn the_program_says_of_every_case_what_the_table_says() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../sizing/cases.json")).unwrap();
    for case in cases {
        let name = &case["name"];
        let mut arguments = vec!["check".to_owned(), "--json".to_owned()];
        for (field, value) in case["sizing"].as_object().unwrap() {
            let flag = field.trim_end_matches("_seconds").replace('_', "-");
            arguments.push(format!("--{flag}={value}"));
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let ran = run(&arguments, b"");
        let report: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{name}: {}", ran.err));
        let checked = &report["checked"][0];
        for number in ["burned_exact", "burned", "needed"] {
            assert_eq!(checked["numbers"][number], case[number], "{name}: {number}");
        }
        for severity in ["refused", "warned"] {
            let expected: BTreeSet<_> =
                case[severity].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect();
            assert_eq!(ids(checked, severity), expected, "{name}: {severity}");
        }
        for (field, value) in case["sizing"].as_object().unwrap() {
            assert_eq!(checked["sizing"][field].as_f64(), value.as_f64(), "{name}: {field}");
        }
        let refused = case["refused"] != Value::Array(Vec::new());
        assert_eq!((ran.code, &report["refused"]), (i32::from(refused), &Value::Bool(refused)), "{name}");
    }
}
