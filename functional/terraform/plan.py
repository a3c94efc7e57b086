#!/usr/bin/env python3
"""Reads `terraform show -json` for what `terraform test` cannot see.

plan.py order PLAN              the push comes after the grants that let it in, and no grant is authoritative
plan.py replaced PLAN           with the subscription its grant is replaced
plan.py runbook PLAN RUNBOOK    each alert links a heading of the runbook, and each heading of an alert has one
"""
import json
import re
import sys


def modules(module):
    yield module
    for call in module.get("module_calls", {}).values():
        yield from modules(call["module"])


def order(plan):
    resources = [r for m in modules(plan["configuration"]["root_module"]) for r in m.get("resources", [])]
    found = [r for r in resources if r["type"] in ("google_pubsub_subscription", "google_eventarc_trigger") and r["name"] in ("push", "this")]
    if len(found) != 2:
        yield f"expected a subscription and a trigger that push, found {[r['address'] for r in found]}"
    for resource in found:
        for grant in ("push_invoker", "public_invoker"):
            if f"google_cloud_run_v2_service_iam_member.{grant}" not in resource.get("depends_on", []):
                yield f"{resource['address']} does not wait for the grant {grant}"
    for resource in resources:
        if re.search(r"_iam_(binding|policy)$", resource["type"]):
            yield f"{resource['address']} takes away what others granted: use _iam_member"


def replaced(plan):
    actions = {c["address"]: c["change"]["actions"] for c in plan["resource_changes"]}
    for address in ("google_pubsub_subscription.push[0]", "google_pubsub_subscription_iam_member.source_subscriber[0]"):
        if "delete" not in actions[f"module.orders.{address}"]:
            yield f"{address} is not replaced: {actions[f'module.orders.{address}']}"


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def runbook(plan, path):
    alerts = {}
    for change in plan["resource_changes"]:
        if change["type"] == "google_monitoring_alert_policy":
            link = re.search(r"runbook\.md#(\S+)$", change["change"]["after"]["documentation"][0]["content"])
            alerts[change["address"]] = link and link[1]
    with open(path, encoding="utf-8") as file:
        text = file.read()
    headings = {slug(heading) for heading in re.findall(r"^#+ (.+)$", text, re.M)}
    # The section of an alert begins by saying what it means.
    meant = {slug(heading) for heading in re.findall(r"^#+ (.+)\n+\*\*Means\.\*\*", text, re.M)}
    for address, anchor in alerts.items():
        if anchor not in headings:
            yield f"{address} links #{anchor}, which is no heading of {path}"
    for anchor in sorted(meant - set(alerts.values())):
        yield f"{path}: #{anchor} says what an alert means, and there is no such alert"
    if not alerts or not meant:
        yield f"{len(alerts)} alerts, and {len(meant)} sections of {path} that say what one means"


def main():
    what, plan, *rest = sys.argv[1:]
    with open(plan, encoding="utf-8") as file:
        wrong = list({"order": order, "replaced": replaced, "runbook": runbook}[what](json.load(file), *rest))
    print("\n".join(wrong) or f"{what}: ok")
    return 1 if wrong else 0


sys.exit(main())
