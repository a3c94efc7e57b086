//! What runs in an instance: a handler that behaves as drawn, under the shipped layer or a shipped verb.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use pushonce::store::BoxError;
use pushonce::{
    AtMostOnce, Clock, Guarded, IdempotentLayer, Lease, Lock, Mutex, RunError, Store, at_most_once,
    attribute, lock, mutex, outcome_of,
};
use tower::util::{BoxCloneSyncService, service_fn};
use tower::{Layer as _, ServiceExt as _};

use crate::instance::Instance;
use crate::invariants::End;
use crate::schedule::{Message, Route, Schedule, secs};
use crate::world::World;

pub(crate) type Push = Request<Full<Bytes>>;
pub(crate) type Answer = Response<Full<Bytes>>;
pub(crate) type Service = BoxCloneSyncService<Push, Answer, Infallible>;

/// What a delivery carries besides its body, for those who watch.
#[derive(Debug, Clone)]
struct Carried {
    delivery: u64,
    key: String,
    entity: String,
}

/// The push of a message, as Pub/Sub sends it.
pub(crate) fn push(message: &Message, delivery: u64) -> Push {
    let Message { id, key, entity, .. } = message;
    let attributes = format!(r#"{{"key":"{key}","entity":"{entity}"}}"#);
    let body = format!(
        r#"{{"message":{{"messageId":"m{id}","attributes":{attributes}}},"subscription":"projects/p/subscriptions/s"}}"#
    );
    let mut request = Request::post("/").body(Full::from(body)).unwrap();
    request.extensions_mut().insert(Carried { delivery, key: key.clone(), entity: entity.clone() });
    request
}

/// The service of one instance.
pub(crate) fn build(world: &Arc<World>, instance: &Arc<Instance>, store: &Arc<dyn Store>) -> Service {
    let (world, instance) = (world.clone(), instance.clone());
    let schedule = &world.schedule;
    if matches!(schedule.route, Route::LockVerb | Route::MutexVerb | Route::AtMostOnceVerb) {
        let store = store.clone();
        let service = service_fn(move |push| by_verb(world.clone(), instance.clone(), store.clone(), push));
        return BoxCloneSyncService::new(service);
    }
    let layer = layer(schedule, instance.clone(), store.clone());
    let handler = service_fn(move |push: Push| {
        let (world, instance) = (world.clone(), instance.clone());
        async move {
            let carried = push.extensions().get::<Carried>().unwrap().clone();
            let lease = push.extensions().get::<Lease>().unwrap().clone();
            let worked = work(world, instance, carried, lease).await;
            let status = if worked.is_ok() { StatusCode::OK } else { StatusCode::IM_A_TEAPOT };
            Ok::<_, Infallible>(answer(status, ""))
        }
    });
    BoxCloneSyncService::new(layer.layer(handler))
}

fn answer(status: StatusCode, outcome: &'static str) -> Answer {
    let builder = Response::builder().status(status).header("pushonce-outcome", outcome);
    builder.body(Full::default()).unwrap()
}

fn layer(schedule: &Schedule, clock: Arc<dyn Clock>, store: Arc<dyn Store>) -> IdempotentLayer {
    let mut layer = IdempotentLayer::new("layer", store)
        .key(attribute("key"))
        .lease(schedule.lease)
        .ttl(schedule.ttl)
        .wait(schedule.wait)
        .clock(clock);
    match schedule.route {
        Route::Serialize => layer = layer.serialize(attribute("entity")).serialize_wait(schedule.wait),
        Route::AtMostOnce => layer = layer.at_most_once(),
        _ => {}
    }
    if schedule.renew {
        layer = layer.renew();
    }
    if schedule.cancel_safe {
        layer = layer.cancel_safe();
    }
    match schedule.work_timeout {
        Some(limit) => layer.work_timeout(limit),
        None => layer,
    }
}

/// The consumer under which a schedule's keys stand.
pub(crate) fn consumer(route: Route) -> &'static str {
    match route {
        Route::Layer | Route::Serialize | Route::AtMostOnce => "layer",
        Route::LockVerb | Route::MutexVerb | Route::AtMostOnceVerb => "verb",
    }
}

macro_rules! settled {
    ($guarded:expr, $schedule:expr, $clock:expr, $uncertain:expr) => {{
        let (schedule, uncertain): (&Schedule, Arc<AtomicBool>) = ($schedule, $uncertain);
        let mut guarded = $guarded.lease(schedule.lease).wait(schedule.wait).clock($clock);
        guarded = guarded.on_uncertain(move |_| uncertain.store(true, Ordering::Relaxed));
        if schedule.renew {
            guarded = guarded.renew().max_hold(schedule.lease * 2);
        }
        if schedule.cancel_safe {
            guarded = guarded.cancel_safe();
        }
        match schedule.work_timeout {
            Some(limit) => guarded.work_timeout(limit),
            None => guarded,
        }
    }};
}

