#!/usr/bin/env python3
"""Makes one mistake after the other in a copy of the module, and expects that each is refused, for its reason.

mistakes.py COPY    with whatever provider the environment attaches; see `life` for what passes in a copy
"""
import concurrent.futures
import re
import shutil
import sys
from pathlib import Path

from refusals import ALL, PUSHONCE, Refused, alerts, auth, dead, eventarc, grants, order, plan, push, pushonce
from refusals import replaced, run, runbook, service, sizing, store, validate

PUSH, IAM, SERVICE, ALERTS, STORE, DEAD = ("push.tf", "iam.tf", "service.tf", "alerts.tf", "store.tf", "dead_letter.tf")
SIZING, EXAMPLE = "modules/sizing/main.tf", "examples/orders/main.tf"


def block(header):
    """A whole block that stands at the margin or is indented, with the comments above it."""
    return re.compile(rf"(?m)^(?: *#.*\n)*( *){re.escape(header)} \{{\n(?:.*\n)*?\1\}}\n")


def line(text):
    return re.compile(rf"(?m)^ *{re.escape(text)}.*\n")


# Name, file, text, what stands there instead, who refuses it, what is said then.
MISTAKES = [
    # What terraform knows of the provider.
    ("a misspelt argument", PUSH, "ack_deadline_seconds ", "ack_deadline_second ", validate, "Unsupported argument"),
    ("a misspelt block", PUSH, "  retry_policy {", "  retry_polcy {", validate, "Unsupported block type"),
    ("a misspelt type", DEAD, '"google_pubsub_topic" "dead', '"google_pubsub_topics" "dead', validate, "Invalid resource type"),
    ("a misspelt attribute", PUSH, "this.uri}", "this.url}", validate, "Unsupported attribute"),
    ("a resource that there is not", PUSH, "google_service_account.push.email", "google_service_account.pusher.email", validate, "undeclared resource"),
    ("a required argument is missing", SERVICE, line("location            ="), "", validate, "Missing required argument"),
    ("a wrong type", "main.tf", "disable_on_destroy = false", 'disable_on_destroy = "never"', validate, "Incorrect attribute value type"),
    ("two blocks for one", PUSH, "  retry_policy {", '  retry_policy {\n    minimum_backoff = "1s"\n  }\n  retry_policy {', validate, "Too many retry_policy blocks"),
    ("a read-only attribute is set", SERVICE, "  custom_audiences ", '  uri = "https://x"\n  custom_audiences ', validate, "unconfigurable|read-only"),
    ("a wrong comparison", ALERTS, "COMPARISON_GT", "COMPARISON_MORE", validate, "COMPARISON_MORE"),
    ("a wrong mode of the database", STORE, '"OPTIMISTIC"', '"OPTIMISTICALLY"', validate, "OPTIMISTICALLY"),
    ("exactly-once delivery on a push", PUSH, "  filter ", "  enable_exactly_once_delivery = true\n  filter ", validate, "Conflicting arguments"),
    ("an endpoint without TLS", PUSH, "${google_cloud_run_v2_service.this.uri}", "http://orders", plan, "push endpoints are HTTPS"),
    ("an ack deadline that Pub/Sub does not take", PUSH, "= module.sizing.ack_deadline_seconds", "= 601", validate, "out of range"),
    ("a duration that is no whole minute", ALERTS, "each.value.minutes * 60", "each.value.minutes * 50", plan, "multiple of 60"),
    ("a misspelt variable in a call", EXAMPLE, "  path ", "  pathh ", plan, "Unsupported argument"),
    ("a needed variable is missing in a call", EXAMPLE, line("image   ="), "", plan, "Missing required argument"),
    # A wrong sizing, in a plan of the example.
    *(
        (f"a wrong sizing: {rule}", EXAMPLE, '  name                  = "orders"\n', f'  name = "orders"\n{settings}\n', plan, f" {rule}: ")
        for rule, settings in (
            ("lease", "lease_seconds = 570"),
            ("window", "ttl_seconds = 2700\nretention_seconds = 11431"),
            ("attempts", "max_delivery_attempts = 9"),
            ("attempts", "max_delivery_attempts = 101"),
            ("ack-deadline", "ack_deadline_seconds = 569"),
            ("retention", "retention_seconds = 11430"),
            ("backoff", "min_backoff_seconds = 0"),
        )
    ),
    # The rules themselves.
    *(
        (f"the rule {rule} is gone", SIZING, re.compile(rf"(    {rule} = {{\n      broken = ).*"), r"\1false", sizing, f'run "{run_of}"... fail')
        for rule, run_of in (
            ("lease", "lease"),
            ("window", "window"),
            ("attempts", "attempts"),
            ("ack-deadline", "ack_deadline"),
            ("retention", "retention"),
            ("backoff", "backoff"),
        )
    ),
    ("no rule refuses", SIZING, 'var.wrong_sizing != "refuse" ||', "true ||", sizing, 'run "lease"... fail'),
    ("no warning of the ttl", SIZING, 'var.wrong_sizing == "report" ||', "true ||", sizing, 'run "a_ttl_below_the_retention_is_warned_of"... fail'),
    ("warn is silent", SIZING, 'var.wrong_sizing != "warn" ||', "true ||", sizing, 'run "warn_goes_on_loudly"... fail'),
    ("the one that works is not counted", SIZING, "local.burned.short + 1 +", "local.burned.short +", sizing, "every_case_of_the_table.*fail"),
    ("delays are taken as exact", SIZING, "short = var.floor_ratio", "short = 1", sizing, "every_case_of_the_table.*fail"),
    ("a delivery at the window's end is burned", SIZING, "(pow(2, i) - 1) < local.held_for", "(pow(2, i) - 1) <= local.held_for", sizing, "a_delivery_at_the_end_of_the_window.*fail"),
    ("the longest delay is counted in part", SIZING, "max(0, ceil(", "max(0, floor(", sizing, "every_case_of_the_table.*fail"),
    ("the ack deadlines are not counted", SIZING, " + local.attempts * var.ack_deadline_seconds", "", sizing, "every_case_of_the_table.*fail"),
    # The numbers on their way.
    *(
        (f"{number} is not passed on", "main.tf", line(f"{number} "), "", push, "service_and_subscription_have_the_same_numbers.*fail")
        for number in (
            "lease_seconds", "ttl_seconds", "request_timeout_seconds", "ack_deadline_seconds",
            "min_backoff_seconds", "max_backoff_seconds", "max_delivery_attempts", "retention_seconds",
        )
    ),
    *(
        (f"the service is not told {number}", SERVICE, line(f"{number} "), "", push, "environment and the subscription differ")
        for number in (
            "LEASE_SECONDS", "TTL_SECONDS", "REQUEST_TIMEOUT_SECONDS", "ACK_DEADLINE_SECONDS",
            "MIN_BACKOFF_SECONDS", "MAX_BACKOFF_SECONDS", "MAX_DELIVERY_ATTEMPTS", "RETENTION_SECONDS",
        )
    ),
    ("the timeout is a number of its own", SERVICE, '"${module.sizing.request_timeout_seconds}s"', '"600s"', push, "environment and the subscription differ"),
    # The subscription.
    ("no retry policy", PUSH, block("retry_policy"), "", push, "service_and_subscription_have_the_same_numbers.*fail"),
    ("no maximum backoff", PUSH, line("maximum_backoff"), "", push, "service_and_subscription_have_the_same_numbers.*fail"),
    ("the subscription expires", PUSH, block("expiration_policy"), "", push, "wrapped_by_default.*fail"),
    ("the subscription expires in 31 days", PUSH, 'ttl = ""', 'ttl = "2678400s"', push, "never expires"),
    ("no dead-letter policy", PUSH, block("dead_letter_policy"), "", push, "wrapped_by_default.*fail"),
    ("dead letters go round", PUSH, "= google_pubsub_topic.dead_letter.id", "= local.topic", push, "dead letters go to the dead-letter topic"),
    ("no token", PUSH, block("oidc_token"), "", push, "wrapped_by_default.*fail"),
    ("another account's token", PUSH, "= google_service_account.push.email", "= google_service_account.run.email", push, "the token names the push account"),
    ("no audience", PUSH, line("audience "), "", auth, "platform_by_default.*fail"),
    ("unwrapped without metadata", PUSH, "write_metadata = true", "write_metadata = false", push, "without the metadata"),
    ("never unwrapped", PUSH, block('dynamic "no_wrapper"'), "", push, "unwrapped_brings_the_metadata.*fail"),
    ("the push does not wait for its grant", PUSH, "    google_cloud_run_v2_service_iam_member.push_invoker,\n", "", order, "does not wait"),
    ("the trigger does not wait for its grant", "eventarc.tf", "    google_cloud_run_v2_service_iam_member.push_invoker,\n", "", order, "does not wait"),
    # Dead letters.
    ("no dead-letter subscription", DEAD, block('resource "google_pubsub_subscription" "dead_letter"'), "", dead, "undeclared resource"),
    ("the dead-letter subscription is elsewhere", DEAD, "= google_pubsub_topic.dead_letter.id", "= google_pubsub_topic.this[0].id", dead, "it is on the dead-letter topic"),
    ("the dead-letter subscription expires", DEAD, block("expiration_policy"), "", dead, "never_expires.*fail"),
    ("dead letters are kept for a week", DEAD, "2678400s", "604800s", dead, "31 days"),
    # The grants: each gone, each of another role, each to another.
    ("no invoker", IAM, block('resource "google_cloud_run_v2_service_iam_member" "push_invoker"'), "", grants, "push_invoker"),
    ("another role than invoker", IAM, re.compile(r'("push_invoker" \{(?:.*\n)*?.*)roles/run.invoker'), r"\1roles/run.viewer", grants, "run.invoker for the push account"),
    ("the wrong account invokes", IAM, "google_service_account.push.email", "google_service_account.run.email", grants, "run.invoker for the push account"),
    ("no invoker for the further accounts", IAM, block('resource "google_cloud_run_v2_service_iam_member" "more_invokers"'), "", grants, "more_invokers"),
    ("the further accounts are not expected", SERVICE, "concat([google_service_account.push.email], var.more_push_accounts)", "[google_service_account.push.email]", grants, "the service expects both accounts"),
    ("no publisher of dead letters", IAM, block('resource "google_pubsub_topic_iam_member" "dead_letter_publisher"'), "", grants, "dead_letter_publisher"),
    ("another role than publisher", IAM, "roles/pubsub.publisher", "roles/pubsub.viewer", grants, "pubsub.publisher on the dead-letter topic"),
    ("publisher on the topic itself", IAM, "= google_pubsub_topic.dead_letter.name", '= "orders"', grants, "pubsub.publisher on the dead-letter topic"),
    ("no subscriber on the source", IAM, block('resource "google_pubsub_subscription_iam_member" "source_subscriber"'), "", grants, "source_subscriber"),
    ("another role than subscriber", IAM, re.compile(r'("source_subscriber" \{(?:.*\n)*?.*)roles/pubsub.subscriber'), r"\1roles/pubsub.viewer", grants, "pubsub.subscriber on the source"),
    ("subscriber on the dead letters", IAM, "= google_pubsub_subscription.push[0].name", "= google_pubsub_subscription.dead_letter.name", grants, "pubsub.subscriber on the source"),
    ("the project's id for its number", "main.tf", "data.google_project.this.number", "data.google_project.this.project_id", grants, "by the project's number"),
    ("the grant outlives its subscription", IAM, line("replace_triggered_by"), "", replaced, "is not replaced"),
    ("no subscriber on Eventarc's subscription", IAM, block('resource "google_pubsub_subscription_iam_member" "eventarc_subscriber"'), "", eventarc, "eventarc_subscriber"),
    ("another role on Eventarc's subscription", IAM, re.compile(r'("eventarc_subscriber" \{(?:.*\n)*?.*)roles/pubsub.subscriber'), r"\1roles/pubsub.viewer", eventarc, "pubsub.subscriber on Eventarc's"),
    ("no token creator, though asked for", IAM, block('resource "google_service_account_iam_member" "push_token_creator"'), "", grants, "push_token_creator"),
    ("token creator on another account", IAM, "= google_service_account.push.name", "= google_service_account.run.name", grants, "on that one account"),
    ("token creator, though not asked for", IAM, "var.grant_token_creator ? 1 : 0", "1", grants, "not granted unless asked for"),
    ("no datastore.user", IAM, block('resource "google_project_iam_member" "datastore_user"'), "", grants, "datastore_user"),
    ("more than datastore.user", IAM, "roles/datastore.user", "roles/datastore.owner", grants, "datastore.user on the one database"),
    ("datastore.user on every database", IAM, block("condition"), "", grants, "the_service_reads_its_own_database_only.*fail"),
    ("no secretAccessor", IAM, block('resource "google_secret_manager_secret_iam_member" "store"'), "", grants, "secret_iam_member"),
    ("more than secretAccessor", IAM, "secretmanager.secretAccessor", "secretmanager.admin", grants, "secretAccessor on the one secret"),
    ("no public grant, though asked for", IAM, block('resource "google_cloud_run_v2_service_iam_member" "public_invoker"'), "", auth, "public_invoker"),
    ("a public grant, though not asked for", IAM, 'var.public == "all-users" ? 1 : 0', "1", grants, "the service is not public"),
    (
        "a binding", IAM, re.compile(r'"google_pubsub_topic_iam_member" "dead_letter_publisher"((?:.*\n)*?.*)member  = local.pubsub_agent'),
        r'"google_pubsub_topic_iam_binding" "dead_letter_publisher"\1members = [local.pubsub_agent]', order, "takes away what others granted",
    ),
    # Who may push.
    ("platform on a public service", "variables.tf", 'var.public == "no" || var.auth == "verify"', "var.public != null", auth, "platform_on_a_public_service_is_refused.*fail"),
    ("verify without a signature", "variables.tf", 'var.public != "no" || var.auth == "platform"', "var.public != null", auth, "verify_behind_cloud_runs_own_check_is_refused.*fail"),
    ("Cloud Run does not know the further audiences", SERVICE, re.compile(r"concat\(\[local.audience\], \[for .*\]\)"), "[local.audience]", auth, "have one audience"),
    ("Cloud Run does not know the audience", SERVICE, line("custom_audiences"), "", auth, "platform_by_default.*fail"),
    *(
        (f"the service is not told {name}", SERVICE, line(f"{name} "), "", auth, "platform_by_default.*fail")
        for name in ("PUSH_AUTH", "PUSH_AUDIENCE", "PUSH_SERVICE_ACCOUNT")
    ),
    # The service and its store.
    ("CPU is always on", SERVICE, line("cpu_idle"), "", service, "CPU while a request is active"),
    ("the default account", SERVICE, line("service_account  "), "", grants, "the_service_reads_its_own_database_only.*fail"),
    ("no startup probe", SERVICE, block("startup_probe"), "", service, '"defaults"... fail'),
    ("no liveness probe", SERVICE, block("liveness_probe"), "", service, '"defaults"... fail'),
    ("APIs are disabled with the module", "main.tf", "disable_on_destroy = false", "disable_on_destroy = true", service, "APIs outlive the module"),
    ("memory below the budget", "variables.tf", "var.memory_mib >= 2 * var.body_budget_mib", "var.memory_mib > 0 * var.body_budget_mib", service, "less_memory_than_the_budget_needs_is_refused.*fail"),
    ("numbers beside the module", SERVICE, block("precondition"), "", service, "a_number_cannot_be_set_beside_the_module.*fail"),
    ("the service is not told its store", SERVICE, "{ PUSHONCE_STORE = local.store }", "{}", store, "a_database_in_datastore_mode.*fail"),
    ("a password in the settings", "variables.tf", "var.store == null || !can(", "var.store == null || true || can(", store, "a_password_in_the_settings_is_refused.*fail"),
    ("Firestore's own mode", STORE, '"DATASTORE_MODE"', '"FIRESTORE_NATIVE"', store, "Datastore mode, optimistic"),
    ("pessimistic", STORE, '"OPTIMISTIC"', '"PESSIMISTIC"', store, "Datastore mode, optimistic"),
    ("an unprotected database", STORE, line("delete_protection_state"), "", store, "a_database_in_datastore_mode.*fail"),
    ("a TTL policy on another property", STORE, 'field      = "expires_at"', 'field      = "expires"', store, "on our kind and database"),
    # The alerts.
    *(
        (f"no alert {alert}", ALERTS, block(f"{alert} ="), "", alerts, "the alerts are")
        for alert in (
            "dead-lettered", "dead-letter-backlog", "backlog-too-old", "backlog-near-retention", "push-too-slow", "push-refused",
            "uncertain", "lost", "misuse", "dead-lettered-by-handler", "unauthorized", "unavailable", "attempts-running-out",
        )
    ),
    ("microseconds taken for seconds", ALERTS, " * 1000000", "", alerts, "metric, subscription, threshold or duration"),
    ("a backlog of the wrong subscription", ALERTS, "google_pubsub_subscription.dead_letter.name", "local.subscription", alerts, "metric, subscription, threshold or duration"),
    ("an alert on another event", ALERTS, '\\"uncertain\\"', '\\"uncertian\\"', alerts, "filters"),
    ("alerts link no heading", ALERTS, "#${each.key}", "", alerts, "each links its heading"),
    ("an incident hides the next one", ALERTS, 'auto_close = "1800s"', 'auto_close = "604800s"', alerts, "closes soon"),
    ("alerts tell nobody", ALERTS, line("notification_channels = var"), "", alerts, "each tells somebody"),
    ("an alert that the runbook does not know", ALERTS, re.compile(r"^    lost = \{", re.M), "    gone = {", runbook, "#lost says what an alert means"),
]

