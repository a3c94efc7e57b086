# The formula and the rules, against the one table of cases.

run "every_case_of_the_table" {
  command = plan

  module {
    source = "./tests/table"
  }

  assert {
    condition     = length(output.differences) == 0
    error_message = join("\n", output.differences)
  }

  assert {
    condition     = output.cases >= 2 && length(setsubtract(["lease", "window", "attempts", "ack-deadline", "retention", "backoff", "ttl"], output.rules)) == 0
    error_message = "The table has ${output.cases} cases, and they break only ${join(", ", output.rules)}."
  }
}

run "a_delivery_at_the_end_of_the_window_finds_the_key_free" {
  command = plan

  variables {
    lease_seconds           = 310 # deliveries come at 0, 10, 30, 70, 150, 310
    request_timeout_seconds = 300
    floor_ratio             = 1
  }

  assert {
    condition     = output.burned == 5
    error_message = "${output.burned} burned"
  }
}
