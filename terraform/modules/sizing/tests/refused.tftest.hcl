# Each rule refuses the plan, alone; and what is right is let through.

run "the_defaults_fit" {
  command = plan

  assert {
    condition     = output.needed == 10 && output.max_delivery_attempts == 12 && length(output.broken) == 0
    error_message = "the defaults"
  }
}

run "lease" {
  command = plan
  variables {
    lease_seconds = 570
  }
  expect_failures = [terraform_data.rule["lease"]]
}

run "window" {
  command = plan
  variables {
    lease_seconds           = 60
    ttl_seconds             = 3540
    request_timeout_seconds = 30
    ack_deadline_seconds    = 30
    max_backoff_seconds     = 60
    max_delivery_attempts   = 6
    retention_seconds       = 600
  }
  expect_failures = [terraform_data.rule["window"]]
}

run "attempts" {
  command = plan
  variables {
    max_delivery_attempts = 9
  }
  expect_failures = [terraform_data.rule["attempts"]]
}

run "attempts_out_of_range" {
  command = plan
  variables {
    max_delivery_attempts = 101
  }
  expect_failures = [terraform_data.rule["attempts"]]
}

run "ack_deadline" {
  command = plan
  variables {
    ack_deadline_seconds = 569
  }
  expect_failures = [terraform_data.rule["ack-deadline"]]
}

run "retention" {
  command = plan
  variables {
    retention_seconds = 11430
  }
  expect_failures = [terraform_data.rule["retention"]]
}

run "backoff" {
  command = plan
  variables {
    min_backoff_seconds   = 61
    max_backoff_seconds   = 60
    max_delivery_attempts = 32
  }
  expect_failures = [terraform_data.rule["backoff"]]
}

run "no_backoff_at_all" {
  command = plan
  variables {
    min_backoff_seconds   = 0
    max_backoff_seconds   = 0
    max_delivery_attempts = 100
  }
  # The formula counts with one second where there is none, so that it need not divide by zero.
  expect_failures = [terraform_data.rule["backoff"], terraform_data.rule["attempts"]]
}

run "a_ttl_below_the_retention_is_warned_of" {
  command = plan
  variables {
    ttl_seconds = 3600
  }
  expect_failures = [check.ttl]
}

run "warn_goes_on_loudly" {
  command = plan
  variables {
    max_delivery_attempts = 9
    wrong_sizing          = "warn"
  }
  expect_failures = [check.rules]
}
