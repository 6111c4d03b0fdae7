"""The book's figures, one module a chapter: each function returns a figure of `warplab.plots`."""
