# The alerts: which there are, what they look at, and that each links its heading of the runbook.

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

run "all_of_them_each_with_its_link" {
  command = plan
  variables {
    runbook_url           = "https://example.com/runbook.md"
    notification_channels = ["projects/shop-prod/notificationChannels/1"]
  }

  assert {
    condition = keys(output.alerts) == [
      "attempts-running-out", "backlog-near-retention", "backlog-too-old", "dead-letter-backlog", "dead-lettered",
      "dead-lettered-by-handler", "lost",
      "misuse", "push-refused", "push-too-slow", "unauthorized", "unavailable", "uncertain",
    ]
    error_message = "the alerts are ${join(", ", keys(output.alerts))}"
  }
  assert {
    condition     = alltrue([for key, alert in merge(google_monitoring_alert_policy.metric, google_monitoring_alert_policy.log) : endswith(alert.documentation[0].content, "https://example.com/runbook.md#${key}")])
    error_message = "each links its heading"
  }
  assert {
    condition     = alltrue([for alert in merge(google_monitoring_alert_policy.metric, google_monitoring_alert_policy.log) : alert.notification_channels == tolist(["projects/shop-prod/notificationChannels/1"])])
    error_message = "each tells somebody"
  }
}

run "metrics_units_and_thresholds" {
  command = plan

  assert {
    condition = { for key, alert in google_monitoring_alert_policy.metric : key => [
      regex("subscription_id = \"([^\"]+)\"", alert.conditions[0].condition_threshold[0].filter)[0],
      regex("pubsub.googleapis.com/subscription/([a-z0-9_]+)", alert.conditions[0].condition_threshold[0].filter)[0],
      tostring(alert.conditions[0].condition_threshold[0].threshold_value),
      alert.conditions[0].condition_threshold[0].duration,
      ] } == {
      dead-lettered          = ["orders-push", "dead_letter_message_count", "0", "0s"]
      dead-letter-backlog    = ["orders-dead-letter", "num_undelivered_messages", "0", "3600s"]
      backlog-too-old        = ["orders-push", "oldest_unacked_message_age", "3000", "300s"]   # seconds
      backlog-near-retention = ["orders-push", "oldest_unacked_message_age", "302400", "300s"] # seconds
      push-too-slow          = ["orders-push", "push_request_latencies", "480000000", "300s"]  # microseconds
      push-refused           = ["orders-push", "push_request_count", "0", "0s"]
    }
    error_message = "metric, subscription, threshold or duration"
  }
  assert {
    condition     = strcontains(google_monitoring_alert_policy.metric["push-refused"].conditions[0].condition_threshold[0].filter, "metric.labels.response_class = \"remote_server_4xx\"")
    error_message = "only 4xx"
  }
  assert {
    condition     = google_monitoring_alert_policy.metric["push-too-slow"].conditions[0].condition_threshold[0].aggregations[0].per_series_aligner == "ALIGN_PERCENTILE_99"
    error_message = "p99"
  }
}

run "events_of_the_log" {
  command = plan
  variables {
    max_delivery_attempts = 20
  }

  assert {
    condition = { for key, alert in google_monitoring_alert_policy.log : key => trimprefix(alert.conditions[0].condition_matched_log[0].filter, "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"orders\" AND ") } == {
      dead-lettered-by-handler = "jsonPayload.event = \"dead-lettered\""
      uncertain                = "jsonPayload.event = \"uncertain\""
      lost                     = "jsonPayload.event = \"lost\""
      misuse                   = "jsonPayload.event = (\"misuse\" OR \"conflict\" OR \"unkeyed\" OR \"refused\")"
      unauthorized             = "jsonPayload.event = \"unauthorized\""
      unavailable              = "jsonPayload.event = \"unavailable\" AND severity >= ERROR"
      attempts-running-out     = "jsonPayload.event = \"in-progress\" AND jsonPayload.delivery_attempt >= 18"
    }
    error_message = "filters"
  }
  assert {
    condition     = alltrue([for alert in google_monitoring_alert_policy.metric : alert.alert_strategy[0].auto_close == "1800s"])
    error_message = "an incident of a metric closes soon, so that the next one is told"
  }
  assert {
    condition     = alltrue([for alert in google_monitoring_alert_policy.log : alert.alert_strategy[0].notification_rate_limit[0].period == "3600s"])
    error_message = "an alert on log lines needs a limit"
  }
}

run "across_projects_each_alert_is_where_its_subscription_is" {
  command = plan
  variables {
    dead_letter_project               = "shop-letters"
    notification_channels             = ["projects/shop-prod/notificationChannels/1"]
    dead_letter_notification_channels = ["projects/shop-letters/notificationChannels/2"]
  }

  assert {
    condition = (
      google_monitoring_alert_policy.metric["dead-letter-backlog"].project == "shop-letters"
      && google_monitoring_alert_policy.metric["dead-letter-backlog"].notification_channels == tolist(["projects/shop-letters/notificationChannels/2"])
      && google_monitoring_alert_policy.metric["dead-lettered"].project == "shop-prod"
    )
    error_message = "the backlog is the other project's"
  }
}

run "none_if_not_wanted" {
  command = plan
  variables {
    alerts = false
  }

  assert {
    condition     = length(output.alerts) == 0
    error_message = "no alert"
  }
}
