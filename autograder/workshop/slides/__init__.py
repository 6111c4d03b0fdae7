"""A lecture of forty minutes for each chapter, as slides made of its built page.

lectures.yml says which figures and cells are shown and what the room is asked; everything else is the page's.
"""
