//! The trace of whoever submits goes along with the message.

use super::world::World;

const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn the_requests_trace_is_the_messages() {
    let whole = format!("00-{ID}-00f067aa0ba902b7-01");
    let long = format!("cc-{ID}-00f067aa0ba902b7-01-{}", "x".repeat(5000));
    let cloud = format!("{ID}/74;o=1");
    let other = format!("00-{ID}-00f067aa0ba902b7-00");
    for (headers, sent) in [
        (&[("traceparent", &*whole)][..], Some(whole.clone())),
        (&[("traceparent", &*other)], Some(other.clone())),
        // An attribute holds 1024 bytes.
        (&[("traceparent", &*long)], Some(whole.clone())),
        (&[("x-cloud-trace-context", &*cloud)], Some(format!("00-{ID}-000000000000004a-01"))),
        (
            &[("traceparent", "00-zz"), ("x-cloud-trace-context", &cloud)],
            Some(format!("00-{ID}-000000000000004a-01")),
        ),
        (&[("x-cloud-trace-context", ID)], None),
        (&[("traceparent", "00-zz")], None),
        (&[("traceparent", "")], None),
        (&[("traceparent", &*whole), ("traceparent", &*other)], None),
        (&[], None),
    ] {
        let world = World::new();
        for path in ["/tasks/charge", "/queues/q/tasks"] {
            let answer = world.submit(path, headers, r#"{"task_type":"charge","input":1}"#).await;
            assert_eq!(answer.status, 202, "{headers:?}: {}", answer.text);
        }
        assert_eq!(world.attributes("googclient_traceparent"), [sent.clone(), sent], "{headers:?}");
    }
}
