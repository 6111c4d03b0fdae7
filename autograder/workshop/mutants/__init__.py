"""Mutation testing of the checks: each reference solution, wrong in one place at a time, must lose points."""
