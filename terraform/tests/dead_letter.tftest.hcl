# A dead letter is kept.

mock_provider "google" {
  source          = "./tests/mocks"
  override_during = plan
}

variables {
  project = "shop-prod"
  region  = "europe-west1"
  image   = "europe-west1-docker.pkg.dev/shop-prod/images/orders@sha256:00"
  name    = "orders"
}

run "the_topic_has_a_subscription_that_never_expires" {
  command = plan

  assert {
    condition     = google_pubsub_subscription.dead_letter.topic == google_pubsub_topic.dead_letter.id
    error_message = "it is on the dead-letter topic"
  }
  assert {
    condition     = google_pubsub_subscription.dead_letter.expiration_policy[0].ttl == ""
    error_message = "the dead-letter subscription never expires"
  }
  assert {
    condition     = google_pubsub_subscription.dead_letter.message_retention_duration == "2678400s"
    error_message = "31 days"
  }
}
