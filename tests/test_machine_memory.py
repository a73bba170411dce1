"""How much memory there is, as the kernel's files say it: of the machine, and of control groups of both versions."""

import pytest

import tusk.machine_memory
from tusk.errors import UserError
from tusk.machine_memory import Memory, check_fits, machine_memory

GB = 1 << 30


def system(root, groups="", files=None, total=16, free=10):
    files = {
        "proc/meminfo": f"MemTotal: {total << 20} kB\nMemFree: 1 kB\nMemAvailable: {free << 20} kB\n",
        "proc/self/cgroup": groups,
        **{f"sys/fs/cgroup/{name}": text for name, text in (files or {}).items()},
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{text}\n")
    return root


def test_a_machine_without_limits(tmp_path):
    assert machine_memory(system(tmp_path)) == Memory(16 * GB, 10 * GB)


def test_the_narrowest_of_all_groups_counts_and_files_that_were_read_do_not(tmp_path):
    files = {
        "memory.max": "max",
        "a/memory.max": 4 * GB, "a/memory.current": 3 * GB, "a/memory.stat": f"anon 5\ninactive_file {2 * GB}",
        "a/b/memory.max": 8 * GB, "a/b/memory.current": 1 * GB,
    }  # fmt: skip
    assert machine_memory(system(tmp_path, "0::/a/b", files)) == Memory(4 * GB, 3 * GB)


def test_a_container_that_does_not_see_the_hosts_path(tmp_path):
    files = {"memory.max": 2 * GB, "memory.current": GB}
    assert machine_memory(system(tmp_path, "0::/docker/123", files)) == Memory(2 * GB, GB)


def test_groups_of_the_first_version(tmp_path):
    files = {
        "memory/memory.limit_in_bytes": 1 << 62, "memory/memory.usage_in_bytes": 9 * GB,
        "memory/job/memory.limit_in_bytes": 3 * GB, "memory/job/memory.usage_in_bytes": 4 * GB,
    }  # fmt: skip
    groups = "5:cpu,cpuacct:/job\n4:memory:/job"
    assert machine_memory(system(tmp_path, groups, files)) == Memory(3 * GB, 0)


def test_a_system_that_does_not_say_falls_back(tmp_path, monkeypatch):
    assert machine_memory(tmp_path).total > GB, "this machine's, as Python tells it"
    monkeypatch.setattr(tusk.machine_memory, "_of_others", lambda: None)
    assert machine_memory(tmp_path) is None


def test_what_fits_is_said_and_what_does_not_is_refused(monkeypatch):
    monkeypatch.setattr(tusk.machine_memory, "machine_memory", lambda: Memory(16 * GB, 10 * GB))
    assert check_fits(6 * GB, "a", "b") == "Needs about 6.0 GB of 10.0 GB of free memory."
    with pytest.raises(UserError, match=r"^batch 9: this needs about 12.0 GB of memory, and 10.0 GB are free; less\.$"):
        check_fits(12 * GB, "batch 9", "less")
    with pytest.raises(UserError, match=r"6\.0 GB of memory in each of 2 processes"):
        check_fits(6 * GB, "a", "b", processes=2)
    monkeypatch.setattr(tusk.machine_memory, "machine_memory", lambda: None)
    assert "this system does not say" in check_fits(12 * GB, "a", "b")
