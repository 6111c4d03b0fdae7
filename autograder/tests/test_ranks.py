"""Processes that stay open: they answer by rank, say which of them failed, and never outlive a failure."""

import pytest
import torch
import torch.distributed as dist
from warplab import ranks
from warplab.ranks import RankError, Ranks

pytestmark = pytest.mark.slow  # a process that imports torch


def test_answers_come_by_rank_and_tensors_travel_both_ways():
    three = Ranks(3)
    try:
        assert three.run(lambda x, by: (dist.get_rank(), (x * by).tolist()), torch.arange(3), 2) == [(rank, [0, 2, 4]) for rank in range(3)]
        assert torch.equal(three.run(lambda: torch.full((2,), float(dist.get_rank())))[2], torch.tensor([2.0, 2.0]))
    finally:
        three.close()


def test_ranks_say_which_of_them_failed_and_end():
    with pytest.raises(ValueError, match="0 ranks"):
        Ranks(0)
    two = Ranks(2)
    processes = list(two._processes)
    with pytest.raises(RankError, match="rank 1: ZeroDivisionError"):
        two.run(lambda: 1 / (dist.get_rank() - 1))
    assert not any(process.is_alive() for process in processes)
    with pytest.raises(RankError, match="closed"):
        two.run(dist.get_rank)


def test_a_message_that_nobody_sends_is_not_waited_for_for_ever(monkeypatch):
    two = Ranks(2)
    two.run(dist.get_rank)
    monkeypatch.setattr(ranks, "PATIENCE_S", 1.0)
    with pytest.raises(RankError, match="no answer within 1 s from rank 0"):
        two.run(lambda: dist.recv(torch.empty(1), 1) if dist.get_rank() == 0 else None)
    assert two._processes == []
