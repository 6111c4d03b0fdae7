"""30 points: cells that Python's parser takes long over: it joins the first two names, the first three, ..."""


def submission(notebook, folder):
    mine = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    chain = "import " + "a." * 5_000 + "a"
    notebook["cells"][1:1] = [mine | {"id": f"c{n}", "source": chain} for n in range(12)]
    return notebook
