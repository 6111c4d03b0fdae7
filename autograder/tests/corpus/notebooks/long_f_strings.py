"""30 points: f-strings of ten thousand fields; until Python 3.12 each is looked for from the line's beginning."""


def submission(notebook, folder):
    mine = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    text = "a = 1\nx = f'" + "{a}" * 10_000 + "'"
    notebook["cells"][1:1] = [mine | {"id": f"c{n}", "source": text} for n in range(12)]
    return notebook
