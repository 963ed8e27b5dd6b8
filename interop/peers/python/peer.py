"""A Python service with redis-py's own Lock: SET NX PX, and scripts that compare before they delete or extend.

A JSON request a line comes in, a JSON answer a line goes out. Verbs: interop/README.md.
"""

import json
import random
import sys
import time

import redis

class Peer:
    def __init__(self, port):
        self.redis = redis.Redis(host="127.0.0.1", port=port, decode_responses=True)
        self.locks = {}

    def lock(self, request):
        """One Lock object per name and lease, as a service has; the object knows what it holds."""
        lease_ms = request.get("leaseMs", 30_000)
        key = (request["name"], lease_ms)
        if key not in self.locks:
            self.locks[key] = self.redis.lock(request["name"], timeout=lease_ms / 1000, thread_local=False)
        return self.locks[key]

    def acquire(self, request):
        wait_ms = request.get("waitMs", 0)
        lock = self.lock(request)
        if wait_ms == 0:
            return lock.acquire(blocking=False)
        return lock.acquire(blocking_timeout=wait_ms / 1000)

    def release(self, request):
        self.lock(request).release()
        return True

    def extend(self, request):
        return self.lock(request).extend(request["byMs"] / 1000, replace_ttl=True)

    def is_locked(self, request):
        return self.lock(request).locked()

    def contend(self, request):
        """Takes the lock again and again and updates a counter that only the lock protects."""
        end_at = time.monotonic() + request["forMs"] / 1000
        rounds = refusals = 0
        longest = 0.0
        while time.monotonic() < end_at:
            asked_at = time.monotonic()
            is_held = self.acquire(request)
            longest = max(longest, time.monotonic() - asked_at)
            if not is_held:
                refusals += 1
                continue
            seen = int(self.redis.get(request["counter"]))
            time.sleep(random.random() * 0.003)
            self.redis.set(request["counter"], seen + 1)
            self.release(request)
            rounds += 1
            time.sleep(random.random() * 0.003)
        return {"rounds": rounds, "refusals": refusals, "longestWaitMs": int(longest * 1000)}

    def call(self, request):
        verbs = {
            "version": lambda _: redis.__version__,
            "acquire": self.acquire,
            "release": self.release,
            "extend": self.extend,
            "isLocked": self.is_locked,
            "contend": self.contend,
        }
        return verbs[request["verb"]](request)


def main():
    peer = Peer(json.loads(sys.argv[1])["port"])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": True, "value": peer.call(request)}
        except Exception as error:  # reports every error to the test
            answer = {"ok": False, "error": type(error).__name__, "message": str(error)}
        print(json.dumps({"id": request["id"], **answer}), flush=True)


main()
