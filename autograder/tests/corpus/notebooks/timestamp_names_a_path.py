"""30 points: a timestamp of long ago whose zone is a path, which nbgrader's own parser would open."""

def submission(document, folder):
    (folder / "timestamp.txt").write_text("2001-01-01 12:00:00 ..")
    return document
