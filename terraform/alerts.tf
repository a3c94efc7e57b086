# What an operator is told. The key of each alert is a heading of docs/runbook.md.

locals {
  subscription_is = "resource.type = \"pubsub_subscription\" AND resource.labels.subscription_id ="
  pubsub_metric   = "AND metric.type = \"pubsub.googleapis.com/subscription"

  # How long a message may wait for a held key: the key's window, and the backoff that was just begun.
  longest_wait = module.sizing.held_for_seconds + module.sizing.max_backoff_seconds

  # On Pub/Sub's own metrics. Pub/Sub samples them each minute, and a message that is refused comes back ever
  # more rarely: so counts are summed over five minutes, instead of asking for five such minutes in a row.
  metric_alerts = {
    dead-lettered = {
      severity  = "ERROR"
      what      = "Messages were not acked in ${module.sizing.max_delivery_attempts} attempts, and are in the dead-letter subscription."
      filter    = "${local.subscription_is} \"${local.subscription}\" ${local.pubsub_metric}/dead_letter_message_count\""
      aligner   = "ALIGN_DELTA"
      reducer   = "REDUCE_SUM"
      threshold = 0
      minutes   = 0
    }
    dead-letter-backlog = {
      severity  = "WARNING"
      what      = "Dead letters have been waiting for an hour. After 31 days they are lost."
      filter    = "${local.subscription_is} \"${google_pubsub_subscription.dead_letter.name}\" ${local.pubsub_metric}/num_undelivered_messages\""
      aligner   = "ALIGN_MAX"
      reducer   = "REDUCE_MAX"
      threshold = 0
      minutes   = 60
    }
    backlog-too-old = {
      severity  = "WARNING"
      what      = "A message has been waiting for twice as long as a held key and the longest backoff explain."
      filter    = "${local.subscription_is} \"${local.subscription}\" ${local.pubsub_metric}/oldest_unacked_message_age\""
      aligner   = "ALIGN_MAX"
      reducer   = "REDUCE_MAX"
      threshold = 2 * local.longest_wait # seconds
      minutes   = 5
    }
    backlog-near-retention = {
      severity  = "CRITICAL"
      what      = "A message has been waiting for half of the retention of ${module.sizing.retention_seconds} s. At its end it is lost, and not dead-lettered."
      filter    = "${local.subscription_is} \"${local.subscription}\" ${local.pubsub_metric}/oldest_unacked_message_age\""
      aligner   = "ALIGN_MAX"
      reducer   = "REDUCE_MAX"
      threshold = module.sizing.retention_seconds / 2 # seconds
      minutes   = 5
    }
    push-too-slow = {
      severity  = "WARNING"
      what      = "One push in a hundred takes four fifths of the ack deadline of ${module.sizing.ack_deadline_seconds} s or longer. Over it Pub/Sub hangs up and delivers again."
      filter    = "${local.subscription_is} \"${local.subscription}\" ${local.pubsub_metric}/push_request_latencies\""
      aligner   = "ALIGN_PERCENTILE_99"
      reducer   = "REDUCE_MAX"
      threshold = 0.8 * module.sizing.ack_deadline_seconds * 1000000 # microseconds
      minutes   = 5
    }
    push-refused = {
      severity  = "ERROR"
      what      = "Pushes are answered 4xx: by Cloud Run (who may call), or by the service (the token, the key, the envelope). Each burns a delivery attempt."
      filter    = "${local.subscription_is} \"${local.subscription}\" ${local.pubsub_metric}/push_request_count\" AND metric.labels.response_class = \"remote_server_4xx\""
      aligner   = "ALIGN_DELTA"
      reducer   = "REDUCE_SUM"
      threshold = 0
      minutes   = 0
    }
  }

  # On the service's own log lines, one for each delivery, by their event. On the lines and not on a metric
  # made of them: a metric is known up to ten minutes after it is made, and an alert on it is refused till then.
  log_alerts = {
    uncertain = {
      severity = "CRITICAL"
      what     = "Work was done and could not be recorded: its message was acked, and a repeat of it would run again."
      filter   = "jsonPayload.event = \"uncertain\""
    }
    lost = {
      severity = "CRITICAL"
      what     = "A message under at_most_once failed or crashed after its mark: it was acked, and is not run again."
      filter   = "jsonPayload.event = \"lost\""
    }
    misuse = {
      severity = "ERROR"
      what     = "The service is used wrongly, or a producer sends what it cannot take: no key, no envelope, another payload under a known key, the wrong verb."
      filter   = "jsonPayload.event = (\"misuse\" OR \"conflict\" OR \"unkeyed\" OR \"refused\")"
    }
    dead-lettered-by-handler = {
      severity = "ERROR"
      what     = "A handler said of a message that it can never succeed: it is in the dead-letter topic, or could not be published there."
      filter   = "jsonPayload.event = \"dead-lettered\""
    }
    unauthorized = {
      severity = "ERROR"
      what     = "Push tokens are refused. Its own messages burn their attempts meanwhile, if it is the audience or the account that is wrong."
      filter   = "jsonPayload.event = \"unauthorized\""
    }
    unavailable = {
      severity = "WARNING"
      what     = "Deliveries were turned away before the work: the store fails, a budget is full, or a record is of a newer release."
      # A shutdown says the same, as information.
      filter = "jsonPayload.event = \"unavailable\" AND severity >= ERROR"
    }
    attempts-running-out = {
      severity = "WARNING"
      what     = "A message waits for a held key and has two of its ${module.sizing.max_delivery_attempts} attempts left, or fewer. Then it is dead-lettered, though nothing is wrong with it."
      filter   = "jsonPayload.event = \"in-progress\" AND jsonPayload.delivery_attempt >= ${module.sizing.max_delivery_attempts - 2}"
    }
  }
}

