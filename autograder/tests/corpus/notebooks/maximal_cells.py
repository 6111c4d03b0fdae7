"""malformed, long-text: as many cells as may be of the greatest length that one may have, all of which Python takes long over."""


def submission(notebook, folder):
    mine = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    chain = "import " + "a." * 99_996 + "a"
    notebook["cells"][1:1] = [mine | {"id": f"c{n}", "source": chain} for n in range(90)]
    return notebook
