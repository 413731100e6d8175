"""The story that the cluster's tests are about, played once, and everything that was seen of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import NamedTuple

from collectors import Jaeger
from ground_truth import Truth
from page_watch import Page, PageWatch
from stage import wait_for
from standalone import Cluster, Process
from theatre import ids_of_batch

HELD_WORKER, HELD_DRIVER, BROKEN, LATE = 1, 3, 4, 5
JOB = Path(__file__).with_name("cluster_job.py")


class Mark(NamedTuple):
    """An attempt of a task, by its own word."""

    stage: str  # hold: it reads; linger: it writes
    wave: int
    partition: int
    attempt: int
    worker: str


class Job:
    """The folder of the job: its input, its wishes and what it tells."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.truth = Truth(folder)
        for name in ("in", "wishes", "marks"):
            (folder / name).mkdir(parents=True)

    def feed(self, wave: int) -> None:
        """Put a file there whole; a quarter of its ids were in the wave before."""
        rows = 400 + 20 * wave
        first = sum(300 + 15 * earlier for earlier in range(wave))
        lines = [
            json.dumps({"id": 1000 + first - rows // 4 + n, "wave": wave, "pad": "." * 80})
            for n in range(rows)
        ]
        part = self.folder / f"wave-{wave}.part"
        part.write_text("\n".join(lines) + "\n")
        part.rename(self.folder / "in" / f"wave-{wave}.json")

    def wish(self, what: str) -> None:
        """Have tasks `hold-<wave>`, `linger-<wave>` or `break-<wave>`, or have the job `end`."""
        (self.folder / "wishes" / what).touch()

    def unwish(self, what: str) -> None:
        """Take a wish back."""
        (self.folder / "wishes" / what).unlink()

    def marks(self, wave: int, stage: str = "hold") -> set[Mark]:
        """The attempts of a wave's tasks so far, of one stage."""
        names = [file.name.split("-", 4) for file in (self.folder / "marks").iterdir()]
        found = {Mark(of, int(w), int(p), int(a), worker) for of, w, p, a, worker in names}
        return {mark for mark in found if (mark.stage, mark.wave) == (stage, wave)}

    def told(self, what: str) -> list[dict]:
        """What the job said, in order."""
        file = self.folder / "told.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [line for line in map(json.loads, lines) if line["what"] == what]


class Story(NamedTuple):
    """Everything that was seen."""

    job: Job
    lives: tuple[list[Page], list[Page]]  # the pages of each life of the driver
    held: Page  # batch 1, with tasks on both workers
    retried: Page  # the same batch, after one worker was killed
    lost: set[Mark]  # the attempts that were on it
    planned: Page  # batch 3, just before the driver was killed
    broken: Page  # after batch 4 has failed
    late: Page  # batch 5, after a worker was killed that had read its part
    end: Page
    left: str  # what the killed driver's file for Prometheus said
    status: int
    applications: set[str]  # by the master's word


def play(cluster: Cluster, job: Job, store: Jaeger, submit) -> Story:
    """Play it; `submit` hands the job in, and takes a name for its log."""
    sd_file = job.folder / "target.json"
    first = submit("driver-1")
    watch = PageWatch(sd_file, job.truth)
    feed_and_wait(job, watch, 0, first)
    held, retried, lost = _kill_worker(cluster, job, watch)
    feed_and_wait(job, watch, 2, first)
    planned = _kill_driver(job, watch, first, store)

    left = sd_file.read_text()
    job.unwish(f"hold-{HELD_DRIVER}")
    cluster.add_worker("worker-c")
    cluster.await_workers(2)
    second = submit("driver-2")
    again = PageWatch(sd_file, job.truth, last=watch.target)
    again.until(lambda p: p.value("last_committed_batch_id") == HELD_DRIVER, "the batch again")
    broken = _break_batch(job, again)
    late = _kill_late(cluster, job, again)
    end = again.until(_all_seen, "the last look at the disk")
    apps = {app["id"] for kind in ("activeapps", "completedapps") for app in cluster.page()[kind]}
    again.stop()
    job.wish("end")
    status = second.wait(60)
    return Story(
        job=job,
        lives=(watch.pages, again.pages),
        held=held,
        retried=retried,
        lost=lost,
        planned=planned,
        broken=broken,
        late=late,
        end=end,
        left=left,
        status=status,
        applications=apps,
    )


def _all_seen(page: Page) -> bool:
    """Whether the disk was looked at after the last batch."""
    waits = page.value("source_backlog_files", source="0-file")
    return page.value("checkpoint_last_commit_batch_id") == LATE and waits == 0


def feed_and_wait(job: Job, watch: PageWatch, wave: int, driver: Process) -> None:
    """A batch as it should be."""
    driver.assert_alive()
    job.feed(wave)
    watch.until(lambda p: p.value("last_committed_batch_id") == wave, f"batch {wave}")


def _kill_worker(cluster: Cluster, job: Job, watch: PageWatch) -> tuple[Page, Page, set[Mark]]:
    """Kill one of two workers while each has a task of the batch; then let the batch go on."""
    wave = HELD_WORKER
    job.wish(f"hold-{wave}")
    job.feed(wave)
    _await_both(cluster, job, wave, "hold")
    held = watch.until(lambda p: p.value("inflight_tasks", state="running") == 2, "two tasks")
    victim = min(cluster.workers)
    lost = {mark for mark in job.marks(wave) if mark.worker == victim}
    cluster.lose_worker(victim)
    retried = watch.until(
        lambda p: p.value("inflight_tasks", state="failed") and _is_planned(p), "the lost task"
    )
    job.unwish(f"hold-{wave}")
    watch.until(lambda p: p.value("last_committed_batch_id") == wave, "the batch, tried again")
    return held, retried, lost


def _is_planned(page: Page) -> bool:
    """Whether a batch was found on disk that is planned and not committed."""
    return page.value("checkpoint_uncommitted_batches") == 1


def _await_both(cluster: Cluster, job: Job, wave: int, stage: str) -> None:
    def both() -> bool:
        return {mark.worker for mark in job.marks(wave, stage)} == set(cluster.workers)

    wait_for(both, 90, "tasks on both workers")


def _kill_driver(job: Job, watch: PageWatch, driver: Process, store: Jaeger) -> Page:
    """Kill the driver while a task of the batch runs, and the trace of the batch before is sent."""
    wave = HELD_DRIVER
    before = ids_of_batch(job.told("run")[-1]["run_id"], wave - 1)
    wait_for(lambda: store.trace(before.trace_id), 30, "the trace of the batch before")
    job.wish(f"hold-{wave}")
    job.feed(wave)
    wait_for(lambda: job.marks(wave), 90, "a task of the batch")
    planned = watch.until(
        lambda p: p.value("inflight_batch_seconds") and _is_planned(p), "the batch under way"
    )
    driver.kill()
    watch.stop()
    return planned


def _break_batch(job: Job, watch: PageWatch) -> Page:
    """Have a batch fail; the job starts the query again once it can work."""
    job.wish(f"break-{BROKEN}")
    job.feed(BROKEN)
    broken = watch.until(lambda p: p.states == {"failed"}, "the failure")
    time.sleep(1)  # a gap that can be told from none
    job.unwish(f"break-{BROKEN}")
    watch.until(lambda p: p.value("last_committed_batch_id") == BROKEN, "the batch, mended")
    return broken


def _kill_late(cluster: Cluster, job: Job, watch: PageWatch) -> Page:
    """Kill a worker that has read its part of the batch, and writes: what it read is lost too."""
    wave = LATE
    job.wish(f"linger-{wave}")
    job.feed(wave)
    _await_both(cluster, job, wave, "hold")
    _await_both(cluster, job, wave, "linger")
    cluster.lose_worker("worker-c")
    late = watch.until(lambda p: p.value("inflight_tasks", state="failed"), "the lost task")
    job.unwish(f"linger-{wave}")
    watch.until(lambda p: p.value("last_committed_batch_id") == wave, "the batch, read again")
    return late
