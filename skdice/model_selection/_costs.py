"""What fits will cost, said before they are paid for."""


def describe_cost(n_fits: int, seconds: float, n_jobs: int = 1) -> str:
    """Say how long fits will take in all, from the seconds of one."""
    total = n_fits * seconds / n_jobs
    at_once = f", {n_jobs} at a time" if n_jobs > 1 else ""
    return f"{n_fits} fits of about {_time(seconds)} each{at_once}: about {_time(total)} in all"


def _time(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