# What the program for operators must find in the plan too.
FOUND_IN_A_PLAN = {
    "no publisher of dead letters", "another role than publisher", "no subscriber on the source", "another role than subscriber",
    "no dead-letter subscription", "the dead-letter subscription is elsewhere", "no dead-letter policy", "no retry policy",
}


def mutated(text, what, instead):
    if isinstance(what, str):
        return text.replace(what, instead, 1)
    return what.sub(instead, text, count=1)


def without(text, resource):
    """The text without mentions of a resource that is gone, so that terraform finds nothing wrong with the rest."""
    text = re.sub(rf"(?m)^ *{re.escape(resource)},\n", "", text)
    return re.sub(rf"\b{re.escape(resource)}\b(\[[^]]*\])?(\.\w+)?", '"gone"', text)


def gone(before, after):
    """The resources that the mistake took away, or made another of."""
    declared = [set(re.findall(r'(?m)^resource "(\w+)" "(\w+)"', text)) for text in (before, after)]
    return [".".join(resource) for resource in declared[0] - declared[1]]


def attempt(copy, mistake):
    """What is wrong with how a mistake was met, if anything."""
    name, file, what, instead, refuses, says = mistake
    originals = {path: path.read_text(encoding="utf-8") for path in (copy / "terraform").rglob("*.tf")}
    target = copy / "terraform" / file
    text = mutated(originals[target], what, instead)
    if text == originals[target]:
        return f"{name}: the text is not in {file}"
    try:
        target.write_text(text, encoding="utf-8")
        for resource in gone(originals[target], text):
            for path in originals:
                path.write_text(without(path.read_text(encoding="utf-8"), resource), encoding="utf-8")
        return met(copy, name, refuses, says)
    finally:
        for path, original in originals.items():
            path.write_text(original, encoding="utf-8")


