"""The reasons why a query's candidates moved: its neighbourhood, a picture, and a page."""
