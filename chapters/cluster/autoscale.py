"""Requests, replicas and a rule: a queue in front of GPU servers whose number a
HorizontalPodAutoscaler decides. Simulated.

A replica is `slots` answers at a time, each of which takes `answer` seconds (chapter
9's bound for a full batch). Every 15 s, which is Kubernetes' default, the rule sees how
many requests are in flight and says how many replicas it wants. A new one is paid from
the moment it is asked for and answers after `cold` seconds: a machine must come, the
image and the weights must be loaded. One that goes finishes the answers it has begun.
"""

import heapq
from collections import deque
from dataclasses import dataclass

import numpy as np

SYNC = 15.0  # s: --horizontal-pod-autoscaler-sync-period
DAY = 86_400.0


@dataclass(frozen=True)
class Day:
    """latency: s for each request; times, replicas, ready: at each sync."""

    latency: np.ndarray
    times: np.ndarray
    replicas: np.ndarray
    ready: np.ndarray

    @property
    def gpu_hours(self):
        return self.replicas.sum() * SYNC / 3600

    def p95(self):
        return float(np.percentile(self.latency, 95))


def arrivals(most, least, surge=1.0, seed=11):
    """Times in s of a day's requests, Poisson: `least` a second at midnight, `most` at
    noon, times `surge` from 18:00 to 18:30.
    """
    rng = np.random.default_rng(seed)
    top = most * max(surge, 1.0)
    times = np.sort(rng.uniform(0, DAY, rng.poisson(top * DAY)))
    rate = least + (most - least) * (1 - np.cos(2 * np.pi * times / DAY)) / 2
    rate = np.where((times >= 18 * 3600) & (times < 18.5 * 3600), rate * surge, rate)
    return times[rng.uniform(0, top, len(times)) < rate]


def simulate(came, wish, *, slots, answer, cold, limits=(1, 24), window=300.0):
    """A Day of requests at the times `came`, in s.

    wish(replicas, in_flight): how many replicas the rule wants. Around it Kubernetes'
    defaults: never outside `limits`; up at once, at most doubling or 4 more in a sync;
    down only to the highest wish of the last `window` s.
    """
    latency, waiting, running = np.empty(len(came)), deque(), []
    replicas = ready = limits[0]
    starting, wishes, rows, first = [], deque(), [], 0

    def begin(now):
        while waiting and len(running) < slots * ready:
            heapq.heappush(running, (now + answer, waiting.popleft()))

    def finish(now):
        while running and running[0][0] <= now:
            end, number = heapq.heappop(running)
            latency[number] = end - came[number]
            begin(end)

    for now in np.arange(0, DAY + SYNC, SYNC):
        while first < len(came) and came[first] < now:
            finish(came[first])
            waiting.append(first)
            begin(came[first])
            first += 1
        finish(now)
        wanted = wish(replicas, len(running) + len(waiting))
        wishes.append((now, wanted))
        while wishes[0][0] < now - window:
            wishes.popleft()
        if wanted < replicas:
            wanted = min(replicas, max(wished for _, wished in wishes))
        wanted = max(limits[0], min(limits[1], wanted, max(2 * replicas, replicas + 4)))
        starting = [due for due in starting if due > now] + [now + cold] * (wanted - replicas)
        starting = starting[
            : len(starting) - max(0, replicas - wanted)
        ]  # who has not begun to answer goes first
        replicas, ready = wanted, wanted - len(starting)
        begin(now)
        rows.append((now, replicas, ready))
    while running:
        finish(running[0][0])
    times, replicas, ready = np.array(rows).T
    return Day(latency, times, replicas, ready)
