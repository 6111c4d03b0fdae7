"""malformed, wrong-format: a notebook of 2013."""

def submission(notebook, folder):
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {}, "worksheets": [{"cells": notebook["cells"]}]}
