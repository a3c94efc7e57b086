# The subscription, and that the service is told the same numbers.

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

run "wrapped_by_default_with_all_that_a_push_needs" {
  command = plan
  variables {
    path = "/orders"
  }

  assert {
    condition     = google_pubsub_subscription.push[0].topic == google_pubsub_topic.this[0].id
    error_message = "it is on the topic"
  }
  assert {
    condition     = google_pubsub_subscription.push[0].push_config[0].push_endpoint == "${google_cloud_run_v2_service.this.uri}/orders"
    error_message = "it pushes to the service's own address"
  }
  assert {
    condition     = length(google_pubsub_subscription.push[0].push_config[0].no_wrapper) == 0
    error_message = "the payload is wrapped"
  }
  assert {
    condition     = google_pubsub_subscription.push[0].expiration_policy[0].ttl == ""
    error_message = "the subscription never expires"
  }
  assert {
    condition     = google_pubsub_subscription.push[0].dead_letter_policy[0].dead_letter_topic == google_pubsub_topic.dead_letter.id
    error_message = "dead letters go to the dead-letter topic"
  }
  assert {
    condition     = google_pubsub_subscription.push[0].push_config[0].oidc_token[0].service_account_email == google_service_account.push.email
    error_message = "the token names the push account"
  }
  assert {
    condition     = length(google_eventarc_trigger.this) == 0
    error_message = "one trigger only"
  }
}

run "unwrapped_brings_the_metadata" {
  command = plan
  variables {
    payload = "unwrapped"
  }

  assert {
    condition     = google_pubsub_subscription.push[0].push_config[0].no_wrapper[0].write_metadata == true
    error_message = "without the metadata no message has an id"
  }
}

run "filter_and_ordering_are_passed_on" {
  command = plan
  variables {
    filter   = "attributes.kind = \"order\""
    ordering = true
  }

  assert {
    condition     = google_pubsub_subscription.push[0].filter == "attributes.kind = \"order\"" && google_pubsub_subscription.push[0].enable_message_ordering
    error_message = "filter and ordering"
  }
}

run "a_topic_that_exists_is_taken" {
  command = plan
  variables {
    topic = "projects/elsewhere/topics/orders"
  }

  assert {
    condition     = length(google_pubsub_topic.this) == 0 && google_pubsub_subscription.push[0].topic == "projects/elsewhere/topics/orders"
    error_message = "no topic is made"
  }
}

run "service_and_subscription_have_the_same_numbers" {
  command = plan
  variables {
    lease_seconds           = 700
    ttl_seconds             = 800000
    request_timeout_seconds = 510
    ack_deadline_seconds    = 520
    min_backoff_seconds     = 11
    max_backoff_seconds     = 590
    max_delivery_attempts   = 33
    retention_seconds       = 700000
  }

  assert {
    condition = tomap({ for env in google_cloud_run_v2_service.this.template[0].containers[0].env : env.name => env.value if endswith(env.name, "_SECONDS") || endswith(env.name, "_ATTEMPTS") }) == tomap({
      LEASE_SECONDS           = "700"
      TTL_SECONDS             = "800000"
      REQUEST_TIMEOUT_SECONDS = trimsuffix(google_cloud_run_v2_service.this.template[0].timeout, "s")
      ACK_DEADLINE_SECONDS    = tostring(google_pubsub_subscription.push[0].ack_deadline_seconds)
      MIN_BACKOFF_SECONDS     = trimsuffix(google_pubsub_subscription.push[0].retry_policy[0].minimum_backoff, "s")
      MAX_BACKOFF_SECONDS     = trimsuffix(google_pubsub_subscription.push[0].retry_policy[0].maximum_backoff, "s")
      MAX_DELIVERY_ATTEMPTS   = tostring(google_pubsub_subscription.push[0].dead_letter_policy[0].max_delivery_attempts)
      RETENTION_SECONDS       = trimsuffix(google_pubsub_subscription.push[0].message_retention_duration, "s")
    })
    error_message = "the service's environment and the subscription differ"
  }
  assert {
    condition = [
      google_cloud_run_v2_service.this.template[0].timeout,
      tostring(google_pubsub_subscription.push[0].ack_deadline_seconds),
      google_pubsub_subscription.push[0].retry_policy[0].minimum_backoff,
      google_pubsub_subscription.push[0].retry_policy[0].maximum_backoff,
      tostring(google_pubsub_subscription.push[0].dead_letter_policy[0].max_delivery_attempts),
      google_pubsub_subscription.push[0].message_retention_duration,
    ] == ["510s", "520", "11s", "590s", "33", "700000s"]
    error_message = "the numbers are those that were asked for"
  }
  assert {
    condition     = !contains(google_cloud_run_v2_service.this.template[0].containers[0].env[*].name, "PUSHONCE_SIZING")
    error_message = "the service refuses a wrong sizing too"
  }
}