def met(copy, name, refuses, says):
    try:
        refuses(copy)
        return f"{name}: not refused"
    except Refused as refusal:
        if not re.search(says, refusal.said):
            return f"{name}: refused, but not with {says!r}:\n{refusal}"
    if PUSHONCE and name in FOUND_IN_A_PLAN:
        try:
            pushonce(copy)
            return f"{name}: `pushonce check` finds nothing in the plan"
        except Refused as refusal:
            if refusal.program != PUSHONCE:
                return f"{name}: no plan to look at:\n{refusal}"
    return None


def prepared(copy):
    """Initialised, and shown to pass as it is: what refuses a mistake must not refuse everything."""
    try:
        for folder in ("", "modules/sizing", "examples/orders"):
            run(copy / "terraform" / folder, "terraform", "init")
        for passes in ALL:
            passes(copy)
    except Refused as refusal:
        sys.exit(f"refused without a mistake: {refusal}")


def main():
    first = Path(sys.argv[1])
    prepared(first)
    copies = [first, first.with_name(first.name + "-2")]
    shutil.copytree(first, copies[1], symlinks=True)
    with concurrent.futures.ThreadPoolExecutor(len(copies)) as pool:
        work = [pool.submit(lambda part, copy: [attempt(copy, m) for m in part], MISTAKES[n :: len(copies)], copy) for n, copy in enumerate(copies)]
        wrong = [one for part in work for one in part.result() if one]
    print("\n".join(wrong) or f"{len(MISTAKES)} mistakes, each refused")
    return 1 if wrong else 0


sys.exit(main())
