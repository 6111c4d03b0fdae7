"""The whole book in one file, twice: a PDF for paper and an ePub for readers, made of the built pages."""