resource "google_monitoring_alert_policy" "metric" {
  for_each = var.alerts ? local.metric_alerts : {}

  # A metric is where its resource is.
  project      = each.key == "dead-letter-backlog" ? local.dead_letter_project : var.project
  display_name = "${var.name}: ${each.key}"
  severity     = each.value.severity
  combiner     = "OR"

  conditions {
    display_name = each.key
    condition_threshold {
      filter          = each.value.filter
      comparison      = "COMPARISON_GT"
      threshold_value = each.value.threshold
      duration        = "${each.value.minutes * 60}s"
      aggregations {
        alignment_period     = "300s"
        per_series_aligner   = each.value.aligner
        cross_series_reducer = each.value.reducer
      }
    }
  }

  # A metric without events has no points. Open for a week, by default, an incident would hide the next one.
  alert_strategy {
    auto_close = "1800s"
  }

  documentation {
    mime_type = "text/markdown"
    content   = "${each.value.what}\n\nWhat to do: ${var.runbook_url}#${each.key}"
  }

  notification_channels = (
    each.key == "dead-letter-backlog" && local.dead_letter_project != var.project
    ? var.dead_letter_notification_channels
    : var.notification_channels
  )

  depends_on = [google_project_service.api]
}

resource "google_monitoring_alert_policy" "log" {
  for_each = var.alerts ? local.log_alerts : {}

  project      = var.project
  display_name = "${var.name}: ${each.key}"
  severity     = each.value.severity
  combiner     = "OR"

  conditions {
    display_name = each.key
    condition_matched_log {
      filter = "resource.type = \"cloud_run_revision\" AND resource.labels.service_name = \"${var.name}\" AND ${each.value.filter}"
      # Never the key or the message: each new value of a label would be told anew.
      label_extractors = {
        consumer = "EXTRACT(jsonPayload.consumer)"
        event    = "EXTRACT(jsonPayload.event)"
      }
    }
  }

  alert_strategy {
    auto_close = "86400s"
    # Where there is one such line there may be thousands.
    notification_rate_limit {
      period = "3600s"
    }
  }

  documentation {
    mime_type = "text/markdown"
    content   = "${each.value.what}\n\nWhat to do: ${var.runbook_url}#${each.key}"
  }

  notification_channels = var.notification_channels

  depends_on = [google_project_service.api]
}