/// A handler without the layer that calls the verb itself.
async fn by_verb(
    world: Arc<World>,
    instance: Arc<Instance>,
    store: Arc<dyn Store>,
    push: Push,
) -> Result<Answer, Infallible> {
    let carried = push.extensions().get::<Carried>().unwrap().clone();
    let key = ("verb", carried.key.clone());
    let uncertain = Arc::new(AtomicBool::new(false));
    let told = uncertain.clone();
    let (schedule, clock) = (&world.schedule, instance.clone());
    let (ours, here) = (world.clone(), instance.clone());
    let work = move |lease| work(ours, here, carried, lease);
    let ran: Result<Option<()>, RunError> = match schedule.route {
        Route::MutexVerb => {
            let guarded: Guarded<Mutex> = settled!(mutex(key, &store), schedule, clock, told);
            guarded.run_with(work).await.map(Some)
        }
        Route::AtMostOnceVerb => {
            let guarded: Guarded<AtMostOnce> = settled!(at_most_once(key, &store), schedule, clock, told);
            guarded.ttl(schedule.ttl).run_with(work).await
        }
        _ => {
            let guarded: Guarded<Lock> = settled!(lock(key, &store), schedule, clock, told);
            guarded.ttl(schedule.ttl).run_with(work).await.map(Some)
        }
    };
    Ok(match ran {
        Ok(Some(())) if uncertain.load(Ordering::Relaxed) => answer(StatusCode::OK, "uncertain"),
        Ok(Some(())) => answer(StatusCode::OK, "ran"),
        Ok(None) => answer(StatusCode::NO_CONTENT, "duplicate"),
        Err(error) => {
            let verdict = outcome_of(&error);
            answer(verdict.status, verdict.outcome.name())
        }
    })
}

/// What the work does, as drawn when it begins.
#[derive(Debug, Clone, Copy)]
enum Behaviour {
    Ends(Duration, End),
    /// It hangs until somebody stops it.
    Stuck,
}

impl World {
    fn behaviour(&self) -> Behaviour {
        let (chaotic, schedule) = (self.chaotic(), &self.schedule);
        let (lease, rng) = (schedule.lease, &mut self.inner().rng);
        let short = rng.between(Duration::ZERO, secs(3));
        if !chaotic || !rng.chance(schedule.trouble) {
            return Behaviour::Ends(short, End::Succeeded);
        }
        match rng.below(8) {
            0 => Behaviour::Ends(short, End::Failed),
            1 => Behaviour::Ends(rng.between(secs(1), lease), End::Failed),
            2 => Behaviour::Ends(short, End::Panicked),
            3 => Behaviour::Ends(schedule.ack_deadline + secs(2), End::Succeeded),
            4 | 5 => Behaviour::Ends(rng.between(lease + secs(1), lease * 2), End::Succeeded),
            6 => Behaviour::Ends(rng.between(secs(1), lease), End::Succeeded),
            // The layer's renewal would hold the key for an hour.
            _ if schedule.renew && schedule.work_timeout.is_none() && consumer(schedule.route) == "layer" => {
                Behaviour::Ends(short, End::Succeeded)
            }
            _ => Behaviour::Stuck,
        }
    }
}

/// Tells of work that was dropped before its end.
struct Running {
    world: Arc<World>,
    run: usize,
}

impl Drop for Running {
    fn drop(&mut self) {
        // Changes nothing for work that ended, or whose instance was killed.
        self.world.ends(self.run, End::Cancelled);
    }
}

async fn work(
    world: Arc<World>,
    instance: Arc<Instance>,
    carried: Carried,
    lease: Lease,
) -> Result<(), BoxError> {
    if !instance.alive() {
        std::future::pending::<()>().await;
    }
    let run = world.begins(&lease, carried.delivery, instance.id, &carried.entity);
    let running = Running { world: world.clone(), run };
    let behaviour = world.behaviour();
    let slices = 3;
    let length = match behaviour {
        Behaviour::Ends(length, _) => length,
        Behaviour::Stuck => world.schedule.lease,
    };
    for _ in 0..slices {
        if !length.is_zero() {
            tokio::time::sleep(length / slices).await;
        }
        instance.awake().await;
        if !instance.alive() {
            // Nothing that a killed process does has an effect.
            std::future::pending::<()>().await;
        }
        world.holds(run, &lease);
    }
    let Behaviour::Ends(_, end) = behaviour else { return std::future::pending().await };
    world.ends(run, end);
    drop(running);
    match end {
        End::Succeeded => Ok(()),
        // Without the hook, which would print it.
        End::Panicked => std::panic::resume_unwind(Box::new("as drawn")),
        _ => Err("as drawn".into()),
    }
}

/// Sends a push and waits for its answer.
pub(crate) async fn sent(service: Service, push: Push) -> (u16, String) {
    let Ok(answer) = service.oneshot(push).await;
    let outcome = answer.headers()["pushonce-outcome"].to_str().unwrap().to_owned();
    (answer.status().as_u16(), outcome)
}
