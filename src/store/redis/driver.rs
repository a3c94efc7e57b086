//! The driver: how it is set up for a server or a cluster, how it dials, and the connection that it gives.

use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    AsyncConnectionConfig, Cmd, ConnectionInfo, Pipeline, RedisFuture, RedisResult, TlsCertificates, Value,
};

/// How often an idle connection is proved alive: a frozen instance or a dropped NAT entry closes none.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How often a call on a cluster is sent again: enough for a slot that has moved and moves on. What a
/// lost node left open is sent again, too; whichever is carried out first makes the condition of the other false.
const REDIRECTS: u32 = 3;
/// The least pause between two of them, in milliseconds: the lease has pauses of its own.
const REDIRECT_PAUSE: u64 = 50;

/// Who answers. Nothing of it is dialled yet.
pub(super) enum Server {
    One { client: redis::Client, config: AsyncConnectionConfig },
    Cluster(ClusterClient),
}

#[derive(Clone)]
pub(super) enum Connection {
    One(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Server {
    pub(super) fn one(
        node: ConnectionInfo,
        certificates: Option<TlsCertificates>,
        timeout: Duration,
    ) -> RedisResult<Self> {
        let node = node.set_tcp_settings(tcp(timeout));
        let client = match certificates {
            Some(certificates) => redis::Client::build_with_tls(node, certificates)?,
            None => redis::Client::open(node)?,
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(dial_limit(timeout)))
            .set_response_timeout(Some(timeout));
        Ok(Self::One { client, config })
    }

    pub(super) fn cluster(
        nodes: Vec<ConnectionInfo>,
        certificates: Option<TlsCertificates>,
        timeout: Duration,
    ) -> RedisResult<Self> {
        let mut builder = ClusterClient::builder(nodes)
            .connection_timeout(dial_limit(timeout))
            .response_timeout(timeout)
            .retries(REDIRECTS)
            .min_retry_wait(REDIRECT_PAUSE)
            .max_retry_wait(2 * REDIRECT_PAUSE)
            .tcp_settings(tcp(timeout));
        if let Some(certificates) = certificates {
            builder = builder.certs(certificates);
        }
        builder.build().map(Self::Cluster)
    }

    pub(super) async fn dial(&self) -> RedisResult<Connection> {
        match self {
            Self::One { client, config } => {
                client.get_multiplexed_async_connection_with_config(config).await.map(Connection::One)
            }
            Self::Cluster(client) => client.get_async_connection().await.map(Connection::Cluster),
        }
    }
}

/// How connections are kept: an answer is not held back to be joined to another, and a peer that is
/// gone without a word is noticed, which the driver of a cluster would not.
fn tcp(timeout: Duration) -> TcpSettings {
    let settings =
        TcpSettings::default().set_nodelay(true).set_keepalive(TcpKeepalive::new().with_time(KEEP_ALIVE));
    #[cfg(target_os = "linux")]
    let settings = settings.set_user_timeout(timeout);
    settings
}

/// How long one node may take to be dialled: shorter than a call, so that there is time left to ask.
fn dial_limit(timeout: Duration) -> Duration {
    timeout / 2
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        match self {
            Self::One(one) => one.req_packed_command(command),
            Self::Cluster(cluster) => cluster.req_packed_command(command),
        }
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        match self {
            Self::One(one) => one.req_packed_commands(commands, offset, count),
            Self::Cluster(cluster) => cluster.req_packed_commands(commands, offset, count),
        }
    }

    fn get_db(&self) -> i64 {
        match self {
            Self::One(one) => one.get_db(),
            Self::Cluster(cluster) => cluster.get_db(),
        }
    }
}
