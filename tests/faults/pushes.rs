//! A whole push, whose claim and whose completion lose their connections, before the write or after it. // F65

use std::sync::Arc;

use axum::body::Body;
use axum::{Router, routing::post};
use pushonce::store::record::State;
use pushonce::{Ack, Failure, IdempotentLayer, Lease};
use tower::ServiceExt as _;

use crate::on_servers::on_servers;
use crate::proxy::Proxy;
use crate::site::Site;
use crate::world::{CLAIMED, DONE, Runs, key, settled};

on_servers! {
    wire {
        a_push_whose_claim_and_completion_are_cut_off_runs_once
    }
}

async fn a_push_whose_claim_and_completion_are_cut_off_runs_once(site: &Site) {
    let proxy = Arc::new(site.proxy().await);
    let (store, past) = (site.store_at(&proxy.address()), site.store());
    let cuts: [fn(&Proxy, &str); 2] =
        [|proxy, write| proxy.cut_before(write), |proxy, write| proxy.cut_after(write)];
    for (at, cut) in cuts.into_iter().enumerate() {
        let (key, runs) = (key(format!("po-{at}")), Runs::default());
        let (counted, inside, wire) = (runs.clone(), past.clone(), proxy.clone());
        let handler = move |lease: Lease| async move {
            counted.run(inside, lease).await;
            cut(&wire, DONE);
            Ok::<_, Failure>(Ack)
        };
        let layer = IdempotentLayer::new("orders", store.clone());
        let app: Router = Router::new().route("/", post(handler).layer(layer));
        cut(&proxy, CLAIMED);
        for (status, outcome) in [(200, "ran"), (204, "duplicate")] {
            let body = format!(r#"{{"message":{{"messageId":"{}","data":""}}}}"#, key.text());
            let push = http::Request::post("/").body(Body::from(body)).unwrap();
            let answer = app.clone().oneshot(push).await.unwrap();
            let told = answer.headers()["pushonce-outcome"].to_str().unwrap();
            assert_eq!((answer.status().as_u16(), told), (status, outcome), "cut {at}");
        }
        assert!(!proxy.is_waiting(), "both cuts were made");
        settled(&past, &key, State::Done).await;
        assert_eq!(runs.count(), 1);
    }
}
