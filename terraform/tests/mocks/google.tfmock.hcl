# What the cloud would say.

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
