"""The Python peer as its README serves it on Cloud Run: Flask behind gunicorn, `lock` around the work.

Its sink is told the idempotency key, as the README advises ("key your sink").
"""

import os
import urllib.request
from datetime import timedelta

import psycopg
from flask import Flask, request
from gcp_pubsub_idempotency import Duplicate, InProgress, SqlLock, lock, message_id

DATABASE = os.environ["DATABASE_URL"]
SUPPLIER = os.environ["SUPPLIER_URL"]
LEASE = os.environ.get("LEASE_MS")

backend = SqlLock(lambda: psycopg.connect(DATABASE))
backend.create_table()
settings = {"lease": timedelta(milliseconds=int(LEASE))} if LEASE else {}
app = Flask(__name__)


def post(path, key):
    effect = urllib.request.Request(SUPPLIER + path, data=b"", headers={"Idempotency-Key": key}, method="POST")
    urllib.request.urlopen(effect).close()


@app.post("/")
def push():
    key = message_id(request.get_json())
    try:
        with lock(key, backend=backend, **settings):
            post("/look-up", key)
            post("/charge", key)
    except Duplicate:
        return "", 204
    except InProgress:
        return "", 503
    return "", 200


print("its process group is", os.getpgid(0))
