"""Who refuses a mistake: each of these looks at a copy of the module in its own way, and raises `Refused`."""
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PUSHONCE = os.environ.get("PUSHONCE_BIN")


class Refused(Exception):
    """A program ended with an error; `said` is all that it said, however it wrapped its lines."""

    def __init__(self, program, said):
        super().__init__(said)
        self.program = program
        self.said = re.sub(r"[\s│]+", " ", said)


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise Refused(command[0], done.stdout)
    return done.stdout


def validate(copy):
    run(copy / "terraform", "terraform", "validate")


def tests(name):
    def of_one_file(copy):
        run(copy / "terraform", "terraform", "test", f"-filter=tests/{name}.tftest.hcl")

    return of_one_file


push, grants, auth, service, store, dead, eventarc, alerts = map(
    tests, ("push", "grants", "auth", "service", "store", "dead_letter", "eventarc", "alerts")
)


def sizing(copy):
    run(copy / "terraform/modules/sizing", "terraform", "test")


def plan(copy, *options):
    """Of the example, as JSON."""
    example = copy / "terraform/examples/orders"
    run(example, "terraform", "plan", "-var-file=ci.tfvars", "-out=plan.bin", *options)
    (example / "plan.json").write_text(run(example, "terraform", "show", "-json", "plan.bin"), encoding="utf-8")
    return example / "plan.json"


def order(copy):
    run(copy, sys.executable, HERE / "plan.py", "order", plan(copy))


def runbook(copy):
    run(copy, sys.executable, HERE / "plan.py", "runbook", plan(copy), "docs/runbook.md")


def replaced(copy):
    example = copy / "terraform/examples/orders"
    try:
        run(example, "terraform", "apply", "-auto-approve", "-var-file=ci.tfvars")
        again = plan(copy, "-replace=module.orders.google_pubsub_subscription.push[0]")
        run(copy, sys.executable, HERE / "plan.py", "replaced", again)
    finally:
        (example / "terraform.tfstate").unlink(missing_ok=True)


def pushonce(copy):
    run(copy, PUSHONCE, "check", "--plan", plan(copy))


ALL = [validate, sizing, order, runbook, replaced, push, grants, auth, service, store, dead, eventarc, alerts]
if PUSHONCE:
    ALL.append(pushonce)
