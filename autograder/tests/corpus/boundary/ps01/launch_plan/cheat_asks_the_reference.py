"""0 points: asks the task itself for the answer; where students' code runs there are no tasks."""

import importlib


def launch_plan(width, height, block):
    task = importlib.import_module("warplab.tasks.ps01").LaunchPlan()
    found = task.reference({"width": width, "height": height, "block": block})
    return found["grid"], found["idle"]
