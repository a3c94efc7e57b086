//! The tables of `docs/costs.md`, as the arithmetic gives them.

use crate::sheet::{Sheet, seconds_of};

/// Every table, and the one sentence that is reckoned too, by its name.
pub(crate) fn all(sheet: &Sheet) -> [(&'static str, String); 6] {
    [
        ("prices", prices(sheet)),
        ("stores paid by use", by_use(sheet)),
        ("servers", servers(sheet)),
        ("volumes", volumes(sheet)),
        ("crossing", crossing(sheet)),
        ("the rest", around(sheet)),
    ]
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head.iter().map(|cell| (*cell).to_owned()).collect());
    text.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    rows.into_iter().for_each(|row| text.push_str(&line(row)));
    text
}

fn usd(amount: f64) -> String {
    format!("${amount:.2}")
}

/// A number with its thousands apart.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn prices(sheet: &Sheet) -> String {
    let rows = sheet.prices.iter().map(|(name, price)| {
        let per = if price.per == 1.0 { String::new() } else { format!("{} ", count(price.per)) };
        let page = price.page.trim_start_matches("https://");
        let page = format!("[{page}]({})", price.page);
        vec![
            name.clone(),
            format!("${}", price.usd),
            format!("{per}{}", price.unit),
            page,
            price.read.clone(),
        ]
    });
    let title = format!("Prices in {}, {}", sheet.region, sheet.looked_up);
    table(&[&title, "USD", "for", "its page", "how it was read"], rows.collect())
}

fn by_use(sheet: &Sheet) -> String {
    let messages = sheet.volumes[0];
    let rows = sheet.by_use.iter().map(|store| {
        let parts = sheet.by_use(store, messages);
        let operations = |operations: &[String]| operations.join(" + ");
        vec![
            store.store.clone(),
            format!("{}: {}", operations(&store.first), usd(parts.first)),
            format!("{}: {}", operations(&store.duplicate), usd(parts.duplicates)),
            usd(parts.deletes),
            format!("{} bytes, {} days: {}", store.record_bytes, store.days_kept, usd(parts.storage)),
            usd(parts.sum()),
        ]
    });
    let duplicates = format!("{} duplicates", count(sheet.duplicates(messages)));
    let first = format!("{} first messages", count(messages));
    table(&["store", &first, &duplicates, "deletes", "storage", "together"], rows.collect())
}

fn servers(sheet: &Sheet) -> String {
    let rows = sheet.volumes.iter().map(|messages| {
        let (memory, redis) = sheet.redis(*messages);
        let (disk, sql) = sheet.sql(*messages);
        let trips = 2.0 * messages + sheet.duplicates(*messages);
        let rate = trips / seconds_of(sheet.month_hours / 24.0);
        vec![
            count(*messages),
            format!("{rate:.1}"),
            format!("{memory} GiB: {}", usd(redis)),
            format!("{disk} GiB: {}", usd(sql)),
            usd(2.0 * sql),
        ]
    });
    let head = [
        "messages a month",
        "trips a second",
        &sheet.redis.store,
        &sheet.sql.store,
        "the same with a standby",
    ];
    table(&head, rows.collect())
}

fn volumes(sheet: &Sheet) -> String {
    let head: Vec<String> =
        std::iter::once("store".to_owned()).chain(sheet.volumes.iter().map(|n| count(*n))).collect();
    let row = |name: &str, cost: &dyn Fn(f64) -> f64| {
        let costs = sheet.volumes.iter().map(|messages| usd(cost(*messages)));
        std::iter::once(name.to_owned()).chain(costs).collect::<Vec<_>>()
    };
    let mut rows: Vec<_> =
        sheet.by_use.iter().map(|store| row(&store.store, &|n| sheet.by_use(store, n).sum())).collect();
    rows.push(row(&sheet.redis.store, &|n| sheet.redis(n).1));
    rows.push(row(&sheet.sql.store, &|n| sheet.sql(n).1));
    table(&head.iter().map(String::as_str).collect::<Vec<_>>(), rows)
}

/// Where a server whose price hardly grows becomes cheaper than the store that is paid by use.
fn crossing(sheet: &Sheet) -> String {
    let million = 1_000_000.0;
    let each = sheet.by_use(&sheet.by_use[0], million).sum();
    let alone = sheet.sql(million).1;
    let [alone, standby] = [alone, 2.0 * alone].map(|server| server / each);
    format!("they cross at about {alone:.0} million messages a month, with a standby at {standby:.0} million")
}

fn around(sheet: &Sheet) -> String {
    let (messages, around) = (sheet.volumes[0], &sheet.around);
    let row = |what: &str, how: String, cost| vec![what.to_owned(), how, usd(cost)];
    let rows = vec![
        row(
            "Pub/Sub",
            format!(
                "published once, delivered once and a duplicate in a hundred, {} bytes each",
                around.message_bytes
            ),
            sheet.pubsub(messages),
        ),
        row(
            "Cloud Run, CPU for requests",
            format!(
                "{} s of work each, one at a time, 1 vCPU, {} GiB",
                around.work_seconds, around.memory_gib
            ),
            sheet.requests(messages),
        ),
        row(
            "Cloud Run, CPU always on",
            format!("one instance for the month, 1 vCPU, {} GiB", around.always_on_memory_gib),
            sheet.always_on(),
        ),
        row(
            "Cloud Logging",
            format!("one line of {} bytes for each delivery", around.log_bytes),
            sheet.logs(messages),
        ),
    ];
    table(&["what", "reckoned as", &format!("for {} messages", count(messages))], rows)
}
