"""Published results: the papers' tables cell by cell, what is known here of each, and the pages that show it."""
