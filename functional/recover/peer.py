"""The Python peer, wired as its README says: Functions Framework, @idempotent, one effect for each message.

Its sink is told the idempotency key, as the README advises ("key your sink").
"""

import os
import urllib.request
from datetime import timedelta

import functions_framework
import psycopg
from gcp_pubsub_idempotency import SqlLock, idempotent

DATABASE = os.environ["DATABASE_URL"]
SUPPLIER = os.environ["SUPPLIER_URL"]
LEASE = os.environ.get("LEASE_MS")

backend = SqlLock(lambda: psycopg.connect(DATABASE))
backend.create_table()
settings = {"lease": timedelta(milliseconds=int(LEASE))} if LEASE else {}


def post(path, key):
    request = urllib.request.Request(SUPPLIER + path, data=b"", headers={"Idempotency-Key": key}, method="POST")
    urllib.request.urlopen(request).close()


@idempotent(backend=backend, **settings)
@functions_framework.cloud_event
def charge(event):
    key = event.data["message"]["messageId"]
    post("/look-up", key)
    post("/charge", key)


print("its process group is", os.getpgid(0))
