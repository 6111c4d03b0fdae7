"""`make slides`: a lecture of forty minutes for each chapter, as slides made from its built page.

lectures.yml chooses the figures, cells and questions; everything else comes from the page.
"""
