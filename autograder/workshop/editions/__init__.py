"""`make editions`: the whole book as one PDF, made from the built pages."""
