# What the cloud would say. Every other made-up value is unknown in a plan.

mock_resource "google_cloud_run_v2_service" {
  defaults = {
    uri = "https://orders-abc-ew.a.run.app"
  }
}

override_data {
  target = data.google_project.this
  values = {
    number = "123456789012"
  }
}

override_resource {
  target = google_service_account.run
  values = {
    email = "orders-run@shop-prod.iam.gserviceaccount.com"
  }
}

override_resource {
  target = google_service_account.push
  values = {
    email = "orders-push@shop-prod.iam.gserviceaccount.com"
    name  = "projects/shop-prod/serviceAccounts/orders-push@shop-prod.iam.gserviceaccount.com"
  }
}

override_resource {
  target = google_pubsub_topic.this
  values = {
    id = "projects/shop-prod/topics/orders"
  }
}

override_resource {
  target = google_pubsub_topic.dead_letter
  values = {
    id = "projects/shop-prod/topics/orders-dead-letter"
  }
}

override_resource {
  target = google_eventarc_trigger.this
  values = {
    transport = {
      pubsub = {
        subscription = "projects/shop-prod/subscriptions/eventarc-europe-west1-orders-sub-123"
      }
    }
  }
}
