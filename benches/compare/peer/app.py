"""The Python peer as its README serves it on Cloud Run: Flask behind gunicorn, `lock` around work that does nothing.

PEER_STORE is memory, redis, postgres or datastore, PEER_ADDRESS where that is, and PEER_PLACE a table, prefix or
namespace that nobody else has. Run as a program, it makes the table.
"""

import os

from flask import Flask, request
from gcp_pubsub_idempotency import DatastoreLock, Duplicate, InMemoryLock, InProgress, RedisLock, SqlLock, lock, message_id


def sql(address, place):
    from sqlalchemy import create_engine

    # One connection for each thread, none beyond; what is given back is rolled back only if something is open.
    threads = int(os.environ.get("PEER_THREADS", "1"))
    address = address.replace("postgres://", "postgresql+psycopg://", 1)
    engine = create_engine(address, pool_size=threads, max_overflow=0)
    return SqlLock(engine.raw_connection, table=place)


def backend():
    address, place = os.environ.get("PEER_ADDRESS", ""), os.environ.get("PEER_PLACE", "")
    match os.environ["PEER_STORE"]:
        case "memory":
            return InMemoryLock()
        case "redis":
            import redis

            return RedisLock(redis.Redis.from_url(address), prefix=place)
        case "postgres":
            return sql(address, place)
        case "datastore":
            # The client finds the emulator by DATASTORE_EMULATOR_HOST.
            return DatastoreLock(project="p1", namespace=place)
        case other:
            raise SystemExit(f"PEER_STORE is {other!r}")


BACKEND = backend()
app = Flask(__name__)


@app.post("/")
def push():
    key = message_id(request.get_json())
    if key is None:
        return "no message id", 400
    try:
        with lock(key, backend=BACKEND):
            pass
    except Duplicate:
        return "", 204
    except InProgress:
        return "", 503
    return "", 200


if __name__ == "__main__":
    BACKEND.create_table()
