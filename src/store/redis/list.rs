//! The list of what a server keeps, for operators: SCAN, node by node, and the record of each name.

use std::future::ready;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, RedisResult, Value};

use super::Redis;
use super::driver::Connection;
use super::fault::Call;
use crate::store::{Filter, Found, Listing, Page, StoreError, Stored, document};

/// How many records are read at once.
const AT_ONCE: usize = 32;
/// Where a scan begins, and what the server answers at its end.
const ENDS: &str = "0";

/// Where a page begins: a node, its cursor, and the names that the last SCAN brought beyond its page.
struct Place {
    node: String,
    cursor: String,
    names: Vec<String>,
}

impl Place {
    fn start_of(node: &str) -> Self {
        Self { node: node.to_owned(), cursor: ENDS.to_owned(), names: Vec::new() }
    }

    /// The place that a page is asked for by; `None` behind the last node.
    fn of(after: Option<&str>, nodes: &[String]) -> Result<Option<Self>, StoreError> {
        let Some(after) = after else { return Ok(nodes.first().map(|node| Self::start_of(node))) };
        let mut lines = after.lines().map(str::to_owned);
        let (Some(node), Some(cursor)) = (lines.next(), lines.next()) else {
            let what = "the page begins at something that is no `next` of this store".to_owned();
            return Err(StoreError::Refused { what, source: None });
        };
        // A node that has gone took its cursor along; its records are with others.
        let place = Self { node, cursor, names: lines.collect() };
        Ok(if nodes.contains(&place.node) { Some(place) } else { place.next_node(nodes) })
    }

    fn next_node(&self, nodes: &[String]) -> Option<Self> {
        nodes.iter().find(|node| **node > self.node).map(|node| Self::start_of(node))
    }

    fn next(self, nodes: &[String]) -> Option<Self> {
        if self.names.is_empty() && self.cursor == ENDS { self.next_node(nodes) } else { Some(self) }
    }

    fn text(&self) -> String {
        let names = self.names.iter().map(String::as_str);
        [&*self.node, &*self.cursor].into_iter().chain(names).collect::<Vec<_>>().join("\n")
    }
}

impl Redis {
    pub(super) async fn list_now(&self, filter: &Filter, page: &Page) -> Result<Listing, StoreError> {
        let limit = page.limit.max(1);
        let nodes = self.client.call(Call::Read, nodes).await?;
        let Some(mut place) = Place::of(page.after.as_deref(), &nodes)? else {
            return Ok(Listing::default());
        };
        if place.names.is_empty() {
            (place.cursor, place.names) = self.scan(&place, limit).await?;
        }
        // A SCAN may bring more than it was asked for.
        let rest = place.names.split_off(limit.min(place.names.len()));
        let names = std::mem::replace(&mut place.names, rest);
        let found = stream::iter(names).map(|name| self.found(name, filter)).buffered(AT_ONCE);
        Ok(Listing {
            found: found.try_filter_map(|found| ready(Ok(found))).try_collect().await?,
            next: place.next(&nodes).map(|place| place.text()),
        })
    }

    async fn scan(&self, place: &Place, limit: usize) -> Result<(String, Vec<String>), StoreError> {
        let mut scan = redis::cmd("SCAN");
        scan.arg(&place.cursor).arg("MATCH").arg(format!("{}:{{*", self.prefix)).arg("COUNT").arg(limit);
        let node = place.node.clone();
        let (cursor, names) = self.client.call(Call::Read, |connection| on(connection, node, scan)).await?;
        // What we have named; others' keys may be of any bytes.
        let names = names.into_iter().filter_map(|name| String::from_utf8(name).ok());
        Ok((cursor, names.filter(|name| !name.chars().any(char::is_control)).collect()))
    }

    /// The record of a name, if it still stands and the filter takes it.
    async fn found(&self, name: String, filter: &Filter) -> Result<Option<Found>, StoreError> {
        let kept = match self.kept(&name).await {
            Ok(None) => return Ok(None),
            Ok(Some(kept)) => document::parse(&kept.document)
                .map(|(key, record)| (key, Stored { record, version: kept.version, age: kept.age })),
            Err(error @ StoreError::Corrupt { .. }) => Err(error),
            Err(error) => return Err(error),
        };
        Ok(match kept {
            Ok((key, stored)) => {
                filter.takes(&key, &stored.record).then_some(Found { key, stored: Ok(stored) })
            }
            // Its name, without the prefix and the digits, is the key unless that is long.
            Err(error) => {
                let key = name.split_once(['=', '#']).map_or(name.as_str(), |(_, key)| key).to_owned();
                key.starts_with(&filter.prefix).then_some(Found { key, stored: Err(error) })
            }
        })
    }
}

/// The primaries by their addresses, in order; of a single server one without a name.
async fn nodes(connection: Connection) -> RedisResult<Vec<String>> {
    let Connection::Cluster(mut cluster) = connection else { return Ok(vec![String::new()]) };
    // Whatever each would answer: the driver says from whom it came.
    let all = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
    let answers = cluster.route_command(redis::cmd("PING"), all).await?;
    let answers: Vec<(String, Value)> = redis::from_redis_value(answers)?;
    let mut nodes: Vec<String> = answers.into_iter().map(|(node, _)| node).collect();
    nodes.sort();
    Ok(nodes)
}

async fn on(mut connection: Connection, node: String, command: Cmd) -> RedisResult<(String, Vec<Vec<u8>>)> {
    let Connection::Cluster(cluster) = &mut connection else {
        return command.query_async(&mut connection).await;
    };
    let (host, port) = node.rsplit_once(':').unwrap_or((&node, ""));
    let to =
        SingleNodeRoutingInfo::ByAddress { host: host.to_owned(), port: port.parse().unwrap_or_default() };
    let answer = cluster.route_command(command, RoutingInfo::SingleNode(to)).await?;
    Ok(redis::from_redis_value(answer.extract_error()?)?)
}
