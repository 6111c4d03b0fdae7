"""`autograder report`: one page on a whole class, for its instructor.

overview      the data of the page, from the stored results and the gradebook
predictions   what students predicted, beside the right counts
class_figures the plots
class_page    the page: one HTML file without scripts, with links to the feedback pages
class_table   an optional page for the class: who has the best counts in one task, under pseudonyms
"""
