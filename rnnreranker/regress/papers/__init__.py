"""Published results: the papers' tables cell by cell, our values of each, and their pages."""
