//! `pushonce uncertain`: the ledger, as a table and as JSON.

use serde_json::json;

use crate::asked::Asked;
use crate::site::Site;

#[tokio::test]
async fn the_ledger_is_listed_with_what_became_of_each_key() {
    let site = Site::sqlite().await;
    let asked = Asked::of(&site);
    asked.done("orders", "po-1").await;
    asked.uncertain("orders", "po-2").await;

    let lines = asked.lines(&["uncertain", "list"]).await;
    assert_eq!(lines.len(), 1);
    let fields: Vec<_> = lines[0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, ["at", "consumer", "delivery", "fence", "hashed", "key", "message", "settled", "why"]);
    assert_eq!((&lines[0]["consumer"], &lines[0]["key"]), (&json!("orders"), &json!("po-2")));
    assert_eq!((&lines[0]["why"], &lines[0]["hashed"]), (&json!("fenced-out"), &json!(false)));

    let told = asked.run(&["uncertain", "list"]).await;
    assert_eq!((told.code, &*told.err, told.out.lines().count()), (0, "", 3));
    let row = told.out.lines().last().unwrap();
    assert!(row.contains(" fenced out ") && row.ends_with(" orders:po-2"), "{row}");
}
