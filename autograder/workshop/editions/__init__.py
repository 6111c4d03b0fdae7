"""The whole book as one PDF, made of the built pages."""
