"""spare-gpu: pods that ask for no GPU prefer nodes that have none, so that GPUs stay free for those that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from stromboli.api.names import NVIDIA_GPU
from stromboli.scheduler.core import policy
from stromboli.scheduler.core.plugin import Hooks, Plugin, Score

if TYPE_CHECKING:
    from stromboli.scheduler.core.columns import Floats
    from stromboli.scheduler.core.records import Task
    from stromboli.scheduler.core.tables import Rows
    from stromboli.scheduler.core.view import View


class Arguments(BaseModel):
    """What may stand under ``arguments``; checked when the policy file is loaded."""

    model_config = ConfigDict(extra="forbid")
    weight: int = Field(default=10, alias="spare-gpu.weight")


class SpareGpu(Plugin):
    """One score: 100 times the weight for nodes without GPUs, for pods without a GPU request."""

    name: ClassVar[str] = "spare-gpu"
    arguments_model = Arguments

    def open(self, view: View) -> Hooks:
        self._weight = policy.integer(self.arguments, "spare-gpu.weight", 10)
        self._nodes = view.nodes
        self._gpu = view.columns.get(NVIDIA_GPU)
        return Hooks(scores=[Score("spare-gpu", self._rate)] if self._gpu is not None else [])

    def _rate(self, task: Task, rows: Rows) -> Floats | None:
        assert self._gpu is not None
        if task.request[self._gpu] > 0.0:
            return None
        without = self._nodes.allocatable[rows, self._gpu] == 0.0
        return np.where(without, 100.0 * self._weight, 0.0)
