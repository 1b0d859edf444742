"""A compute queue for tests: jobs are numbers. Every tenth fails at its first try. A job waits
until `allowed.txt` has its number or a higher one: so a test knows how far the queue is."""

import time
from pathlib import Path

from holdfast import Lane, Pipeline, Retry, Transient

ALLOWED = Path("allowed.txt")


def labels(number: int) -> dict[str, str]:
    return {"instanceId": f"instance-{number}", "traceId": f"trace-{number}"}


compute = Pipeline(
    "compute",
    input=int,
    lane=Lane("computeGenerationQueue", order="fifo"),
    key=str,
    labels=labels,
    max_attempts=10,
)


@compute.step(name="API_GENERATION", retry=Retry(base=0.01), max_attempts=5)
def api(input: int) -> int:
    tried = Path(f"tried-{input}")
    if input % 10 == 0 and not tried.exists():
        tried.touch()
        raise Transient("not yet")
    while input > int(ALLOWED.read_text()):
        time.sleep(0.01)
    with Path("order.txt").open("a") as file:
        file.write(f"{input}\n")
    return input
