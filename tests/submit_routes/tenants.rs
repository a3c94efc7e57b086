//! Whose a request is: tenants share no key, and do not see each other's tasks.

use axum::Router;
use http::Method;
use pushonce::submit::{Denied, routes};

use super::world::{Answer, World, request, send};

const BODY: &str = r#"{"task_type":"charge","input":1}"#;

/// The header `customer` says whose a request is; nobody's is denied, a stranger's forbidden.
fn app(world: &World) -> Router {
    let routes = routes(world.submitter.clone()).tenant(|request| {
        match request.headers.get("customer").map(|customer| customer.to_str().unwrap()) {
            None => Err(Denied::Unauthenticated),
            Some("stranger") => Err(Denied::Forbidden),
            Some("operator") => Ok(None),
            Some(customer) => Ok(Some(customer.to_owned())),
        }
    });
    routes.router()
}

async fn ask(app: &Router, method: Method, path: &str, customer: &str) -> Answer {
    let headers = [("customer", customer), ("idempotency-key", "k")];
    send(app, request(method, path, &headers, BODY)).await
}

#[tokio::test]
async fn one_key_of_two_tenants_is_two_tasks() {
    for path in ["/tasks/charge", "/queues/q/tasks"] {
        let world = World::new();
        let app = app(&world);
        let mut scopes = Vec::new();
        for customer in ["ada", "bob", "ada@type", "operator"] {
            let first = ask(&app, Method::POST, path, customer).await;
            assert_eq!(first.status, 202, "{customer}: {}", first.text);
            let again = ask(&app, Method::POST, path, customer).await;
            assert_eq!((again.status, again.id()), (409, first.id()), "{customer}");
            let tenant = if customer == "operator" { "" } else { customer };
            assert_eq!(first.text("tenant"), tenant);
            scopes.push(first.text("scope").to_owned());
        }
        let all = scopes.len();
        scopes.sort();
        scopes.dedup();
        assert_eq!(scopes.len(), all, "{scopes:?}");
    }
}

#[tokio::test]
async fn a_task_of_another_tenant_is_not_there() {
    let world = World::new();
    let app = app(&world);
    let first = ask(&app, Method::POST, "/tasks/charge", "ada").await;
    let (path, cancel) =
        (first.header("location").to_owned(), format!("{}/cancel", first.header("location")));
    for other in ["bob", "operator", "Ada", "ad"] {
        let shown = ask(&app, Method::GET, &path, other).await;
        let cancelled = ask(&app, Method::POST, &cancel, other).await;
        let unknown = ask(&app, Method::GET, "/tasks/0190f5b2-0000-7000-8000-000000000000", other).await;
        // No difference from one that never was.
        for answer in [&shown, &cancelled] {
            assert_eq!((answer.status, &answer.text), (404, &unknown.text), "{other}");
        }
    }
    let shown = ask(&app, Method::GET, &path, "ada").await;
    assert_eq!((shown.status, shown.text("state")), (200, "processing"));
    assert_eq!(ask(&app, Method::POST, &cancel, "ada").await.status, 200);
    // Routes without tenants are for those who may see all.
    assert_eq!(world.get(&path).await.text("tenant"), "ada");
    let nobodys = ask(&app, Method::POST, "/tasks/charge", "operator").await;
    assert_eq!(ask(&app, Method::GET, nobodys.header("location"), "ada").await.status, 404);
    assert_eq!(ask(&app, Method::GET, nobodys.header("location"), "operator").await.status, 200);
}

/// Before anything else of the request is looked at.
#[tokio::test]
async fn a_request_of_nobody_is_401_and_of_a_stranger_403() {
    let world = World::new();
    let app = app(&world);
    let id = ask(&app, Method::POST, "/tasks/charge", "ada").await.id();
    let trips = world.chaos.trips();
    for (method, path) in [
        (Method::POST, "/tasks/charge".to_owned()),
        (Method::POST, "/queues/q/tasks".to_owned()),
        (Method::GET, format!("/tasks/{id}")),
        (Method::POST, format!("/tasks/{id}/cancel")),
        (Method::POST, "/tasks/%FF".to_owned()),
    ] {
        let bad = [("idempotency-key", "a,b"), ("content-encoding", "gzip")];
        let nobody = send(&app, request(method.clone(), &path, &bad, "no JSON")).await;
        assert_eq!(nobody.told(), (401, "UNAUTHENTICATED"), "{path}");
        assert_eq!(nobody.header("www-authenticate"), "Bearer");
        let stranger = ask(&app, method, &path, "stranger").await;
        assert_eq!(stranger.told(), (403, "FORBIDDEN"), "{path}");
        assert_eq!(stranger.header("www-authenticate"), "");
    }
    assert_eq!(world.chaos.trips(), trips);
}

/// A tenant that is blank is a mistake of the application, and nobody's tenant.
#[tokio::test]
async fn a_tenant_that_cannot_be_is_400_and_no_task() {
    let world = World::new();
    for customer in ["", " "] {
        let answer = ask(&app(&world), Method::POST, "/tasks/charge", customer).await;
        assert_eq!(answer.told(), (400, "INVALID_SUBMISSION"), "{}", answer.text);
    }
    world.untouched();
}
