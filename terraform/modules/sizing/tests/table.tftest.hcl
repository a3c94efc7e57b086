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
