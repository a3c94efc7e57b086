//! Laws of keys: any text that is not blank, and no two of them are one.

use futures_util::future::try_join_all;

use super::trial::Trial;
use super::{Breach, must};
use crate::key::Key;

/// Texts that stores are known to fold, cut, trim, normalise or take for something of their own.
// F68
fn texts() -> Vec<String> {
    let long = "x".repeat(1999);
    let mut texts: Vec<String> = [
        "a",
        "A",
        "a ",
        " a",
        "a\t",
        "a\n",
        "a/b",
        "a\\b",
        "a//b",
        "/a",
        "a/",
        ".",
        "..",
        "../a",
        "__x__",
        "__a__",
        "é",
        "e\u{301}",
        "É",
        "ß",
        "ss",
        "ﬁ",
        "fi",
        "a\0",
        "a\0b",
        "%00",
        "%61",
        "a%2Fb",
        "a+b",
        "a b",
        "a:b",
        "a#b",
        "a?b",
        "a=b",
        "a|b",
        "a*b",
        "{a}",
        "'",
        "\"",
        "`",
        ";",
        "--",
        "null",
        "0",
        "00",
        "1",
        "1.0",
        "-0",
        "\u{feff}a",
        "\u{1F600}",
        "\u{202e}a",
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([format!("{long}a"), format!("{long}b"), format!("{long}A")]);
    texts.extend(
        [1, 250, 255, 256, 1023, 1024, 1025, 1400, 1499, 1500, 1501, 9000].map(|length| "k".repeat(length)),
    );
    texts.extend([599, 600].map(|count| "€".repeat(count)));
    texts
}

pub(super) async fn any_text_can_be_a_key(t: &Trial) -> Result<(), Breach> {
    for text in texts() {
        let key = t.key(&text)?;
        let next = t.record();
        let shown: String = text.chars().take(40).collect();
        let told = |breach: Breach| breach.with(&format!("a key of {} bytes, {shown:?}", text.len()));
        t.write(&key, None, &next).await.map_err(told)?;
        let read = t.stands(&key).await.map_err(told)?;
        must!(read.record.token == next.token, "the key {shown:?} gave another record");
    }
    Ok(())
}

pub(super) async fn keys_that_differ_stay_apart(t: &Trial) -> Result<(), Breach> {
    let keys: Vec<Key> = texts().iter().map(|text| t.key(text)).collect::<Result<_, _>>()?;
    for some in keys.chunks(16) {
        try_join_all(some.iter().map(|key| async move {
            let absent = t.read(key).await?.is_none();
            must!(absent, "the fresh key {:?} is that of another text", shown(key));
            t.write(key, None, &crate::store::Record { data: key.to_string().into(), ..t.record() }).await?;
            Ok(())
        }))
        .await?;
    }
    for key in &keys {
        let read = t.stands(key).await?.record;
        must!(read.data == key.to_string().as_bytes(), "the key {:?} gave the record of another", shown(key));
    }
    Ok(())
}

fn shown(key: &Key) -> String {
    key.text().chars().take(40).collect()
}
