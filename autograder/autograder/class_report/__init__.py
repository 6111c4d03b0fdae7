"""`autograder report`: one page on a whole class, for whoever teaches it.

overview      what the page says, counted from the stored results and the gradebook
predictions   what students predicted, beside what is counted
class_figures its plots
class_page    the page, one file without scripts, and its links to the feedback pages
"""
